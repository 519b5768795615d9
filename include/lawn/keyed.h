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
 * start and stop any id; it may not destroy the table. */
typedef void (*lawn_keyed_fn_t)(void *arg, uint64_t id, void *payload,
                                lawn_time_t now);

/* Makes a table over `lawn`, which must outlive it. Room for `capacity_hint`
 * timers and their queues is allocated here, with the lawn's allocator; up to
 * that many, start never allocates. INVALID_PARAM, NO_MEMORY. */
LAWN_API lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                         lawn_keyed_t **keyed_p);

/* Stops all its timers and frees the table. NULL does nothing. */
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

/* Timers that are running; those that lawn_drain() has ended count, and take
 * room, until they are started or stopped; so does the queue they were in. */
LAWN_API size_t lawn_keyed_count(const lawn_keyed_t *keyed);

LAWN_END_DECLS

#endif
