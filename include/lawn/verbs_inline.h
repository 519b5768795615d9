/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/verbs_inline.h - the functions of lawn/verbs.h, which includes it.
 * Nothing else should.
 *
 * Requests have numbers, which go on over resets, and the ring has those from
 * `first` to `next`. A completion carries a number in its wr_id, so one that is
 * left in the CQ from before a reset has a number below `first`.
 *
 * An RC queue pair completes in order, and each request that fails has a
 * completion, signaled or not. So all before a completion were done.
 */
#ifndef LAWN_VERBS_INLINE_H
#define LAWN_VERBS_INLINE_H

#ifndef LAWN_VERBS_H
#error "include lawn/verbs.h"
#endif

#include <errno.h>
#include <string.h>

LAWN_BEGIN_DECLS

static inline lawn_verbs_request_t *
lawn_verbs_request(const lawn_verbs_rc_t *rc, uint64_t number)
{
    return &rc->params.ring[number & (rc->params.capacity - 1)];
}

/* Reports the oldest. */
static inline bool lawn_verbs_pop(lawn_verbs_rc_t *rc,
                                  lawn_verbs_outcome_t outcome,
                                  enum ibv_wc_status status, lawn_time_t now)
{
    lawn_verbs_request_t *const request = lawn_verbs_request(rc, rc->first++);
    lawn_timer_stop(rc->params.lawn, &request->timer);
    return request->is_probe ||
           rc->params.ops->report(rc, request->wr_id, outcome, status, now);
}

static inline bool lawn_verbs_modify(lawn_verbs_rc_t *rc, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = to;
    return ibv_modify_qp(rc->params.qp, &attr, IBV_QP_STATE) == 0;
}

static inline void lawn_verbs_fail(lawn_verbs_rc_t *rc, lawn_time_t now,
                                   lawn_verbs_state_t why)
{
    if (rc->state == LAWN_VERBS_OPEN) {
        rc->state = why;
        const bool is_flushing =
            lawn_verbs_modify(rc, IBV_QPS_ERR) && rc->first != rc->next;
        lawn_timer_start(rc->params.lawn, &rc->timer, now,
                         is_flushing ? rc->params.flush_timeout : 0);
    }
}

static inline void lawn_verbs_start_idle(lawn_verbs_rc_t *rc, lawn_time_t now)
{
    if (rc->params.keepalive_idle != 0) {
        lawn_timer_start(rc->params.lawn, &rc->timer, now,
                         rc->params.keepalive_idle);
    }
}

static inline void lawn_verbs_expired(lawn_timer_t *timer, lawn_time_t now)
{
    const lawn_verbs_request_t *const request =
        lawn_container_of(timer, lawn_verbs_request_t, timer);
    lawn_verbs_fail(request->rc, now,
                    request->is_probe ? LAWN_VERBS_KEEPALIVE
                                      : LAWN_VERBS_DEADLINE);
}

static inline void lawn_verbs_probe(lawn_verbs_rc_t *rc, lawn_time_t now)
{
    lawn_verbs_request_t *const request = lawn_verbs_request(rc, rc->next);
    struct ibv_send_wr wr;
    struct ibv_send_wr *bad;
    memset(&wr, 0, sizeof(wr));
    wr.wr_id = LAWN_VERBS_ID | rc->next;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (ibv_post_send(rc->params.qp, &wr, &bad) != 0) {
        lawn_verbs_fail(rc, now, LAWN_VERBS_DEVICE);
        return;
    }
    rc->next++;
    request->is_probe = true;
    lawn_timer_start(rc->params.lawn, &request->timer, now,
                     rc->params.keepalive_timeout);
}

static inline bool lawn_verbs_end(lawn_verbs_rc_t *rc, lawn_time_t now)
{
    lawn_timer_stop(rc->params.lawn, &rc->timer);
    rc->is_over = true;
    return rc->params.ops->failed(rc, now);
}

/* The device has flushed nothing in time, or there is nothing to flush. */
static inline void lawn_verbs_give_up(lawn_verbs_rc_t *rc, lawn_time_t now)
{
    lawn_verbs_modify(rc, IBV_QPS_RESET);
    for (int left = 64; rc->first != rc->next; --left) {
        if (left == 0) { /* the others in the next pass */
            lawn_timer_start(rc->params.lawn, &rc->timer, now, 0);
            return;
        }
        if (!lawn_verbs_pop(rc, LAWN_VERBS_UNKNOWN, IBV_WC_WR_FLUSH_ERR, now)) {
            return;
        }
    }
    lawn_verbs_end(rc, now);
}

static inline void lawn_verbs_on_timer(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_verbs_rc_t *const rc =
        lawn_container_of(timer, lawn_verbs_rc_t, timer);
    if (rc->state != LAWN_VERBS_OPEN) {
        lawn_verbs_give_up(rc, now);
    } else if (rc->first == rc->next) {
        lawn_verbs_probe(rc, now);
    } else {
        lawn_verbs_start_idle(rc, now);
    }
}

static inline bool lawn_verbs_is_valid(const lawn_verbs_params_t *params)
{
    return params->qp && params->qp->qp_type == IBV_QPT_RC && params->lawn &&
           params->ops && params->ops->report && params->ops->failed &&
           params->ring && params->capacity != 0 &&
           (params->capacity & (params->capacity - 1)) == 0 &&
           params->flush_timeout != 0 &&
           (params->keepalive_idle == 0 || params->keepalive_timeout != 0);
}

static inline lawn_status_t lawn_verbs_init(lawn_verbs_rc_t *rc,
                                            const lawn_verbs_params_t *params,
                                            lawn_time_t now)
{
    if (!rc || !params || !lawn_verbs_is_valid(params)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (rc->state != LAWN_VERBS_CLOSED && !rc->is_over) {
        return LAWN_ERR_BUSY;
    }
    for (uint32_t i = 0; i < params->capacity; ++i) {
        lawn_timer_init(&params->ring[i].timer, lawn_verbs_expired);
        params->ring[i].rc = rc;
    }
    rc->params = *params;
    rc->state = LAWN_VERBS_OPEN;
    rc->status = IBV_WC_SUCCESS;
    rc->is_over = false;
    lawn_timer_init(&rc->timer, lawn_verbs_on_timer);
    lawn_verbs_start_idle(rc, now);
    return LAWN_OK;
}

static inline lawn_status_t
lawn_verbs_post(lawn_verbs_rc_t *rc, lawn_queue_t *deadline, lawn_time_t now,
                struct ibv_send_wr *list, struct ibv_send_wr **bad_wr)
{
    const uint64_t first = rc->next;
    uint64_t next = first;
    *bad_wr = list;
    if (rc->state != LAWN_VERBS_OPEN) {
        errno = ENOTCONN;
        return LAWN_ERR_IO;
    }
    for (struct ibv_send_wr *wr = list; wr; wr = wr->next) {
        if (next - rc->first == rc->params.capacity) {
            return LAWN_ERR_BUSY;
        }
        next++;
    }
    next = first;
    for (struct ibv_send_wr *wr = list; wr; wr = wr->next) {
        lawn_verbs_request(rc, next)->wr_id = wr->wr_id;
        wr->wr_id = LAWN_VERBS_ID | next++;
    }
    const int error = list ? ibv_post_send(rc->params.qp, list, bad_wr) : 0;
    const struct ibv_send_wr *const end = error ? *bad_wr : NULL;
    bool is_posted = true;
    next = first;
    for (struct ibv_send_wr *wr = list; wr; wr = wr->next) {
        lawn_verbs_request_t *const request = lawn_verbs_request(rc, next++);
        wr->wr_id = request->wr_id;
        is_posted = is_posted && wr != end;
        if (is_posted) {
            rc->next = next;
            request->is_probe = false;
        }
        if (is_posted && deadline) {
            lawn_queue_start(deadline, &request->timer, now);
        }
    }
    errno = error ? error : errno;
    return error ? LAWN_ERR_IO : LAWN_OK;
}

static inline bool lawn_verbs_owns(const struct ibv_wc *wc)
{
    return (wc->wr_id & LAWN_VERBS_ID) != 0;
}

/* That of a request that has failed. If the peer's device has refused the first
 * of these, it carries out none after it. */
static inline lawn_verbs_outcome_t lawn_verbs_outcome(const lawn_verbs_rc_t *rc)
{
    switch (rc->status) {
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return LAWN_VERBS_NOT_DONE;
    default:
        return LAWN_VERBS_UNKNOWN;
    }
}

static inline bool lawn_verbs_complete(lawn_verbs_rc_t *rc,
                                       const struct ibv_wc *wc, lawn_time_t now)
{
    const uint64_t number = wc->wr_id & ~LAWN_VERBS_ID;
    lawn_verbs_outcome_t outcome = LAWN_VERBS_DONE;
    if (number - rc->first >= rc->next - rc->first) {
        return true;
    }
    if (wc->status != IBV_WC_SUCCESS) {
        rc->status = rc->status == IBV_WC_SUCCESS ? wc->status : rc->status;
        outcome = lawn_verbs_outcome(rc);
        lawn_verbs_fail(rc, now, LAWN_VERBS_DEVICE);
    }
    while (rc->first != number) {
        if (!lawn_verbs_pop(rc, LAWN_VERBS_DONE, IBV_WC_SUCCESS, now)) {
            return false;
        }
    }
    if (!lawn_verbs_pop(rc, outcome, wc->status, now)) {
        return false;
    }
    if (rc->first != rc->next) {
        return true;
    }
    if (rc->state != LAWN_VERBS_OPEN) {
        return lawn_verbs_end(rc, now);
    }
    lawn_verbs_start_idle(rc, now);
    return true;
}

static inline void lawn_verbs_close(lawn_verbs_rc_t *rc)
{
    while (rc->first != rc->next) {
        lawn_timer_stop(rc->params.lawn,
                        &lawn_verbs_request(rc, rc->first++)->timer);
    }
    if (rc->params.lawn) {
        lawn_timer_stop(rc->params.lawn, &rc->timer);
    }
    rc->state = LAWN_VERBS_CLOSED;
}

LAWN_END_DECLS

#endif
