// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Decides which worker should own which shard. The workers then hand the shards
// over in their passes (worker.cc).

#include "group/group_impl.h"

using namespace lawn;

namespace
{

// Finds the shard whose move from worker `from` to one with `gap` less work
// leaves the smallest difference. Returns shard_count if no move makes it
// smaller.
unsigned find_best(const lawn_shard_load_t *shards, unsigned shard_count,
                   unsigned from, uint64_t gap)
{
    unsigned best = shard_count;
    uint64_t best_rest = gap;
    for (unsigned i = 0; i < shard_count; ++i) {
        if (shards[i].worker != from || shards[i].work >= gap) {
            continue;
        }
        // The difference that remains, in either direction.
        const uint64_t rest = shards[i].work <= gap / 2
                                  ? gap - 2 * shards[i].work
                                  : 2 * (shards[i].work - gap / 2);
        if (rest < best_rest) {
            best = i;
            best_rest = rest;
        }
    }
    return best;
}

// Fills in the load of each shard, and adds it to the work of its worker. Each
// shard counts one more than it has done, so that idle shards are divided, too.
void add_up(lawn_group_t *group, uint64_t *work)
{
    for (unsigned i = 0; i < group->count; ++i) {
        lawn_shard_t *const shard = &group->shards[i];
        const uint64_t done = __atomic_load_n(&shard->work, __ATOMIC_RELAXED);
        lawn_shard_load_t *const load = &group->loads[i];
        load->work = done - shard->counted + 1;
        load->running = __atomic_load_n(&shard->running, __ATOMIC_RELAXED);
        load->worker = shard->wanted ? shard->wanted->number : 0;
        work[load->worker] += load->work;
        shard->counted = done;
    }
}

lawn_worker_t *worker_of_number(const lawn_group_t *group, unsigned number)
{
    lawn_worker_t *worker = group->workers;
    while (worker && worker->number != number) {
        worker = worker->next;
    }
    return worker;
}

// Under the lock. Returns how many shards are to move.
unsigned divide(lawn_group_t *group, uint64_t *work, unsigned worker_count)
{
    add_up(group, work);
    const lawn_balance_fn_t balance =
        group->params.balance ? group->params.balance : balance_by_work;
    balance(group->params.balance_arg, group->loads, group->count, work,
            worker_count);
    unsigned moved = 0;
    for (unsigned i = 0; i < group->count; ++i) {
        const unsigned number = group->loads[i].worker;
        lawn_worker_t *const worker = worker_of_number(group, number);
        LAWN_ASSERT(worker);
        if (worker && worker != group->shards[i].wanted) {
            want(&group->shards[i], worker);
            ++moved;
        }
    }
    return moved;
}

} // namespace

void lawn::balance_by_work(void *, lawn_shard_load_t *shards,
                           unsigned shard_count, uint64_t *work,
                           unsigned worker_count)
{
    for (unsigned moves = 0; moves < shard_count; ++moves) {
        unsigned most = 0;
        unsigned least = 0;
        for (unsigned i = 1; i < worker_count; ++i) {
            most = work[i] > work[most] ? i : most;
            least = work[i] < work[least] ? i : least;
        }
        const uint64_t gap = work[most] - work[least];
        if (gap <= work[most] / 8) {
            return;
        }
        const unsigned i = find_best(shards, shard_count, most, gap);
        if (i == shard_count) {
            return;
        }
        shards[i].worker = least;
        work[most] -= shards[i].work;
        work[least] += shards[i].work;
    }
}

unsigned lawn_group_balance(lawn_group_t *group)
{
    const Locked locked(group);
    unsigned count = 0;
    for (lawn_worker_t *i = group->workers; i; i = i->next) {
        i->number = count++;
    }
    if (count == 0) {
        return 0;
    }
    for (unsigned i = 0; i < count; ++i) {
        group->sums[i] = 0;
    }
    return divide(group, group->sums, count);
}
