/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The transport over libibverbs: one UD or RC queue pair with one completion
 * queue, polled by the engine. This is the only part of the ping-pong that
 * knows verbs; another transport replaces it.
 */
#ifndef PINGPONG_VERBS_H
#define PINGPONG_VERBS_H

#include "exchange.h"
#include "session.h"

typedef struct verbs verbs_t;

/* Opens the device and makes everything up to a queue pair that can receive
 * once it is connected. NULL after one line on stderr. */
verbs_t *verbs_open(const options_t *options);
void verbs_close(verbs_t *verbs);

/* "rxe0, port 1, ..." */
const char *verbs_name(const verbs_t *verbs);

/* Our address for the exchange, and the connection to the peer's. */
void verbs_address(const verbs_t *verbs, uint8_t *address);
bool verbs_connect(verbs_t *verbs, const uint8_t *peer);

/* What session_create() wants. */
session_transport_t verbs_transport(verbs_t *verbs);
uint32_t verbs_window(const verbs_t *verbs);

/* Polls for `session` from now on. False after one line on stderr. */
bool verbs_attach(verbs_t *verbs, lawn_engine_t *engine, session_t *session);

/* The queue pair is lost for good. */
bool verbs_has_failed(const verbs_t *verbs);

#endif
