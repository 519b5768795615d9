// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The pool of a service: the timers (nodes) that no start uses, and a count of
// the pending starts. The free nodes are in lanes. A thread takes the lane of
// the processor that it is on, so threads seldom meet. If another thread is in
// that lane, it tries the next. A lane that has no free nodes takes what
// another lane has too many of.

#ifndef LAWN_SRC_SERVICE_POOL_H
#define LAWN_SRC_SERVICE_POOL_H

#include <lawn/service.h>
#include <lawn/shared.h>

#include <pthread.h>
#include <sched.h>

namespace lawn
{

// Nodes are allocated in chunks, so that they never move. Chunk k has 64 * 2^k
// nodes.
constexpr unsigned first_chunk = 64;
constexpr unsigned chunk_count = 26;

// How many nodes change lanes at once.
constexpr unsigned batch_size = 32;

struct Node {
    lawn_shared_t timer; // first: a timer is cast to its node
    uint64_t state;      // atomic
    lawn_time_t due;     // atomic
    void (*fn)(void *arg);
    void *arg;
    lawn_service_t *service;
    uint32_t index;
    const void *started_at; // return address of the start
    Node *next_free;
    Node *next_batch; // in the first node of a batch
};

struct Lane {
    uint32_t lock;
    unsigned count;   // length of `free`
    intptr_t pending; // starts less ends in this lane; may be negative
    Node *free;
    Node *batches;
    char padding[128 - 2 * sizeof(uint32_t) - 3 * sizeof(void *)];
};

struct Pool {
    Lane *lanes;
    unsigned lane_count; // a power of two
    pthread_mutex_t growing;
    Node *chunks[chunk_count]; // atomic
    lawn_allocator_t allocator;
    void (*init)(Node *node, void *arg); // called for each new node
    void *arg;
};

// Returns false if there is no memory.
bool make_pool(Pool *pool, const lawn_allocator_t &allocator,
               void (*init)(Node *node, void *arg), void *arg);

// Frees all nodes.
void free_pool(Pool *pool);

// ---- A lane belongs to its caller for a few instructions.

inline bool try_enter(Lane *lane)
{
    return __atomic_load_n(&lane->lock, __ATOMIC_RELAXED) == 0 &&
           __atomic_exchange_n(&lane->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

// Enters the next lane after `first` that nobody is in.
Lane *enter_next(Pool *pool, unsigned first);

inline Lane *enter(Pool *pool)
{
    const unsigned i = static_cast<unsigned>(sched_getcpu());
    Lane *const lane = &pool->lanes[i & (pool->lane_count - 1)];
    return LAWN_LIKELY(try_enter(lane)) ? lane : enter_next(pool, i);
}

inline void leave(Lane *lane)
{
    __atomic_store_n(&lane->lock, 0, __ATOMIC_RELEASE);
}

// Gets free nodes for the lane. Returns false if there is no memory.
bool refill(Pool *pool, Lane *lane);

// Takes a node for a start. Returns nullptr if there is no memory.
inline Node *get(Pool *pool, Lane *lane)
{
    if (LAWN_UNLIKELY(!lane->free) && !refill(pool, lane)) {
        return nullptr;
    }
    Node *const node = lane->free;
    lane->free = node->next_free;
    --lane->count;
    ++lane->pending;
    return node;
}

inline void put_batch(Lane *lane, Node *batch)
{
    batch->next_batch = lane->batches;
    lane->batches = batch;
}

// Puts back the node of a start that has ended.
inline void put(Lane *lane, Node *node)
{
    if (LAWN_UNLIKELY(lane->count == batch_size)) {
        put_batch(lane, lane->free);
        lane->free = nullptr;
        lane->count = 0;
    }
    node->next_free = lane->free;
    lane->free = node;
    ++lane->count;
    --lane->pending;
}

// ---- All lanes and nodes.

// Returns nullptr if there is no such node.
Node *node_at(const Pool *pool, uint32_t index);

// Both are exact. To be so, they wait for each lane.
size_t pending_of(const Pool *pool);
bool has_free(const Pool *pool);

// Waits until every thread that is in a lane at the call has left it.
void pass_through(Pool *pool);

template <class Each> void for_each_node(const Pool *pool, Each each)
{
    for (unsigned k = 0; k < chunk_count && pool->chunks[k]; ++k) {
        for (size_t i = 0; i < size_t{first_chunk} << k; ++i) {
            each(&pool->chunks[k][i]);
        }
    }
}

} // namespace lawn

#endif
