// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timers of a service that are in no start, and how many are. They are in
// lanes, of which a thread takes that of the processor it is on, so that
// threads seldom meet; a lane that is taken is passed by for the next. What one
// lane has too much another finds when it has nothing.

#ifndef LAWN_SRC_SERVICE_POOL_H
#define LAWN_SRC_SERVICE_POOL_H

#include <lawn/service.h>
#include <lawn/shared.h>

#include <pthread.h>
#include <sched.h>

namespace lawn
{

// Chunk k has 64 * 2^k nodes, so that nodes never move.
constexpr unsigned first_chunk = 64;
constexpr unsigned chunk_count = 26;

// How many nodes change lanes at once.
constexpr unsigned batch_size = 32;

struct Node {
    lawn_shared_t timer; // first
    uint64_t state;      // atomic
    lawn_time_t due;     // likewise
    void (*fn)(void *arg);
    void *arg;
    lawn_service_t *service;
    uint32_t index;
    const void *started_at; // the caller of start
    Node *next_free;
    Node *next_batch; // of the first of a batch
};

struct Lane {
    uint32_t lock;
    unsigned count;   // of `free`
    intptr_t pending; // started less ended, here
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
    void (*init)(Node *node, void *arg); // of what is new
    void *arg;
};

// False: no memory.
bool make_pool(Pool *pool, const lawn_allocator_t &allocator,
               void (*init)(Node *node, void *arg), void *arg);

// Frees all nodes.
void free_pool(Pool *pool);

// ---- A lane is the caller's for some instructions.

inline bool try_enter(Lane *lane)
{
    return __atomic_load_n(&lane->lock, __ATOMIC_RELAXED) == 0 &&
           __atomic_exchange_n(&lane->lock, 1, __ATOMIC_ACQUIRE) == 0;
}

// The next after the `first` that nobody is in.
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

// False: no memory.
bool refill(Pool *pool, Lane *lane);

// A node for a start; nullptr: no memory.
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

// The node of a start that has ended.
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

// ---- All of them.

// nullptr: there is none.
Node *node_at(const Pool *pool, uint32_t index);

// Exact: waits until nobody is in a lane.
size_t pending_of(const Pool *pool);

// When it returns nobody is in a lane who was when it was called.
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
