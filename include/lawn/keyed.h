/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/keyed.h - timers by number, for programs that have an id and no object
 * that embeds a timer. These are the StartTimer(id, ttl, payload), TTLHash and
 * TimerHash of the Lawn paper, on top of a lawn.
 *
 *     lawn_keyed_create(lawn, 100000, &keyed);
 *     lawn_keyed_set_expired(keyed, on_expired, arg);
 *     lawn_keyed_start(keyed, now, ttl, id, payload);    // or re-arm
 *     lawn_keyed_stop(keyed, id, &payload);
 *     lawn_advance(lawn, now, 64);                       // in every pass
 *
 * The nodes of the timers come from a pool. Every call looks up the id, so a
 * stale id can never touch another timer.
 *
 * If several running timers share a TTL, the TTL gets its own queue, as in
 * lawn/queue.h. The queue goes back to a pool when its last timer has ended. A
 * table can have 16 queues at a time, and one more for every 64 timers of its
 * capacity. TTLs beyond that limit, and rare TTLs, are started as by
 * lawn_timer_start(). If all TTLs are different, a table costs a few per cent
 * more than it would without queues. doc/design.md has the details.
 *
 * Timers that are due in one advance expire in any order, except that the
 * timers of one queue expire in the order of their starts.
 *
 * A timer takes 88 bytes, and one or two pointers in the hash. A table takes
 * 3 KiB for its queues, and some 3 bytes per timer beyond the first thousand.
 *
 * Threads: the rules of the lawn hold for its tables (lawn/timer.h).
 */
#ifndef LAWN_KEYED_H
#define LAWN_KEYED_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_keyed lawn_keyed_t;

/* Called when a timer has expired. `id` is free again, and the callback may
 * start it. `arg` is what lawn_keyed_set_expired() was given. The callback may
 * start and stop any id, and clear the table. It must not destroy the table. */
typedef void (*lawn_keyed_fn_t)(void *arg, uint64_t id, void *payload,
                                lawn_time_t now);

/* Creates a table over `lawn`, which must outlive the table. The room for
 * `capacity_hint` timers and their queues is allocated here, with the lawn's
 * allocator. Up to that many timers, start does not allocate. Returns
 * INVALID_PARAM for a NULL argument, or NO_MEMORY. */
LAWN_API lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                         lawn_keyed_t **keyed_p);

/* Stops all timers of the table and frees it. Payloads are handed to nobody: if
 * they own something, call lawn_keyed_clear() first. NULL is ignored. */
LAWN_API void lawn_keyed_destroy(lawn_keyed_t *keyed);

/* Sets the function to call when a timer expires. Until it is set, none is
 * called. */
LAWN_API void lawn_keyed_set_expired(lawn_keyed_t *keyed,
                                     lawn_keyed_fn_t expired, void *arg);

/* Starts timer `id` (any 64-bit value) with deadline now + ttl. If `id` runs,
 * it is re-armed and its payload is replaced. Expected O(1). Allocates only
 * beyond the capacity, which then doubles. Returns NO_MEMORY if that fails.
 * Nothing is changed then. */
LAWN_API lawn_status_t lawn_keyed_start(lawn_keyed_t *keyed, lawn_time_t now,
                                        lawn_time_t ttl, uint64_t id,
                                        void *payload);

/* Stops timer `id` and stores its payload in *payload_p (`payload_p` may be
 * NULL). Returns NO_ELEM if the timer does not run. Expected O(1). Does not
 * allocate. */
LAWN_API lawn_status_t lawn_keyed_stop(lawn_keyed_t *keyed, uint64_t id,
                                       void **payload_p);

/* Returns true if timer `id` runs. Expected O(1). */
LAWN_API bool lawn_keyed_is_active(const lawn_keyed_t *keyed, uint64_t id);

/* Returns the deadline of timer `id`. Returns LAWN_TIME_INFINITY if the timer
 * does not run or never fires. Expected O(1). */
LAWN_API lawn_time_t lawn_keyed_deadline(const lawn_keyed_t *keyed,
                                         uint64_t id);

/* Returns the number of running timers. O(1). */
LAWN_API size_t lawn_keyed_count(const lawn_keyed_t *keyed);

/* Calls `each` for every running timer, in no order, with `arg` and the timer's
 * deadline. `each` may stop the id that it is given. Otherwise it must not
 * change the table or the lawn. O(count + capacity). Does not allocate. */
LAWN_API void lawn_keyed_for_each(lawn_keyed_t *keyed,
                                  void (*each)(void *arg, uint64_t id,
                                               void *payload,
                                               lawn_time_t deadline),
                                  void *arg);

/* Stops all timers of the table and keeps its room. Then hands each id and
 * payload to `each`, in no order, with `arg` and the latest time that the lawn
 * has seen. If `each` is NULL, they are handed to nobody. Returns the number of
 * timers that it stopped and handed over. O(count + capacity). Does not
 * allocate. A timer's callback may call it.
 *
 * `each` may do what a timer's callback may. Timers that `each` starts stay in
 * the table. A clear from inside `each` hands over all that is left, and the
 * timers that `each` has started. An id that is still to be handed over does
 * not run, but takes its room until then. */
LAWN_API size_t lawn_keyed_clear(lawn_keyed_t *keyed, lawn_keyed_fn_t each,
                                 void *arg);

/*
 * lawn_drain() ends the timers of a table as it does others. Each timer becomes
 * idle and its id free before the timer is handed over. The lawn_timer_t that
 * lawn_drain() hands over, or that lawn_for_each() shows, belongs to the table.
 * A program that also has other timers calls lawn_keyed_identify() to tell them
 * apart and to get the payloads. Or the program clears the table before the
 * drain. After a drain that hands over to nobody, the payloads are lost.
 */

/* Returns the table that `timer` belongs to, and stores its id and payload.
 * Each output may be NULL. If the timer belongs to no table, returns NULL and
 * leaves the outputs unchanged. Call it in the callbacks of lawn_for_each() and
 * lawn_drain(). In the callback of lawn_drain(), call it before anything is
 * started, because a start may reuse the same lawn_timer_t. */
LAWN_API lawn_keyed_t *lawn_keyed_identify(const lawn_timer_t *timer,
                                           uint64_t *id_p, void **payload_p);

LAWN_END_DECLS

#endif
