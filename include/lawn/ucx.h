/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/ucx.h - a UCP worker as a source of an engine, and requests that may
 * take a limited time.
 *
 *     lawn_ucx_open(&ucx, engine, worker, &params);     // UCP_FEATURE_WAKEUP
 *     while (running) {                                 // to sleep
 *         if (lawn_engine_progress(engine) == 0 && lawn_ucx_arm(&ucx)) {
 *             lawn_engine_wait(engine, LAWN_TIME_INFINITY);
 *         }
 *     }
 *
 * The worker is made to be polled, as the engine is. A pass calls
 * ucp_worker_progress() until there is no more, or up to a limit, and then runs
 * the timers: so what has arrived stops its timer, however late the pass.
 *
 * UCX has no time limit for a request: one to a peer that hangs may stay in its
 * endpoint for ever. Each request with a limit has a timer:
 *
 *     request = ucp_tag_recv_nbx(...);
 *     lawn_ucx_limit_start(&ucx, &mine->limit, request, ttl);
 *     lawn_ucx_limit_end(&ucx, &mine->limit);      // in the request's callback
 *
 * When the time is over, `late` is told, and then the request is cancelled. A
 * receive completes in that with UCS_ERR_CANCELED: UCX calls its callback at
 * once, which may free all that is yours. UCX cancels no send that it has
 * handed to a transport: close the endpoint with UCP_EP_CLOSE_FLAG_FORCE in
 * `late`, which completes all that it has.
 *
 * All is O(1) and allocates nothing, but open and close, and only the engine's
 * thread may call it. liblawn does not link UCX: your program does.
 */
#ifndef LAWN_UCX_H
#define LAWN_UCX_H

#include <lawn/engine.h>

#include <ucp/api/ucp.h>

#include <string.h>

LAWN_BEGIN_DECLS

typedef struct {
    unsigned limit; /* of events in a pass; 0: 8192 */
    bool sleeps;    /* the context has UCP_FEATURE_WAKEUP, and you call arm */
    /* NULL, or what is to be done in each pass after the worker: to send what
     * waits, for example. It returns how much it has done. It may close. */
    unsigned (*after)(void *arg);
    void *arg;
} lawn_ucx_params_t;

/* Zero it at first. It may not move. The fields are the library's. */
typedef struct {
    lawn_ucx_params_t params;
    lawn_engine_t *engine;
    ucp_worker_h worker;
    lawn_source_t *source;
    bool *was_closed; /* inside of a pass: where to say so */
} lawn_ucx_t;

/* Begins to poll `worker`, which stays yours. Returns INVALID_PARAM if a
 * pointer is NULL, BUSY if `ucx` is open, UNSUPPORTED if `sleeps` and UCX has
 * no descriptor for this worker, and what lawn_engine_add() returns. */
static inline lawn_status_t lawn_ucx_open(lawn_ucx_t *ucx,
                                          lawn_engine_t *engine,
                                          ucp_worker_h worker,
                                          const lawn_ucx_params_t *params);

/* Ends it, before the worker is destroyed. Callbacks of the worker may call it.
 * Requests with a limit keep it, until they have completed. */
static inline void lawn_ucx_close(lawn_ucx_t *ucx);

/* Call it after a pass that has done nothing, before each sleep. Returns false
 * if something may have arrived: pass again. So it is while shared memory of
 * the worker waits for room, of which nobody would be told. */
static inline bool lawn_ucx_arm(lawn_ucx_t *ucx);

typedef struct lawn_ucx_limit lawn_ucx_limit_t;

/* The time is over. When this returns, the request is cancelled, unless it has
 * completed in here, or was given more time by lawn_ucx_limit_start(). */
typedef void (*lawn_ucx_late_fn_t)(lawn_ucx_limit_t *limit, lawn_time_t now);

/* Embed it where the request's callback finds it, by `user_data`. */
struct lawn_ucx_limit {
    lawn_timer_t timer; /* first */
    ucp_worker_h worker;
    void *request;
    lawn_ucx_late_fn_t late; /* or NULL */
    bool is_late;
    bool *cancels; /* inside of `late`: whether to cancel it then */
};

static inline void lawn_ucx_limit_init(lawn_ucx_limit_t *limit,
                                       lawn_ucx_late_fn_t late);

/* Gives `request`, that a function of ucp has just returned, `ttl` ticks. A
 * request that is completed or has failed already (it is no pointer) needs
 * none, and returns false. */
static inline bool lawn_ucx_limit_start(lawn_ucx_t *ucx,
                                        lawn_ucx_limit_t *limit,
                                        ucs_status_ptr_t request,
                                        lawn_time_t ttl);

/* To be called first in the request's callback. Returns true if it was late:
 * the status then says whether it was carried out after all. */
static inline bool lawn_ucx_limit_end(lawn_ucx_t *ucx, lawn_ucx_limit_t *limit);

/* ---- Implementation ---- */

static inline unsigned lawn_ucx_poll(void *arg)
{
    lawn_ucx_t *const ucx = (lawn_ucx_t *)arg;
    const unsigned limit = ucx->params.limit ? ucx->params.limit : 8192;
    bool was_closed = false;
    unsigned total = 0;
    unsigned events;
    ucx->was_closed = &was_closed;
    do {
        events = ucp_worker_progress(ucx->worker);
        total += events;
        if (was_closed) {
            return total;
        }
    } while (events != 0 && total < limit);
    if (ucx->params.after) {
        total += ucx->params.after(ucx->params.arg);
    }
    if (!was_closed) {
        ucx->was_closed = NULL;
    }
    return total;
}

static inline lawn_status_t lawn_ucx_open(lawn_ucx_t *ucx,
                                          lawn_engine_t *engine,
                                          ucp_worker_h worker,
                                          const lawn_ucx_params_t *params)
{
    int fd = -1;
    if (!ucx || !engine || !worker || !params) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (ucx->source) {
        return LAWN_ERR_BUSY;
    }
    if (params->sleeps && ucp_worker_get_efd(worker, &fd) != UCS_OK) {
        return LAWN_ERR_UNSUPPORTED;
    }
    ucx->params = *params;
    ucx->engine = engine;
    ucx->worker = worker;
    ucx->was_closed = NULL;
    return lawn_engine_add(engine, lawn_ucx_poll, ucx, fd, &ucx->source);
}

static inline void lawn_ucx_close(lawn_ucx_t *ucx)
{
    if (ucx->was_closed) {
        *ucx->was_closed = true;
        ucx->was_closed = NULL;
    }
    if (ucx->source) {
        lawn_engine_remove(ucx->engine, ucx->source);
        ucx->source = NULL;
    }
}

static inline bool lawn_ucx_arm(lawn_ucx_t *ucx)
{
    return ucp_worker_arm(ucx->worker) == UCS_OK;
}

/* Behind the two calls nothing is touched but what is on the stack: the
 * request's callback may have freed the limit. */
static inline void lawn_ucx_on_late(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_ucx_limit_t *const limit = (lawn_ucx_limit_t *)(void *)timer;
    bool cancels = true;
    limit->is_late = true;
    if (limit->late) {
        limit->cancels = &cancels;
        limit->late(limit, now);
        if (!cancels) {
            return;
        }
        limit->cancels = NULL;
    }
    ucp_request_cancel(limit->worker, limit->request);
}

static inline void lawn_ucx_limit_keep(lawn_ucx_limit_t *limit)
{
    if (limit->cancels) {
        *limit->cancels = false;
        limit->cancels = NULL;
    }
}

static inline void lawn_ucx_limit_init(lawn_ucx_limit_t *limit,
                                       lawn_ucx_late_fn_t late)
{
    memset(limit, 0, sizeof(*limit));
    lawn_timer_init(&limit->timer, lawn_ucx_on_late);
    limit->late = late;
}

static inline bool lawn_ucx_limit_start(lawn_ucx_t *ucx,
                                        lawn_ucx_limit_t *limit,
                                        ucs_status_ptr_t request,
                                        lawn_time_t ttl)
{
    if (!UCS_PTR_IS_PTR(request)) {
        return false;
    }
    lawn_ucx_limit_keep(limit);
    limit->worker = ucx->worker;
    limit->request = request;
    limit->is_late = false;
    lawn_engine_start(ucx->engine, &limit->timer, ttl);
    return true;
}

static inline bool lawn_ucx_limit_end(lawn_ucx_t *ucx, lawn_ucx_limit_t *limit)
{
    lawn_ucx_limit_keep(limit);
    lawn_engine_stop(ucx->engine, &limit->timer);
    return limit->is_late;
}

LAWN_END_DECLS

#endif
