/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Finds the statistics pages of engines, reads them, and asks for more
 * (pages.h).
 */
#include "pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is_page(const struct dirent *entry)
{
    return strncmp(entry->d_name, LAWN_PAGE_PREFIX, strlen(LAWN_PAGE_PREFIX)) ==
           0;
}

/* Returns whether the process has the page in its memory. */
static bool is_in_use(const char *path, int64_t pid)
{
    char name[64];
    char line[4096];
    bool found = false;
    snprintf(name, sizeof(name), "/proc/%lld/maps", (long long)pid);
    FILE *maps = fopen(name, "re");
    if (!maps) {
        return errno != ENOENT; /* if it is unknown, the page stays */
    }
    while (!found && fgets(line, sizeof(line), maps)) {
        const char *at = strstr(line, path);
        found = at && at[strlen(path)] == '\n';
    }
    fclose(maps);
    return found;
}

/* Returns whether the PID of a page is a PID of this process's namespace. */
static bool is_of_namespace(const lawn_page_owner_t *owner)
{
    struct stat status = {0};
    return owner->pid_namespace != 0 &&
           stat(LAWN_PAGE_NAMESPACE, &status) == 0 &&
           status.st_ino == owner->pid_namespace;
}

/* Anybody may make a page that everybody may open. Who cuts a page short kills
 * those that have it in their memory. Only root has to trust other users, as it
 * shows their pages, too. */
static bool is_trusted(const struct stat *status)
{
    return status->st_uid == geteuid() || geteuid() == 0;
}

static lawn_page_t *map_page(const char *path)
{
    struct stat status = {0};
    void *memory = MAP_FAILED;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            is_trusted(&status) &&
            status.st_size == (off_t)sizeof(lawn_page_t)) {
            memory = mmap(NULL, sizeof(lawn_page_t), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd, 0);
        }
        close(fd);
    }
    return memory != MAP_FAILED ? memory : NULL;
}

/* Returns NULL unless the page can be read, is of this version and of process
 * `pid` (0: of any), and may be in use. Removes a page that is not. Keeps a
 * page of another PID namespace, where its process may live. */
static lawn_page_t *open_page(const char *path, int64_t pid)
{
    lawn_page_t *shared = map_page(path);
    if (!shared) {
        return NULL;
    }
    bool is_good =
        __atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE) == LAWN_PAGE_MAGIC &&
        shared->size == sizeof(lawn_page_t);
    if (is_good && is_of_namespace(&shared->owner) &&
        !is_in_use(path, shared->owner.pid)) {
        unlink(path);
        is_good = false;
    }
    if (!is_good || (pid != 0 && shared->owner.pid != pid)) {
        munmap(shared, sizeof(lawn_page_t));
        return NULL;
    }
    return shared;
}

bool pages_open(pages_t *pages, int64_t pid)
{
    struct dirent **names;
    pages->count = 0;
    int count = scandir(LAWN_PAGE_DIRECTORY, &names, is_page, versionsort);
    if (count < 0) {
        return false;
    }
    pages->pages = calloc((size_t)count + 1, sizeof(page_t));
    for (int i = 0; i < count; ++i) {
        if (pages->pages) {
            page_t *page = &pages->pages[pages->count];
            snprintf(page->path, sizeof(page->path), "%s/%s",
                     LAWN_PAGE_DIRECTORY, names[i]->d_name);
            page->shared = open_page(page->path, pid);
            pages->count += page->shared != NULL;
        }
        free(names[i]);
    }
    free(names);
    return pages->pages != NULL;
}

void pages_keep_here(pages_t *pages)
{
    size_t kept = 0;
    for (size_t i = 0; i < pages->count; ++i) {
        const lawn_page_owner_t *owner = &pages->pages[i].shared->owner;
        if (owner->pid_namespace == 0 || is_of_namespace(owner)) {
            pages->pages[kept++] = pages->pages[i];
        } else {
            munmap(pages->pages[i].shared, sizeof(lawn_page_t));
        }
    }
    pages->count = kept;
}

void pages_close(pages_t *pages)
{
    for (size_t i = 0; i < pages->count; ++i) {
        munmap(pages->pages[i].shared, sizeof(lawn_page_t));
    }
    free(pages->pages);
    pages->pages = NULL;
    pages->count = 0;
}

static bool read_page(page_t *page)
{
    const lawn_page_t *shared = page->shared;
    const uint64_t *from = (const uint64_t *)&shared->state;
    uint64_t *to = (uint64_t *)&page->state;
    uint32_t before = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < sizeof(page->state) / sizeof(uint64_t); ++i) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    }
    return before % 2 == 0 &&
           before == __atomic_load_n(&shared->sequence, __ATOMIC_RELAXED);
}

void pages_read(pages_t *pages)
{
    for (size_t i = 0; i < pages->count; ++i) {
        /* If an engine was killed while it wrote, the sequence stays odd. */
        for (int tries = 0; tries < 1000 && !read_page(&pages->pages[i]);) {
            ++tries;
        }
    }
}

void pages_ask_backlog(pages_t *pages)
{
    for (size_t i = 0; i < pages->count; ++i) {
        page_t *page = &pages->pages[i];
        page->asked_at =
            __atomic_load_n(&page->shared->sequence, __ATOMIC_RELAXED);
        __atomic_fetch_add(&page->shared->backlog_asked, 1, __ATOMIC_RELAXED);
    }
}

/* An engine looks for questions before it writes its page. The write that comes
 * first may have been too early for ours; the second is not. */
static bool has_counted(const page_t *page)
{
    const lawn_page_t *shared = page->shared;
    const uint32_t steps =
        __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) - page->asked_at;
    return steps >= 4 ||
           __atomic_load_n(&shared->state.asleep, __ATOMIC_RELAXED) != 0;
}

void pages_await_backlog(const pages_t *pages)
{
    size_t counted = 0;
    for (int tries = 0; tries < 100; ++tries) {
        while (counted < pages->count && has_counted(&pages->pages[counted])) {
            ++counted;
        }
        if (counted == pages->count) {
            break;
        }
        sleep_msec(3);
    }
}

static bool await_trace(const lawn_page_t *shared, uint32_t asked)
{
    for (int tries = 0; tries < 200; ++tries) {
        if (__atomic_load_n(&shared->trace_answered, __ATOMIC_ACQUIRE) ==
            asked) {
            return true;
        }
        sleep_msec(10);
    }
    return false;
}

lawn_status_t page_trace(page_t *page, const char *path)
{
    lawn_page_t *shared = page->shared;
    const size_t length = strlen(path);
    if (length >= sizeof(shared->trace_path)) {
        errno = ENAMETOOLONG;
        return LAWN_ERR_IO;
    }
    memcpy(shared->trace_path, path, length + 1);
    const uint32_t asked =
        __atomic_add_fetch(&shared->trace_asked, 1, __ATOMIC_RELEASE);
    /* An engine that sleeps must not obey when it wakes. If it has just taken
     * the request, its answer is about to come. */
    if (!await_trace(shared, asked) &&
        (lawn_page_take_trace(shared, asked) || !await_trace(shared, asked))) {
        return LAWN_ERR_TIMED_OUT;
    }
    errno = shared->trace_errno;
    return (lawn_status_t)shared->trace_status;
}

uint64_t page_age(const page_t *page)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    const uint64_t now =
        (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
    return now > page->state.written ? now - page->state.written : 0;
}

void sleep_msec(long msec)
{
    const struct timespec time = {msec / 1000, msec % 1000 * 1000000};
    nanosleep(&time, NULL);
}
