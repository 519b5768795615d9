/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The states of the queue pair, and its receive queue. The states are RESET,
 * INIT, RTR and RTS, as in the specification. A UD queue pair changes them
 * without its peer, so this side alone can bring it back after an error.
 */
#include "verbs_internal.h"

#include <errno.h>
#include <string.h>

/* The timeouts of the hardware's own reliability, in RC. The hardware gives up
 * a peer that does not answer after 7 x 4.096 us x 2^14 = 0.47 s, but only if
 * there is something to send. A queue pair that is idle or only receives never
 * notices a dead peer, so Lawn's keepalive is needed. The hardware waits
 * without limit for a peer that is slow to post receives (RNR). If this peer
 * hangs, it does not answer probes, and Lawn finds it dead, too. */
#define RC_TIMEOUT 14
#define RC_RETRIES 6
#define RC_RNR_RETRIES 7    /* no limit */
#define RC_MIN_RNR_TIMER 14 /* 1 ms */

static bool modify(transport_t *v, struct ibv_qp_attr *attr, int mask)
{
    int error = ibv_modify_qp(v->qp, attr, mask);
    errno = error;
    return error == 0;
}

bool verbs_qp_init(transport_t *v)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = (uint8_t)v->ib_port;
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (v->is_ud) {
        attr.qkey = VERBS_UD_QKEY;
        mask |= IBV_QP_QKEY;
    } else {
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    return modify(v, &attr, mask);
}

bool verbs_qp_reset(transport_t *v)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RESET;
    return modify(v, &attr, IBV_QP_STATE);
}

/* Moves from INIT to RTR to RTS. `peer` is for RC only: a UD send names its
 * address handle. */
bool verbs_qp_connect(transport_t *v, const struct ibv_ah_attr *peer)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTR;
    int mask = IBV_QP_STATE;
    if (!v->is_ud) {
        attr.path_mtu = v->path_mtu;
        attr.dest_qp_num = v->peer_qpn;
        attr.rq_psn = v->peer_psn;
        attr.max_dest_rd_atomic = 1;
        attr.min_rnr_timer = RC_MIN_RNR_TIMER;
        attr.ah_attr = *peer;
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    if (!modify(v, &attr, mask)) {
        return false;
    }
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = v->psn;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (!v->is_ud) {
        attr.timeout = RC_TIMEOUT;
        attr.retry_cnt = RC_RETRIES;
        attr.rnr_retry = RC_RNR_RETRIES;
        attr.max_rd_atomic = 1;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return modify(v, &attr, mask);
}

bool verbs_qp_follow(transport_t *v, struct ibv_qp_attr *attr, int mask)
{
    if (attr->qp_state == IBV_QPS_RTR) {
        attr->min_rnr_timer = RC_MIN_RNR_TIMER;
        mask |= IBV_QP_MIN_RNR_TIMER;
    } else {
        attr->timeout = RC_TIMEOUT;
        attr->retry_cnt = RC_RETRIES;
        attr->rnr_retry = RC_RNR_RETRIES;
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    }
    return modify(v, attr, mask);
}

void verbs_return_slot(transport_t *v, uint64_t slot)
{
    struct ibv_recv_wr *wr = &v->recv_wr[v->returned];
    struct ibv_sge *sge = &v->recv_sge[v->returned];
    sge->addr = (uintptr_t)recv_slot(v, slot);
    sge->length = (uint32_t)v->recv_stride;
    sge->lkey = v->mr->lkey;
    wr->wr_id = slot;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->next = NULL;
    if (v->returned) {
        v->recv_wr[v->returned - 1].next = wr;
    }
    ++v->returned;
}

/* Posts the batch with one call, and so with one doorbell. */
bool verbs_post_returned(transport_t *v)
{
    if (v->returned == 0) {
        return true;
    }
    struct ibv_recv_wr *bad;
    int error = ibv_post_recv(v->qp, v->recv_wr, &bad);
    v->returned = 0;
    errno = error;
    return error == 0;
}

bool verbs_post_all(transport_t *v)
{
    v->returned = 0;
    for (uint32_t slot = 0; slot < v->recv_depth; ++slot) {
        verbs_return_slot(v, slot);
        if (v->returned == BATCH && !verbs_post_returned(v)) {
            return false;
        }
    }
    return verbs_post_returned(v);
}
