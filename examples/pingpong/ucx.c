/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The data path: how Lawn and a UCP worker share one loop. Both are made to be
 * polled. lawn/ucx.h makes the worker a source of the engine. So one
 * lawn_engine_progress() does what the loop of a UCX program does, and expires
 * the timers after everything that has arrived was taken:
 *
 *     lawn_engine_progress()
 *         ucp_worker_progress(), until there is no more
 *             ucx_received() -> session_receive() -> lawn_conn_on_ack()
 *         flush() -> session_flush() -> ucp_am_send_nbx()
 *         timers -> retransmit, probe, dead
 *
 * UCX delivers every active message once, unless its endpoint fails. The
 * retransmit timers run nevertheless, because they give a UCX program a time
 * limit for requests. If the peer was stopped or is behind a dead switch, an
 * endpoint may hold requests for ever and report nothing. Examples are RC with
 * the default seven retries on SoftRoCE, shared memory, and TCP as long as the
 * peer's kernel answers.
 *
 * The peer timeout counts from the oldest unanswered message, and keepalive
 * from the last message received. So lawn_conn finds a dead peer within its own
 * bound, whatever UCX does, or earlier if UCX reports the failure earlier. A
 * retransmission that was not needed is a duplicate, which the receiver drops.
 * --drop makes the link really lossy.
 *
 * With --events, the program sleeps on both the worker's descriptor and the
 * next deadline. lawn_ucx_arm() calls ucp_worker_arm().
 */
#include "ucx_internal.h"

/* Complains once, and not if the peer left after everything was done. */
static void fail(transport_t *u, const char *what, ucs_status_t status)
{
    if (!u->failed && !(u->session && session_is_complete(u->session))) {
        complain("%s failed: %s", what, ucs_status_string(status));
    }
    u->failed = true;
}

/* UCX calls it inside ucp_worker_progress() or a send. */
void ucx_endpoint_failed(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    fail(arg, "the endpoint", status);
}

static void free_slot(send_slot_t *slot)
{
    slot->next_free = slot->transport->free_slots;
    slot->transport->free_slots = slot;
}

/* The status is ignored: a send fails only if its endpoint has failed or was
 * closed. */
static void sent(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    free_slot(arg);
    ucp_request_free(request);
}

static void *buffer(void *arg)
{
    transport_t *u = arg;
    if (u->failed || !u->free_slots) {
        return NULL;
    }
    return u->free_slots->datagram;
}

/* Sends eagerly, whatever the size is. In a rendezvous, the receiver fetches
 * the data later, and by then the message may have been sent again. */
static void send_datagram(void *arg, size_t length)
{
    transport_t *u = arg;
    send_slot_t *slot = u->free_slots;
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = sent,
        .user_data = slot,
    };
    u->free_slots = slot->next_free;
    ucs_status_ptr_t request = ucp_am_send_nbx(u->ep, UCX_AM_ID, NULL, 0,
                                               slot->datagram, length, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        free_slot(slot);
        if (UCS_PTR_IS_ERR(request)) {
            fail(u, "a send", UCS_PTR_STATUS(request));
        }
    }
}

session_sender_t transport_sender(transport_t *u)
{
    session_sender_t transport = {
        .buffer = buffer,
        .send = send_datagram,
        .arg = u,
        .reliable = false,
    };
    return transport;
}

/* When this returns, the data belongs to UCX again, so nothing keeps a pointer
 * to it. A rendezvous, which our peer never begins, has no data here. Returning
 * refuses it. */
ucs_status_t ucx_received(void *arg, const void *header, size_t header_length,
                          void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    transport_t *u = arg;
    (void)header;
    if (!u->session) {
        return UCS_OK;
    }
    if (header_length != 0 ||
        (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        session_count_foreign(u->session);
    } else {
        session_receive(u->session, data, length);
    }
    return UCS_OK;
}

static unsigned flush(void *arg)
{
    transport_t *u = arg;
    session_flush(u->session);
    return 0;
}

bool transport_attach(transport_t *u, lawn_engine_t *engine, session_t *session)
{
    const lawn_ucx_params_t params = {
        .sleeps = u->options->events,
        .after = flush,
        .arg = u,
    };
    u->session = session;
    lawn_status_t status = lawn_ucx_open(&u->ucx, engine, u->worker, &params);
    if (status != LAWN_OK) {
        complain("cannot poll the worker: %s", lawn_status_string(status));
        return false;
    }
    return true;
}

bool transport_arm(transport_t *u)
{
    return lawn_ucx_arm(&u->ucx);
}

bool transport_has_failed(const transport_t *u)
{
    return u->failed;
}
