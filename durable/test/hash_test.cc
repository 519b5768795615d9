// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "src/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace
{

using lawn::durable::hash64;
using lawn::durable::shard_of;

std::string id(unsigned i)
{
    return "order-" + std::to_string(i);
}

// They are in stores already.
TEST(DurableHash, IsTheSameForEver)
{
    EXPECT_EQ(hash64(""), 0xf52a15e9a9b5e89bU);
    EXPECT_EQ(hash64("a"), 0x2c0bdbf481420f8U);
    EXPECT_EQ(hash64(std::string("\0\xff", 2)), 0xa70bee94c6c8447bU);
    EXPECT_EQ(shard_of("order-17", 8), 5U);
    EXPECT_EQ(shard_of("order-17", 4096), 2663U);
}

TEST(DurableHash, OneShardHasAll)
{
    for (unsigned i = 0; i < 1000; ++i) {
        EXPECT_EQ(shard_of(id(i), 1), 0U);
    }
}

TEST(DurableHash, ShardsAreEven)
{
    constexpr unsigned ids = 100000;
    for (const uint32_t shards : {2U, 3U, 8U, 100U}) {
        std::vector<unsigned> counts(shards);
        for (unsigned i = 0; i < ids; ++i) {
            ++counts.at(shard_of(id(i), shards));
        }
        const double mean = static_cast<double>(ids) / shards;
        for (const unsigned count : counts) {
            EXPECT_NEAR(count, mean, 6 * std::sqrt(mean)) << shards;
        }
    }
}

TEST(DurableHash, OneShardMoreTakesItsShareAndMovesNothingElse)
{
    constexpr unsigned ids = 20000;
    for (uint32_t shards = 1; shards < 20; ++shards) {
        unsigned moved = 0;
        for (unsigned i = 0; i < ids; ++i) {
            const uint32_t before = shard_of(id(i), shards);
            const uint32_t after = shard_of(id(i), shards + 1);
            if (before != after) {
                EXPECT_EQ(after, shards);
                ++moved;
            }
        }
        const double mean = static_cast<double>(ids) / (shards + 1);
        EXPECT_NEAR(moved, mean, 6 * std::sqrt(mean)) << shards;
    }
}

} // namespace
