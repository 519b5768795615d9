/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the UCX transport share. ucx_open.c sets up a UCP worker
 * and its endpoint, and ucx.c is the data path.
 */
#ifndef PINGPONG_UCX_INTERNAL_H
#define PINGPONG_UCX_INTERNAL_H

#include "transport.h"

#include <lawn/ucx.h>

/* The active message that carries a datagram. */
#define UCX_AM_ID 1u

/* One datagram to be sent. It belongs to UCX from the send to the completion.
 * The completion gets only the slot, so the slot points to its transport. */
typedef struct send_slot {
    struct send_slot *next_free;
    transport_t *transport;
    uint8_t datagram[];
} send_slot_t;

struct transport {
    const options_t *options;
    char name[160];
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address; /* the worker's own */
    size_t address_size;
    ucp_ep_h ep;

    uint8_t *slots;
    size_t slot_stride;
    uint32_t slot_count;
    send_slot_t *free_slots;

    lawn_ucx_t ucx;
    session_t *session; /* NULL before it exists, and afterwards */
    bool failed;
};

static inline send_slot_t *ucx_slot(const transport_t *u, uint32_t index)
{
    return (send_slot_t *)(void *)(u->slots + index * u->slot_stride);
}

/* Callbacks that UCX calls when a datagram has arrived, and when the endpoint
 * is lost. */
ucs_status_t ucx_received(void *arg, const void *header, size_t header_length,
                          void *data, size_t length,
                          const ucp_am_recv_param_t *param);
void ucx_endpoint_failed(void *arg, ucp_ep_h ep, ucs_status_t status);

#endif
