// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How lanes refill, and how the pool grows (pool.h).

#include "service/pool.h"

#include "base/base.h"
#include "base/patience.h"

#include <unistd.h>

namespace lawn
{

namespace
{

constexpr unsigned most_lanes = 64;

static_assert(sizeof(Lane) == 128, "two lanes never share a cache line");
static_assert(first_chunk % batch_size == 0, "a chunk is whole batches");

size_t size_of_chunk(unsigned k)
{
    return size_t{first_chunk} << k;
}

// The index of the first node of chunk k.
size_t begin_of_chunk(unsigned k)
{
    return size_of_chunk(k) - first_chunk;
}

// Returns more lanes than there are processors, up to `most_lanes`. So if a
// thread is interrupted in its lane, others can take a free one.
unsigned count_lanes()
{
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    unsigned count = 2;
    while (count <= processors && count < most_lanes) {
        count *= 2;
    }
    return count;
}

// Gives `lane`, which has no free node, a batch of its own or nodes of `from`.
bool take_batch(Lane *lane, Lane *from)
{
    if (Node *const batch = from->batches) {
        from->batches = batch->next_batch;
        lane->free = batch;
        lane->count = batch_size;
        return true;
    }
    if (lane == from || !from->free) {
        return false;
    }
    lane->free = from->free;
    lane->count = from->count;
    from->free = nullptr;
    from->count = 0;
    return true;
}

bool take_from_others(Pool *pool, Lane *lane)
{
    bool is_taken = false;
    for (unsigned i = 0; i < pool->lane_count && !is_taken; ++i) {
        Lane *const other = &pool->lanes[i];
        if (other != lane && try_enter(other)) {
            is_taken = take_batch(lane, other);
            leave(other);
        }
    }
    return is_taken;
}

bool grow(Pool *pool, Lane *lane)
{
    unsigned k = 0;
    while (k < chunk_count && pool->chunks[k]) {
        ++k;
    }
    if (k == chunk_count) {
        return false;
    }
    const size_t count = size_of_chunk(k);
    Node *const chunk =
        static_cast<Node *>(allocate(pool->allocator, count * sizeof(Node)));
    if (!chunk) {
        return false;
    }
    for (size_t i = count; i-- > 0;) {
        chunk[i] = {};
        chunk[i].index = static_cast<uint32_t>(begin_of_chunk(k) + i);
        pool->init(&chunk[i], pool->arg);
        if (i % batch_size != batch_size - 1) {
            chunk[i].next_free = &chunk[i + 1];
        }
        if (i % batch_size == 0) {
            put_batch(lane, &chunk[i]);
        }
    }
    __atomic_store_n(&pool->chunks[k], chunk, __ATOMIC_RELEASE);
    return take_batch(lane, lane);
}

} // namespace

bool refill(Pool *pool, Lane *lane)
{
    if (take_batch(lane, lane) || take_from_others(pool, lane)) {
        return true;
    }
    // Other threads that have found nothing wait here, and then find the new
    // nodes.
    pthread_mutex_lock(&pool->growing);
    const bool is_filled = take_from_others(pool, lane) || grow(pool, lane);
    pthread_mutex_unlock(&pool->growing);
    return is_filled;
}

bool make_pool(Pool *pool, const lawn_allocator_t &allocator,
               void (*init)(Node *node, void *arg), void *arg)
{
    *pool = {};
    pool->lane_count = count_lanes();
    pool->allocator = allocator;
    pool->init = init;
    pool->arg = arg;
    pool->lanes = static_cast<Lane *>(
        allocate(allocator, pool->lane_count * sizeof(Lane)));
    if (!pool->lanes) {
        return false;
    }
    for (unsigned i = 0; i < pool->lane_count; ++i) {
        pool->lanes[i] = {};
    }
    pthread_mutex_init(&pool->growing, nullptr);
    return true;
}

void free_pool(Pool *pool)
{
    if (!pool->lanes) {
        return;
    }
    for (Node *const chunk : pool->chunks) {
        release(pool->allocator, chunk);
    }
    pthread_mutex_destroy(&pool->growing);
    release(pool->allocator, pool->lanes);
}

Lane *enter_next(Pool *pool, unsigned first)
{
    const unsigned mask = pool->lane_count - 1;
    Patience patience;
    for (unsigned i = first + 1;; ++i) {
        if (Lane *const lane = &pool->lanes[i & mask]; try_enter(lane)) {
            return lane;
        }
        if (i - first > mask) {
            patience.wait();
        }
    }
}

Node *node_at(const Pool *pool, uint32_t index)
{
    const unsigned k = 63U - static_cast<unsigned>(__builtin_clzll(
                                 uint64_t{index} / first_chunk + 1));
    if (k >= chunk_count) {
        return nullptr;
    }
    Node *const chunk = __atomic_load_n(&pool->chunks[k], __ATOMIC_ACQUIRE);
    return chunk ? chunk + (index - begin_of_chunk(k)) : nullptr;
}

namespace
{

void wait_for(Lane *lane)
{
    for (Patience patience; !try_enter(lane);) {
        patience.wait();
    }
}

// In all lanes together, so that what they have is of one moment.
class AllLanes
{
public:
    explicit AllLanes(const Pool *pool) : pool_(pool)
    {
        for (unsigned i = 0; i < pool->lane_count; ++i) {
            wait_for(&pool->lanes[i]);
        }
    }

    ~AllLanes()
    {
        for (unsigned i = 0; i < pool_->lane_count; ++i) {
            leave(&pool_->lanes[i]);
        }
    }

    AllLanes(const AllLanes &) = delete;
    AllLanes &operator=(const AllLanes &) = delete;

private:
    const Pool *pool_;
};

} // namespace

bool has_free(const Pool *pool)
{
    const AllLanes entered(pool);
    for (unsigned i = 0; i < pool->lane_count; ++i) {
        if (pool->lanes[i].free || pool->lanes[i].batches) {
            return true;
        }
    }
    return false;
}

size_t pending_of(const Pool *pool)
{
    const AllLanes entered(pool);
    intptr_t pending = 0;
    for (unsigned i = 0; i < pool->lane_count; ++i) {
        pending += pool->lanes[i].pending;
    }
    return static_cast<size_t>(pending);
}

void pass_through(Pool *pool)
{
    for (unsigned i = 0; i < pool->lane_count; ++i) {
        wait_for(&pool->lanes[i]);
        leave(&pool->lanes[i]);
    }
}

} // namespace lawn
