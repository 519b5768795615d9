/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * One side of the ping-pong, client or server, on one lcore: a port, an engine
 * and a session, shared with nobody. side_run() is what DPDK calls an lcore
 * function.
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

/* Makes engine and session, both sides' `run` being the same. False after one
 * line on stderr. */
bool side_open(side_t *side, uint64_t run);

/* Runs a side_t until it is over, on the calling lcore. Returns what the
 * program is to return. */
int side_run(void *side);

void side_report(const side_t *side);

/* Of a side that was not opened, too. */
void side_close(side_t *side);

#endif
