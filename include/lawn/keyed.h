/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/keyed.h - timers by number, for programs that have an id and no object
 * to embed a timer in: the StartTimer(id, ttl, payload), TTLHash and TimerHash
 * of the Lawn paper, on top of a lawn.
 *
 *     lawn_keyed_create(lawn, 100000, &keyed);
 *     lawn_keyed_set_expired(keyed, on_expired, arg);
 *     lawn_keyed_start(keyed, now, ttl, id, payload);    // or re-arm
 *     lawn_keyed_stop(keyed, id, &payload);
 *     lawn_advance(lawn, now, 64);                       // in every pass
 *
 * Nodes come from a pool and an id is looked up on every call, so a stale id
 * can never touch another timer.
 *
 * A TTL that several running timers share gets a queue of its own, as in
 * lawn/queue.h, which goes back to a pool when its last timer has ended. The
 * first timer of a TTL is started as by lawn_timer_start(); the second one
 * finds it running and opens the queue, which it and those that come later
 * enter. An id that is re-armed with another TTL changes over; with the same
 * one, it stays where it is. A table can have 16 queues at a time, and one more
 * for every 64 timers of its capacity, since a queue with few timers in it is
 * worth nothing. TTLs beyond that, and those that come so seldom that many
 * others come in between, are left to lawn_timer_start(). So TTLs that are all
 * different cost a few per cent more than if there were no queues. What is due
 * in one advance expires in any order; of timers that entered a queue, in that
 * of their starts.
 *
 * A timer takes 88 bytes and one or two pointers in the hash, a table 3 KiB for
 * its queues, and some 3 bytes a timer beyond the first thousand. Threads:
 * those of the lawn.
 */
#ifndef LAWN_KEYED_H
#define LAWN_KEYED_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_keyed lawn_keyed_t;

/* Called when a timer has expired; `id` is free again, and may be started from
 * here. `arg` is what lawn_keyed_set_expired() was given. The callback may
 * start and stop any id, and clear the table; it may not destroy it. */
typedef void (*lawn_keyed_fn_t)(void *arg, uint64_t id, void *payload,
                                lawn_time_t now);

/* Makes a table over `lawn`, which must outlive it. Room for `capacity_hint`
 * timers and their queues is allocated here, with the lawn's allocator; up to
 * that many, start never allocates. INVALID_PARAM, NO_MEMORY. */
LAWN_API lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                         lawn_keyed_t **keyed_p);

/* Stops all its timers and frees the table. Payloads are handed to nobody:
 * lawn_keyed_clear() first, if they own something. NULL does nothing. */
LAWN_API void lawn_keyed_destroy(lawn_keyed_t *keyed);

/* What to call when a timer expires; until then, nothing. */
LAWN_API void lawn_keyed_set_expired(lawn_keyed_t *keyed,
                                     lawn_keyed_fn_t expired, void *arg);

/* Starts timer `id` (any 64-bit value) with deadline now + ttl. A running id
 * is re-armed and its payload replaced. Expected O(1). Allocates only beyond
 * the capacity, which then doubles; NO_MEMORY when it cannot, with nothing
 * changed. */
LAWN_API lawn_status_t lawn_keyed_start(lawn_keyed_t *keyed, lawn_time_t now,
                                        lawn_time_t ttl, uint64_t id,
                                        void *payload);

/* Stops timer `id` and hands back its payload (`payload_p` may be NULL).
 * NO_ELEM when it does not run. Expected O(1), never allocates. */
LAWN_API lawn_status_t lawn_keyed_stop(lawn_keyed_t *keyed, uint64_t id,
                                       void **payload_p);

/* Whether timer `id` runs. Expected O(1). */
LAWN_API bool lawn_keyed_is_active(const lawn_keyed_t *keyed, uint64_t id);

/* The deadline of timer `id`; LAWN_TIME_INFINITY when it does not run, or never
 * fires. Expected O(1). */
LAWN_API lawn_time_t lawn_keyed_deadline(const lawn_keyed_t *keyed,
                                         uint64_t id);

/* Timers that are running. O(1). */
LAWN_API size_t lawn_keyed_count(const lawn_keyed_t *keyed);

/* Calls `each` for every running timer, in no order, with `arg` and the timer's
 * deadline. `each` may stop the id that it is given, and do nothing else to the
 * table and the lawn. O(count + capacity), never allocates. */
LAWN_API void lawn_keyed_for_each(lawn_keyed_t *keyed,
                                  void (*each)(void *arg, uint64_t id,
                                               void *payload,
                                               lawn_time_t deadline),
                                  void *arg);

/* Stops all timers of the table, keeping its room, then hands each id and
 * payload to `each` (NULL: to nobody) in no order, with `arg` and the latest
 * time that the lawn has seen. Returns how many it handed over. `each` may do
 * what a timer's callback may: what it starts anew stays, and a clear from
 * inside it hands over all that is left, and what was started anew. An id that
 * is still to be handed over does not run, but takes its room until then.
 * O(count + capacity), never allocates. Also from a timer's callback. */
LAWN_API size_t lawn_keyed_clear(lawn_keyed_t *keyed, lawn_keyed_fn_t each,
                                 void *arg);

/*
 * lawn_drain() ends the timers of a table as it does others: each becomes idle
 * and its id free before it is handed over. The lawn_timer_t that it hands
 * over, and those that lawn_for_each() shows, are the table's own: a program
 * that has others too tells them apart, and gets at the payloads, by
 * lawn_keyed_identify(). Or it clears the table before the drain. After a drain
 * that hands over to nobody the payloads cannot be had any more.
 */

/* The table that `timer` belongs to, its id and its payload; each output may be
 * NULL. NULL, with the outputs left alone, for a timer that is no table's. For
 * the callbacks of lawn_for_each() and lawn_drain(), and in the latter before
 * anything is started, since that may be given the same lawn_timer_t. */
LAWN_API lawn_keyed_t *lawn_keyed_identify(const lawn_timer_t *timer,
                                           uint64_t *id_p, void **payload_p);

LAWN_END_DECLS

#endif
