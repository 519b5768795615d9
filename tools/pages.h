/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The statistics pages of the engines that run on this machine.
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
} page_t;

typedef struct {
    page_t *pages; /* in the order of pid and number */
    size_t count;
} pages_t;

/* Opens the pages of process `pid` (0: of all), and removes those that dead
 * processes have left. What cannot be opened is left out: others' are not for
 * this user. False, with errno, when there is no memory or no directory. */
bool pages_open(pages_t *pages, int64_t pid);

void pages_close(pages_t *pages);

/* Copies what the engines have written last. */
void pages_read(pages_t *pages);

/* Asks the engines to count their backlogs, which is in the page some passes
 * later. */
void pages_ask_backlog(pages_t *pages);

/* Has the engine record to `path`, an absolute one, or end its trace where that
 * is empty; waits for its answer. LAWN_ERR_TIMED_OUT when it makes no pass. IO
 * with errno. */
lawn_status_t page_trace(page_t *page, const char *path);

/* Nanoseconds since the page was written. */
uint64_t page_age(const page_t *page);

void sleep_msec(long msec);

LAWN_END_DECLS

#endif
