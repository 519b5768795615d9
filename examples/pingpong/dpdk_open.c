/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Setting up a port: queues, mbufs, its address and the peer's address. If
 * something is missing or wrong, one line on stderr says what it is.
 */
#include "dpdk_eal.h"
#include "dpdk_port_internal.h"

#include "wire.h"

#include <rte_errno.h>
#include <rte_eth_ring.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The queue depth of af_packet, which is the least of the software drivers. The
 * drivers of hardware are asked for the same depth. */
#define QUEUE_DEPTH 512u

/* Enough for two queues, for the mbufs that are at the peer (rings pass on the
 * mbufs themselves), and for the caches of the lcores. A pool of 2^n - 1 uses
 * its memory best. */
#define POOL_MBUFS 4095u
#define POOL_CACHE 256u

static bool complain_step(const port_t *port, const char *step, int error)
{
    complain("cannot %s %s: %s", step, port->name, rte_strerror(-error));
    return false;
}

static bool find_address(port_t *port)
{
    char name[RTE_ETH_NAME_MAX_LEN] = "?";
    char address[RTE_ETHER_ADDR_FMT_SIZE];
    rte_eth_dev_get_name_by_port(port->id, name);
    snprintf(port->name, sizeof(port->name), "%s", name);
    int error = rte_eth_macaddr_get(port->id, &port->own);
    if (error) {
        return complain_step(port, "tell the address of", error);
    }
    if (rte_is_zero_ether_addr(&port->own)) { /* a ring has no address */
        rte_eth_random_addr(port->own.addr_bytes);
    }
    rte_ether_format_addr(address, sizeof(address), &port->own);
    snprintf(port->name, sizeof(port->name), "%s, %s", name, address);
    return true;
}

/* A datagram must fit into one frame, and the frame into one mbuf. */
static bool message_fits(const port_t *port, uint32_t size)
{
    uint16_t mtu = RTE_ETHER_MTU;
    rte_eth_dev_get_mtu(port->id, &mtu);
    uint32_t most = RTE_MBUF_DEFAULT_DATAROOM - PORT_HEADER_SIZE;
    if (most > mtu - 2u) {
        most = mtu - 2u;
    }
    if (WIRE_HEADER_SIZE + size <= most) {
        return true;
    }
    complain("--size %u: a frame of %s holds at most %u", (unsigned)size,
             port->name, (unsigned)(most - WIRE_HEADER_SIZE));
    return false;
}

static bool make_pool(port_t *port)
{
    char name[32];
    snprintf(name, sizeof(name), "port%u", (unsigned)port->id);
    port->pool = rte_pktmbuf_pool_create(name, POOL_MBUFS, POOL_CACHE, 0,
                                         RTE_MBUF_DEFAULT_BUF_SIZE,
                                         rte_eth_dev_socket_id(port->id));
    if (!port->pool) {
        return complain_step(port, "make a pool of mbufs for", -rte_errno);
    }
    return true;
}

/* One queue each way, because one lcore alone uses the port. */
static bool set_up_queues(port_t *port)
{
    uint16_t rx_depth = QUEUE_DEPTH;
    uint16_t tx_depth = QUEUE_DEPTH;
    struct rte_eth_conf conf;
    memset(&conf, 0, sizeof(conf));
    int socket = rte_eth_dev_socket_id(port->id);
    unsigned node = socket < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)socket;
    int error = rte_eth_dev_configure(port->id, 1, 1, &conf);
    if (!error) {
        error =
            rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &rx_depth, &tx_depth);
    }
    if (!error) {
        error = rte_eth_rx_queue_setup(port->id, 0, rx_depth, node, NULL,
                                       port->pool);
    }
    if (!error) {
        error = rte_eth_tx_queue_setup(port->id, 0, tx_depth, node, NULL);
    }
    if (error) {
        return complain_step(port, "set up", error);
    }
    port->rx_depth = rx_depth;
    return true;
}

bool port_start(port_t *port)
{
    int error = rte_eth_dev_start(port->id);
    if (error) {
        return complain_step(port, "start", error);
    }
    port->is_started = true;
    return true;
}

/* One lcore enqueues and one lcore dequeues, so neither needs an atomic
 * exchange. */
static struct rte_ring *make_ring(const char *name)
{
    return rte_ring_create(name, QUEUE_DEPTH, SOCKET_ID_ANY,
                           RING_F_SP_ENQ | RING_F_SC_DEQ);
}

bool port_make_pair(uint16_t ids[2])
{
    struct rte_ring *there = make_ring("there");
    struct rte_ring *back = make_ring("back");
    int first = -1;
    int second = -1;
    if (there && back) {
        first = rte_eth_from_rings("0", &back, 1, &there, 1,
                                   (unsigned)SOCKET_ID_ANY);
        second = rte_eth_from_rings("1", &there, 1, &back, 1,
                                    (unsigned)SOCKET_ID_ANY);
    }
    if (first < 0 || second < 0) {
        complain("cannot make two rings: %s", rte_strerror(rte_errno));
        return false;
    }
    ids[0] = (uint16_t)first;
    ids[1] = (uint16_t)second;
    return true;
}

port_t *port_open(uint16_t id, const options_t *options)
{
    struct rte_eth_dev_info info;
    port_t *port = calloc(1, sizeof(*port));
    if (!port) {
        complain("no memory");
        return NULL;
    }
    port->id = id;
    port->driver =
        rte_eth_dev_info_get(id, &info) == 0 ? info.driver_name : "?";
    if (!find_address(port) || !message_fits(port, options->size) ||
        !make_pool(port) || !set_up_queues(port)) {
        port_close(port);
        return NULL;
    }
    return port;
}

bool port_is_up(const port_t *port)
{
    struct rte_eth_link link;
    return rte_eth_link_get_nowait(port->id, &link) == 0 &&
           link.link_status == RTE_ETH_LINK_UP;
}

/* In DPDK 22.11, memif has two faults when the peer leaves. It unmaps its rings
 * on EAL's interrupt thread while the lcore still polls them. And the thread
 * later looks at memory that rte_eal_cleanup() unmaps. So the thread is parked
 * once the link is up. The rings then stay mapped. Lawn finds out that the peer
 * no longer empties them. */
void port_spare_memif(const port_t *port)
{
    if (strcmp(port->driver, "net_memif") == 0) {
        eal_park_interrupts();
    }
}

/* Closes everything in the reverse order of creation, and skips what was not
 * made. */
void port_close(port_t *port)
{
    if (!port) {
        return;
    }
    lawn_dpdk_rx_close(&port->rx);
    if (port->source) {
        lawn_engine_remove(port->engine, port->source);
    }
    rte_pktmbuf_free(port->room);
    rte_pktmbuf_free_bulk(port->queue, port->queued);
    port_spare_memif(port);
    if (port->is_started) {
        rte_eth_dev_stop(port->id);
    }
    rte_eth_dev_close(port->id);
    rte_mempool_free(port->pool);
    free(port);
}

const char *port_name(const port_t *port)
{
    return port->name;
}

const char *port_driver(const port_t *port)
{
    return port->driver;
}

/* A quarter of the peer's receive queue, because a message is answered by an
 * ACK and by a message. The other half is for retransmissions and probes, which
 * the window does not limit. */
uint32_t port_window(const port_t *port)
{
    return port->peer_window;
}

void port_address(const port_t *port, uint8_t *address)
{
    memset(address, 0, EXCHANGE_ADDRESS_SIZE);
    memcpy(address, port->own.addr_bytes, RTE_ETHER_ADDR_LEN);
    wire_put16(address + RTE_ETHER_ADDR_LEN, port->rx_depth);
}

bool port_connect(port_t *port, const uint8_t *peer)
{
    memcpy(port->peer.addr_bytes, peer, RTE_ETHER_ADDR_LEN);
    port->peer_window = wire_get16(peer + RTE_ETHER_ADDR_LEN) / 4u;
    if (!rte_is_valid_assigned_ether_addr(&port->peer) ||
        port->peer_window == 0) {
        complain("the peer's address makes no sense");
        return false;
    }
    return true;
}
