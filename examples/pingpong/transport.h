/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the ping-pong asks of a transport: one pair of queues to one peer,
 * polled by an engine. Each program links one; pingpong.c and all that it
 * wires together know no other names of it than these.
 */
#ifndef PINGPONG_TRANSPORT_H
#define PINGPONG_TRANSPORT_H

#include "exchange.h"
#include "session.h"

typedef struct transport transport_t;

/* The program's name, and which of the options are its own. */
extern const char transport_program[];
extern const options_of_t transport_options;

/* Opens what the options name, up to queues that can receive once they are
 * connected. NULL after one line on stderr. */
transport_t *transport_open(const options_t *options);

/* NULL does nothing. Before the engine is destroyed. */
void transport_close(transport_t *t);

/* For people: "rxe0, port 1, ..."; and for the summary: "ud". */
const char *transport_name(const transport_t *t);
const char *transport_mode(const transport_t *t);

/* Our address for the exchange, EXCHANGE_ADDRESS_SIZE bytes, and the
 * connection to the peer's; false after one line on stderr. */
void transport_address(const transport_t *t, uint8_t *address);
bool transport_connect(transport_t *t, const uint8_t *peer);

/* Meets the peer without the exchange, whose deadline and interruption hold,
 * and connects to it; *run_p is both sides' number for this run. False as
 * transport_connect(), or when given up. Only of the transport that --cm is an
 * option of; others need not define it. */
__attribute__((weak)) bool transport_meet(transport_t *t, exchange_t *exchange,
                                          uint64_t *run_p);

/* What session_create() wants: how to send, and session_config_t.window. */
session_sender_t transport_sender(transport_t *t);
uint32_t transport_window(const transport_t *t);

/* Receives for `session` from now on, as sources of `engine`. False after one
 * line on stderr. */
bool transport_attach(transport_t *t, lawn_engine_t *engine,
                      session_t *session);

/* Before sleeping on the engine's fd: asks the transport to make the fd of its
 * source readable when something comes. False: something may have come already,
 * or cannot wake anybody; poll once more first. */
bool transport_arm(transport_t *t);

/* The connection to the peer is lost for good. */
bool transport_has_failed(const transport_t *t);

#endif
