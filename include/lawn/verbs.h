/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/verbs.h - deadlines and keepalive for the requests of an RC queue pair.
 *
 *     lawn_verbs_init(&peer->rc, &params, now);         // it is in RTS
 *     lawn_verbs_post(&peer->rc, gets, now, &wr, &bad); // as ibv_post_send()
 *     if (lawn_verbs_owns(&wc)) {                       // of ibv_poll_cq()
 *         lawn_verbs_complete(&peer->rc, &wc, now);     // calls ops.report
 *     }
 *
 * The device of an RC queue pair retransmits, but knows no deadline: a request
 * may take for ever, and a queue pair that has nothing to send never learns
 * that its peer's host is gone. So each request is a timer on a lawn_queue, of
 * the TTL that it may take. All queue pairs share the few queues.
 *
 * No device takes a request back. So when a deadline passes, the queue pair
 * goes into the error state, and its device flushes all that is outstanding.
 * Each request is reported once, in order, when the device has let go of it:
 *   - DONE: the peer's device has carried it out. (Its program may not know.)
 *   - NOT_DONE: the peer's device has refused it, or one before it, so that it
 *     was not carried out, or not to its end.
 *   - UNKNOWN: it may have been carried out, or not. Requests are carried out
 *     in order, so of these the first few have been, perhaps none or all. What
 *     is still on its way may be, until the peer's queue pair is in the error
 *     state or reset. When you have met again, ask the peer.
 * Then `failed` is called. Reset the queue pair, connect it, and init this anew
 * (examples/rc_deadline.c). A device that does not flush has died: its requests
 * are reported when `flush_timeout` is over. So none is later than its
 * deadline, that time and two passes.
 *
 * Keepalive: when nothing was outstanding for `keepalive_idle`, an RDMA write
 * of no bytes is posted, which only the peer's device answers. So the host of
 * an idle peer is found dead after `keepalive_idle` + `keepalive_timeout`. (The
 * device repeats it; the timeout is the interval times the probes of
 * lawn/conn.h.) The peer must allow IBV_ACCESS_REMOTE_WRITE, but needs no
 * memory for it (InfiniBand Architecture Specification 1, C9-88). While
 * something is outstanding, its deadline does the same.
 *
 * All is O(1) but init and close, nothing allocates, and only the lawn's thread
 * may call it. liblawn does not link libibverbs: your program does.
 */
#ifndef LAWN_VERBS_H
#define LAWN_VERBS_H

#include <lawn/queue.h>

#include <infiniband/verbs.h>

LAWN_BEGIN_DECLS

/* Set in the wr_id of what is posted here. Leave it clear in your others. */
#define LAWN_VERBS_ID ((uint64_t)1 << 63)

typedef struct lawn_verbs_rc lawn_verbs_rc_t;

typedef enum {
    LAWN_VERBS_DONE,
    LAWN_VERBS_NOT_DONE,
    LAWN_VERBS_UNKNOWN
} lawn_verbs_outcome_t;

typedef enum {
    LAWN_VERBS_CLOSED,
    LAWN_VERBS_OPEN,
    LAWN_VERBS_DEADLINE,  /* of a request */
    LAWN_VERBS_KEEPALIVE, /* no answer to a probe */
    LAWN_VERBS_DEVICE,    /* a request failed: see `status` */
    LAWN_VERBS_PROGRAM
} lawn_verbs_state_t;

/* Both may do anything. They return false if `rc` may have been freed, or was
 * closed. `failed` comes once, after the last report. */
typedef struct {
    bool (*report)(lawn_verbs_rc_t *rc, uint64_t wr_id, /* as posted */
                   lawn_verbs_outcome_t outcome, enum ibv_wc_status status,
                   lawn_time_t now);
    bool (*failed)(lawn_verbs_rc_t *rc, lawn_time_t now);
} lawn_verbs_ops_t;

/* A request that may be outstanding. The fields are the library's. */
typedef struct {
    lawn_timer_t timer;
    lawn_verbs_rc_t *rc;
    uint64_t wr_id;
    bool is_probe;
} lawn_verbs_request_t;

typedef struct {
    struct ibv_qp *qp; /* of IBV_QPT_RC */
    lawn_t *lawn;      /* that of the queues */
    const lawn_verbs_ops_t *ops;
    lawn_verbs_request_t *ring;    /* yours; zero it at first */
    uint32_t capacity;             /* a power of two, at most max_send_wr */
    lawn_time_t keepalive_idle;    /* ticks; 0: no keepalive */
    lawn_time_t keepalive_timeout; /* ticks, of a probe */
    lawn_time_t flush_timeout;     /* ticks; then the queue pair is reset */
} lawn_verbs_params_t;

/* Zero it at first. Neither it nor the ring may move. Only read its fields. */
struct lawn_verbs_rc {
    lawn_verbs_params_t params;
    lawn_verbs_state_t state;  /* or why it has failed */
    enum ibv_wc_status status; /* of the first request that failed */
    bool is_over;              /* has failed, and has reported all */
    uint64_t first;            /* the number of the oldest request */
    uint64_t next;             /* the same: nothing is outstanding */
    lawn_timer_t timer;        /* idle; after a failure: no flush */
};

/* Begins, at first or anew, with a queue pair in RTS. Returns INVALID_PARAM if
 * a pointer is NULL, the queue pair is not of RC, the capacity is no power of
 * two, or a timeout that is needed is 0, and BUSY if `rc` is open, or has not
 * reported all since it was. O(capacity). */
static inline lawn_status_t lawn_verbs_init(lawn_verbs_rc_t *rc,
                                            const lawn_verbs_params_t *params,
                                            lawn_time_t now);

/* Posts a list of requests, as ibv_post_send(). `deadline` is a queue of the
 * same lawn, whose TTL each of them may take; NULL: no deadline. A request that
 * is not signaled is known to be done when a later one is, so signal the last.
 * Returns BUSY if the ring has no room for the list, and IO, with errno, if
 * `rc` is not open (ENOTCONN) or the device refuses *bad_wr: that, and all
 * behind it, are not posted, and will not be reported. */
static inline lawn_status_t
lawn_verbs_post(lawn_verbs_rc_t *rc, lawn_queue_t *deadline, lawn_time_t now,
                struct ibv_send_wr *list, struct ibv_send_wr **bad_wr);

/* Returns true if lawn_verbs_complete() is to have this completion. If several
 * queue pairs share the CQ, wc->qp_num tells which `rc`. */
static inline bool lawn_verbs_owns(const struct ibv_wc *wc);

/* Reports the request that has completed, and those before it that were not
 * signaled. Ignores what is left of before a reset. Returns false if a callback
 * has. */
static inline bool lawn_verbs_complete(lawn_verbs_rc_t *rc,
                                       const struct ibv_wc *wc,
                                       lawn_time_t now);

/* Does as when a deadline passes, for what a program learns by other ways:
 * `why` is LAWN_VERBS_PROGRAM. For example, an asynchronous event, or rdma_cm's
 * DISCONNECTED. Nothing happens if `rc` is not open. `failed` comes in a later
 * pass or completion. */
static inline void lawn_verbs_fail(lawn_verbs_rc_t *rc, lawn_time_t now,
                                   lawn_verbs_state_t why);

/* Ends it, and reports nothing. Call it before you free `rc`, its ring or its
 * lawn. The device may use the memory of what was outstanding until the queue
 * pair is reset or destroyed. O(outstanding). */
static inline void lawn_verbs_close(lawn_verbs_rc_t *rc);

LAWN_END_DECLS

#include <lawn/verbs_inline.h>

#endif
