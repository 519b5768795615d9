// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structures of a group, and who may touch them. lawn/group.h explains the
// idea.
//
// A hand-over begins under the lock: a thread stores `wanted` and tells the
// owner. In its next pass, the owner gives the shard up (`owner` becomes NULL)
// and tells the wanted worker. In its next pass, that worker takes the shard.
// The lock orders all that the old owner has done to the shard before all that
// the new owner does. So:
//   1. Only shard->owner touches a shard's lawn, and the owner's side of its
//      box. A worker takes and loses shards only in its own thread, or in the
//      thread that removes it when nobody runs it.
//   2. If owner != wanted, a worker was told and has not obeyed yet: the owner
//      if there is one, else the wanted worker. If nobody is wanted and nobody
//      owns the shard, the next worker that is added takes it.
//   3. `bell` is the worker that a start in the shard's box wakes: the owner,
//      or the wanted worker once the owner has given the shard up. A start that
//      clears the tag of the old owner's sleep may wake the new worker for
//      nothing. But the new worker was told of the shard, so it looks into the
//      box before it sleeps.
//
// To tell a worker is to store `orders` and then to wake it, whether it sleeps
// or not. A worker that goes to sleep sets what wakes it, and then looks at
// `orders`.
//
// The memory of a worker stays until the group ends, because a thread that has
// read `bell` may still look at the worker. Such a thread is counted in
// `ringing`, reads `bell` again, and only then wakes the worker. Whoever
// removes a worker turns all bells away from it, and then waits until `ringing`
// is 0.

#ifndef LAWN_SRC_GROUP_GROUP_IMPL_H
#define LAWN_SRC_GROUP_GROUP_IMPL_H

#include "base/base.h"
#include "base/ticks.h"
#include "engine/thread.h"

#include <lawn/group.h>
#include <lawn/numa.h>

#include <pthread.h>

struct lawn_shard {
    lawn_box_t *box;
    lawn_t *lawn;
    lawn_group_t *group;
    lawn_worker_t *bell; // atomic

    // Only the owner writes these. Others read the first two, which are atomic.
    uint64_t work;
    size_t running;
    bool has_come; // its memory is to move to the owner's node

    // Under the group's lock.
    lawn_worker_t *owner;
    lawn_worker_t *wanted;
    uint64_t counted; // `work` at the latest balance
    lawn_region_t *regions;
    lawn_region_t own[2]; // of the lawn and the box
};

struct lawn_worker {
    // Atomic.
    unsigned orders;  // there may be something to obey
    unsigned ringing; // threads that may be waking this worker

    lawn_group_t *group;
    void (*wake)(void *arg);
    void *wake_arg;
    lawn_engine_t *engine; // nullptr: the caller makes the passes
    lawn::PassHook hook;   // in the engine's list
    bool has_thread;
    lawn::EngineThread thread;

    // Only for the thread that runs the worker.
    lawn_shard_t **shards;
    unsigned count;
    unsigned turn;   // the shard that comes first in the next pass
    unsigned placed; // the shard that lawn_worker_place() gave out last
    bool in_pass;

    // Under the group's lock.
    lawn_worker_t *next; // in the list of all, or of removed workers
    bool is_removed;
    unsigned number; // the worker's number in a balance
};

struct lawn_group {
    lawn_group_params_t params;
    lawn_shard_t *shards;
    unsigned count;

    // The clock. The first two fields are atomic.
    lawn_time_t offset; // how far the clock has gone back
    lawn_time_t latest; // the latest time returned, within a millisecond
    lawn_time_t msec;

    pthread_mutex_t lock; // protects the fields below
    lawn_worker_t *workers;
    lawn_worker_t *removed;
    unsigned worker_count;    // including workers that are being made
    lawn_shard_load_t *loads; // for a balance: one for each shard
    uint64_t *sums;           // for a balance: one for each worker
    unsigned room;            // workers that `sums` has room for
    unsigned changes;         // calls in progress that add or remove a worker
    bool is_ending;
    pthread_cond_t unchanging; // the latest of `changes` has ended
};

namespace lawn
{

// Holds the group's lock while it lives.
class Locked
{
public:
    explicit Locked(lawn_group_t *group) : group_(group)
    {
        pthread_mutex_lock(&group_->lock);
    }

    ~Locked()
    {
        pthread_mutex_unlock(&group_->lock);
    }

    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    lawn_group_t *group_;
};

// A call that adds or removes a worker, while it lives. When a group is to end,
// it waits for those that have begun, and lets no other begin.
class WorkerChange
{
public:
    explicit WorkerChange(lawn_group_t *group) : group_(group)
    {
        const Locked locked(group);
        is_allowed_ = !group->is_ending;
        group->changes += is_allowed_;
    }

    ~WorkerChange()
    {
        const Locked locked(group_);
        group_->changes -= is_allowed_;
        if (group_->changes == 0) {
            pthread_cond_signal(&group_->unchanging);
        }
    }

    WorkerChange(const WorkerChange &) = delete;
    WorkerChange &operator=(const WorkerChange &) = delete;

    bool is_allowed() const
    {
        return is_allowed_;
    }

private:
    lawn_group_t *group_;
    bool is_allowed_;
};

// Removes a worker that may be removed.
void end_worker(lawn_worker_t *worker, lawn_worker_t *heir);

// The default balance of a group.
void balance_by_work(void *arg, lawn_shard_load_t *shards, unsigned shard_count,
                     uint64_t *work, unsigned worker_count);

// Under the lock. Tells the worker that there is something to obey.
void tell(lawn_worker_t *worker);

// Under the lock. Whether the worker may be given a shard. A worker that was
// removed may be in the making again: then it is in no list, and nobody may
// tell it anything.
bool is_enlisted(const lawn_worker_t *worker);

// A thread of the library must not be removed by itself, because the call waits
// for it. Any other worker must not be in a pass, nor its engine.
bool may_remove(const lawn_worker_t *worker);

// Under the lock. Changes who is to own a shard, and tells the worker that must
// obey.
void want(lawn_shard_t *shard, lawn_worker_t *worker);

} // namespace lawn

#endif
