/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/group.h - timers spread over workers that come and go.
 *
 *     lawn_group_create(NULL, &group);
 *     lawn_group_add_thread(group, &worker);         // as many as wanted
 *     lawn_shard_t *shard = lawn_group_by_id(group, id);
 *     lawn_shared_init(&timer, lawn_shard_box(shard), on_expired);
 *     lawn_shared_start(&timer, lawn_group_time(group) + ttl);  // any thread
 *     lawn_group_balance(group);                     // now and then
 *
 * The idea. A group has a fixed number of shards. A shard is a lawn with a box
 * (lawn/shared.h), and a timer belongs to one shard for good. One worker owns
 * each shard and runs all of its timers, so no lawn is ever locked. A shard is
 * handed over to another worker whole, by changing a few pointers, however many
 * timers it has. A thread that starts a timer need not know which worker runs
 * it: the shard's box takes the message, and moves with the shard.
 * (A. Lev-Libfeld, "Timer Lawn", 2025, section IV.D: TTL buckets are divided
 * among workers by a hash, and workers come and go.)
 *
 * A worker is a thread of the library, an engine of yours, or a thread or lcore
 * of yours that calls lawn_worker_pass() in its loop. A shard without an owner
 * waits: its timers may be started and stopped, and they run when a worker
 * comes.
 *
 * A shard leaves its owner at the beginning of the owner's next pass. It comes
 * to its new owner at the beginning of the new owner's next pass. In between,
 * its timers wait. A pass never waits for a lock: if another thread is changing
 * the group at that moment, shards leave and come in the next pass.
 *
 * All workers of a group, and all threads that start its timers, use one clock:
 * lawn_group_time(). The child of a fork() must not use its parent's groups.
 * Only the calls that create a group and add a worker allocate.
 */
#ifndef LAWN_GROUP_H
#define LAWN_GROUP_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_group lawn_group_t;
typedef struct lawn_worker lawn_worker_t;
typedef struct lawn_shard lawn_shard_t;

/* The load of a shard, for lawn_balance_fn_t. */
typedef struct {
    uint64_t work;   /* messages and timers touched since the last balance */
    size_t running;  /* timers in its lawn when it last did some work, including
                      * shared timers that were stopped and are still in it */
    unsigned worker; /* number of the worker that is to own it */
} lawn_shard_load_t;

/* Decides which worker is to own which shard, by writing shards[i].worker. The
 * number must be less than `worker_count`. At first it is that of the present
 * worker. `work` has a number for each worker, the sum over its shards, which
 * the function may change to calculate with. A shard whose number is no
 * worker's stays where it is (an assertion in debug builds).
 * lawn_group_balance() calls the function with the group locked, so the
 * function must not call the group. */
typedef void (*lawn_balance_fn_t)(void *arg, lawn_shard_load_t *shards,
                                  unsigned shard_count, uint64_t *work,
                                  unsigned worker_count);

/* Zero-filled is the default of everything. */
typedef struct {
    unsigned shards;       /* 0: 64. Choose more than workers, for even loads */
    lawn_clock_fn_t clock; /* NULL: lawn_get_time() */
    void *clock_arg;
    double ticks_per_sec; /* of `clock`; 0: lawn_time_sec_value() */
    /* NULL: moves shards from the worker with the most work to the one with the
     * least, until the difference is at most an eighth of the most work. */
    lawn_balance_fn_t balance;
    void *balance_arg;
    /* Whether a shard's memory moves to the NUMA node of its new owner: its
     * lawn, its box, and the regions of lawn_shard_hold(). The move takes the
     * owner some microseconds per page. It needs the default allocator. */
    bool moves_memory;
    lawn_params_t lawn; /* of the shards' lawns; its allocator is for all, and
                         * must be thread-safe */
} lawn_group_params_t;

/* Makes a group without workers. `params` may be NULL and need not outlive the
 * call. Returns INVALID_PARAM or NO_MEMORY. Any thread may call it. */
static inline lawn_status_t lawn_group_create(const lawn_group_params_t *params,
                                              lawn_group_t **group_p);
LAWN_API lawn_status_t lawn_group_create_sized(
    const lawn_group_params_t *params, size_t size, lawn_group_t **group_p);

/* Ends the library's threads and destroys the shards. Their timers stop, each
 * start returns false, and a retire calls `released` at once. Remove engines
 * first. In debug builds an engine that is left fails an assertion. Release
 * builds remove it. Other workers of the caller must no longer run. It waits
 * for calls in progress that add or remove a worker; later ones, from a
 * callback that still runs, return UNSUPPORTED. Any thread may call it, but not
 * from a callback of the group. In debug builds such a call fails an assertion.
 * Release builds ignore it. NULL does nothing. */
LAWN_API void lawn_group_destroy(lawn_group_t *group);

/* The time of the group, in ticks of `clock`. If `clock` goes back, the group's
 * time goes back by no more than a millisecond, and goes on from there. This
 * function is also a lawn_clock_fn_t: an engine that is to be a worker must
 * have it as its clock, with the group as argument. Any thread may call it. */
LAWN_API lawn_time_t lawn_group_time(void *group);

/* ---- Shards. */

/* How many shards the group has. Any thread may call it. */
LAWN_API unsigned lawn_group_shards(const lawn_group_t *group);

/* The shard with that number. Returns NULL if it is not less than
 * lawn_group_shards(). Any thread may call it. */
LAWN_API lawn_shard_t *lawn_group_shard(lawn_group_t *group, unsigned number);

/* The shard for a connection or session, by a hash of its id. It spreads ids
 * evenly, and finds the same shard each time. Any thread may call it. */
LAWN_API lawn_shard_t *lawn_group_by_id(lawn_group_t *group, uint64_t id);

/* The shard for a TTL, by its hash, as the Lawn paper divides its buckets. A
 * program with two TTLs keeps at most two workers busy: prefer
 * lawn_group_by_id(). Any thread may call it. */
LAWN_API lawn_shard_t *lawn_group_by_ttl(lawn_group_t *group, lawn_time_t ttl);

/* One of the worker's own shards, each in turn. A connection's timers then run
 * on the worker that polls the connection. Returns NULL if the worker has no
 * shard. Only the worker may call it. */
LAWN_API lawn_shard_t *lawn_worker_place(lawn_worker_t *worker);

/* The box of the shard, for lawn_shared_init(). Any thread may call it. */
LAWN_API lawn_box_t *lawn_shard_box(lawn_shard_t *shard);

/* The lawn of the shard, for plain timers (lawn/timer.h). Only the shard's
 * owner may call it, in a callback of one of the shard's timers. Use only
 * lawn_timer_*() and queues on the lawn: the worker advances it. */
LAWN_API lawn_t *lawn_shard_lawn(lawn_shard_t *shard);

/* Memory of the caller that moves with the shard to another NUMA node, e.g. the
 * memory of its timers. Whole pages move, so they should hold nothing else (see
 * lawn/numa.h). Fill in `memory` and `size` only. The structure belongs to the
 * group until lawn_shard_drop(). Both take the group's lock, do not allocate
 * and cannot fail. Any thread may call them, but not in a callback. */
typedef struct lawn_region {
    void *memory;
    size_t size;
    struct lawn_region *next;
} lawn_region_t;

LAWN_API void lawn_shard_hold(lawn_shard_t *shard, lawn_region_t *region);
LAWN_API void lawn_shard_drop(lawn_shard_t *shard, lawn_region_t *region);

/* ---- Workers. */

/* Adds a worker that the caller runs by lawn_worker_pass(). Other threads call
 * `wake(wake_arg)` when the worker has something to do and may be asleep, see
 * lawn_worker_sleep(). `wake` must not call the group. It may be NULL if the
 * worker never sleeps. The worker gets the shards that nobody owns. Returns
 * INVALID_PARAM for NULL, or NO_MEMORY. Any thread may call it. */
LAWN_API lawn_status_t lawn_group_add_worker(lawn_group_t *group,
                                             void (*wake)(void *arg),
                                             void *wake_arg,
                                             lawn_worker_t **worker_p);

/* Adds an engine whose clock is the group's. From then on, each pass of the
 * engine runs the worker's shards after all sources, with a second budget as
 * large as the engine's own. The engine wakes when its shards have something to
 * do. Returns INVALID_PARAM if the engine has another clock or is a worker
 * already, NO_MEMORY, or IO if the engine cannot be woken. Only the engine's
 * thread may call it, outside a pass. */
LAWN_API lawn_status_t lawn_group_add_engine(lawn_group_t *group,
                                             lawn_engine_t *engine,
                                             lawn_worker_t **worker_p);

/* Adds a thread of the library. All signals are blocked in it, and it sleeps
 * while nothing is due. Returns INVALID_PARAM for NULL, NO_MEMORY, or IO if no
 * thread or engine can be made (lawn_engine_create). Any thread may call it. */
LAWN_API lawn_status_t lawn_group_add_thread(lawn_group_t *group,
                                             lawn_worker_t **worker_p);

/* Ends a worker. Its shards, and those on their way to it, go to `heir`; one
 * that was on its way to another worker still goes there. If `heir` is NULL,
 * they wait for the next worker. A thread of the library
 * finishes its pass, and the call waits for it: any thread but that one may
 * call. Another worker must be removed by the thread that runs it, or when no
 * thread runs it, and not in a pass of it or of its engine (an assertion in
 * debug builds). Returns INVALID_PARAM if these rules are not kept, or if
 * `heir` is the worker itself, belongs to another group or was removed. If
 * another thread removes `heir` meanwhile, the shards go to any other worker,
 * or wait for one. `worker` is invalid afterwards. */
LAWN_API lawn_status_t lawn_group_remove_worker(lawn_worker_t *worker,
                                                lawn_worker_t *heir);

/* Makes `worker` the owner of the shard, as soon as the present owner has begun
 * a pass and then `worker` has begun one. A later call overrides an earlier
 * one. Returns INVALID_PARAM if the two are not of one group. Any thread may
 * call it. It takes the group's lock. */
LAWN_API lawn_status_t lawn_group_move_shard(lawn_shard_t *shard,
                                             lawn_worker_t *worker);

/* Divides the shards among the workers by what each shard has done since the
 * last call. Returns how many shards are to move. Any thread may call it. It
 * takes the group's lock. */
LAWN_API unsigned lawn_group_balance(lawn_group_t *group);

/* How many shards are still to change their owner. Shards that wait for a
 * worker count, too. Any thread may call it. It takes the group's lock. */
LAWN_API unsigned lawn_group_moving(lawn_group_t *group);

/* ---- For the caller's own workers. */

/* Runs the worker's shards: takes messages and fires timers that are due. It
 * takes up to `budget` messages and touches up to `budget` timers (0: all there
 * are). Returns how many messages it took and timers it touched, in sum. A
 * shard that the budget has left out comes first in the next pass. `now` is the
 * group's time. With s shards, an idle pass looks at s boxes and s lawns. Only
 * the worker may call it, not in a callback. */
LAWN_API unsigned lawn_worker_pass(lawn_worker_t *worker, lawn_time_t now,
                                   unsigned budget);

/* When to pass again: the earliest lawn_next() of the worker's shards, or
 * LAWN_TIME_INFINITY. It looks at some timers to find that time more exactly.
 * Only the worker may call it. */
LAWN_API lawn_time_t lawn_worker_next(lawn_worker_t *worker);

/* Tells the group that the worker is about to sleep, until the time `until`.
 * Returns false if there is something to do: pass instead of sleeping. If that
 * is to hand over shards, and another thread has the group's lock, it sleeps
 * for 50 us first, so that the other one goes on even if it has a lower
 * priority. After true, `wake` is called when there is something to do, as
 * lawn_box_sleep() says. Only the worker may call it. */
LAWN_API bool lawn_worker_sleep(lawn_worker_t *worker, lawn_time_t until);

static inline lawn_status_t lawn_group_create(const lawn_group_params_t *params,
                                              lawn_group_t **group_p)
{
    return lawn_group_create_sized(params, sizeof(*params), group_p);
}

LAWN_END_DECLS

#endif
