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
#define EXCHANGE_OPTIONS_SIZE 16u

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

/* 64 random bits. */
uint64_t exchange_nonce(void);

/* Each returns false when it failed: after one line on stderr, unless it was
 * interrupted or ran into the program's deadline. A client that waits for its
 * server says so on stderr, once. */
bool exchange_open(exchange_t *exchange);
bool exchange_swap(exchange_t *exchange, const exchange_side_t *own,
                   exchange_side_t *peer_p);
/* Returns when the peer has called it too. */
bool exchange_barrier(exchange_t *exchange);
void exchange_close(exchange_t *exchange);

/* Parts of it, for a transport that has a way of its own to meet its peer. */

/* Interrupted, or past the program's deadline. */
bool exchange_is_given_up(const exchange_t *exchange);

/* Waits for poll() events on the fd; false, with errno, when it was given up,
 * or ETIMEDOUT at `limit`. */
bool exchange_wait(const exchange_t *exchange, short events, lawn_time_t limit);

/* How long the peer may take from its first word to its last. */
lawn_time_t exchange_limit(void);

/* The addresses of a host, for freeaddrinfo(). NULL after one line on stderr.
 */
struct addrinfo *exchange_resolve(const char *host, uint32_t port);

/* What both sides must have been told alike: our options for the peer, and
 * whether the peer's agree with ours; false after one line on stderr. */
void exchange_encode_options(const options_t *options, uint8_t *to);
bool exchange_agrees(const options_t *options, const uint8_t *from);

#endif
