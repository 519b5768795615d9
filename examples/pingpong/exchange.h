/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * How two ping-pongs find each other. Over TCP they swap the addresses of their
 * queues, check that both have the same options, and wait until both can
 * receive. They close the TCP connection before the first message. After that,
 * only Lawn can notice that a peer has died.
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

/* What one side tells the other about itself. */
typedef struct {
    uint64_t nonce;                         /* random */
    uint8_t address[EXCHANGE_ADDRESS_SIZE]; /* encoded by the transport */
} exchange_side_t;

/* 64 random bits. */
uint64_t exchange_nonce(void);

/* Each function returns false on failure, after one line on stderr. There is no
 * line if the function was interrupted or reached the program's deadline. A
 * client that waits for its server says so on stderr, once. */
bool exchange_open(exchange_t *exchange);
bool exchange_swap(exchange_t *exchange, const exchange_side_t *own,
                   exchange_side_t *peer_p);
/* Returns when the peer has called it, too. */
bool exchange_barrier(exchange_t *exchange);
void exchange_close(exchange_t *exchange);

/* Parts of the exchange, for a transport that meets its peer in its own way. */

/* Whether the program was interrupted or is past its deadline. */
bool exchange_is_given_up(const exchange_t *exchange);

/* Waits for poll() events on the fd. Returns false, with errno, when the
 * exchange is given up (EINTR), at `limit` (ETIMEDOUT), or when poll()
 * fails. */
bool exchange_wait(const exchange_t *exchange, short events, lawn_time_t limit);

/* The time by which the peer must finish an exchange that begins now. */
lawn_time_t exchange_limit(void);

/* The addresses of a host. Free them with freeaddrinfo(). On failure, returns
 * NULL after one line on stderr. */
struct addrinfo *exchange_resolve(const char *host, uint32_t port);

/* The options that must be the same on both sides. The first function encodes
 * ours for the peer. The second one compares the peer's with ours. If they do
 * not agree, it returns false after one line on stderr. */
void exchange_encode_options(const options_t *options, uint8_t *to);
bool exchange_agrees(const options_t *options, const uint8_t *from);

#endif
