/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/dpdk.h - receive queues of ports, and rings, as sources of an engine.
 *
 *     lawn_dpdk_rx_open(&rx, engine, port, queue, on_burst, me);
 *     lawn_dpdk_ring_open(&ring, engine, rte_ring, on_objects, me);
 *     lawn_dpdk_run(engine, &params);           // the loop: lawn/dpdk_lcore.h
 *
 * A pass takes what has arrived, burst after burst, and then runs the timers:
 * so an ACK that waits in the receive ring stops its timer, however late the
 * pass. There is no rte_timer_manage(), and no second reading of the TSC.
 *
 * An engine belongs to one thread: each lcore has its own. Passes allocate
 * nothing. liblawn does not link DPDK: your program does.
 */
#ifndef LAWN_DPDK_H
#define LAWN_DPDK_H

#include <lawn/engine.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

LAWN_BEGIN_DECLS

enum { LAWN_DPDK_BURST = 32 };

/* Gets what has arrived, which is the program's then. It may do anything: close
 * this, too. */
typedef void (*lawn_dpdk_rx_fn_t)(void *arg, struct rte_mbuf **mbufs,
                                  uint16_t count);

typedef struct {
    lawn_engine_t *engine;
    lawn_source_t *source; /* NULL: closed */
    bool *was_closed;      /* inside of a pass: where to say so */
} lawn_dpdk_source_t;

/* Zero it at first. It may not move. The fields are the library's. */
typedef struct {
    lawn_dpdk_source_t polled;
    uint16_t port;
    uint16_t queue;
    uint16_t depth; /* of the ring: what a pass takes at most */
    lawn_dpdk_rx_fn_t received;
    void *arg;
} lawn_dpdk_rx_t;

/* Begins to poll a receive queue of a port that is configured. A pass takes at
 * most one ring of packets, so that a fast peer cannot keep it from ending.
 * Returns INVALID_PARAM if a pointer is NULL or there is no such queue, BUSY if
 * it is open, and what lawn_engine_add() returns. */
static inline lawn_status_t
lawn_dpdk_rx_open(lawn_dpdk_rx_t *rx, lawn_engine_t *engine, uint16_t port,
                  uint16_t queue, lawn_dpdk_rx_fn_t received, void *arg);
static inline void lawn_dpdk_rx_close(lawn_dpdk_rx_t *rx);

typedef void (*lawn_dpdk_ring_fn_t)(void *arg, void **objects, unsigned count);

typedef struct {
    lawn_dpdk_source_t polled;
    struct rte_ring *ring;
    lawn_dpdk_ring_fn_t taken;
    void *arg;
} lawn_dpdk_ring_t;

/* The same for what other lcores put into a ring of pointers. */
static inline lawn_status_t
lawn_dpdk_ring_open(lawn_dpdk_ring_t *ring, lawn_engine_t *engine,
                    struct rte_ring *of, lawn_dpdk_ring_fn_t taken, void *arg);
static inline void lawn_dpdk_ring_close(lawn_dpdk_ring_t *ring);

/* ---- Implementation ---- */

static inline lawn_status_t lawn_dpdk_poll(lawn_dpdk_source_t *polled,
                                           lawn_engine_t *engine,
                                           lawn_poll_fn_t poll, void *arg)
{
    if (polled->source) {
        return LAWN_ERR_BUSY;
    }
    polled->engine = engine;
    polled->was_closed = NULL;
    return lawn_engine_add(engine, poll, arg, -1, &polled->source);
}

static inline void lawn_dpdk_unpoll(lawn_dpdk_source_t *polled)
{
    if (polled->was_closed) {
        *polled->was_closed = true;
        polled->was_closed = NULL;
    }
    if (polled->source) {
        lawn_engine_remove(polled->engine, polled->source);
        polled->source = NULL;
    }
}

static inline unsigned lawn_dpdk_rx_poll(void *arg)
{
    lawn_dpdk_rx_t *const rx = (lawn_dpdk_rx_t *)arg;
    struct rte_mbuf *burst[LAWN_DPDK_BURST];
    bool was_closed = false;
    unsigned total = 0;
    uint16_t taken;
    rx->polled.was_closed = &was_closed;
    /* A burst may be short although more wait: only an empty one is the end. */
    do {
        taken = rte_eth_rx_burst(rx->port, rx->queue, burst, LAWN_DPDK_BURST);
        if (taken != 0) {
            rx->received(rx->arg, burst, taken);
        }
        total += taken;
    } while (!was_closed && taken != 0 && total < rx->depth);
    if (!was_closed) {
        rx->polled.was_closed = NULL;
    }
    return total;
}

static inline lawn_status_t
lawn_dpdk_rx_open(lawn_dpdk_rx_t *rx, lawn_engine_t *engine, uint16_t port,
                  uint16_t queue, lawn_dpdk_rx_fn_t received, void *arg)
{
    struct rte_eth_rxq_info info;
    const int found = rte_eth_rx_queue_info_get(port, queue, &info);
    if (!rx || !engine || !received || (found != 0 && found != -ENOTSUP)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const lawn_status_t status =
        lawn_dpdk_poll(&rx->polled, engine, lawn_dpdk_rx_poll, rx);
    if (status == LAWN_OK) {
        rx->port = port;
        rx->queue = queue;
        rx->depth = found == 0 ? info.nb_desc : 1024;
        rx->received = received;
        rx->arg = arg;
    }
    return status;
}

static inline void lawn_dpdk_rx_close(lawn_dpdk_rx_t *rx)
{
    lawn_dpdk_unpoll(&rx->polled);
}

static inline unsigned lawn_dpdk_ring_poll(void *arg)
{
    lawn_dpdk_ring_t *const ring = (lawn_dpdk_ring_t *)arg;
    struct rte_ring *const of = ring->ring;
    void *burst[LAWN_DPDK_BURST];
    bool was_closed = false;
    unsigned total = 0;
    unsigned taken;
    ring->polled.was_closed = &was_closed;
    do {
        taken = rte_ring_dequeue_burst(of, burst, LAWN_DPDK_BURST, NULL);
        if (taken != 0) {
            ring->taken(ring->arg, burst, taken);
        }
        total += taken;
    } while (!was_closed && taken != 0 && total < rte_ring_get_capacity(of));
    if (!was_closed) {
        ring->polled.was_closed = NULL;
    }
    return total;
}

static inline lawn_status_t
lawn_dpdk_ring_open(lawn_dpdk_ring_t *ring, lawn_engine_t *engine,
                    struct rte_ring *of, lawn_dpdk_ring_fn_t taken, void *arg)
{
    if (!ring || !engine || !of || !taken) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const lawn_status_t status =
        lawn_dpdk_poll(&ring->polled, engine, lawn_dpdk_ring_poll, ring);
    if (status == LAWN_OK) {
        ring->ring = of;
        ring->taken = taken;
        ring->arg = arg;
    }
    return status;
}

static inline void lawn_dpdk_ring_close(lawn_dpdk_ring_t *ring)
{
    lawn_dpdk_unpoll(&ring->polled);
}

LAWN_END_DECLS

#endif
