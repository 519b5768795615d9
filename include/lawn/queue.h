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
 * if the head is not due, none is. No timer is filed in a slot, and none moves
 * on the way to its deadline (A. Lev-Libfeld, "Lawn", 2019: the queues of
 * Figure 2). A queue has one alarm among its lawn's timers, no later than the
 * head's deadline. So hundreds of queues cost an idle advance nothing.
 *
 * Declare a queue for a TTL that many timers share, if most of them expire or
 * are stopped: for example, requests that all have the same timeout. Also
 * declare a queue if the order of expiry matters. Use lawn_timer_start() for a
 * timer that is re-armed again and again before it expires, and for TTLs that
 * few timers share. It is then as good or better: it re-arms with one store,
 * while a queue moves the timer to its tail.
 *
 * Threads: the rules of the lawn hold for its queues (lawn/timer.h).
 */
#ifndef LAWN_QUEUE_H
#define LAWN_QUEUE_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_queue lawn_queue_t;

/* The fields are visible only for the inline function below. */
struct lawn_queue {
    lawn_t *lawn;
    lawn_time_t ttl;
    lawn_link_t timers; /* head of the FIFO */
};

/* Creates an empty queue of `lawn` for `ttl` ticks. A ttl of 0 is due at the
 * next advance, LAWN_TIME_INFINITY never. Allocates with the lawn's allocator.
 * Returns INVALID_PARAM for a NULL argument, or NO_MEMORY. */
LAWN_API lawn_status_t lawn_queue_create(lawn_t *lawn, lawn_time_t ttl,
                                         lawn_queue_t **queue_p);

/* Frees the queue. Its timers become idle, and their callbacks are not called.
 * Any callback may call it, also the callback of one of its own timers. Do not
 * call it after lawn_destroy(), which frees the lawn's queues. NULL is
 * ignored. */
LAWN_API void lawn_queue_destroy(lawn_queue_t *queue);

/* Starts `timer` at the tail, with deadline now + ttl, saturating. A timer that
 * runs, here or elsewhere in the same lawn, moves to the tail. Timers of the
 * queue expire in the order of their latest starts. O(1). Cannot fail. Does not
 * allocate. `now` is as for lawn_timer_start(). The functions of lawn/timer.h
 * may be called for the timer as for any other. lawn_timer_start() takes it out
 * of the queue. */
LAWN_INLINE void lawn_queue_start(lawn_queue_t *queue, lawn_timer_t *timer,
                                  lawn_time_t now);

/* Returns the TTL that the queue was created for. */
LAWN_INLINE lawn_time_t lawn_queue_ttl(const lawn_queue_t *queue);

/* Returns the number of running timers in the queue. Paused timers do not
 * count. O(timers): it walks the queue. */
LAWN_API size_t lawn_queue_count(const lawn_queue_t *queue);

/* Not for programs: the part that is not inline. */
LAWN_API void lawn_queue_start_slow(lawn_queue_t *queue, lawn_timer_t *timer);

LAWN_INLINE void lawn_queue_start(lawn_queue_t *queue, lawn_timer_t *timer,
                                  lawn_time_t now)
{
    lawn_t *const lawn = queue->lawn;
    const lawn_time_t latest = lawn_see(lawn, now);
    const lawn_time_t deadline = latest + queue->ttl;
    lawn_link_t *const link = &timer->link;
    lawn_link_t *last = queue->timers.prev;
    /* The first timer sets the alarm. */
    if (LAWN_UNLIKELY(deadline < latest || deadline >= lawn->inline_limit ||
                      last == &queue->timers || last == link)) {
        lawn_queue_start_slow(queue, timer);
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
