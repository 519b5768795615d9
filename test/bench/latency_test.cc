// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The distribution of times that lawn_evaluate prints.

#include "evaluation/latency.h"

#include <gtest/gtest.h>

namespace
{

using bench::Latency;

TEST(LatencyTest, IsEmptyAtFirst)
{
    const Latency latency;
    EXPECT_EQ(latency.count(), 0U);
    EXPECT_EQ(latency.mean(), 0);
    EXPECT_EQ(latency.quantile(0.5), 0);
}

TEST(LatencyTest, MeanDeviationAndMaximumAreExact)
{
    Latency latency;
    for (const lawn_time_t ticks : {2, 4, 4, 4, 5, 5, 7, 9}) {
        latency.add(ticks);
    }
    EXPECT_EQ(latency.count(), 8U);
    EXPECT_DOUBLE_EQ(latency.mean(), 5);
    EXPECT_DOUBLE_EQ(latency.deviation(), 2);
    EXPECT_EQ(latency.longest(), 9);
}

// Each class holds what lies within 1.6 % above its lower end.
TEST(LatencyTest, AClassIsNarrow)
{
    for (lawn_time_t ticks = 0; ticks < uint64_t{1} << 62;
         ticks += ticks / 32 + 1) {
        Latency latency;
        latency.add(ticks);
        const auto value = static_cast<double>(ticks);
        EXPECT_LE(latency.quantile(1), value) << ticks;
        EXPECT_GE(latency.quantile(1), value * (1 - 1.0 / 64)) << ticks;
    }
}

TEST(LatencyTest, TheGreatestTimeHasAClass)
{
    Latency latency;
    latency.add(UINT64_MAX);
    EXPECT_GE(latency.quantile(1), 0x1p63);
}

TEST(LatencyTest, QuantilesCountFromBelow)
{
    Latency latency;
    for (lawn_time_t ticks = 1; ticks <= 100; ++ticks) {
        latency.add(ticks);
    }
    EXPECT_EQ(latency.quantile(0.5), 50);
    EXPECT_EQ(latency.quantile(0.99), 99);
    EXPECT_EQ(latency.quantile(0.999), 100);
}

TEST(LatencyTest, SumsAreThoseOfAll)
{
    Latency one;
    Latency other;
    one.add(10);
    other.add(20);
    other.add(30);
    other.leave_out();
    one.add(other);
    EXPECT_EQ(one.count(), 3U);
    EXPECT_DOUBLE_EQ(one.mean(), 20);
    EXPECT_EQ(one.longest(), 30);
    EXPECT_EQ(one.quantile(0.5), 20);
    EXPECT_EQ(one.result().left_out, 1);
}

} // namespace
