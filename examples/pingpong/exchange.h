/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * How two ping-pongs find each other: over TCP they swap the addresses of
 * their queues, make sure that both were told to do the same, and wait until
 * both can receive. The TCP connection is closed before the first message, so
 * that nothing but Lawn can notice the death of a peer.
 */
#ifndef PINGPONG_EXCHANGE_H
#define PINGPONG_EXCHANGE_H

#include "options.h"

#include <signal.h>

#define EXCHANGE_ADDRESS_SIZE 1024u

typedef struct {
    const options_t *options;
    lawn_time_t deadline; /* of the whole program, or LAWN_TIME_INFINITY */
    const volatile sig_atomic_t *interrupted; /* not 0: give up */
    int fd;
} exchange_t;

/* One side, as told to the other. */
typedef struct {
    uint64_t nonce;                         /* random */
    uint8_t address[EXCHANGE_ADDRESS_SIZE]; /* the transport's to encode */
} exchange_side_t;

/* Each returns false when it failed: after one line on stderr, unless it was
 * interrupted or ran into the program's deadline. */
bool exchange_open(exchange_t *exchange);
bool exchange_swap(exchange_t *exchange, const exchange_side_t *own,
                   exchange_side_t *peer_p);
/* Returns when the peer has called it too. */
bool exchange_barrier(exchange_t *exchange);
void exchange_close(exchange_t *exchange);

#endif
