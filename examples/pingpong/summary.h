/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What a run prints at its end: one `name   value` per line. The names do not
 * change, because scripts read them.
 */
#ifndef PINGPONG_SUMMARY_H
#define PINGPONG_SUMMARY_H

#include "session.h"

typedef struct {
    const char *mode; /* "ud", ... */
    const session_t *session;
    const lawn_engine_t *engine;
    lawn_time_t elapsed;
    bool events;     /* the program sleeps */
    uint64_t sleeps; /* how often */
    double cpu_sec;  /* of the whole process, kernel included */
} summary_t;

/* Prints to stdout. */
void summary_print(const summary_t *summary);

#endif
