/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * One port of DPDK's as the transport of one session: one receive queue, one
 * transmit queue and one pool of mbufs, polled by one engine on one lcore, and
 * so without a lock. A program with more lcores has more of these, and an
 * engine for each.
 *
 * A frame is
 *
 *      0  destination    6  source    12  EtherType 0x88B5
 *     14  length of the datagram      16  datagram (wire.h)
 *
 * 0x88B5 is the first of the two EtherTypes that IEEE 802 sets aside for local
 * experiments: no protocol stack claims it, and none has to be asked for it.
 * The length is there since Ethernet pads short frames.
 */
#ifndef PINGPONG_DPDK_PORT_H
#define PINGPONG_DPDK_PORT_H

#include "exchange.h"
#include "session.h"

typedef struct port port_t;

/* Makes two ports that are connected by a ring each way. False after one line
 * on stderr. */
bool port_make_pair(uint16_t ids[2]);

/* Sets up EAL's port `id`. NULL after one line on stderr. */
port_t *port_open(uint16_t id, const options_t *options);

/* It can receive from here. False after one line on stderr. */
bool port_start(port_t *port);

/* Frames can get to the peer, as far as the driver knows. */
bool port_is_up(const port_t *port);

/* NULL does nothing. Before the engine is destroyed. */
void port_close(port_t *port);

/* For people: "net_memif0, 02:00:..."; and for the summary: "net_memif". */
const char *port_name(const port_t *port);
const char *port_driver(const port_t *port);

/* Our address for the exchange, EXCHANGE_ADDRESS_SIZE bytes, and whom to send
 * to; false after one line on stderr. */
void port_address(const port_t *port, uint8_t *address);
bool port_connect(port_t *port, const uint8_t *peer);

/* What session_create() wants: how to send, and session_config_t.window. */
session_sender_t port_sender(port_t *port);
uint32_t port_window(const port_t *port);

/* Receives for `session` from now on, as a source of `engine`; not before both
 * sides' links are up. False after one
 * line on stderr. */
bool port_attach(port_t *port, lawn_engine_t *engine, session_t *session);

#endif
