/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a transport of the ping-pong: one pair of queues to one
 * peer, polled by an engine. Each program links one transport. pingpong.c and
 * the parts that it connects use only the names declared here.
 */
#ifndef PINGPONG_TRANSPORT_H
#define PINGPONG_TRANSPORT_H

#include "exchange.h"
#include "session.h"

typedef struct transport transport_t;

/* The program's name, and the transport whose options it has. */
extern const char transport_program[];
extern const options_of_t transport_options;

/* Opens the device that the options name, and makes queues that can receive
 * once they are connected. On failure, returns NULL after one line on
 * stderr. */
transport_t *transport_open(const options_t *options);

/* Closes the transport. Call it before the engine is destroyed. NULL does
 * nothing. */
void transport_close(transport_t *t);

/* The name is for messages: "rxe0, port 1, ...". The mode is for the summary:
 * "ud". */
const char *transport_name(const transport_t *t);
const char *transport_mode(const transport_t *t);

/* transport_address() writes our address for the exchange,
 * EXCHANGE_ADDRESS_SIZE bytes. transport_connect() connects to the peer's
 * address; on failure, it returns false after one line on stderr. */
void transport_address(const transport_t *t, uint8_t *address);
bool transport_connect(transport_t *t, const uint8_t *peer);

/* Meets the peer without the TCP exchange, and connects to it. The deadline and
 * the interruption of `exchange` apply. *run_p becomes the number of this run,
 * which is the same on both sides. Returns false as transport_connect() does,
 * or when the exchange is given up. Only a transport with the option --cm
 * defines it. */
__attribute__((weak)) bool transport_meet(transport_t *t, exchange_t *exchange,
                                          uint64_t *run_p);

/* The arguments for session_create(): how to send, and
 * session_config_t.total_window. */
session_sender_t transport_sender(transport_t *t);
uint32_t transport_window(const transport_t *t);

/* Adds the sources of the transport to `engine`, which receive for `session`
 * from then on. On failure, returns false after one line on stderr. */
bool transport_attach(transport_t *t, lawn_engine_t *engine,
                      session_t *session);

/* Call it before sleeping on the engine's fd. It asks the transport to make the
 * fd of its source readable when something arrives. Returns false if something
 * may have arrived already, or if the transport cannot wake a sleeper: then
 * poll again before sleeping. */
bool transport_arm(transport_t *t);

/* Whether the connection to the peer is lost for good. */
bool transport_has_failed(const transport_t *t);

#endif
