/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the two parts of a port share. dpdk_open.c sets the port up, and
 * dpdk_port.c is the data path.
 */
#ifndef PINGPONG_DPDK_PORT_INTERNAL_H
#define PINGPONG_DPDK_PORT_INTERNAL_H

#include "dpdk_port.h"

#include <lawn/dpdk.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>

#define PORT_ETHER_TYPE 0x88b5u

/* Bytes in front of the datagram. */
#define PORT_HEADER_SIZE (RTE_ETHER_HDR_LEN + 2u)

/* Frames sent with one call. */
#define PORT_BURST 32u

struct port {
    uint16_t id;
    bool is_started;
    uint16_t rx_depth;
    uint32_t peer_window;
    char name[RTE_ETH_NAME_MAX_LEN + RTE_ETHER_ADDR_FMT_SIZE + 4];
    const char *driver;
    struct rte_ether_addr own;
    struct rte_ether_addr peer;
    struct rte_mempool *pool;

    struct rte_mbuf *room; /* what buffer() has returned */
    struct rte_mbuf *queue[PORT_BURST];
    uint16_t queued;

    session_t *session;
    lawn_dpdk_rx_t rx;
    lawn_source_t *source; /* behind it: what sends */
    lawn_engine_t *engine;
};

/* If the port is a memif, keeps it from unmapping its rings from then on. */
void port_spare_memif(const port_t *port);

#endif
