/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The statistics pages of the engines that run on this machine. lawn_top reads
 * them here. src/engine/page_layout.h has their format.
 */
#ifndef LAWN_TOOLS_PAGES_H
#define LAWN_TOOLS_PAGES_H

#include "engine/page_layout.h"

#include <stdbool.h>

LAWN_BEGIN_DECLS

typedef struct {
    char path[512];
    lawn_page_t *shared;
    lawn_page_state_t state; /* as of the latest pages_read() */
    uint32_t asked_at;       /* what `sequence` was at pages_ask_backlog() */
} page_t;

typedef struct {
    page_t *pages; /* in the order of pid and number */
    size_t count;
} pages_t;

/* Opens the pages of process `pid` (0: of all processes), and removes pages
 * that dead processes of this PID namespace have left. Pages of other users are
 * left out, except for root, who sees all and has to trust them: a user who
 * cuts a page short ends the program that has opened it. Returns false, with
 * errno, if there is no memory or no directory. */
bool pages_open(pages_t *pages, int64_t pid);

/* Closes the pages of other PID namespaces. */
void pages_keep_here(pages_t *pages);

void pages_close(pages_t *pages);

/* Copies the latest state of each page. */
void pages_read(pages_t *pages);

/* Asks the engines to count their backlogs. The counts are in the pages some
 * passes later. */
void pages_ask_backlog(pages_t *pages);

/* Waits until the engines that do not sleep have counted, 300 ms at most. */
void pages_await_backlog(const pages_t *pages);

/* Makes the engine record to `path`, which must be absolute, and waits for its
 * answer. If `path` is empty, the engine ends its trace. Returns the engine's
 * status, LAWN_ERR_TIMED_OUT if the engine makes no pass, or IO with errno.
 * After LAWN_ERR_TIMED_OUT, the engine does not obey later either. */
lawn_status_t page_trace(page_t *page, const char *path);

/* Returns the nanoseconds since the page was written. */
uint64_t page_age(const page_t *page);

void sleep_msec(long msec);

LAWN_END_DECLS

#endif
