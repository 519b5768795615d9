// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The client as it is compiled, over sockets and a clock that are not real:
// every reply may be lost, late or torn in two, at every step. What a seed does
// in some weather, or with one fault at one step, is told by
//
//     export LAWN_CLOCK=clock_gettime
//     LAWN_TEST_SEED=7 LAWN_TEST_FAULTS=300 durable_seeded_test
//     LAWN_TEST_SEED=7 LAWN_TEST_FAULTS=0 LAWN_TEST_STEP=20 LAWN_TEST_FAULT=3
//         durable_seeded_test

#include "seeded_world.h"

#include "../../test/environment.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace
{

using lawn_test::environment;
using lawn_test::scaled;
using lawn_test::SeededStore;
using lawn_test::SeededWorld;

// Of all schedules, a quarter is in each weather. CI asks for a million, and
// for others with each commit.
uint64_t schedules()
{
    return scaled(environment("LAWN_TEST_SCHEDULES", 10000));
}

// In one world, which takes a while to begin.
constexpr unsigned schedules_in_a_row = 5;

void run_all(unsigned faults_permille)
{
    const uint64_t first = environment("LAWN_TEST_FIRST", 1);
    SeededWorld::Options options;
    options.faults_permille = faults_permille;
    options.rounds = schedules_in_a_row;
    const uint64_t worlds =
        (schedules() / 4 + schedules_in_a_row - 1) / schedules_in_a_row;
    for (uint64_t seed = first; seed < first + worlds; ++seed) {
        SeededWorld world(seed, options);
        ASSERT_EQ(world.run(), "") << "LAWN_TEST_SEED=" << seed
                                   << " LAWN_TEST_FAULTS=" << faults_permille;
    }
}

TEST(Seeded, NoFaults)
{
    run_all(0);
}

TEST(Seeded, FewFaults)
{
    run_all(10);
}

TEST(Seeded, ManyFaults)
{
    run_all(100);
}

TEST(Seeded, MostlyFaults)
{
    run_all(300);
}

uint64_t commands_of(uint64_t seed, const SeededWorld::Options &options)
{
    SeededWorld world(seed, options);
    EXPECT_EQ(world.run(), "") << "seed " << seed;
    return world.store().commands();
}

// Each command of a run, and each thing that may go wrong with it.
TEST(Seeded, OneFaultAtEachStep)
{
    for (uint64_t seed = 1; seed <= scaled(10); ++seed) {
        SeededWorld::Options options;
        options.is_prompt = true;
        const uint64_t steps = commands_of(seed, options);
        for (uint64_t step = 1; step <= steps; ++step) {
            options.fault_step = step;
            for (unsigned i = 0; i < SeededStore::faults; ++i) {
                options.fault = i;
                SeededWorld world(seed, options);
                ASSERT_EQ(world.run(), "")
                    << "LAWN_TEST_SEED=" << seed << " LAWN_TEST_FAULTS=0"
                    << " LAWN_TEST_STEP=" << step << " LAWN_TEST_FAULT=" << i;
            }
        }
    }
}

// Returns the longest lateness.
int64_t lateness_of(uint64_t seed, const SeededWorld::Options &options)
{
    SeededWorld world(seed, options);
    EXPECT_EQ(world.run(), "") << "seed " << seed;
    return world.longest_lateness_us();
}

// The millisecond to find what waits together, and the ways.
TEST(Seeded, WithoutFaultsAllIsDeliveredAtOnce)
{
    SeededWorld::Options options;
    options.is_prompt = true;
    for (uint64_t seed = 1; seed <= scaled(1000); ++seed) {
        ASSERT_LE(lateness_of(seed, options), 2500) << "seed " << seed;
    }
}

// One of two programs has something close at any moment around the deliveries.
void close_at_each_moment(int64_t SeededWorld::Options::*goes_us,
                          int64_t most_late_us)
{
    SeededWorld::Options options;
    options.is_prompt = true;
    options.programs = 2;
    for (uint64_t seed = 1; seed <= scaled(2000); ++seed) {
        options.*goes_us = 1000000 + static_cast<int64_t>(seed * 977 % 350000);
        ASSERT_LE(lateness_of(seed, options), most_late_us) << "seed " << seed;
    }
}

// What is under way to it goes to the other when that looks for leases that are
// over, and not after a lease.
TEST(Seeded, AConsumerThatClosesHoldsNothingBack)
{
    close_at_each_moment(&SeededWorld::Options::consumer_goes_us, 260000);
}

// Of cron timers: one is sought while the times of others are on their way; and
// a call for them fails, and nothing else calls for that shard.
TEST(Seeded, WhatOnlyAFewSchedulesShow)
{
    SeededWorld::Options options;
    options.rounds = schedules_in_a_row;
    options.faults_permille = 300;
    EXPECT_EQ(SeededWorld(29231685, options).run(), "");
    EXPECT_EQ(SeededWorld(100103, options).run(), "");
    options.faults_permille = 100;
    EXPECT_EQ(SeededWorld(100025, options).run(), "");
}

// The other pump waits 20 ms for it, at first.
TEST(Seeded, APumpThatClosesIsReplacedAtOnce)
{
    close_at_each_moment(&SeededWorld::Options::pump_goes_us, 25000);
}

// All that the server was told, and said.
std::string log_of(uint64_t seed, const SeededWorld::Options &options)
{
    SeededWorld world(seed, options);
    world.store().keeps_log = true;
    EXPECT_EQ(world.run(), "");
    return world.store().log();
}

TEST(Seeded, ASeedDoesTheSameAgain)
{
    const uint64_t asked = environment("LAWN_TEST_SEED", 0);
    SeededWorld::Options options;
    options.faults_permille =
        static_cast<unsigned>(environment("LAWN_TEST_FAULTS", 100));
    options.fault_step = environment("LAWN_TEST_STEP", 0);
    options.fault = static_cast<unsigned>(environment("LAWN_TEST_FAULT", 0));
    options.is_prompt = options.fault_step != 0;
    options.rounds = options.is_prompt ? 1 : schedules_in_a_row;
    for (uint64_t seed = asked ? asked : 1; seed <= (asked ? asked : 100);
         ++seed) {
        const std::string log = log_of(seed, options);
        EXPECT_EQ(log_of(seed, options), log) << "seed " << seed;
        if (asked) {
            fputs(log.c_str(), stdout);
        }
    }
}

} // namespace
