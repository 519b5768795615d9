// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The sleeping service: an engine with a thread of its own, and shared timers
// out of a pool.
//
// A timer's `state` has the number of its start, its generation, and decides
// who ends it: the service's thread, when it has expired, or a thread that
// cancels it. The shared timer alone could not, since a handle may be of an
// earlier start. Whoever takes PENDING away has the timer's end.
//
// A node goes back to the pool once, and may be started again at once, whatever
// the lawn still has of it:
//   - expired: by the service's thread, before it calls back;
//   - cancelled, and the shared timer could be stopped: by who cancelled;
//   - cancelled when the shared timer had expired: by the later of the two. If
//     the earlier did, the node would be started anew, and the later one would
//     take that for the old start.

#include "base/base.h"
#include "base/ticks.h"
#include "engine/thread.h"

#include <lawn/service.h>

#include <stdio.h>

namespace lawn
{

namespace
{

// In a state, beside the generation. 0: ended.
constexpr uint64_t pending = 1;
constexpr uint64_t cancelled = 2; // one thread is to come by, or both
constexpr uint64_t expired = 3;   // the service's thread has come by
constexpr unsigned state_bits = 2;

// Chunk k has 64 * 2^k nodes, so that nodes never move.
constexpr unsigned first_chunk = 64;
constexpr unsigned chunk_count = 26;

struct Node {
    lawn_shared_t timer; // first
    uint64_t state;      // atomic
    void (*fn)(void *arg);
    void *arg;
    lawn_service_t *service;
    Node *next_free;
    uint32_t index;
    const void *started_at; // the caller of start
};

uint64_t state_of(uint32_t generation, uint64_t what)
{
    return uint64_t{generation} << state_bits | what;
}

} // namespace

} // namespace lawn

using namespace lawn;

struct lawn_service {
    lawn_engine_t *engine;
    lawn_box_t *box;
    EngineThread thread;
    lawn_service_params_t params;
    size_t pending; // atomic; grows under the lock only

    pthread_mutex_t lock; // of what follows
    bool is_stopped;
    Node *free;
    Node *chunks[chunk_count]; // atomic: read by cancel
};

namespace lawn
{

namespace
{

size_t size_of_chunk(unsigned k)
{
    return size_t{first_chunk} << k;
}

// Where the nodes of chunk k begin.
size_t begin_of_chunk(unsigned k)
{
    return size_of_chunk(k) - first_chunk;
}

Node *node_at(const lawn_service_t *service, uint32_t index)
{
    const unsigned k = 63U - static_cast<unsigned>(__builtin_clzll(
                                 uint64_t{index} / first_chunk + 1));
    if (k >= chunk_count) {
        return nullptr;
    }
    Node *const chunk = __atomic_load_n(&service->chunks[k], __ATOMIC_ACQUIRE);
    return chunk ? chunk + (index - begin_of_chunk(k)) : nullptr;
}

void put_back(Node *node)
{
    lawn_service_t *const service = node->service;
    pthread_mutex_lock(&service->lock);
    node->next_free = service->free;
    service->free = node;
    pthread_mutex_unlock(&service->lock);
}

bool change(Node *node, uint32_t generation, uint64_t from, uint64_t to)
{
    uint64_t state = state_of(generation, from);
    return __atomic_compare_exchange_n(&node->state, &state,
                                       state_of(generation, to), false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// True for the one who ends the start of this generation.
bool end(Node *node, uint32_t generation, uint64_t then)
{
    const bool is_ended = change(node, generation, pending, then);
    if (is_ended) {
        __atomic_fetch_sub(&node->service->pending, 1, __ATOMIC_RELEASE);
    }
    return is_ended;
}

uint32_t generation_of(const Node *node)
{
    return static_cast<uint32_t>(
        __atomic_load_n(&node->state, __ATOMIC_ACQUIRE) >> state_bits);
}

void on_expired(lawn_shared_t *timer, lawn_time_t)
{
    Node *const node = reinterpret_cast<Node *>(timer);
    const lawn_service_params_t &params = node->service->params;
    void (*const fn)(void *) = node->fn;
    void *const arg = node->arg;
    const uint32_t generation = generation_of(node);
    const bool is_due = end(node, generation, 0);
    if (is_due || !change(node, generation, cancelled, expired)) {
        put_back(node);
    }
    if (is_due && params.execute) {
        params.execute(params.executor, fn, arg);
    } else if (is_due) {
        fn(arg);
    }
}

// Under the lock.
bool grow(lawn_service_t *service)
{
    unsigned k = 0;
    while (k < chunk_count && service->chunks[k]) {
        ++k;
    }
    if (k == chunk_count) {
        return false;
    }
    const size_t count = size_of_chunk(k);
    Node *const chunk = static_cast<Node *>(
        allocate(service->params.allocator, count * sizeof(Node)));
    if (!chunk) {
        return false;
    }
    for (size_t i = count; i-- > 0;) {
        chunk[i] = {};
        lawn_shared_init(&chunk[i].timer, service->box, on_expired);
        chunk[i].service = service;
        chunk[i].index = static_cast<uint32_t>(begin_of_chunk(k) + i);
        chunk[i].next_free = service->free;
        service->free = &chunk[i];
    }
    __atomic_store_n(&service->chunks[k], chunk, __ATOMIC_RELEASE);
    return true;
}

// Under the lock.
lawn_status_t take(lawn_service_t *service, Node **node_p)
{
    const size_t most = service->params.max_pending;
    if (service->is_stopped) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (most != 0 &&
        __atomic_load_n(&service->pending, __ATOMIC_ACQUIRE) >= most) {
        return LAWN_ERR_BUSY;
    }
    if (!service->free && !grow(service)) {
        return LAWN_ERR_NO_MEMORY;
    }
    *node_p = service->free;
    service->free = service->free->next_free;
    __atomic_fetch_add(&service->pending, 1, __ATOMIC_RELAXED);
    return LAWN_OK;
}

template <class Each> void for_each_node(lawn_service_t *service, Each each)
{
    for (unsigned k = 0; k < chunk_count && service->chunks[k]; ++k) {
        for (size_t i = 0; i < size_of_chunk(k); ++i) {
            each(&service->chunks[k][i]);
        }
    }
}

// Who would wait for itself: a mistake.
bool is_own_thread(const lawn_service_t *service)
{
    const bool is_mistake = is_own(&service->thread);
    LAWN_ASSERT(!is_mistake);
    return is_mistake;
}

// What stop has left, and the service with it.
void free_all(lawn_service_t *service)
{
    const lawn_allocator_t allocator = service->params.allocator;
    lawn_engine_destroy(service->engine); // closes the box
    for_each_node(
        service, [](Node *node) { lawn_shared_retire(&node->timer, nullptr); });
    for (Node *const chunk : service->chunks) {
        release(allocator, chunk);
    }
    pthread_mutex_destroy(&service->lock);
    release(allocator, service);
}

#ifndef NDEBUG
void report_pending(lawn_service_t *service)
{
    const void *first = nullptr;
    for_each_node(service, [&first](const Node *node) {
        if ((node->state & pending) != 0 && !first) {
            first = node->started_at;
        }
    });
    fprintf(stderr,
            "lawn_service_destroy: %zu timers are pending; the first was "
            "started at %p\n",
            service->pending, first);
}
#endif

} // namespace

} // namespace lawn

lawn_status_t lawn_service_create(const lawn_service_params_t *params,
                                  lawn_service_t **service_p)
{
    static const lawn_service_params_t defaults = {};
    params = params ? params : &defaults;
    if (!service_p || !allocator_is_valid(params->allocator)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_service_t *const service = static_cast<lawn_service_t *>(
        allocate(params->allocator, sizeof(*service)));
    if (!service) {
        return LAWN_ERR_NO_MEMORY;
    }
    *service = {};
    service->params = *params;
    lawn_engine_params_t engine = {};
    engine.lawn.allocator = params->allocator;
    lawn_status_t status = lawn_engine_create(&engine, &service->engine);
    if (status == LAWN_OK) {
        service->box = lawn_engine_box(service->engine);
        status = service->box ? LAWN_OK : LAWN_ERR_NO_MEMORY;
    }
    if (status != LAWN_OK) {
        lawn_engine_destroy(service->engine);
        release(params->allocator, service);
        return status;
    }
    pthread_mutex_init(&service->lock, nullptr);
    if (!start_thread(&service->thread, service->engine)) {
        free_all(service);
        return LAWN_ERR_IO;
    }
    *service_p = service;
    return LAWN_OK;
}

lawn_status_t lawn_service_start(lawn_service_t *service, lawn_time_t ttl,
                                 void (*fn)(void *arg), void *arg,
                                 lawn_service_timer_t *handle_p)
{
    if (!fn) {
        return LAWN_ERR_INVALID_PARAM;
    }
    Node *node = nullptr;
    pthread_mutex_lock(&service->lock);
    const lawn_status_t status = take(service, &node);
    if (status == LAWN_OK) {
        node->fn = fn;
        node->arg = arg;
        node->started_at = __builtin_return_address(0);
        // 0 is no generation: handles that are zero-filled name nothing.
        uint32_t generation = generation_of(node) + 1;
        generation += generation == 0;
        __atomic_store_n(&node->state, state_of(generation, pending),
                         __ATOMIC_RELEASE);
        if (handle_p) {
            *handle_p = {node->index, generation};
        }
    }
    pthread_mutex_unlock(&service->lock);
    if (status == LAWN_OK) {
        lawn_shared_start(
            &node->timer,
            add_saturating(lawn_engine_time(service->engine), ttl));
    }
    return status;
}

lawn_status_t lawn_service_cancel(lawn_service_t *service,
                                  lawn_service_timer_t handle)
{
    Node *const node = node_at(service, handle.index);
    if (!node || !end(node, handle.generation, cancelled)) {
        return LAWN_ERR_NO_ELEM;
    }
    if (lawn_shared_stop(&node->timer) ||
        !change(node, handle.generation, cancelled, 0)) {
        put_back(node);
    }
    return LAWN_OK;
}

size_t lawn_service_pending(const lawn_service_t *service)
{
    return __atomic_load_n(&service->pending, __ATOMIC_ACQUIRE);
}

size_t lawn_service_stop(lawn_service_t *service,
                         void (*unprocessed)(void *arg, void *user), void *user)
{
    if (is_own_thread(service)) {
        return 0;
    }
    pthread_mutex_lock(&service->lock);
    const bool was_stopped = service->is_stopped;
    service->is_stopped = true;
    pthread_mutex_unlock(&service->lock);
    if (was_stopped) {
        return 0;
    }
    end_thread(&service->thread);
    size_t count = 0;
    for_each_node(service, [&](Node *node) {
        if (end(node, generation_of(node), 0)) {
            ++count;
            if (unprocessed) {
                unprocessed(node->arg, user);
            }
        }
    });
    return count;
}

void lawn_service_destroy(lawn_service_t *service)
{
    if (!service || is_own_thread(service)) {
        return;
    }
    const bool is_done =
        service->is_stopped || lawn_service_pending(service) == 0;
#ifndef NDEBUG
    if (!is_done) {
        report_pending(service);
    }
#endif
    LAWN_ASSERT(is_done);
    (void)is_done;
    lawn_service_stop(service, nullptr, nullptr);
    free_all(service);
}
