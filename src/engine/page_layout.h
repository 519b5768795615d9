/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What is in a statistics page, a file in /dev/shm that an engine writes and
 * lawn_top reads. Both are of one version of Lawn: another one's is refused.
 *
 * The engine copies what it counts every few milliseconds, by a sequence
 * counter: who reads an odd one, or another after than before, reads again.
 * What a reader asks for is in words of the reader's own. The page of a process
 * that lives is in its memory, as /proc/PID/maps tells; another one is left
 * over.
 */
#ifndef LAWN_SRC_ENGINE_PAGE_LAYOUT_H
#define LAWN_SRC_ENGINE_PAGE_LAYOUT_H

#include <lawn/engine.h>

#define LAWN_PAGE_DIRECTORY "/dev/shm"
#define LAWN_PAGE_PREFIX "lawn-stats."
#define LAWN_PAGE_MAGIC 0x31706f746e77616cU /* "lawntop1" */
/* Timers that the engine looks at to count its backlog. */
#define LAWN_PAGE_LOOKS 65536

/* Written before the magic number, and not after. */
typedef struct {
    int64_t pid;
    double ticks_per_sec;
    uint64_t budget;
    uint64_t stall_threshold;
    char name[64];
} lawn_page_owner_t;

typedef struct {
    uint64_t now;     /* the engine's time, of the latest pass */
    uint64_t written; /* CLOCK_MONOTONIC, ns */
    uint64_t running; /* timers */
    uint64_t backlog; /* when it was counted last */
    uint64_t asleep;  /* 1: since `written` */
    lawn_engine_stats_t stats;
    lawn_histogram_t late;
} lawn_page_state_t;

typedef struct {
    uint64_t magic;
    uint64_t size; /* of this structure */
    lawn_page_owner_t owner;
    uint32_t sequence;
    /* Readers add one to count the backlog anew, or to have a trace begin
     * (end, where `trace_path` is empty). The engine answers with the number
     * that it has seen. */
    uint32_t backlog_asked;
    uint32_t trace_asked;
    uint32_t trace_answered;
    int32_t trace_status; /* a lawn_status_t */
    int32_t trace_errno;
    char trace_path[1024];
    lawn_page_state_t state;
} lawn_page_t;

#endif
