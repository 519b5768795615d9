// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Writes the statistics page of an engine, and answers what its readers ask
// for. The page is written at the end of a pass, if it was last written 10 ms
// ago or earlier, and before the engine sleeps. The child of a fork has the
// parent's page in its memory, and leaves it alone.

#include "engine/page.h"

#include "base/sequence.h"
#include "clock/convert.h"
#include "engine/engine.h"
#include "engine/page_layout.h"
#include "engine/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace lawn
{

struct Page {
    PassHook hook;
    Engine *engine;
    lawn_page_t *shared;
    lawn_time_t interval;
    lawn_time_t written; // when it was last written
    pid_t owner;
    uint32_t backlog_seen;
    uint64_t backlog;
    char path[64];
};

namespace
{

constexpr double interval_msec = 10;

uint64_t monotonic()
{
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<uint64_t>(now.tv_nsec);
}

void publish(Page *page, lawn_time_t now, bool is_asleep)
{
    const Engine *const engine = page->engine;
    lawn_page_state_t state = {};
    state.now = now;
    state.written = monotonic();
    state.running = engine->lawn->running; // shared timers, too
    state.backlog = page->backlog;
    state.asleep = is_asleep;
    lawn_engine_query(engine, &state.stats);
    lawn_engine_query_lateness(engine, &state.late);

    static_assert(sizeof(state) % sizeof(uint64_t) == 0, "words");
    const uint64_t *const from = reinterpret_cast<const uint64_t *>(&state);
    uint64_t *const to = reinterpret_cast<uint64_t *>(&page->shared->state);
    const Change change(&page->shared->sequence);
    for (size_t i = 0; i < sizeof(state) / sizeof(uint64_t); ++i) {
        set_word(&to[i], from[i]);
    }
    page->written = now;
}

// A reader may write anything to the page at any time. So the path is copied
// first, and the copy is terminated.
void answer_trace(Page *page, uint32_t asked)
{
    lawn_page_t *const shared = page->shared;
    char path[sizeof(shared->trace_path)];
    memcpy(path, shared->trace_path, sizeof(path));
    path[sizeof(path) - 1] = '\0';
    const lawn_status_t status =
        lawn_page_take_trace(shared, asked)
            ? lawn_engine_trace(page->engine, *path != '\0' ? path : nullptr)
            : LAWN_ERR_TIMED_OUT;
    shared->trace_errno = status == LAWN_ERR_IO ? errno : 0;
    shared->trace_status = status;
    __atomic_store_n(&shared->trace_answered, asked, __ATOMIC_RELEASE);
}

void answer(Page *page, lawn_time_t now)
{
    lawn_page_t *const shared = page->shared;
    const uint32_t backlog =
        __atomic_load_n(&shared->backlog_asked, __ATOMIC_RELAXED);
    if (backlog != page->backlog_seen) {
        page->backlog_seen = backlog;
        page->backlog = lawn_backlog(page->engine->lawn, now, LAWN_PAGE_LOOKS);
    }
    const uint32_t trace =
        __atomic_load_n(&shared->trace_asked, __ATOMIC_ACQUIRE);
    if (trace != shared->trace_answered) {
        answer_trace(page, trace);
    }
}

unsigned pass(void *arg, lawn_time_t now, unsigned)
{
    Page *const page = static_cast<Page *>(arg);
    if (LAWN_UNLIKELY(now - page->written >= page->interval)) {
        page->written = now;
        if (getpid() == page->owner) {
            answer(page, now);
            publish(page, now, false);
        }
    }
    return 0;
}

lawn_time_t next(void *)
{
    return LAWN_TIME_INFINITY;
}

bool before_sleep(void *arg, lawn_time_t)
{
    show_asleep(static_cast<const Page *>(arg)->engine);
    return true;
}

// Tries numbers until it finds one that no file has. If a dead process had the
// same pid, its page stays: lawn_top removes it.
int create_file(Page *page)
{
    static unsigned count;
    int fd;
    do {
        const unsigned number = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        snprintf(page->path, sizeof(page->path),
                 LAWN_PAGE_DIRECTORY "/" LAWN_PAGE_PREFIX "%d.%u",
                 static_cast<int>(page->owner), number);
        fd = open(page->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EEXIST);
    return fd;
}

lawn_page_t *map_file(int fd)
{
    // Allocates the whole file. If the file system is full, that is an error
    // here, and not a signal when the page is written.
    const int error = posix_fallocate(fd, 0, sizeof(lawn_page_t));
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    void *const memory = mmap(nullptr, sizeof(lawn_page_t),
                              PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory != MAP_FAILED ? static_cast<lawn_page_t *>(memory) : nullptr;
}

bool make_file(Page *page)
{
    page->owner = getpid();
    const int fd = create_file(page);
    if (fd < 0) {
        return false;
    }
    page->shared = map_file(fd);
    const int error = errno;
    close(fd);
    if (!page->shared) {
        unlink(page->path);
    }
    errno = error;
    return page->shared != nullptr;
}

uint64_t pid_namespace()
{
    struct stat status = {};
    return stat(LAWN_PAGE_NAMESPACE, &status) == 0 ? status.st_ino : 0;
}

void introduce(const Page *page, const char *name)
{
    const Engine *const engine = page->engine;
    lawn_page_t *const shared = page->shared;
    shared->size = sizeof(*shared);
    lawn_page_owner_t *const owner = &shared->owner;
    owner->pid = page->owner;
    owner->pid_namespace = pid_namespace();
    owner->ticks_per_sec = engine->ticks_per_sec;
    owner->budget = engine->budget;
    owner->stall_threshold = engine->stall_threshold;
    snprintf(owner->name, sizeof(owner->name), "%s", name);
    __atomic_store_n(&shared->magic, LAWN_PAGE_MAGIC, __ATOMIC_RELEASE);
}

} // namespace

lawn_status_t open_page(Engine *engine, const char *name)
{
    const char *const asked = secure_getenv("LAWN_STATS");
    if (!name) {
        name = asked && *asked != '\0' ? asked : nullptr;
    }
    if (!name) {
        return LAWN_OK;
    }
    Page *const page =
        static_cast<Page *>(allocate(engine->allocator, sizeof(Page)));
    if (!page) {
        return LAWN_ERR_NO_MEMORY;
    }
    *page = {};
    page->engine = engine;
    page->interval = ticks_from(interval_msec, 1000, engine->ticks_per_sec);
    if (!make_file(page)) {
        const int error = errno;
        fprintf(stderr, "lawn: statistics page %s: %s\n", page->path,
                strerror(error));
        release(engine->allocator, page);
        errno = error;
        return LAWN_ERR_IO;
    }
    page->hook = {pass, next, before_sleep, page, nullptr};
    engine->page = page;
    publish(page, engine->now, false);
    introduce(page, name);
    add_hook(engine, &page->hook);
    return LAWN_OK;
}

void show_asleep(const Engine *engine)
{
    Page *const page = engine->page;
    if (page && getpid() == page->owner) {
        publish(page, engine->now, true);
        page->written -= page->interval; // so the next pass clears `asleep`
    }
}

void close_page(Engine *engine)
{
    Page *const page = engine->page;
    if (page) {
        remove_hook(engine, &page->hook);
        if (getpid() == page->owner) {
            unlink(page->path);
        }
        munmap(page->shared, sizeof(*page->shared));
        release(engine->allocator, page);
        engine->page = nullptr;
    }
}

} // namespace lawn
