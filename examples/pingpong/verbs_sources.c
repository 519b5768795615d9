/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the engine polls, and what it sleeps on. There are three sources, each
 * with the fd that wakes a sleeper for it: the completion queue
 * (lawn/verbs_cq.h), the asynchronous events of the device
 * (lawn/verbs_events.h), and with --cm the events of the connection manager,
 * for which a polling program asks the kernel only every EVENT_PERIOD_MS.
 */
#include "verbs_internal.h"

#include <errno.h>
#include <string.h>

#define EVENT_PERIOD_MS 10

static void device_lost(void *arg, int error)
{
    transport_t *v = arg;
    v->failed = true;
    complain("the completion queue: %s", strerror(error));
}

static void on_event(void *arg, const struct ibv_async_event *event)
{
    transport_t *v = arg;
    if (event->event_type == IBV_EVENT_DEVICE_FATAL) {
        v->failed = true;
    }
    if (event->event_type != IBV_EVENT_COMM_EST) {
        complain("asynchronous event: %s",
                 ibv_event_type_str(event->event_type));
    }
}

/* Uses the engine's time, so it does not read the clock. */
static unsigned poll_cm(void *arg)
{
    transport_t *v = arg;
    lawn_time_t now = lawn_engine_now(v->engine);
    if (now < v->cm_due) {
        return 0;
    }
    v->cm_due = now + lawn_time_from_msec(EVENT_PERIOD_MS);
    return verbs_cm_poll(v);
}

bool transport_attach(transport_t *v, lawn_engine_t *engine, session_t *session)
{
    /* A pass takes about one queue of completions at most, so that a fast peer
     * cannot keep it from ending. */
    const lawn_verbs_cq_params_t params = {
        .cq = v->cq,
        .channel = v->channel,
        .limit = v->recv_depth + v->send_depth,
        .completed = verbs_completed,
        .batched = verbs_batched,
        .after = verbs_flush,
        .failed = device_lost,
        .arg = v,
    };
    v->engine = engine;
    v->session = session;
    lawn_timer_init(&v->recovery, verbs_recover);
    if (lawn_verbs_cq_open(&v->completions, engine, &params) != LAWN_OK ||
        lawn_verbs_events_open(&v->events, engine, v->context, on_event, v) !=
            LAWN_OK ||
        (v->cm && lawn_engine_add(engine, poll_cm, v, verbs_cm_fd(v),
                                  &v->cm_source) != LAWN_OK)) {
        complain("cannot poll the device: %s", strerror(errno));
        return false;
    }
    return true;
}

bool transport_arm(transport_t *v)
{
    /* If one of these events wakes the sleeper, it must be handled at once. */
    lawn_verbs_events_arm(&v->events);
    v->cm_due = 0;
    return !v->failed && lawn_verbs_cq_arm(&v->completions) && !v->failed;
}

bool transport_has_failed(const transport_t *v)
{
    return v->failed;
}
