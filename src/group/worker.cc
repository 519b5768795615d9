// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a worker does in its loop: it takes shards and gives them up
// (group_impl.h has the rules), runs its shards, and prepares to sleep.

#include "group/group_impl.h"

#include "base/patience.h"
#include "timer/inside.h"

#include <limits.h>

using namespace lawn;

namespace
{

// The most timers of a shard that are looked at to find out when to wake.
constexpr unsigned settle_touches = 64;

void take(lawn_worker_t *worker, lawn_shard_t *shard)
{
    worker->shards[worker->count++] = shard;
    shard->owner = worker;
    shard->has_come = true;
}

void give_up(lawn_worker_t *worker, unsigned i)
{
    lawn_shard_t *const shard = worker->shards[i];
    worker->shards[i] = worker->shards[--worker->count];
    shard->owner = nullptr;
    want(shard, shard->wanted);
}

// Under the lock. A shard that was moved away and back since the last pass
// stays.
void obey(lawn_worker_t *worker)
{
    lawn_group_t *const group = worker->group;
    __atomic_store_n(&worker->orders, 0, __ATOMIC_RELAXED);
    for (unsigned i = worker->count; i-- > 0;) {
        if (worker->shards[i]->wanted != worker) {
            give_up(worker, i);
        }
    }
    for (unsigned i = 0; i < group->count; ++i) {
        lawn_shard_t *const shard = &group->shards[i];
        if (!shard->owner && shard->wanted == worker) {
            take(worker, shard);
        }
    }
    worker->turn = 0;
}

// Brings the memory of new shards to the node of this thread. Under the lock,
// because of the lists of regions. The passes of other workers do not wait for
// the lock.
void bring_memory(lawn_worker_t *worker)
{
    const int node = lawn_numa_node();
    for (unsigned i = 0; i < worker->count; ++i) {
        lawn_shard_t *const shard = worker->shards[i];
        if (!shard->has_come) {
            continue;
        }
        shard->has_come = false;
        for (const lawn_region_t *j = shard->regions; j; j = j->next) {
            lawn_numa_move(j->memory, j->size, node);
        }
    }
}

LAWN_COLD_PATH void obey_if_free(lawn_worker_t *worker)
{
    lawn_group_t *const group = worker->group;
    if (pthread_mutex_trylock(&group->lock) != 0) {
        return;
    }
    obey(worker);
    if (group->params.moves_memory) {
        bring_memory(worker);
    }
    pthread_mutex_unlock(&group->lock);
}

// A thread that changes the group may have a lower priority than this one, and
// share its processor. It would never go on if this one passed, was refused its
// sleep, and passed again.
LAWN_COLD_PATH void let_others_change(lawn_group_t *group)
{
    if (pthread_mutex_trylock(&group->lock) == 0) {
        pthread_mutex_unlock(&group->lock);
    } else {
        nap();
    }
}

struct Budget {
    unsigned messages;
    unsigned timers;
};

// Returns true if the budget is used up.
bool run(lawn_shard_t *shard, lawn_time_t now, Budget *left, uint64_t *work)
{
    const unsigned messages = lawn_box_drain(shard->box, now, left->messages);
    // At most the budget, so it fits.
    const unsigned timers = static_cast<unsigned>(
        advance_as_of(shard->lawn, now, left->timers).touched);
    if (LAWN_LIKELY(messages == 0 && timers == 0)) {
        return false;
    }
    const uint64_t done = uint64_t{messages} + timers;
    *work += done;
    __atomic_store_n(&shard->work, shard->work + done, __ATOMIC_RELAXED);
    __atomic_store_n(&shard->running, shard->lawn->running, __ATOMIC_RELAXED);
    const bool is_over = messages >= left->messages || timers >= left->timers;
    left->messages -= messages;
    left->timers -= timers;
    return is_over;
}

uint64_t run_all(lawn_worker_t *worker, lawn_time_t now, Budget left)
{
    uint64_t work = 0;
    unsigned turn = worker->turn;
    for (unsigned i = 0; i < worker->count; ++i) {
        lawn_shard_t *const shard = worker->shards[turn];
        turn = turn + 1 < worker->count ? turn + 1 : 0;
        if (run(shard, now, &left, &work)) {
            worker->turn = turn;
            break;
        }
    }
    return work;
}

} // namespace

unsigned lawn_worker_pass(lawn_worker_t *worker, lawn_time_t now,
                          unsigned budget)
{
    LAWN_ASSERT(!worker->in_pass && !worker->is_removed);
    if (worker->in_pass || worker->is_removed) {
        return 0;
    }
    if (LAWN_UNLIKELY(__atomic_load_n(&worker->orders, __ATOMIC_RELAXED))) {
        obey_if_free(worker);
    }
    worker->in_pass = true;
    const unsigned most = budget != 0 ? budget : UINT_MAX;
    const uint64_t work = run_all(worker, now, {most, most});
    worker->in_pass = false;
    return LAWN_LIKELY(work <= UINT_MAX) ? static_cast<unsigned>(work)
                                         : UINT_MAX;
}

lawn_time_t lawn_worker_next(lawn_worker_t *worker)
{
    lawn_time_t next = LAWN_TIME_INFINITY;
    for (unsigned i = 0; i < worker->count; ++i) {
        lawn_t *const lawn = worker->shards[i]->lawn;
        lawn_settle(lawn, settle_touches);
        next = earlier_of(next, lawn_next(lawn));
    }
    return next;
}

bool lawn_worker_sleep(lawn_worker_t *worker, lawn_time_t until)
{
    for (unsigned i = 0; i < worker->count; ++i) {
        if (!lawn_box_sleep(worker->shards[i]->box, until)) {
            return false;
        }
    }
    if (__atomic_load_n(&worker->orders, __ATOMIC_SEQ_CST) == 0) {
        return true;
    }
    let_others_change(worker->group);
    return false;
}

lawn_shard_t *lawn_worker_place(lawn_worker_t *worker)
{
    if (worker->count == 0) {
        return nullptr;
    }
    worker->placed =
        worker->placed + 1 < worker->count ? worker->placed + 1 : 0;
    return worker->shards[worker->placed];
}
