/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What a statistics page contains. The page is a file in /dev/shm that an
 * engine writes and lawn_top reads. lawn_top ignores the page of another
 * version of Lawn.
 *
 * The engine copies its statistics to the page every few milliseconds, under a
 * sequence counter. If the counter is odd, or differs after the reading, the
 * reader reads again. Requests of readers are in fields that only readers
 * write. A page is in use if /proc/PID/maps shows it in the memory of its
 * process. Otherwise the process has died, and its page is left over.
 * Containers may share /dev/shm, and a PID means another process in another PID
 * namespace. So only readers of the same namespace know whether a page is in
 * use.
 */
#ifndef LAWN_SRC_ENGINE_PAGE_LAYOUT_H
#define LAWN_SRC_ENGINE_PAGE_LAYOUT_H

#include <lawn/engine.h>

#define LAWN_PAGE_DIRECTORY "/dev/shm"
#define LAWN_PAGE_NAMESPACE "/proc/self/ns/pid"
#define LAWN_PAGE_PREFIX "lawn-stats."
#define LAWN_PAGE_MAGIC 0x34706f746e77616cU /* "lawntop4" */
/* The most timers that the engine looks at to count its backlog. */
#define LAWN_PAGE_LOOKS 65536

/* Written before the magic number, and not changed afterwards. */
typedef struct {
    int64_t pid;
    uint64_t pid_namespace; /* its inode; 0: unknown */
    double ticks_per_sec;
    uint64_t budget;
    uint64_t stall_threshold;
    char name[64];
} lawn_page_owner_t;

typedef struct {
    uint64_t now;     /* the engine's time at its latest pass */
    uint64_t written; /* time of this copy: CLOCK_MONOTONIC, ns */
    uint64_t running; /* timers that run */
    uint64_t backlog; /* timers that were due at the latest count */
    uint64_t asleep;  /* 1: the engine has slept since `written` */
    lawn_engine_stats_t stats;
    lawn_histogram_t late;
} lawn_page_state_t;

typedef struct {
    uint64_t magic;
    uint64_t size; /* of this structure */
    lawn_page_owner_t owner;
    uint32_t sequence;
    /* Readers add one to a number to have the backlog counted again, or to have
     * a trace begin (end, if `trace_path` is empty). The engine answers for a
     * trace with the number that it has seen. Before, it takes that number, and
     * does nothing if a reader that waits no longer has taken it. */
    uint32_t backlog_asked;
    uint32_t trace_asked;
    uint32_t trace_taken;
    uint32_t trace_answered;
    int32_t trace_status; /* a lawn_status_t */
    int32_t trace_errno;
    char trace_path[1024];
    lawn_page_state_t state;
} lawn_page_t;

/* Returns true if nobody has taken this number, nor a later one. */
static inline bool lawn_page_take_trace(lawn_page_t *page, uint32_t asked)
{
    uint32_t taken = __atomic_load_n(&page->trace_taken, __ATOMIC_RELAXED);
    while ((int32_t)(asked - taken) > 0) {
        if (__atomic_compare_exchange_n(&page->trace_taken, &taken, asked,
                                        false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            return true;
        }
    }
    return false;
}

#endif
