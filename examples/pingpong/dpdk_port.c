/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The data path, and where it uses Lawn. A DPDK program has a loop on each
 * lcore that receives a burst, processes it and transmits. A pass of the
 * lcore's engine is one turn of this loop. The order of the steps matters:
 *
 *   1. The source of lawn/dpdk.h receives everything that has arrived. On an
 *      ACK the session calls lawn_conn_on_ack(), which pauses or re-arms the
 *      retransmit timer with a few stores. No timer may expire before this
 *      step. Otherwise, after a stall, the program would take ACKs in its
 *      receive ring for lost.
 *   2. The session sends what it now has to send, a burst at a time.
 *   3. The engine expires the timers that are due at the time that it read
 *      before step 1. There is no rte_timer_manage(), and no second reading of
 *      the TSC.
 *
 * Nothing here waits. If there is no mbuf, or the transmit ring is full,
 * buffer() returns NULL and the session tries again in the next pass.
 */
#include "dpdk_port_internal.h"

#include "wire.h"

#include <string.h>

/* Frames that the driver does not take stay queued. The ring will have room in
 * the next pass. */
static void transmit_queued(port_t *port)
{
    uint16_t sent = rte_eth_tx_burst(port->id, 0, port->queue, port->queued);
    port->queued = (uint16_t)(port->queued - sent);
    memmove(port->queue, port->queue + sent,
            port->queued * sizeof(port->queue[0]));
}

static void *buffer(void *arg)
{
    port_t *port = arg;
    if (port->queued == PORT_BURST) {
        transmit_queued(port);
        if (port->queued == PORT_BURST) {
            return NULL;
        }
    }
    if (!port->room) {
        port->room = rte_pktmbuf_alloc(port->pool);
        if (!port->room) {
            return NULL;
        }
    }
    return rte_pktmbuf_mtod_offset(port->room, uint8_t *, PORT_HEADER_SIZE);
}

/* The mbuf goes to the queue. When the driver takes it, the driver owns it, and
 * frees it when the frame is sent. */
static void send_datagram(void *arg, size_t length)
{
    port_t *port = arg;
    struct rte_mbuf *mbuf = port->room;
    struct rte_ether_hdr *header =
        rte_pktmbuf_mtod(mbuf, struct rte_ether_hdr *);
    rte_ether_addr_copy(&port->peer, &header->dst_addr);
    rte_ether_addr_copy(&port->own, &header->src_addr);
    header->ether_type = rte_cpu_to_be_16(PORT_ETHER_TYPE);
    wire_put16((uint8_t *)header + RTE_ETHER_HDR_LEN, (uint32_t)length);
    mbuf->data_len = (uint16_t)(PORT_HEADER_SIZE + length);
    mbuf->pkt_len = mbuf->data_len;
    port->queue[port->queued++] = mbuf;
    port->room = NULL;
}

session_sender_t port_sender(port_t *port)
{
    session_sender_t sender = {
        .buffer = buffer,
        .send = send_datagram,
        .arg = port,
        .reliable = false,
    };
    return sender;
}

/* A port receives what anybody sends: broadcasts, other protocols, the
 * neighbour discovery of a kernel. */
static void received(port_t *port, const struct rte_mbuf *mbuf)
{
    const struct rte_ether_hdr *header =
        rte_pktmbuf_mtod(mbuf, const struct rte_ether_hdr *);
    const uint8_t *frame = (const uint8_t *)header;
    if (mbuf->data_len < PORT_HEADER_SIZE ||
        header->ether_type != rte_cpu_to_be_16(PORT_ETHER_TYPE) ||
        !rte_is_same_ether_addr(&header->dst_addr, &port->own) ||
        !rte_is_same_ether_addr(&header->src_addr, &port->peer)) {
        session_count_foreign(port->session);
        return;
    }
    size_t room = mbuf->data_len - PORT_HEADER_SIZE;
    size_t length = wire_get16(frame + RTE_ETHER_HDR_LEN);
    /* If the frame claims more bytes than it has, the session rejects it. */
    session_receive(port->session, frame + PORT_HEADER_SIZE,
                    length < room ? length : room);
}

static void on_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
    port_t *port = arg;
    for (uint16_t i = 0; i < count; ++i) {
        received(port, mbufs[i]);
    }
    rte_pktmbuf_free_bulk(mbufs, count);
}

/* Counts as no work: what is sent is answered, and that is received. */
static unsigned send_waiting(void *arg)
{
    port_t *port = arg;
    session_flush(port->session);
    if (port->queued) {
        transmit_queued(port);
    }
    return 0;
}

bool port_attach(port_t *port, lawn_engine_t *engine, session_t *session)
{
    port->engine = engine;
    port->session = session;
    port_spare_memif(port);
    if (lawn_dpdk_rx_open(&port->rx, engine, port->id, 0, on_burst, port) !=
            LAWN_OK ||
        lawn_engine_add(engine, send_waiting, port, -1, &port->source) !=
            LAWN_OK) {
        complain("cannot poll %s", port->name);
        return false;
    }
    return true;
}
