/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/verbs_events.h - the asynchronous events of a device (a port that is
 * down, a queue pair in error, the end of the device) as a source of an engine.
 *
 *     lawn_verbs_events_open(&events, engine, context, on_event, me);
 *     lawn_verbs_events_arm(&events);              // before each sleep
 *
 * A pass that polls looks for events every 10 ms, for each look is a system
 * call, and no event is so urgent. A program that sleeps is woken by them.
 *
 * Only the engine's thread may call it. liblawn does not link libibverbs: your
 * program does.
 */
#ifndef LAWN_VERBS_EVENTS_H
#define LAWN_VERBS_EVENTS_H

#include <lawn/verbs_cq.h>

LAWN_BEGIN_DECLS

/* The fields are the library's. Each event is acknowledged before `event` is
 * called. So that may destroy what the event is about, where ibv_destroy_qp()
 * would wait for ever otherwise, and may close this. But if another thread
 * destroys such things, it has to ask yours first. */
typedef struct {
    lawn_engine_t *engine;
    struct ibv_context *context;
    void (*event)(void *arg, const struct ibv_async_event *event);
    void *arg;
    lawn_source_t *source;
    lawn_time_t due; /* the next look */
    bool *was_closed;
} lawn_verbs_events_t;

/* Zero `events` at first; it may not move. Makes the descriptor of the device
 * non-blocking. Returns as lawn_verbs_cq_open(). */
static inline lawn_status_t lawn_verbs_events_open(
    lawn_verbs_events_t *events, lawn_engine_t *engine,
    struct ibv_context *context,
    void (*event)(void *arg, const struct ibv_async_event *event), void *arg);

static inline void lawn_verbs_events_close(lawn_verbs_events_t *events);

/* Call it before each sleep: what wakes it may be an event, which the next pass
 * has to look at. */
static inline void lawn_verbs_events_arm(lawn_verbs_events_t *events);

/* ---- Implementation ---- */

static inline unsigned lawn_verbs_events_poll(void *arg)
{
    lawn_verbs_events_t *const events = (lawn_verbs_events_t *)arg;
    const lawn_time_t now = lawn_engine_now(events->engine);
    struct ibv_async_event event;
    bool was_closed = false;
    unsigned total = 0;
    if (now < events->due) {
        return 0;
    }
    events->due = now + lawn_time_from_msec(10);
    events->was_closed = &was_closed;
    while (!was_closed && ibv_get_async_event(events->context, &event) == 0) {
        ++total;
        ibv_ack_async_event(&event);
        events->event(events->arg, &event);
    }
    if (!was_closed) {
        events->was_closed = NULL;
    }
    return total;
}

static inline lawn_status_t lawn_verbs_events_open(
    lawn_verbs_events_t *events, lawn_engine_t *engine,
    struct ibv_context *context,
    void (*event)(void *arg, const struct ibv_async_event *event), void *arg)
{
    if (!events || !engine || !context || !event) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (events->source) {
        return LAWN_ERR_BUSY;
    }
    if (!lawn_verbs_unblock(context->async_fd)) {
        return LAWN_ERR_IO;
    }
    events->engine = engine;
    events->context = context;
    events->event = event;
    events->arg = arg;
    events->due = 0;
    events->was_closed = NULL;
    return lawn_engine_add(engine, lawn_verbs_events_poll, events,
                           context->async_fd, &events->source);
}

static inline void lawn_verbs_events_close(lawn_verbs_events_t *events)
{
    if (events->was_closed) {
        *events->was_closed = true;
        events->was_closed = NULL;
    }
    if (events->source) {
        lawn_engine_remove(events->engine, events->source);
        events->source = NULL;
    }
}

static inline void lawn_verbs_events_arm(lawn_verbs_events_t *events)
{
    events->due = 0;
}

LAWN_END_DECLS

#endif
