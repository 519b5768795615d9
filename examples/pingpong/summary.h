/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What a run prints at its end: one `name   value` per line. The names do not
 * change, because scripts read them.
 */
#ifndef PINGPONG_SUMMARY_H
#define PINGPONG_SUMMARY_H

#include "session.h"

/* How a program has slept, over some time. */
typedef struct {
    uint64_t sleeps;
    uint64_t spurious; /* wake-ups that found nothing to do */
    double cpu_sec;    /* of the whole process, kernel included */
    lawn_time_t elapsed;
} summary_sleep_t;

typedef struct {
    const char *mode; /* "ud", ... */
    const session_t *session;
    const lawn_engine_t *engine;
    lawn_time_t elapsed;
    const summary_sleep_t *slept;      /* NULL: the program does not sleep */
    const summary_sleep_t *slept_idle; /* before messages flowed; or NULL */
} summary_t;

/* Prints to stdout. */
void summary_print(const summary_t *summary);

#endif
