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
 * (lawn/shared.h), and a timer belongs to one for good. Each shard is owned by
 * one worker, which runs all of its timers; so no lawn is ever locked. What
 * changes is who owns a shard: it is handed over whole, by changing a few
 * pointers, however many timers it has. Whoever starts a timer does not ask who
 * runs it: the shard's box takes the message, and a hand-over takes the box
 * along. (Y. Dagan, "Lawn", section IV.D: TTL buckets are divided among workers
 * by a hash, and workers come and go.)
 *
 * A worker is a thread of the library's, an engine of yours, or a thread or
 * lcore of yours that calls lawn_worker_pass() in its loop. A shard that nobody
 * owns waits: its timers may be started and stopped, and run when a worker
 * comes.
 *
 * A shard leaves its owner at the beginning of the owner's next pass, and comes
 * to the new one at the beginning of that one's next pass. In between its
 * timers wait. A pass never waits for a lock: where another thread is just
 * changing the group, it obeys in the next pass.
 *
 * All workers of a group, and all who start its timers, use one clock:
 * lawn_group_time(). The child of a fork() may not use its parent's groups.
 */
#ifndef LAWN_GROUP_H
#define LAWN_GROUP_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_group lawn_group_t;
typedef struct lawn_worker lawn_worker_t;
typedef struct lawn_shard lawn_shard_t;

/* What a shard costs, for lawn_balance_fn_t. */
typedef struct {
    uint64_t work;   /* messages and timers touched since the last balance */
    size_t running;  /* timers in its lawn, when it last did some work; with
                      * shared timers that were stopped and are still in it */
    unsigned worker; /* who is to own it, by number */
} lawn_shard_load_t;

/* Says which worker is to own which shard, by writing shards[i].worker, less
 * than `worker_count`; it has the present worker in it at first. `work` has a
 * number for each worker, the sum of its shards', to reckon with. A shard that
 * gets a number that is no worker's stays where it is (an assertion in debug
 * builds). Called by lawn_group_balance() with the group locked: it may not
 * call the group. */
typedef void (*lawn_balance_fn_t)(void *arg, lawn_shard_load_t *shards,
                                  unsigned shard_count, uint64_t *work,
                                  unsigned worker_count);

/* Zero-filled is the default of everything. */
typedef struct {
    unsigned shards;       /* 0: 64. More than workers, to be divided evenly */
    lawn_clock_fn_t clock; /* NULL: lawn_get_time() */
    void *clock_arg;
    double ticks_per_sec; /* of `clock`; 0: lawn_time_sec_value() */
    /* NULL: moves shards from the worker with the most work to the one with the
     * least, until they differ by less than an eighth. */
    lawn_balance_fn_t balance;
    void *balance_arg;
    /* Whether a shard's memory goes to the NUMA node of its new owner: its
     * lawn, and what lawn_shard_hold() was told of. It takes the owner some
     * microseconds per page. Needs the default allocator. */
    bool moves_memory;
    lawn_params_t lawn; /* of the shards' lawns; the allocator is for all */
} lawn_group_params_t;

/* Makes a group without workers. `params` may be NULL and need not outlive the
 * call. INVALID_PARAM, NO_MEMORY. Any thread. */
static inline lawn_status_t lawn_group_create(const lawn_group_params_t *params,
                                              lawn_group_t **group_p);
LAWN_API lawn_status_t lawn_group_create_sized(
    const lawn_group_params_t *params, size_t size, lawn_group_t **group_p);

/* Ends the library's threads and destroys the shards: their timers stop, each
 * start returns false, and a retire calls `released` at once. Engines must have
 * been removed (an assertion in debug builds; in release builds they are
 * removed), and other workers of the caller's must no longer run. Any thread,
 * but not a callback of the group's (an assertion in debug builds, ignored in
 * release builds). NULL does nothing. */
LAWN_API void lawn_group_destroy(lawn_group_t *group);

/* The time of the group, in ticks: `clock`, which it makes go on when that goes
 * back by more than a millisecond. As a lawn_clock_fn_t it is also the clock to
 * give to an engine that is to be a worker, with the group as its argument.
 * Any thread. */
LAWN_API lawn_time_t lawn_group_time(void *group);

/* ---- Shards. */

/* How many there are. Any thread. */
LAWN_API unsigned lawn_group_shards(const lawn_group_t *group);

/* The shard of that number, less than lawn_group_shards(). Any thread. */
LAWN_API lawn_shard_t *lawn_group_shard(lawn_group_t *group, unsigned number);

/* By a hash of what the timer is for, a connection or session: spreads evenly,
 * and finds the same shard each time. Any thread. */
LAWN_API lawn_shard_t *lawn_group_by_id(lawn_group_t *group, uint64_t id);

/* By a hash of the timer's TTL, as the Lawn paper divides its buckets. A
 * program with two TTLs keeps two workers busy at most: prefer the id. Any
 * thread. */
LAWN_API lawn_shard_t *lawn_group_by_ttl(lawn_group_t *group, lawn_time_t ttl);

/* One of the worker's own shards, each in turn, so that a connection's timers
 * run where the connection is; NULL when it has none. The worker. */
LAWN_API lawn_shard_t *lawn_worker_place(lawn_worker_t *worker);

/* What timers are bound to: lawn_shared_init(). Any thread. */
LAWN_API lawn_box_t *lawn_shard_box(lawn_shard_t *shard);

/* For plain timers of the shard's (lawn/timer.h). The shard's owner: in a
 * callback of one of its timers. Only lawn_timer_*() and queues: the worker
 * advances it. */
LAWN_API lawn_t *lawn_shard_lawn(lawn_shard_t *shard);

/* Memory of the caller's that goes along when the shard goes to another NUMA
 * node, e.g. what its timers are in. Whole pages move, so they should have
 * nothing else in them: lawn/numa.h. Fill in `memory` and `size` only; the
 * structure belongs to the group until lawn_shard_drop(). Any thread but in a
 * callback. */
typedef struct lawn_region {
    void *memory;
    size_t size;
    struct lawn_region *next;
} lawn_region_t;

LAWN_API void lawn_shard_hold(lawn_shard_t *shard, lawn_region_t *region);
LAWN_API void lawn_shard_drop(lawn_shard_t *shard, lawn_region_t *region);

/* ---- Workers. */

/* Adds a worker that the caller runs by lawn_worker_pass(). `wake(wake_arg)` is
 * called by other threads when it sleeps and has something to do, see
 * lawn_worker_sleep(); it may not call the group. NULL for one that never
 * sleeps. It is given the shards that nobody owns. NO_MEMORY. Any thread. */
LAWN_API lawn_status_t lawn_group_add_worker(lawn_group_t *group,
                                             void (*wake)(void *arg),
                                             void *wake_arg,
                                             lawn_worker_t **worker_p);

/* Adds an engine whose clock is the group's. From then on its passes run the
 * worker's shards, after all sources, with a budget as large as the engine's
 * own, and its sleep ends for them. The engine's thread, outside a pass.
 * INVALID_PARAM when the engine has another clock or is a worker already,
 * NO_MEMORY, or IO when it cannot be woken. */
LAWN_API lawn_status_t lawn_group_add_engine(lawn_group_t *group,
                                             lawn_engine_t *engine,
                                             lawn_worker_t **worker_p);

/* Adds a thread of the library's, in which all signals are blocked, and which
 * sleeps while nothing is due. NO_MEMORY, or IO when there can be no thread.
 * Any thread. */
LAWN_API lawn_status_t lawn_group_add_thread(lawn_group_t *group,
                                             lawn_worker_t **worker_p);

/* Ends a worker. Its shards, and those on their way to it, go to `heir`; NULL:
 * they wait for the next worker. A thread of the library's finishes its pass
 * and is waited for, so any thread may do this but that one. Others are removed
 * by the thread that runs them, or when nobody does, and not in a pass (an
 * assertion in debug builds). INVALID_PARAM when heir is the worker itself, of
 * another group or removed, and where the above is not kept. `worker` is
 * invalid afterwards. */
LAWN_API lawn_status_t lawn_group_remove_worker(lawn_worker_t *worker,
                                                lawn_worker_t *heir);

/* Has `worker` own the shard, as soon as the present owner has begun a pass and
 * then `worker` has. A later call overrides an earlier one. INVALID_PARAM when
 * they are not of one group. Any thread; takes the group's lock. */
LAWN_API lawn_status_t lawn_group_move_shard(lawn_shard_t *shard,
                                             lawn_worker_t *worker);

/* Divides the shards among the workers by what they have done since the last
 * call, and returns how many it has set in motion. Any thread; takes the
 * group's lock. */
LAWN_API unsigned lawn_group_balance(lawn_group_t *group);

/* How many shards are not, or not yet, where they are to be, those that wait
 * for a worker included. Any thread; takes the group's lock. */
LAWN_API unsigned lawn_group_moving(lawn_group_t *group);

/* ---- For the caller's own workers. */

/* Runs the worker's shards: takes messages and fires timers that are due, up to
 * `budget` messages and `budget` timers touched (0: all there are), and returns
 * how many it took and touched. A shard that the budget has left out comes
 * first next time. `now` is the group's time. With s shards an idle pass looks
 * at s boxes and s lawns. The worker; not in a callback. */
LAWN_API unsigned lawn_worker_pass(lawn_worker_t *worker, lawn_time_t now,
                                   unsigned budget);

/* When to pass again: the earliest lawn_next() of its shards, settled by
 * looking at some timers. The worker. */
LAWN_API lawn_time_t lawn_worker_next(lawn_worker_t *worker);

/* The worker is about to sleep until `until`. False when there is something to
 * do: pass instead. After true, `wake` is called when there is, as
 * lawn_box_sleep() says. The worker. */
LAWN_API bool lawn_worker_sleep(lawn_worker_t *worker, lawn_time_t until);

static inline lawn_status_t lawn_group_create(const lawn_group_params_t *params,
                                              lawn_group_t **group_p)
{
    return lawn_group_create_sized(params, sizeof(*params), group_p);
}

LAWN_END_DECLS

#endif
