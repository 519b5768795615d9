/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The data path, and where it uses Lawn. The source of lawn/verbs_cq.h drains
 * the completion queue before the engine expires timers: once per pass, and
 * twice after a stall. After a stall of seconds, the process finds all the ACKs
 * that came meanwhile. Each of them stops its timer before the timer can
 * expire. A small fixed number of completions per pass would not be enough.
 *
 * Then the session sends. Sends never wait. If the send queue is full, buffer()
 * returns NULL, and the session tries again in the next pass. One send per
 * quarter of the queue is signaled. Its completion frees all sends before it.
 */
#include "verbs_internal.h"

#include <errno.h>
#include <string.h>

#define RECOVERY_PERIOD_MS 100

/* The queue pair is in error. A UD queue pair can recover without its peer, and
 * has lost only datagrams, which the retransmit timers repair. An RC queue pair
 * has lost its connection. */
void verbs_queue_pair_failed(transport_t *v, const char *what, const char *why)
{
    if (v->broken || v->failed) {
        return;
    }
    if (v->is_ud) {
        v->broken = true;
        lawn_timer_start(lawn_engine_lawn(v->engine), &v->recovery,
                         lawn_engine_now(v->engine),
                         lawn_time_from_msec(RECOVERY_PERIOD_MS));
    } else {
        v->failed = true;
    }
    /* Complain once per outage, and not if the peer left after everything was
     * done. */
    if (!v->complained && !session_is_complete(v->session)) {
        v->complained = true;
        complain("%s failed: %s%s", what, why,
                 v->is_ud ? "; the queue pair is reset until it works" : "");
    }
}

static void *buffer(void *arg)
{
    transport_t *v = arg;
    if (v->broken || v->failed ||
        v->sends_posted - v->sends_completed == v->send_depth) {
        return NULL;
    }
    return send_slot(v, v->sends_posted % v->send_depth);
}

static void send_datagram(void *arg, size_t length)
{
    transport_t *v = arg;
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    struct ibv_send_wr *bad;
    memset(&wr, 0, sizeof(wr));
    sge.addr = (uintptr_t)send_slot(v, v->sends_posted % v->send_depth);
    sge.length = (uint32_t)length;
    sge.lkey = v->mr->lkey;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    if (v->is_ud) {
        wr.wr.ud.ah = v->ah;
        wr.wr.ud.remote_qpn = v->peer_qpn;
        wr.wr.ud.remote_qkey = VERBS_UD_QKEY;
    }
    ++v->sends_posted;
    wr.wr_id = v->sends_posted | SEND_BIT;
    if (v->sends_posted % (v->send_depth / 4) == 0) {
        wr.send_flags = IBV_SEND_SIGNALED;
    }
    int error = ibv_post_send(v->qp, &wr, &bad);
    if (error) {
        verbs_queue_pair_failed(v, "post send", strerror(error));
    }
}

session_sender_t transport_sender(transport_t *v)
{
    session_sender_t transport = {
        .buffer = buffer,
        .send = send_datagram,
        .arg = v,
        .reliable = !v->is_ud,
    };
    return transport;
}

static void received(transport_t *v, const struct ibv_wc *wc)
{
    const uint8_t *datagram = recv_slot(v, wc->wr_id);
    size_t length = wc->byte_len;
    v->complained = false;
    if (v->is_ud) {
        if (length < GRH_SIZE || wc->src_qp != v->peer_qpn) {
            session_count_foreign(v->session);
            return;
        }
        datagram += GRH_SIZE;
        length -= GRH_SIZE;
    }
    session_receive(v->session, datagram, length);
}

void verbs_completed(void *arg, const struct ibv_wc *wc)
{
    transport_t *v = arg;
    bool is_send = (wc->wr_id & SEND_BIT) != 0;
    if (wc->status != IBV_WC_SUCCESS) {
        verbs_queue_pair_failed(v, is_send ? "send" : "receive",
                                ibv_wc_status_str(wc->status));
    } else if (is_send) {
        v->sends_completed = wc->wr_id & ~SEND_BIT;
    } else {
        received(v, wc);
        verbs_return_slot(v, wc->wr_id);
    }
}

void verbs_batched(void *arg)
{
    transport_t *v = arg;
    if (!v->broken && !v->failed && !verbs_post_returned(v)) {
        verbs_queue_pair_failed(v, "post receive", strerror(errno));
    }
    v->returned = 0;
}

unsigned verbs_flush(void *arg)
{
    transport_t *v = arg;
    session_flush(v->session);
    return 0;
}

/* Brings a UD queue pair back from its error. Completions from before the reset
 * are dropped first, because their slots are posted again. */
void verbs_recover(lawn_timer_t *timer, lawn_time_t now)
{
    transport_t *v = lawn_container_of(timer, transport_t, recovery);
    struct ibv_wc wc[BATCH];
    (void)now;
    bool is_back = verbs_qp_reset(v);
    while (ibv_poll_cq(v->cq, (int)BATCH, wc) > 0) {
    }
    if (!is_back || !verbs_qp_init(v) || !verbs_post_all(v) ||
        !verbs_qp_connect(v, NULL)) {
        v->failed = true;
        complain("cannot reset the queue pair: %s", strerror(errno));
        return;
    }
    v->sends_posted = 0;
    v->sends_completed = 0;
    v->broken = false;
}
