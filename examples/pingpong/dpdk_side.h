/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * One side of the ping-pong, client or server, on one lcore. It has a port, an
 * engine and a session of its own. side_run() is an lcore function, as DPDK
 * calls it.
 */
#ifndef PINGPONG_DPDK_SIDE_H
#define PINGPONG_DPDK_SIDE_H

#include "dpdk_port.h"

#include <signal.h>

/* The caller sets the fields down to `port`, which must be connected. */
typedef struct {
    const options_t *options;
    bool is_client;
    lawn_time_t deadline;
    const volatile sig_atomic_t *interrupted;
    port_t *port; /* closed by side_close() */
    lawn_engine_t *engine;
    session_t *session;
    lawn_time_t elapsed;
} side_t;

/* Makes the engine and the session. Both sides must give the same `run`. On
 * failure, returns false after one line on stderr. */
bool side_open(side_t *side, uint64_t run);

/* Runs a side_t on the calling lcore until its session is over. Returns the
 * exit status of the program. */
int side_run(void *side);

void side_report(const side_t *side);

/* Closes a side. The side need not have been opened. */
void side_close(side_t *side);

#endif
