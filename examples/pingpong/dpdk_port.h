/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * A DPDK port as the transport of one session. It has one receive queue, one
 * transmit queue and one pool of mbufs. One engine on one lcore polls it, so it
 * needs no lock. A program with more lcores has one port and one engine per
 * lcore.
 *
 * A frame is
 *
 *      0  destination    6  source    12  EtherType 0x88B5
 *     14  length of the datagram      16  datagram (wire.h)
 *
 * 0x88B5 is the first of the two EtherTypes that IEEE 802 reserves for local
 * experiments. No protocol stack uses it, and it needs no registration. The
 * frame has a length because Ethernet pads short frames.
 */
#ifndef PINGPONG_DPDK_PORT_H
#define PINGPONG_DPDK_PORT_H

#include "exchange.h"
#include "session.h"

typedef struct port port_t;

/* Makes two ports that are connected by one ring each way. On failure, returns
 * false after one line on stderr. */
bool port_make_pair(uint16_t ids[2]);

/* Sets up EAL's port `id`. On failure, returns NULL after one line on
 * stderr. */
port_t *port_open(uint16_t id, const options_t *options);

/* Starts the port, which can receive from then on. On failure, returns false
 * after one line on stderr. */
bool port_start(port_t *port);

/* Whether frames can reach the peer, as far as the driver knows. */
bool port_is_up(const port_t *port);

/* Closes the port. Call it before the engine is destroyed. NULL does
 * nothing. */
void port_close(port_t *port);

/* The name is for messages: "net_memif0, 02:00:...". The driver is for the
 * summary: "net_memif". */
const char *port_name(const port_t *port);
const char *port_driver(const port_t *port);

/* port_address() writes our address for the exchange, EXCHANGE_ADDRESS_SIZE
 * bytes. port_connect() sets the peer to send to; on failure, it returns false
 * after one line on stderr. */
void port_address(const port_t *port, uint8_t *address);
bool port_connect(port_t *port, const uint8_t *peer);

/* The arguments for session_create(): how to send, and
 * session_config_t.total_window. */
session_sender_t port_sender(port_t *port);
uint32_t port_window(const port_t *port);

/* Makes the port a source of `engine`, which receives for `session` from then
 * on. Call it when the links of both sides are up. On failure, returns false
 * after one line on stderr. */
bool port_attach(port_t *port, lawn_engine_t *engine, session_t *session);

#endif
