// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The service (lawn/service.h): an engine with a thread of its own, and shared
// timers from a pool (pool.h).
//
// The `state` of a node is the number of its start, its generation, and whether
// that start is pending. Whoever takes `pending` away ends the start, and puts
// the node back: the service's thread, which calls back, a thread that cancels,
// or stop. Starts and ends are made in a lane, together with the counts of what
// is pending. So whoever enters all lanes sees counts of one moment.
//
// The shared timer of a cancelled start stays armed. It expires for nobody, or
// the node's next start re-arms it. So a shared timer may expire for a start
// that is over, while the next start is being made. Therefore a start is not
// called back before it is `due`. It may be called back before its thread has
// armed the shared timer. That thread then arms it when the node has its next
// start, and thus for a time that is past. So a shared timer that expires too
// early is armed again.

#include "base/base.h"
#include "base/ticks.h"
#include "engine/thread.h"
#include "service/pool.h"

#include <lawn/service.h>

#include <stdio.h>

namespace lawn
{

namespace
{

// The bit of a state beside the generation.
constexpr uint64_t pending = 1;

uint64_t state_of(uint32_t generation)
{
    return uint64_t{generation} << 1 | pending;
}

uint32_t generation_of(uint64_t state)
{
    return static_cast<uint32_t>(state >> 1);
}

} // namespace

} // namespace lawn

using namespace lawn;

struct lawn_service {
    lawn_engine_t *engine;
    lawn_box_t *box;
    EngineThread thread;
    lawn_service_params_t params;
    Pool pool;
    size_t admitted;     // pending, if there is a limit; atomic
    uint32_t is_stopped; // atomic; every machine can exchange a word
};

namespace lawn
{

namespace
{

// In a lane. Returns false if the count is at the limit. Starts that end may
// not be counted down yet.
bool admit(lawn_service_t *service)
{
    const size_t most = service->params.max_pending;
    size_t count = __atomic_load_n(&service->admitted, __ATOMIC_RELAXED);
    while (most != 0 && count < most &&
           !__atomic_compare_exchange_n(&service->admitted, &count, count + 1,
                                        false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return most == 0 || count < most;
}

// In a lane.
void dismiss(lawn_service_t *service)
{
    if (service->params.max_pending != 0) {
        __atomic_fetch_sub(&service->admitted, 1, __ATOMIC_RELAXED);
    }
}

// Returns true if `max_pending` timers are pending. Enters all lanes, where
// what has ended is counted down.
bool is_full(const lawn_service_t *service)
{
    return pending_of(&service->pool) >= service->params.max_pending;
}

// A start was refused. Other threads may have been in lanes with free nodes, or
// have let in what they then could not start.
bool is_final(lawn_service_t *service, lawn_status_t status)
{
    switch (status) {
    case LAWN_ERR_BUSY:
        return is_full(service);
    case LAWN_ERR_NO_MEMORY:
        return !has_free(&service->pool);
    default:
        return true;
    }
}

// What a start has to call.
struct Call {
    void (*fn)(void *arg);
    void *arg;
};

// Returns true to the one caller that ends the start of `state`. That caller
// gets `call`, and the node is put back. Who gets false finds the lane of the
// other still taken, or the start counted down: hence ACQUIRE in both cases.
bool end(Node *node, uint64_t state, Call *call)
{
    if ((state & pending) == 0) {
        return false;
    }
    lawn_service_t *const service = node->service;
    Lane *const lane = enter(&service->pool);
    const bool is_ended =
        __atomic_compare_exchange_n(&node->state, &state, state - pending,
                                    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    if (is_ended) {
        *call = {node->fn, node->arg};
        put(lane, node);
        dismiss(service);
    }
    leave(lane);
    return is_ended;
}

// Arms the shared timer of a node whose deadline was overwritten. Meanwhile its
// start may end, and the next one may arm the timer. That one's `due` is stored
// before. So if the deadline of the next start is overwritten here, `due` has
// changed.
void arm_again(Node *node, lawn_time_t due)
{
    for (lawn_time_t armed = ~due; armed != due;) {
        armed = due;
        lawn_shared_start(&node->timer, armed);
        due = __atomic_load_n(&node->due, __ATOMIC_RELAXED);
    }
}

void on_expired(lawn_shared_t *timer, lawn_time_t now)
{
    Node *const node = reinterpret_cast<Node *>(timer);
    const lawn_service_params_t &params = node->service->params;
    const uint64_t state = __atomic_load_n(&node->state, __ATOMIC_ACQUIRE);
    const lawn_time_t due = __atomic_load_n(&node->due, __ATOMIC_RELAXED);
    if (due > now) {
        if ((state & pending) != 0) {
            arm_again(node, due);
        }
        return;
    }
    Call call;
    if (!end(node, state, &call)) {
        return;
    }
    if (params.execute) {
        params.execute(params.executor, call.fn, call.arg);
    } else {
        call.fn(call.arg);
    }
}

struct Start {
    Call call;
    lawn_time_t due;
    const void *at;
};

// In a lane. Begins a start, with a node that is not armed yet.
lawn_status_t begin(lawn_service_t *service, Lane *lane, const Start &start,
                    Node **node_p, lawn_service_timer_t *handle_p)
{
    if (__atomic_load_n(&service->is_stopped, __ATOMIC_RELAXED) != 0) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (!admit(service)) {
        return LAWN_ERR_BUSY;
    }
    Node *const node = get(&service->pool, lane);
    if (!node) {
        dismiss(service);
        return LAWN_ERR_NO_MEMORY;
    }
    node->fn = start.call.fn;
    node->arg = start.call.arg;
    node->started_at = start.at;
    __atomic_store_n(&node->due, start.due, __ATOMIC_RELAXED);
    // 0 is no generation, so a zero-filled handle names no start.
    uint32_t generation =
        generation_of(__atomic_load_n(&node->state, __ATOMIC_RELAXED)) + 1;
    generation += generation == 0;
    if (handle_p) {
        *handle_p = {node->index, generation};
    }
    __atomic_store_n(&node->state, state_of(generation), __ATOMIC_RELEASE);
    *node_p = node;
    return LAWN_OK;
}

void init_node(Node *node, void *arg)
{
    node->service = static_cast<lawn_service_t *>(arg);
    lawn_shared_init(&node->timer, node->service->box, on_expired);
}

// True in the service's own thread, which would wait for itself. That is a
// mistake of the program.
bool is_own_thread(const lawn_service_t *service)
{
    const bool is_mistake = is_own(&service->thread);
    LAWN_ASSERT(!is_mistake);
    return is_mistake;
}

// Frees the service. Its thread has ended, or was not started.
void free_all(lawn_service_t *service)
{
    lawn_engine_destroy(service->engine); // closes the box
    for_each_node(&service->pool, [](Node *node) {
        lawn_shared_retire(&node->timer, nullptr);
    });
    free_pool(&service->pool);
    release(service->params.allocator, service);
}

#ifndef NDEBUG
void report_pending(lawn_service_t *service)
{
    const void *first = nullptr;
    for_each_node(&service->pool, [&first](const Node *node) {
        if ((node->state & pending) != 0 && !first) {
            first = node->started_at;
        }
    });
    fprintf(stderr,
            "lawn_service_destroy: %zu timers are pending; the first was "
            "started at %p\n",
            lawn_service_pending(service), first);
}
#endif

} // namespace

} // namespace lawn

lawn_status_t lawn_service_create_sized(const lawn_service_params_t *given,
                                        size_t size, lawn_service_t **service_p)
{
    lawn_service_params_t params;
    if (!read_known(given, size, &params)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (!service_p || !allocator_is_valid(params.allocator)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_service_t *const service = static_cast<lawn_service_t *>(
        allocate(params.allocator, sizeof(*service)));
    if (!service) {
        return LAWN_ERR_NO_MEMORY;
    }
    *service = {};
    service->params = params;
    lawn_engine_params_t engine = {};
    engine.lawn.allocator = params.allocator;
    lawn_status_t status = lawn_engine_create(&engine, &service->engine);
    if (status == LAWN_OK) {
        service->box = lawn_engine_box(service->engine);
        status = service->box && make_pool(&service->pool, params.allocator,
                                           init_node, service)
                     ? LAWN_OK
                     : LAWN_ERR_NO_MEMORY;
    }
    if (status != LAWN_OK) {
        free_all(service);
        return status;
    }
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
    LAWN_ASSERT(is_span(ttl) && "the TTL is no negative difference");
    if (!fn) {
        return LAWN_ERR_INVALID_PARAM;
    }
    const lawn_time_t due =
        add_saturating(lawn_engine_time(service->engine), ttl);
    const Start start = {{fn, arg}, due, __builtin_return_address(0)};
    lawn_status_t status = LAWN_OK;
    Node *node = nullptr;
    do {
        Lane *const lane = enter(&service->pool);
        status = begin(service, lane, start, &node, handle_p);
        leave(lane);
    } while (LAWN_UNLIKELY(status != LAWN_OK) && !is_final(service, status));
    if (LAWN_LIKELY(status == LAWN_OK)) {
        lawn_shared_start(&node->timer, due);
    }
    return status;
}

lawn_status_t lawn_service_cancel(lawn_service_t *service,
                                  lawn_service_timer_t handle)
{
    Node *const node = node_at(&service->pool, handle.index);
    Call call;
    return node && end(node, state_of(handle.generation), &call)
               ? LAWN_OK
               : LAWN_ERR_NO_ELEM;
}

size_t lawn_service_pending(const lawn_service_t *service)
{
    return pending_of(&service->pool);
}

size_t lawn_service_stop(lawn_service_t *service,
                         void (*unprocessed)(void *arg, void *user), void *user)
{
    if (is_own_thread(service) ||
        __atomic_exchange_n(&service->is_stopped, 1, __ATOMIC_SEQ_CST)) {
        return 0;
    }
    pass_through(&service->pool); // starts may have missed `is_stopped`
    end_thread(&service->thread);
    size_t count = 0;
    for_each_node(&service->pool, [&](Node *node) {
        Call call;
        if (end(node, __atomic_load_n(&node->state, __ATOMIC_ACQUIRE), &call)) {
            ++count;
            if (unprocessed) {
                unprocessed(call.arg, user);
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
        service->is_stopped != 0 || lawn_service_pending(service) == 0;
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
