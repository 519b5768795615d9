/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/queue.h - the Lawn as published: one FIFO of timers for one TTL.
 *
 *     lawn_queue_create(lawn, ttl, &queue);          // once per TTL
 *     lawn_queue_start(queue, &timer, now);          // or restart
 *     lawn_timer_stop(lawn, &timer);                 // as any other timer
 *     lawn_advance(lawn, now, 64);                   // fires in FIFO order
 *     lawn_queue_destroy(queue);
 *
 * Timers of one TTL, in the order of their starts, are sorted by deadline, so
 * only the head can be due: nothing is filed, and nothing moves on the way to
 * its deadline. A queue has one alarm among its lawn's timers, at the head's
 * deadline, so hundreds of queues cost an idle advance nothing. (A.
 * Lev-Libfeld, "Lawn", 2019: the queues of Figure 2.)
 *
 * Declare a queue for a TTL that many timers share and that mostly run out or
 * are stopped, such as requests that all have the same timeout; or where the
 * order of expiry matters. For a timer that is re-armed over and over before it
 * expires, and for TTLs that few timers share, lawn_timer_start() is as good or
 * better: it re-arms by a store, where a queue moves the timer to its tail.
 *
 * Threads: those of the lawn.
 */
#ifndef LAWN_QUEUE_H
#define LAWN_QUEUE_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_queue lawn_queue_t;

/* What is shown is for the inline function below. */
struct lawn_queue {
    lawn_t *lawn;
    lawn_time_t ttl;
    lawn_link_t timers; /* head of the FIFO */
};

/* Makes an empty queue of `lawn` for `ttl` ticks: 0 is due at the next advance,
 * LAWN_TIME_INFINITY never. Allocates with the lawn's allocator. INVALID_PARAM
 * for NULL, NO_MEMORY. */
LAWN_API lawn_status_t lawn_queue_create(lawn_t *lawn, lawn_time_t ttl,
                                         lawn_queue_t **queue_p);

/* Frees the queue. Its timers become idle, without a callback. From any
 * callback, also one of its own timers. Not after lawn_destroy(), which has
 * done it. NULL does nothing. */
LAWN_API void lawn_queue_destroy(lawn_queue_t *queue);

/* Starts `timer` with deadline now + ttl, saturating, at the tail; one that
 * runs, here or elsewhere in the same lawn, moves there. Timers of the queue
 * expire in the order of their latest starts. O(1), cannot fail, never
 * allocates. `now` as for lawn_timer_start(). Functions of lawn/timer.h may be
 * called for the timer as for any other; lawn_timer_start() takes it out. */
LAWN_INLINE void lawn_queue_start(lawn_queue_t *queue, lawn_timer_t *timer,
                                  lawn_time_t now);

/* The TTL that it was created for. */
LAWN_INLINE lawn_time_t lawn_queue_ttl(const lawn_queue_t *queue);

/* Running timers in the queue, without the paused. Walks it. */
LAWN_API size_t lawn_queue_count(const lawn_queue_t *queue);

/* The part that is not inline; not for programs. */
LAWN_API void lawn_queue_start_rest(lawn_queue_t *queue, lawn_timer_t *timer);

LAWN_INLINE void lawn_queue_start(lawn_queue_t *queue, lawn_timer_t *timer,
                                  lawn_time_t now)
{
    lawn_t *const lawn = queue->lawn;
    const lawn_time_t latest = lawn_see(lawn, now);
    const lawn_time_t deadline = latest + queue->ttl;
    lawn_link_t *const link = &timer->link;
    lawn_link_t *last = queue->timers.prev;
    /* The first timer sets the alarm. */
    if (LAWN_UNLIKELY(deadline < latest || deadline >= lawn->limit ||
                      last == &queue->timers || last == link)) {
        lawn_queue_start_rest(queue, timer);
        return;
    }
    if (link->next) {
        lawn->running += LAWN_IS_INFINITY(timer->deadline);
        link->next->prev = link->prev;
        link->prev->next = link->next;
    } else {
        lawn->running++;
    }
    link->next = &queue->timers;
    link->prev = last;
    last->next = link;
    queue->timers.prev = link;
    timer->deadline = deadline;
    timer->check = LAWN_TIME_INFINITY;
}

LAWN_INLINE lawn_time_t lawn_queue_ttl(const lawn_queue_t *queue)
{
    return queue->ttl;
}

LAWN_END_DECLS

#endif
