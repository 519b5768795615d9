/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program, it counts the program's allocations where another
 * process can read them while it runs: in the file allocations.PID of the
 * directory ALLOCATION_COUNTS.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What glibc's own are called underneath. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static uint64_t until_mapped;
static uint64_t *count = &until_mapped;

__attribute__((constructor)) static void share_count(void)
{
    char path[256];
    const char *directory = getenv("ALLOCATION_COUNTS");
    snprintf(path, sizeof(path), "%s/allocations.%d",
             directory ? directory : ".", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*count)) != 0) {
        perror(path);
        abort();
    }
    void *shared =
        mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED) {
        perror(path);
        abort();
    }
    count = shared;
}

static void note(void)
{
    __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    note();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    note();
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    note();
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    note();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory_p, size_t alignment, size_t size)
{
    note();
    *memory_p = __libc_memalign(alignment, size);
    return *memory_p ? 0 : 12; /* ENOMEM */
}
