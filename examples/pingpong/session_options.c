/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 */
#include "session_options.h"

#include "wire.h"

/* A server is over when the client has been silent for longer than a few
 * retransmissions take. */
static lawn_time_t longest_linger(const options_t *options)
{
    lawn_time_t linger = 10 * options->timers.rto_initial;
    lawn_time_t least = lawn_time_from_msec(500);
    lawn_time_t most = lawn_time_from_sec(5);
    return linger < least ? least : linger > most ? most : linger;
}

session_config_t session_options(const options_t *options, bool is_client,
                                 uint32_t total_window, uint64_t run)
{
    session_config_t config = {
        .is_client = is_client,
        .oneway = options->oneway,
        .connections = options->connections,
        .iters = options->iters,
        .size = options->size,
        .window = options->window,
        .total_window = total_window,
        .idle = options->idle,
        .run = run,
        .drop = options->drop,
        /* The two sides must drop different datagrams. */
        .seed = is_client ? options->seed : ~options->seed,
        .linger = longest_linger(options),
        .timers = options->timers,
        /* A message, and what goes in a ms: a pass that is late by no more
         * does not make it slower. */
        .pacing = {.rate = (double)options->rate,
                   .burst =
                       WIRE_HEADER_SIZE + options->size + options->rate / 1000},
    };
    return config;
}

int session_exit_status(const session_t *session)
{
    if (session_is_violated(session)) {
        return EXIT_VIOLATED;
    }
    if (session_is_over(session)) {
        return session_is_complete(session) ? EXIT_DELIVERED : EXIT_DEAD;
    }
    return EXIT_TIMEOUT;
}
