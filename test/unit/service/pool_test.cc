// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The lanes of a service's free timers: each is one thread's at a time, and
// what is in any of them is found from all.

#include "service/pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <vector>

namespace
{

class Pool : public testing::Test
{
protected:
    Pool()
    {
        const lawn_allocator_t allocator = {
            [](void *arg, size_t size) {
                ++*static_cast<unsigned *>(arg);
                return malloc(size);
            },
            [](void *, void *memory) { free(memory); }, &made_};
        EXPECT_TRUE(lawn::make_pool(
            &pool_, allocator, [](lawn::Node *, void *) {}, nullptr));
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
