/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the engine polls, and what it sleeps on. There are three sources, each
 * with the fd that wakes a sleeper for it: the completion queue, the
 * asynchronous events of the device, and with --cm the events of the connection
 * manager.
 *
 * A polling program needs none of these fds, and asks the kernel for the two
 * kinds of events only every EVENT_PERIOD_MS. A program that sleeps (--events)
 * repeats three steps. It needs them because the device reports a completion
 * only after a request for notification, and reports none that came before the
 * request:
 *
 *     a pass finds nothing   ->  transport_arm() asks for notification: false
 *     another pass: nothing  ->  transport_arm(): true, now sleep
 *     a completion           ->  the channel is readable: wake, and pass
 *
 * The second pass closes the race. It is an ordinary pass, with a time of its
 * own, so completions that it finds are handled like all others.
 */
#include "verbs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* How often a polling program asks the kernel for events. Each check takes a
 * system call, and no event is so urgent that milliseconds matter. */
#define EVENT_PERIOD_MS 10

static void device_lost(transport_t *v, const char *what)
{
    v->failed = true;
    complain("%s: %s", what, strerror(errno));
}

/* Takes the event that a request for notification has caused. All events taken
 * must be acknowledged, or the queue can never be destroyed. */
static void take_notification(transport_t *v)
{
    struct ibv_cq *cq;
    void *context;
    unsigned taken = 0;
    while (ibv_get_cq_event(v->channel, &cq, &context) == 0) {
        ++taken;
    }
    if (errno != EAGAIN && errno != EINTR) {
        device_lost(v, "completion channel");
    }
    if (taken) {
        ibv_ack_cq_events(v->cq, taken);
        v->is_armed = false;
    }
}

/* Takes the notification first. A completion that comes after it is still
 * polled, and the event of a completion that comes after the poll is still
 * there. */
static unsigned poll_cq(void *arg)
{
    transport_t *v = arg;
    if (v->is_armed) {
        take_notification(v);
    }
    return verbs_progress(v);
}

/* Uses the engine's time, so it does not read the clock. */
static bool is_due(const transport_t *v, lawn_time_t *due)
{
    lawn_time_t now = lawn_engine_now(v->engine);
    if (now < *due) {
        return false;
    }
    *due = now + lawn_time_from_msec(EVENT_PERIOD_MS);
    return true;
}

static unsigned poll_events(void *arg)
{
    transport_t *v = arg;
    if (!is_due(v, &v->events_due)) {
        return 0;
    }
    unsigned total = 0;
    struct ibv_async_event event;
    while (ibv_get_async_event(v->context, &event) == 0) {
        ++total;
        if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
            v->failed = true;
        }
        if (event.event_type != IBV_EVENT_COMM_EST) {
            complain("asynchronous event: %s",
                     ibv_event_type_str(event.event_type));
        }
        ibv_ack_async_event(&event);
    }
    /* Otherwise the fd stays readable and would keep a sleeper awake. */
    if (errno != EAGAIN && errno != EINTR) {
        device_lost(v, "asynchronous events");
    }
    return total;
}

static unsigned poll_cm(void *arg)
{
    transport_t *v = arg;
    return is_due(v, &v->cm_due) ? verbs_cm_poll(v) : 0;
}

bool transport_attach(transport_t *v, lawn_engine_t *engine, session_t *session)
{
    v->engine = engine;
    v->session = session;
    lawn_timer_init(&v->recovery, verbs_recover);
    int channel = v->channel ? v->channel->fd : -1;
    int fd = v->context->async_fd;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        lawn_engine_add(engine, poll_cq, v, channel, &v->cq_source) !=
            LAWN_OK ||
        lawn_engine_add(engine, poll_events, v, fd, &v->event_source) !=
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
    v->events_due = 0;
    v->cm_due = 0;
    if (v->is_armed || !v->channel || v->failed) {
        return v->is_armed && !v->failed;
    }
    int error = ibv_req_notify_cq(v->cq, 0);
    v->is_armed = error == 0;
    if (error) {
        errno = error;
        device_lost(v, "completion notification");
    }
    return false;
}

bool transport_has_failed(const transport_t *v)
{
    return v->failed;
}
