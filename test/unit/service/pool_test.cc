// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lanes of a service's free timers: each is one thread's at a time, and
// what is in any of them is found from all.

#include "service/pool.h"

#include "../../yield.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

#include <unistd.h>

namespace
{

thread_local long processors; // 0: those that there are

} // namespace

extern "C" {

long __real_sysconf(int name);

#if defined(__clang__) // whose runtime calls it before its memory is there
__attribute__((disable_sanitizer_instrumentation))
#endif
long __wrap_sysconf(int name)
{
    return processors != 0 && name == _SC_NPROCESSORS_CONF
               ? processors
               : __real_sysconf(name);
}
}

namespace
{

class Pool : public testing::Test
{
protected:
    Pool()
    {
        make(&pool_);
    }

    void make(lawn::Pool *pool)
    {
        const lawn_allocator_t allocator = {
            [](void *arg, size_t size) {
                ++*static_cast<unsigned *>(arg);
                return malloc(size);
            },
            [](void *, void *memory) { free(memory); }, &made_};
        EXPECT_TRUE(lawn::make_pool(
            pool, allocator, [](lawn::Node *, void *) {}, nullptr));
    }

    ~Pool() override
    {
        lawn::free_pool(&pool_);
    }

    lawn::Pool pool_;
    unsigned made_ = 0;
};

TEST_F(Pool, ALaneIsOfOneAtATime)
{
    std::set<lawn::Lane *> lanes;
    for (unsigned i = 0; i < pool_.lane_count; ++i) {
        lanes.insert(lawn::enter(&pool_));
    }
    EXPECT_EQ(lanes.size(), pool_.lane_count);
    for (lawn::Lane *const lane : lanes) {
        lawn::leave(lane);
    }
}

TEST_F(Pool, HasMoreLanesThanProcessorsWithinBounds)
{
    const struct {
        long processors;
        unsigned lanes;
    } rows[] = {{1, 2},   {2, 4},   {3, 4},     {8, 16}, {31, 32},
                {32, 64}, {64, 64}, {1000, 64}, {-1, 2}};
    for (const auto &row : rows) {
        processors = row.processors;
        lawn::Pool pool;
        make(&pool);
        processors = 0;
        EXPECT_EQ(pool.lane_count, row.lanes) << row.processors;
        lawn::free_pool(&pool);
    }
}

// All lanes are taken. One is left as the caller has yielded.
TEST_F(Pool, WhoFindsNoLaneWaitsForOne)
{
    std::vector<lawn::Lane *> lanes;
    for (unsigned i = 0; i < pool_.lane_count; ++i) {
        lanes.push_back(lawn::enter(&pool_));
    }
    unsigned yields = 0;
    on_yield = [&] {
        ++yields;
        lawn::leave(lanes.front());
    };
    EXPECT_EQ(lawn::enter(&pool_), lanes.front());
    EXPECT_GE(yields, 1U);
    EXPECT_LE(yields, pool_.lane_count); // once for each that it looks at
    on_yield = nullptr;
    for (lawn::Lane *const lane : lanes) {
        lawn::leave(lane);
    }
}

TEST_F(Pool, WhatIsCountedWaitsForEachLane)
{
    lawn::Lane *const lane = lawn::enter(&pool_);
    unsigned yields = 0;
    on_yield = [&] {
        ++yields;
        ASSERT_NE(lawn::get(&pool_, lane), nullptr); // what its user does
        lawn::leave(lane);
    };
    EXPECT_EQ(lawn::pending_of(&pool_), 1U);
    EXPECT_EQ(yields, 1U);
    on_yield = nullptr;
}

// As many as an index of 32 bits can tell apart, if there were the memory.
TEST_F(Pool, DoesNotGrowBeyondItsChunks)
{
    static lawn::Node full;
    for (lawn::Node *&chunk : pool_.chunks) {
        chunk = &full;
    }
    lawn::Lane *const lane = lawn::enter(&pool_);
    const unsigned made = made_;
    EXPECT_EQ(lawn::get(&pool_, lane), nullptr);
    EXPECT_EQ(made_, made);
    lawn::leave(lane);
    for (lawn::Node *&chunk : pool_.chunks) {
        chunk = nullptr;
    }
}

TEST_F(Pool, WhatOneLaneHasIsFoundFromAnother)
{
    constexpr unsigned count = 64 + 128; // two chunks
    lawn::Lane *const one = lawn::enter(&pool_);
    lawn::Lane *const other = lawn::enter(&pool_);
    std::vector<lawn::Node *> nodes;
    for (unsigned i = 0; i < count; ++i) {
        nodes.push_back(lawn::get(&pool_, one));
        ASSERT_EQ(lawn::node_at(&pool_, nodes.back()->index), nodes.back());
    }
    const unsigned made = made_;
    for (lawn::Node *const node : nodes) {
        lawn::put(one, node);
    }
    lawn::leave(one);
    std::set<lawn::Node *> again;
    for (unsigned i = 0; i < count; ++i) {
        again.insert(lawn::get(&pool_, other));
    }
    lawn::leave(other);
    EXPECT_EQ(again, std::set<lawn::Node *>(nodes.begin(), nodes.end()));
    EXPECT_EQ(made_, made) << "it was not found";
    EXPECT_EQ(lawn::pending_of(&pool_), count);
}

} // namespace
