/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/verbs_cq.h - a completion queue as a source of an engine.
 *
 *     lawn_verbs_cq_open(&cq, engine, &params);
 *     while (running) {
 *         if (lawn_engine_progress(engine) == 0 && lawn_verbs_cq_arm(&cq)) {
 *             lawn_engine_wait(engine, LAWN_TIME_INFINITY);
 *         }
 *     }
 *
 * A pass takes all completions, up to a limit, and then runs the timers: so an
 * ACK that has arrived stops its timer, however late the pass.
 *
 * To sleep, the CQ needs a completion channel. A device reports a completion
 * only after a request for notification, and none that came before it:
 *
 *     a pass finds nothing   ->  lawn_verbs_cq_arm() requests it: false
 *     another pass: nothing  ->  lawn_verbs_cq_arm(): true, now sleep
 *     a completion           ->  the channel is readable: wake, and pass
 *
 * The second pass closes the race. It is an ordinary pass.
 * (ibv_req_notify_cq(3) has the same in other words.) Each notification is
 * acknowledged, or ibv_destroy_cq() would block.
 *
 * Only the engine's thread may call it. Passes allocate nothing. liblawn does
 * not link libibverbs: your program does.
 */
#ifndef LAWN_VERBS_CQ_H
#define LAWN_VERBS_CQ_H

#include <lawn/engine.h>

#include <infiniband/verbs.h>

#include <errno.h>
#include <fcntl.h>

LAWN_BEGIN_DECLS

enum { LAWN_VERBS_BATCH = 32 };

/* The callbacks may do anything: close this, too. */
typedef struct {
    struct ibv_cq *cq; /* yours */
    /* That of `cq` and of no other, or NULL: no sleeping. */
    struct ibv_comp_channel *channel;
    unsigned limit; /* of completions in a pass; 0: 256 */
    void (*completed)(void *arg, const struct ibv_wc *wc);
    /* NULL, or called behind each batch of up to LAWN_VERBS_BATCH completions:
     * to post the receives again with one call, for example. */
    void (*batched)(void *arg);
    /* NULL, or called at the end of each pass: to send what waits, for example.
     * It returns how much it has done. */
    unsigned (*after)(void *arg);
    /* NULL, or called when the device cannot be polled or asked, with errno. */
    void (*failed)(void *arg, int error);
    void *arg;
} lawn_verbs_cq_params_t;

/* Zero it at first. It may not move. The fields are the library's. */
typedef struct {
    lawn_verbs_cq_params_t params;
    lawn_engine_t *engine;
    lawn_source_t *source;
    bool is_armed;
    bool *was_closed; /* inside of a pass: where to say so */
} lawn_verbs_cq_t;

/* Begins to poll. Makes the channel non-blocking. Returns INVALID_PARAM if a
 * pointer that is needed is NULL, BUSY if `cq` is open, IO if the channel is no
 * descriptor, and what lawn_engine_add() returns. */
static inline lawn_status_t
lawn_verbs_cq_open(lawn_verbs_cq_t *cq, lawn_engine_t *engine,
                   const lawn_verbs_cq_params_t *params);

/* Ends it, and acknowledges all notifications, before ibv_destroy_cq(). From a
 * callback, what is left of the batch is dropped. */
static inline void lawn_verbs_cq_close(lawn_verbs_cq_t *cq);

/* Call it after a pass that has done nothing, before each sleep. Returns true
 * if the CQ was armed before that pass. Otherwise it arms the CQ and returns
 * false: pass again. Always false without a channel. */
static inline bool lawn_verbs_cq_arm(lawn_verbs_cq_t *cq);

/* What the source does in a pass, for whoever cannot wait for the next one: to
 * see what came before a connection was lost, for example. Returns how much was
 * done. Not from a callback. */
static inline unsigned lawn_verbs_cq_progress(lawn_verbs_cq_t *cq);

/* ---- Implementation ---- */

static inline bool lawn_verbs_unblock(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) >= 0;
}

static inline void lawn_verbs_cq_fail(lawn_verbs_cq_t *cq, int error)
{
    if (cq->params.failed) {
        cq->params.failed(cq->params.arg, error);
    }
}

/* Takes the notification. Returns 0, or an errno. */
static inline int lawn_verbs_cq_disarm(lawn_verbs_cq_t *cq)
{
    struct ibv_cq *of;
    void *context;
    unsigned taken = 0;
    while (ibv_get_cq_event(cq->params.channel, &of, &context) == 0) {
        ++taken;
    }
    const int error = errno == EAGAIN || errno == EINTR ? 0 : errno;
    if (taken != 0) {
        ibv_ack_cq_events(cq->params.cq, taken);
        cq->is_armed = false;
    }
    return error;
}

/* The notification is taken first: a completion that comes after it is still
 * polled, and the event of one that comes after the poll is still there. */
static inline unsigned lawn_verbs_cq_poll(void *arg)
{
    lawn_verbs_cq_t *const cq = (lawn_verbs_cq_t *)arg;
    const unsigned limit = cq->params.limit ? cq->params.limit : 256;
    struct ibv_wc wc[LAWN_VERBS_BATCH];
    bool was_closed = false;
    unsigned total = 0;
    int taken;
    int error = cq->is_armed ? lawn_verbs_cq_disarm(cq) : 0;
    cq->was_closed = &was_closed;
    do {
        taken = ibv_poll_cq(cq->params.cq, LAWN_VERBS_BATCH, wc);
        for (int i = 0; i < taken && !was_closed; ++i) {
            ++total;
            cq->params.completed(cq->params.arg, &wc[i]);
        }
        if (!was_closed && cq->params.batched) {
            cq->params.batched(cq->params.arg);
        }
    } while (!was_closed && taken == LAWN_VERBS_BATCH && total < limit);
    error = taken < 0 ? EIO : error;
    if (!was_closed && error != 0) {
        lawn_verbs_cq_fail(cq, error);
    }
    if (!was_closed && cq->params.after) {
        total += cq->params.after(cq->params.arg);
    }
    if (!was_closed) {
        cq->was_closed = NULL;
    }
    return total;
}

static inline unsigned lawn_verbs_cq_progress(lawn_verbs_cq_t *cq)
{
    return lawn_verbs_cq_poll(cq);
}

static inline lawn_status_t
lawn_verbs_cq_open(lawn_verbs_cq_t *cq, lawn_engine_t *engine,
                   const lawn_verbs_cq_params_t *params)
{
    if (!cq || !engine || !params || !params->cq || !params->completed) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (cq->source) {
        return LAWN_ERR_BUSY;
    }
    if (params->channel && !lawn_verbs_unblock(params->channel->fd)) {
        return LAWN_ERR_IO;
    }
    cq->params = *params;
    cq->engine = engine;
    cq->is_armed = false;
    cq->was_closed = NULL;
    return lawn_engine_add(engine, lawn_verbs_cq_poll, cq,
                           params->channel ? params->channel->fd : -1,
                           &cq->source);
}

static inline void lawn_verbs_cq_close(lawn_verbs_cq_t *cq)
{
    if (cq->was_closed) {
        *cq->was_closed = true;
        cq->was_closed = NULL;
    }
    if (cq->source) {
        lawn_engine_remove(cq->engine, cq->source);
        cq->source = NULL;
        if (cq->is_armed) {
            lawn_verbs_cq_disarm(cq);
        }
    }
}

static inline bool lawn_verbs_cq_arm(lawn_verbs_cq_t *cq)
{
    if (cq->is_armed || !cq->params.channel) {
        return cq->is_armed;
    }
    const int error = ibv_req_notify_cq(cq->params.cq, 0);
    cq->is_armed = error == 0;
    if (error != 0) {
        lawn_verbs_cq_fail(cq, error);
    }
    return false;
}

LAWN_END_DECLS

#endif
