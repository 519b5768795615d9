// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How workers are added to a group and removed from it: workers of the caller,
// engines, and threads of the library.

#include "group/group_impl.h"

#include "base/patience.h"

using namespace lawn;

namespace
{

const lawn_allocator_t &allocator_of(const lawn_group_t *group)
{
    return group->params.lawn.allocator;
}

// Under the lock.
bool make_room(lawn_group_t *group)
{
    if (group->worker_count < group->room) {
        return true;
    }
    const unsigned room = 2 * group->room + 4;
    uint64_t *const sums = static_cast<uint64_t *>(
        allocate(allocator_of(group), room * sizeof(*sums)));
    if (!sums) {
        return false;
    }
    release(allocator_of(group), group->sums);
    group->sums = sums;
    group->room = room;
    return true;
}

// Under the lock. Removed workers are used again, as their memory stays.
lawn_worker_t *find_worker(lawn_group_t *group)
{
    lawn_worker_t *const old = group->removed;
    if (old) {
        group->removed = old->next;
        return old;
    }
    const lawn_allocator_t &allocator = allocator_of(group);
    lawn_worker_t *const worker =
        static_cast<lawn_worker_t *>(allocate(allocator, sizeof(*worker)));
    if (!worker) {
        return nullptr;
    }
    *worker = {};
    worker->group = group;
    worker->shards = static_cast<lawn_shard_t **>(
        allocate(allocator, group->count * sizeof(*worker->shards)));
    if (!worker->shards) {
        release(allocator, worker);
        return nullptr;
    }
    return worker;
}

// `ringing` stays as it is: a thread that has read `bell` before the worker was
// removed may still count there.
lawn_worker_t *make_worker(lawn_group_t *group, void (*wake)(void *arg),
                           void *wake_arg)
{
    const Locked locked(group);
    lawn_worker_t *const worker =
        make_room(group) ? find_worker(group) : nullptr;
    if (worker) {
        ++group->worker_count;
        worker->orders = 0;
        worker->wake = wake;
        worker->wake_arg = wake_arg;
        worker->engine = nullptr;
        worker->has_thread = false;
        worker->is_removed = false;
    }
    return worker;
}

// For a worker that was never enlisted, or that was dismissed.
void put_back(lawn_worker_t *worker)
{
    lawn_group_t *const group = worker->group;
    const Locked locked(group);
    --group->worker_count;
    worker->is_removed = true;
    worker->next = group->removed;
    group->removed = worker;
}

// Adds the worker to the group's list. It gets the shards that nobody wants.
void enlist(lawn_worker_t *worker)
{
    lawn_group_t *const group = worker->group;
    const Locked locked(group);
    worker->next = group->workers;
    group->workers = worker;
    for (unsigned i = 0; i < group->count; ++i) {
        if (!group->shards[i].wanted) {
            want(&group->shards[i], worker);
        }
    }
}

// Under the lock.
void strike_off(lawn_worker_t *worker)
{
    lawn_worker_t **link = &worker->group->workers;
    while (*link != worker) {
        link = &(*link)->next;
    }
    *link = worker->next;
    worker->is_removed = true;
}

bool may_inherit(const lawn_worker_t *worker, const lawn_worker_t *heir)
{
    if (!heir) {
        return true;
    }
    if (heir == worker || heir->group != worker->group) {
        return false;
    }
    const Locked locked(worker->group);
    return is_enlisted(heir);
}

// Gives the worker's shards to `heir`. Nobody runs the worker any more. While
// its thread ended, the heir may have been removed, and its memory may be that
// of a worker in the making. Any other worker is the heir then.
void dismiss(lawn_worker_t *worker, lawn_worker_t *heir)
{
    lawn_group_t *const group = worker->group;
    {
        const Locked locked(group);
        strike_off(worker);
        if (heir && !is_enlisted(heir)) {
            heir = group->workers;
        }
        for (unsigned i = 0; i < group->count; ++i) {
            lawn_shard_t *const shard = &group->shards[i];
            const bool is_own = shard->owner == worker;
            if (is_own) {
                shard->owner = nullptr;
            }
            if (is_own || shard->wanted == worker) {
                want(shard, shard->wanted == worker ? heir : shard->wanted);
            }
        }
        worker->count = 0;
    }
    for (Patience patience;
         __atomic_load_n(&worker->ringing, __ATOMIC_SEQ_CST) != 0;) {
        patience.wait();
    }
}

unsigned pass_of_engine(void *arg, lawn_time_t now, unsigned budget)
{
    return lawn_worker_pass(static_cast<lawn_worker_t *>(arg), now, budget);
}

lawn_time_t next_of_engine(void *arg)
{
    return lawn_worker_next(static_cast<lawn_worker_t *>(arg));
}

bool sleep_of_engine(void *arg, lawn_time_t until)
{
    return lawn_worker_sleep(static_cast<lawn_worker_t *>(arg), until);
}

bool is_worker(const lawn_engine_t *engine)
{
    const PassHook *i = engine->hooks;
    while (i && i->pass != pass_of_engine) {
        i = i->behind;
    }
    return i != nullptr;
}

// Opens the engine's descriptors here, where a failure can be returned.
lawn_status_t board(lawn_worker_t *worker, lawn_engine_t *engine)
{
    if (lawn_engine_fd(engine) < 0) {
        return LAWN_ERR_IO;
    }
    worker->wake = wake;
    worker->wake_arg = engine;
    worker->engine = engine;
    worker->hook = {pass_of_engine, next_of_engine, sleep_of_engine, worker,
                    nullptr};
    add_hook(engine, &worker->hook);
    return LAWN_OK;
}

lawn_status_t make_engine(lawn_group_t *group, lawn_engine_t **engine_p)
{
    lawn_engine_params_t params = {};
    params.clock = lawn_group_time;
    params.clock_arg = group;
    params.ticks_per_sec = group->params.ticks_per_sec;
    params.lawn.allocator = allocator_of(group);
    return lawn_engine_create(&params, engine_p);
}

} // namespace

bool lawn::is_enlisted(const lawn_worker_t *worker)
{
    const lawn_worker_t *i = worker->group->workers;
    while (i && i != worker) {
        i = i->next;
    }
    return i != nullptr;
}

bool lawn::may_remove(const lawn_worker_t *worker)
{
    if (worker->has_thread) {
        return !is_own(&worker->thread);
    }
    return !worker->in_pass && !(worker->engine && is_inside(worker->engine));
}

void lawn::end_worker(lawn_worker_t *worker, lawn_worker_t *heir)
{
    lawn_engine_t *const engine = worker->engine;
    const bool has_thread = worker->has_thread;
    if (has_thread) {
        end_thread(&worker->thread);
    }
    dismiss(worker, heir);
    if (engine) {
        remove_hook(engine, &worker->hook);
    }
    if (has_thread) {
        lawn_engine_destroy(engine);
    }
    put_back(worker); // last: from now on it may be another worker
}

// Stores `orders` before the wake-up, so that a worker that is awake or about
// to sleep sees it.
void lawn::tell(lawn_worker_t *worker)
{
    __atomic_store_n(&worker->orders, 1, __ATOMIC_SEQ_CST);
    if (worker->wake) {
        worker->wake(worker->wake_arg);
    }
}

lawn_status_t lawn_group_add_worker(lawn_group_t *group,
                                    void (*wake)(void *arg), void *wake_arg,
                                    lawn_worker_t **worker_p)
{
    if (!group || !worker_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const WorkerChange change(group);
    if (!change.is_allowed()) {
        return LAWN_ERR_UNSUPPORTED;
    }
    lawn_worker_t *const worker = make_worker(group, wake, wake_arg);
    if (!worker) {
        return LAWN_ERR_NO_MEMORY;
    }
    enlist(worker);
    *worker_p = worker;
    return LAWN_OK;
}

lawn_status_t lawn_group_add_engine(lawn_group_t *group, lawn_engine_t *engine,
                                    lawn_worker_t **worker_p)
{
    if (!group || !engine || !worker_p || engine->clock != lawn_group_time ||
        engine->clock_arg != group || is_worker(engine)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const WorkerChange change(group);
    if (!change.is_allowed()) {
        return LAWN_ERR_UNSUPPORTED;
    }
    lawn_worker_t *const worker = make_worker(group, nullptr, nullptr);
    if (!worker) {
        return LAWN_ERR_NO_MEMORY;
    }
    const lawn_status_t status = board(worker, engine);
    if (status != LAWN_OK) {
        put_back(worker);
        return status;
    }
    enlist(worker);
    *worker_p = worker;
    return LAWN_OK;
}

lawn_status_t lawn_group_add_thread(lawn_group_t *group,
                                    lawn_worker_t **worker_p)
{
    if (!group || !worker_p) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const WorkerChange change(group);
    if (!change.is_allowed()) {
        return LAWN_ERR_UNSUPPORTED;
    }
    lawn_engine_t *engine = nullptr;
    lawn_status_t status = make_engine(group, &engine);
    if (status != LAWN_OK) {
        return status;
    }
    lawn_worker_t *const worker = make_worker(group, nullptr, nullptr);
    status = worker ? board(worker, engine) : LAWN_ERR_NO_MEMORY;
    if (status == LAWN_OK && !start_thread(&worker->thread, engine)) {
        remove_hook(engine, &worker->hook);
        status = LAWN_ERR_IO;
    }
    if (status != LAWN_OK) {
        lawn_engine_destroy(engine);
        if (worker) {
            put_back(worker);
        }
        return status;
    }
    worker->has_thread = true;
    enlist(worker);
    *worker_p = worker;
    return LAWN_OK;
}

lawn_status_t lawn_group_remove_worker(lawn_worker_t *worker,
                                       lawn_worker_t *heir)
{
    if (!worker || !may_inherit(worker, heir)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    LAWN_ASSERT(may_remove(worker));
    if (!may_remove(worker)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const WorkerChange change(worker->group);
    if (!change.is_allowed()) {
        return LAWN_ERR_UNSUPPORTED;
    }
    end_worker(worker, heir);
    return LAWN_OK;
}
