// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A group: its shards, its clock, and moves of its shards. worker.cc has the
// passes of a worker, and workers.cc adds and removes workers.

#include "group/group_impl.h"

#include "base/mix.h"
#include "clock/convert.h"
#include "group/pages.h"
#include "timer/inside.h"

using namespace lawn;

namespace
{

constexpr unsigned default_shards = 64;

// These pages move along with the shard.
void hold_pages(lawn_shard_t *shard, unsigned i, void *memory)
{
    shard->own[i] = region_of(memory);
    shard->own[i].next = shard->regions;
    shard->regions = &shard->own[i];
}

// The box calls this when a start must wake its sleeping owner. group_impl.h
// says why `bell` is read twice.
void ring(void *arg)
{
    const lawn_shard_t *const shard = static_cast<lawn_shard_t *>(arg);
    for (;;) {
        lawn_worker_t *const worker =
            __atomic_load_n(&shard->bell, __ATOMIC_SEQ_CST);
        if (!worker) {
            return;
        }
        __atomic_fetch_add(&worker->ringing, 1, __ATOMIC_SEQ_CST);
        const bool is_it =
            __atomic_load_n(&shard->bell, __ATOMIC_SEQ_CST) == worker;
        if (is_it && worker->wake) {
            worker->wake(worker->wake_arg);
        }
        __atomic_fetch_sub(&worker->ringing, 1, __ATOMIC_SEQ_CST);
        if (is_it) {
            return;
        }
    }
}

lawn_status_t open_shard(lawn_group_t *group, lawn_shard_t *shard)
{
    lawn_params_t params = group->params.lawn;
    if (group->params.moves_memory) {
        params.allocator = page_allocator();
    }
    *shard = {};
    shard->group = group;
    lawn_status_t status = lawn_create(&params, &shard->lawn);
    if (status == LAWN_OK) {
        status = lawn_box_create(shard->lawn, &shard->box);
    }
    if (status != LAWN_OK) {
        lawn_destroy(shard->lawn);
        return status;
    }
    lawn_box_on_wake(shard->box, ring, shard);
    if (group->params.moves_memory) {
        hold_pages(shard, 0, memory_of(shard->lawn));
        hold_pages(shard, 1, shard->box);
    }
    return LAWN_OK;
}

void close_shards(lawn_group_t *group, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        lawn_box_destroy(group->shards[i].box);
        lawn_destroy(group->shards[i].lawn);
    }
}

lawn_status_t open_shards(lawn_group_t *group)
{
    for (unsigned i = 0; i < group->count; ++i) {
        const lawn_status_t status = open_shard(group, &group->shards[i]);
        if (status != LAWN_OK) {
            close_shards(group, i);
            return status;
        }
    }
    return LAWN_OK;
}

lawn_time_t read_clock(const lawn_group_t *group)
{
    return read_ticks(group->params.clock, group->params.clock_arg);
}

bool is_valid(const lawn_group_params_t *params)
{
    const lawn_allocator_t &allocator = params->lawn.allocator;
    return allocator_is_valid(allocator) &&
           !(params->moves_memory && allocator.alloc) &&
           rate_is_valid(params->ticks_per_sec);
}

void free_group(lawn_group_t *group)
{
    const lawn_allocator_t allocator = group->params.lawn.allocator;
    release(allocator, group->sums);
    release(allocator, group->loads);
    release(allocator, group->shards);
    release(allocator, group);
}

template <class T>
T *allocate_array(const lawn_allocator_t &allocator, unsigned count)
{
    return static_cast<T *>(allocate(allocator, count * sizeof(T)));
}

void configure(lawn_group_t *group, const lawn_group_params_t *params)
{
    *group = {};
    group->params = *params;
    group->count = params->shards != 0 ? params->shards : default_shards;
    if (params->ticks_per_sec == 0) {
        group->params.ticks_per_sec = lawn_time_sec_value();
    }
    group->msec = ticks_from(1, 1000, group->params.ticks_per_sec);
    group->latest = read_clock(group);
}

// Waits until nobody adds or removes a worker. Returns false in a callback of a
// worker.
bool begin_end(lawn_group_t *group)
{
    const Locked locked(group);
    for (const lawn_worker_t *i = group->workers; i; i = i->next) {
        LAWN_ASSERT(may_remove(i));
        if (!may_remove(i)) {
            return false;
        }
        LAWN_ASSERT(!i->engine || i->has_thread);
    }
    group->is_ending = true;
    while (group->changes != 0) {
        pthread_cond_wait(&group->unchanging, &group->lock);
    }
    return true;
}

void free_workers(const lawn_group_t *group, lawn_worker_t *worker)
{
    const lawn_allocator_t &allocator = group->params.lawn.allocator;
    while (worker) {
        lawn_worker_t *const next = worker->next;
        release(allocator, worker->shards);
        release(allocator, worker);
        worker = next;
    }
}

} // namespace

void lawn::want(lawn_shard_t *shard, lawn_worker_t *worker)
{
    shard->wanted = worker;
    if (!shard->owner) {
        __atomic_store_n(&shard->bell, worker, __ATOMIC_SEQ_CST);
    }
    lawn_worker_t *const told = shard->owner ? shard->owner : worker;
    if (told) {
        tell(told);
    }
}

lawn_status_t lawn_group_create_sized(const lawn_group_params_t *given,
                                      size_t size, lawn_group_t **group_p)
{
    lawn_group_params_t params;
    if (!read_known(given, size, &params)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (!group_p || !is_valid(&params)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const lawn_allocator_t &allocator = params.lawn.allocator;
    lawn_group_t *const group =
        static_cast<lawn_group_t *>(allocate(allocator, sizeof(*group)));
    if (!group) {
        return LAWN_ERR_NO_MEMORY;
    }
    configure(group, &params);
    group->shards = allocate_array<lawn_shard_t>(allocator, group->count);
    group->loads = allocate_array<lawn_shard_load_t>(allocator, group->count);
    const lawn_status_t status =
        group->shards && group->loads ? open_shards(group) : LAWN_ERR_NO_MEMORY;
    if (status != LAWN_OK) {
        free_group(group);
        return status;
    }
    pthread_mutex_init(&group->lock, nullptr);
    pthread_cond_init(&group->unchanging, nullptr);
    *group_p = group;
    return LAWN_OK;
}

void lawn_group_destroy(lawn_group_t *group)
{
    if (!group || !begin_end(group)) {
        return;
    }
    while (group->workers) {
        end_worker(group->workers, nullptr);
    }
    close_shards(group, group->count);
    free_workers(group, group->removed);
    pthread_cond_destroy(&group->unchanging);
    pthread_mutex_destroy(&group->lock);
    free_group(group);
}

// `latest` is stored at most once per millisecond, so that threads that read
// the clock seldom take its cache line from each other. After a step back of
// less than that, the time stands still until the clock has caught up, as in an
// engine.
//
// `latest` is loaded before the clock is read. Otherwise a thread that is
// interrupted in between would see a time that others have stored meanwhile,
// and take the clock for gone back. `offset` only grows, and is loaded first:
// if another thread makes up for a step back meanwhile, the exchange of
// `offset` fails. A processor may read its counter a little before the two
// loads, but by far less than a millisecond.
lawn_time_t lawn_group_time(void *arg)
{
    lawn_group_t *const group = static_cast<lawn_group_t *>(arg);
    for (;;) {
        lawn_time_t offset = __atomic_load_n(&group->offset, __ATOMIC_SEQ_CST);
        lawn_time_t latest = __atomic_load_n(&group->latest, __ATOMIC_SEQ_CST);
        const lawn_time_t now = read_clock(group) + offset;
        if (LAWN_LIKELY(now - latest <= group->msec)) {
            return now;
        }
        if (now > latest) {
            // If several threads come here at once, the latest of their times
            // must stay: the time goes on from there after a step back.
            bool is_kept = false;
            while (!is_kept && now > latest) {
                is_kept = __atomic_compare_exchange_n(
                    &group->latest, &latest, now, false, __ATOMIC_SEQ_CST,
                    __ATOMIC_SEQ_CST);
            }
            return now;
        }
        if (latest - now <= group->msec) {
            return latest;
        }
        // This sum wraps modulo 2^64, as the sum of clock and offset does.
        __atomic_compare_exchange_n(&group->offset, &offset,
                                    offset + (latest - now), false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

unsigned lawn_group_shards(const lawn_group_t *group)
{
    return group->count;
}

lawn_shard_t *lawn_group_shard(lawn_group_t *group, unsigned number)
{
    return number < group->count ? &group->shards[number] : nullptr;
}

lawn_shard_t *lawn_group_by_id(lawn_group_t *group, uint64_t id)
{
    return &group->shards[mix64(id) % group->count];
}

lawn_shard_t *lawn_group_by_ttl(lawn_group_t *group, lawn_time_t ttl)
{
    return lawn_group_by_id(group, ttl);
}

lawn_box_t *lawn_shard_box(lawn_shard_t *shard)
{
    return shard->box;
}

lawn_t *lawn_shard_lawn(lawn_shard_t *shard)
{
    return shard->lawn;
}

lawn_status_t lawn_group_move_shard(lawn_shard_t *shard, lawn_worker_t *worker)
{
    if (!shard || !worker || shard->group != worker->group) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const Locked locked(shard->group);
    if (!is_enlisted(worker)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    want(shard, worker);
    return LAWN_OK;
}

unsigned lawn_group_moving(lawn_group_t *group)
{
    const Locked locked(group);
    unsigned count = 0;
    for (unsigned i = 0; i < group->count; ++i) {
        const lawn_shard_t *const shard = &group->shards[i];
        count += !shard->owner || shard->owner != shard->wanted;
    }
    return count;
}
