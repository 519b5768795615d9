// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a group is made of, and who may touch it. lawn/group.h tells the idea.
//
// A hand-over. Under the lock, somebody writes `wanted` and tells the owner,
// which at its next pass gives the shard up (`owner` becomes NULL) and tells
// the wanted worker, which at its next pass takes it. The lock is what orders
// all that the one has done to the shard before all that the other does. So:
//   1. Only shard->owner touches a shard's lawn, and the owner's side of its
//      box. Only the thread of a worker makes it an owner or no owner.
//   2. If owner != wanted, somebody has been told and has not obeyed yet: the
//      owner if there is one, else the wanted worker. NULL is told nothing: a
//      worker that is added takes what nobody wants.
//   3. `bell` is who is woken by a start in the shard's box: the owner, or from
//      when it gave the shard up the wanted worker. A start that takes the tag
//      of the old owner's sleep may wake the new one for nothing; but the new
//      one has been told of the shard, so it looks into the box before it
//      sleeps.
//
// To be told is to have `orders` stored and then to be woken, whether asleep or
// not. A sleeper sets what wakes it, then looks at `orders`.
//
// A worker's memory stays until the group ends, since a thread that has read
// `bell` may still look at the worker. Such a thread is counted in `ringing`,
// looks at `bell` again, and only then wakes; who removes a worker turns all
// bells away from it, and waits until nobody is ringing.

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

    // The owner's; the first two atomic, for others to read.
    uint64_t work;
    size_t running;
    bool has_come; // to be brought to the owner's node

    // Under the lock.
    lawn_worker_t *owner;
    lawn_worker_t *wanted;
    uint64_t counted; // of `work`, by the latest balance
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
    lawn_engine_t *engine;     // or nullptr
    lawn::Passenger passenger; // of the engine
    bool has_thread;
    lawn::EngineThread thread;

    // The worker's own.
    lawn_shard_t **shards;
    unsigned count;
    unsigned turn;   // which shard comes first in the next pass
    unsigned placed; // which shard was last given out by lawn_worker_place()
    bool in_pass;

    // Under the lock.
    lawn_worker_t *next; // of all, or of those that were removed
    bool is_removed;
    unsigned number; // in a balance
};

struct lawn_group {
    lawn_group_params_t params;
    lawn_shard_t *shards;
    unsigned count;

    // Atomic; the clock's.
    lawn_time_t offset; // by which it has gone back
    lawn_time_t latest; // shown, within a millisecond
    lawn_time_t msec;

    pthread_mutex_t lock; // of what follows
    lawn_worker_t *workers;
    lawn_worker_t *removed;
    unsigned worker_count;    // those included that are being made
    lawn_shard_load_t *loads; // for a balance: of each shard
    uint64_t *sums;           // and of each worker, with room for
    unsigned room;            // that many
};

namespace lawn
{

// Holds the group's lock.
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

// The balance that a group has by default.
void balance_by_work(void *arg, lawn_shard_load_t *shards, unsigned shard_count,
                     uint64_t *work, unsigned worker_count);

// Under the lock: there is something to obey.
void tell(lawn_worker_t *worker);

// Of a thread of the library's: that it is not the calling one, which waits for
// it. Of others: not in a pass.
bool may_remove(const lawn_worker_t *worker);

// Under the lock: changes who is to own a shard, and tells who has to know.
void want(lawn_shard_t *shard, lawn_worker_t *worker);

} // namespace lawn

#endif
