/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/keyed.h - timers by number, for programs that have an id and no object
 * to embed a timer in: the StartTimer(id, ttl, payload) and TimerHash of the
 * Lawn paper, on top of a lawn.
 *
 * Nodes come from a pool and an id is looked up on every call, so a stale id
 * can never touch another timer. Threads: those of the lawn.
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
 * timers is allocated here, with the lawn's allocator; up to that many, start
 * never allocates. INVALID_PARAM, NO_MEMORY. */
LAWN_API lawn_status_t lawn_keyed_create(lawn_t *lawn, size_t capacity_hint,
                                         lawn_keyed_t **keyed_p);

/* Stops all its timers and frees the table. NULL does nothing. */
LAWN_API void lawn_keyed_destroy(lawn_keyed_t *keyed);

/* What to call when a timer expires; until then, nothing. */
LAWN_API void lawn_keyed_set_expired(lawn_keyed_t *keyed,
                                     lawn_keyed_fn_t expired, void *arg);

/* Starts timer `id` (any 64-bit value) with deadline now + ttl. A running id
 * is re-armed and its payload replaced. Expected O(1). Allocates only beyond
 * the capacity hint; NO_MEMORY then, with nothing changed. */
LAWN_API lawn_status_t lawn_keyed_start(lawn_keyed_t *keyed, lawn_time_t now,
                                        lawn_time_t ttl, uint64_t id,
                                        void *payload);

/* Stops timer `id` and hands back its payload (`payload_p` may be NULL).
 * NO_ELEM when it does not run. Expected O(1), never allocates. */
LAWN_API lawn_status_t lawn_keyed_stop(lawn_keyed_t *keyed, uint64_t id,
                                       void **payload_p);

/* Timers that are running; those that lawn_drain() has ended count, and take
 * room, until they are started or stopped. */
LAWN_API size_t lawn_keyed_count(const lawn_keyed_t *keyed);

LAWN_END_DECLS

#endif
