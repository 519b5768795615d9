/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The loop of an lcore. An engine belongs to one thread at a time. Here the
 * main lcore makes it, and the other lcore owns it from rte_eal_remote_launch()
 * to rte_eal_wait_lcore(). Programs with many lcores do the same on each of
 * them. They keep a connection and its timers on the lcore that receives its
 * packets, for example by RSS. No lcore starts or stops a timer of another one,
 * so no timer needs a lock.
 */
#include "dpdk_side.h"

#include "session_options.h"
#include "summary.h"

#include <rte_lcore.h>

#include <stdio.h>

bool side_open(side_t *side, uint64_t run)
{
    const options_t *options = side->options;
    session_config_t config =
        session_options(options, side->is_client, port_window(side->port), run);
    session_sender_t sender = port_sender(side->port);
    lawn_status_t status = session_create(&config, &sender, &side->session);
    if (status == LAWN_OK) {
        /* The default clock is lawn_get_time(). If the counter can be trusted,
         * it reads the same counter as rte_rdtsc(), and the ticks of both are
         * the same. See check_clocks() in dpdk_eal.c. */
        status = lawn_engine_create(NULL, &side->engine);
    }
    if (status != LAWN_OK) {
        complain("cannot set up %u connections: %s",
                 (unsigned)options->connections, lawn_status_string(status));
        return false;
    }
    return port_attach(side->port, side->engine, side->session);
}

int side_run(void *arg)
{
    side_t *side = arg;
    session_t *session = side->session;
    lawn_engine_t *engine = side->engine;
    if (!side->options->quiet) {
        printf("connected: %s on %s, lcore %u\n",
               side->is_client ? "client" : "server", port_name(side->port),
               rte_lcore_id());
    }
    lawn_status_t status = session_start(session, engine);
    if (status != LAWN_OK) {
        complain("cannot open connections: %s", lawn_status_string(status));
        return EXIT_FAILED;
    }
    lawn_time_t started = lawn_engine_now(engine);
    /* A program with a loop of its own calls lawn_engine_progress() there, in
     * the place of rte_timer_manage(). */
    while (!session_is_over(session) && !*side->interrupted &&
           lawn_engine_now(engine) < side->deadline) {
        lawn_engine_progress(engine);
    }
    side->elapsed = lawn_engine_now(engine) - started;
    return session_exit_status(session);
}

void side_report(const side_t *side)
{
    summary_t summary = {
        .mode = port_driver(side->port),
        .session = side->session,
        .engine = side->engine,
        .elapsed = side->elapsed,
    };
    summary_print(&summary);
}

void side_close(side_t *side)
{
    session_destroy(side->session);
    port_close(side->port);
    lawn_engine_destroy(side->engine);
}
