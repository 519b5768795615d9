// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// In whatever way the steps of shared_ops.h interleave, a shared timer does
// what lawn/shared.h promises. Each scenario is a few threads with a few
// operations; after each schedule, and within it, World has its checks. A test
// also counts the runs, so that none passes by exploring nothing.
//
// LAWN_TEST_FULL=1 has longer scenarios (minutes); LAWN_TEST_SCALE below 100,
// for runs under an instrument, ends each after a few runs.

#include "../environment.h"
#include "shared_explore_world.h"

#include <gtest/gtest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

namespace shared_explore
{

namespace
{

bool is_full()
{
    return getenv("LAWN_TEST_FULL") != nullptr;
}

bool is_instrumented()
{
    return lawn_test::environment("LAWN_TEST_SCALE", 100) < 100;
}

using Ops = std::vector<Op>;

class SharedExplore : public testing::Test
{
protected:
    ~SharedExplore() override
    {
        printf("%u scenarios, %.3g schedules: %" PRIu64 " runs, %" PRIu64
               " states, up to %u steps\n",
               scenarios_, total_.schedules, total_.runs, total_.states,
               total_.longest);
    }

    // Threads: the owner, and others.
    void run(const Ops &before, const std::vector<Ops> &threads,
             const Ops &on_fire = {}, unsigned timers = 1)
    {
        const Scenario scenario = {timers, before, threads, on_fire};
        const Result result = World::explore(scenario, nullptr, most_runs());
        EXPECT_TRUE(result.violations.empty()) << text_of(scenario, result);
        if (result.violations.empty() && !is_instrumented()) {
            EXPECT_TRUE(result.is_complete);
            EXPECT_GE(result.runs, 10U) << text_of(scenario, result);
            EXPECT_GE(result.schedules, 12) << text_of(scenario, result);
        }
        ++scenarios_;
        total_.schedules += result.schedules;
        total_.runs += result.runs;
        total_.states += result.states;
        total_.longest = std::max(total_.longest, result.longest);
    }

    // Less than the test has, in total; that changes with shared_ops.h.
    void expect_least(uint64_t runs, double schedules)
    {
        if (!is_instrumented()) {
            EXPECT_GE(total_.runs, runs);
            EXPECT_GE(total_.schedules, schedules);
        }
    }

private:
    static uint64_t most_runs()
    {
        return is_instrumented() ? 40 : is_full() ? 20'000'000 : 300'000;
    }

    unsigned scenarios_ = 0;
    Result total_;
};

// Where the owner's plain timer may stand: nowhere, and before, between and
// after the deadlines.
const std::vector<Ops> covers = {
    {}, {local(0, 10)}, {local(0, 20)}, {local(0, 40)}};

// Where most of the ways differ.
const std::vector<Ops> &few_covers()
{
    static const std::vector<Ops> few(covers.begin(), covers.begin() + 2);
    return is_full() ? covers : few;
}

const Ops pass_12 = {at(Do::pass, 12)};
const Ops twice_12 = {at(Do::pass, 12), at(Do::pass, 20)};
const Ops night = {at(Do::sleep, 50), at(Do::pass, 12)};
const Ops day = {at(Do::pass, 12), at(Do::sleep, 50), at(Do::empty, 0)};
const Ops end = {at(Do::destroy, 0)};
const Op stop = on(Do::stop, 0);
const Op retire = on(Do::retire, 0);

TEST_F(SharedExplore, StartAgainstExpire)
{
    for (const Ops &cover : covers) {
        for (const lawn_time_t deadline : {5, 10, 12, 15, 30}) {
            run(cover,
                {{at(Do::pass, 10), at(Do::pass, 20)}, {start(0, deadline)}});
            run(cover, {pass_12, {start(0, deadline), start(0, 11)}});
        }
    }
    run({local(0, 10)}, {pass_12, {start(0, 15), start(0, 11), start(0, 25)}});
    expect_least(10'000, 1e9);
}

// The cover is raised and lowered again, and a start in the middle of it.
TEST_F(SharedExplore, ExtendAgainstExpire)
{
    const Ops before = {local(0, 10), local(0, 30)};
    for (const lawn_time_t deadline : {9, 12, 20, 30, 40}) {
        run(before,
            {{at(Do::pass, 12), at(Do::pass, 20)}, {start(0, deadline), stop}});
    }
    run(before, {pass_12, {start(0, 20)}, {start(0, 9)}});
    run(before, {pass_12, {start(0, 20)}, {start(0, 40)}});
    run({local(0, 10)}, {{at(Do::pass, 10), at(Do::pass, 20)},
                         {start(0, 20), start(0, 30), start(0, 15)}});
    expect_least(10'000, 1e10);
}

TEST_F(SharedExplore, StartAgainstStart)
{
    for (const Ops &cover : covers) {
        run(cover, {pass_12, {start(0, 15)}, {start(0, 30)}});
    }
    for (const Ops &cover : few_covers()) {
        run(cover, {pass_12, {start(0, 15)}, {start(0, 15)}});
        run(cover, {pass_12, {start(0, 12)}, {start(0, 15)}});
    }
    expect_least(20'000, 1e11);
}

TEST_F(SharedExplore, StartAgainstStop)
{
    for (const Ops &cover : few_covers()) {
        run(cover, {pass_12, {start(0, 12), start(0, 15)}, {stop, stop}});
        run(cover, {{at(Do::pass, 10), at(Do::pass, 16)},
                    {start(0, 15), stop},
                    {stop}});
    }
    expect_least(10'000, 1e9);
}

TEST_F(SharedExplore, OwnersStartAgainstOthers)
{
    for (const Ops &cover : few_covers()) {
        for (const lawn_time_t deadline : {15, 30}) {
            run(cover,
                {{local(0, deadline), at(Do::pass, 12)}, {start(0, 20), stop}});
            run(cover, {{local(0, deadline), at(Do::pass, 20)},
                        {start(0, 9)},
                        {stop}});
            run(cover, {{local(0, deadline), local(0, 25), at(Do::pass, 12)},
                        {start(0, 11), start(0, 40)}});
        }
    }
    expect_least(10'000, 1e9);
}

// The budget leaves messages, and each is nevertheless received once.
TEST_F(SharedExplore, DrainsInParts)
{
    const Ops parts = {at(Do::drain, 1, 1), at(Do::drain, 2, 1),
                       at(Do::pass, 6, 1)};
    run({}, {parts, {start(0, 5), start(1, 6)}}, {}, 2);
    run({}, {parts, {start(0, 5), start(1, 6), start(0, 3)}}, {}, 2);
    run({start(0, 4), start(1, 5)},
        {{at(Do::drain, 1, 1), at(Do::doze, 9), at(Do::drain, 2, 1)},
         {start(0, 3), start(2, 6)}},
        {}, 3);
    run({start(1, 4)}, {{parts[0]}, {start(0, 5)}, {retire}}, {}, 2);
    if (is_full()) {
        run({}, {parts, {start(0, 5)}, {start(1, 6)}}, {}, 2);
        run({start(1, 4)}, {parts, {start(0, 5)}, {on(Do::retire, 1)}}, {}, 2);
    }
    expect_least(10'000, 1e11);
}

TEST_F(SharedExplore, CallbacksAgainstOthers)
{
    const std::vector<Ops> callbacks = {{local(0, 30)},
                                        {start(0, 5)},
                                        {start(0, 30), stop},
                                        {retire},
                                        {local(1, 5), on(Do::stop, 1)}};
    for (const Ops &on_fire : callbacks) {
        run({local(0, 10)},
            {{at(Do::pass, 12), at(Do::pass, 15)}, {start(0, 11), stop}},
            on_fire, 2);
        run({local(0, 10)}, {pass_12, {start(0, 20)}, {stop}}, on_fire, 2);
    }
    expect_least(10'000, 1e9);
}

TEST_F(SharedExplore, SyncAgainstCallbacks)
{
    const Ops before = {local(0, 10), local(1, 10)};
    const Ops twice = {at(Do::pass, 10), at(Do::pass, 20)};
    const Op sync = on(Do::sync, 0);
    for (const Ops &on_fire : {Ops{}, Ops{local(0, 20)}, Ops{start(0, 5)}}) {
        run(before, {twice, {stop, sync}}, on_fire, 2);
        run(before, {twice, {stop, sync, start(0, 15)}}, on_fire, 2);
        run(before, {pass_12, {sync}, {on(Do::sync, 1)}}, on_fire, 2);
        if (is_full()) {
            run(before, {pass_12, {sync}, {start(0, 9)}}, on_fire, 2);
        }
    }
    run({local(0, 10)}, {pass_12, {sync}, {start(0, 9)}});
    expect_least(10'000, 1e11);
}

TEST_F(SharedExplore, RetireAgainstOthers)
{
    for (const Ops &cover : covers) {
        run(cover,
            {{at(Do::pass, 12), at(Do::pass, 20)}, {start(0, 15), retire}});
        run(cover, {pass_12, {retire}, {stop}});
        run(cover, {pass_12, {retire}, {on(Do::sync, 0)}});
        run(cover, {{local(0, 11), at(Do::pass, 12)}, {retire}});
        run(cover, {{retire, at(Do::pass, 12)}, {start(0, 11), stop}});
        run(cover, {{at(Do::advance, 12)}, {retire}, {start(0, 11)}});
        if (is_full()) {
            run(cover, {{at(Do::advance, 12)}, {retire}, {start(0, 30)}});
            run(cover, {pass_12, {retire}, {start(0, 11)}});
            run(cover, {pass_12, {retire}, {start(0, 30)}});
        }
    }
    expect_least(20'000, 1e9);
}

// Two that start one timer: who finds it posted leaves it to the other.
TEST_F(SharedExplore, StartAgainstSleep)
{
    for (const Ops &cover : few_covers()) {
        run(cover, {night, {start(0, 15)}, {start(0, 5)}});
    }
    for (const Ops &cover : covers) {
        run(cover, {night, {start(0, 15), start(0, 5)}});
        run(cover, {night, {start(0, 5), stop, start(0, 15)}});
        run(cover, {{at(Do::doze, 50), at(Do::pass, 12), at(Do::sleep, 50)},
                    {start(0, 15)}});
        run(cover, {{at(Do::sleep, 20)}, {start(0, 15)}, {stop}});
    }
    run({}, {{at(Do::sleep, 50)}, {start(0, 60)}, {start(0, 5)}});
    run({}, {{at(Do::sleep, 50)}, {start(0, 15)}, {start(1, 5)}}, {}, 2);
    if (is_full()) {
        run({}, {night, {start(0, 15)}, {start(1, 5)}}, {}, 2);
    }
    expect_least(10'000, 1e12);
}

TEST_F(SharedExplore, RetireAgainstSleep)
{
    for (const Ops &cover : covers) {
        run(cover, {night, {retire}});
        run(cover,
            {{at(Do::doze, 50), at(Do::sleep, 50)}, {start(0, 5), retire}});
    }
    for (const Ops &cover : few_covers()) {
        run(cover, {night, {start(0, 15)}, {on(Do::retire, 1)}}, {}, 2);
    }
    expect_least(10'000, 1e11);
}

// A retire that finds the timer posted leaves it to the starter, which then has
// to wake the owner for both, though the deadline is gone.
TEST_F(SharedExplore, RetireAgainstSleepAndStart)
{
    for (const Ops &cover : few_covers()) {
        run(cover, {{at(Do::sleep, 50)}, {start(0, 5)}, {retire}});
    }
    run({}, {{at(Do::sleep, 50)}, {start(0, 60)}, {retire}});
    expect_least(5'000, 1e8);
}

TEST_F(SharedExplore, DestroyAgainstStart)
{
    for (const Ops &cover : few_covers()) {
        run(cover, {end, {start(0, 15)}, {start(0, 30)}});
        if (cover.empty() || is_full()) {
            run(cover, {end, {start(0, 15)}, {start(1, 5)}}, {}, 2);
        }
    }
    for (const Ops &cover : covers) {
        run(cover, {end, {start(0, 15), stop, start(0, 5)}});
        run(cover, {{local(0, 11), end[0], local(0, 5)}, {start(0, 9)}});
    }
    expect_least(10'000, 1e8);
}

// A start that destroy overtakes is either refused, or ends as others do; but
// not both.
TEST_F(SharedExplore, DestroyAgainstStartThatEnds)
{
    for (const Ops &cover : covers) {
        run(cover, {{at(Do::pass, 12), end[0]}, {start(0, 5)}});
        run(cover, {{at(Do::pass, 12), end[0]}, {start(0, 5), start(0, 11)}});
        run(cover, {end, {start(0, 9)}, {stop}});
    }
    expect_least(1'000, 1e4);
}

TEST_F(SharedExplore, DestroyAgainstRetire)
{
    for (const Ops &cover : covers) {
        run(cover, {end, {retire}});
        run(cover, {end, {start(0, 15), retire}});
        run(cover, {end, {retire}, {stop}});
        run(cover, {{at(Do::pass, 12), end[0]}, {retire}});
        run(cover, {{retire, end[0]}, {start(1, 5)}}, {}, 2);
    }
    run({}, {end, {start(0, 9)}, {retire}});
    run({}, {end, {retire}, {on(Do::retire, 1)}}, {}, 2);
    if (is_full()) {
        run({local(0, 10)}, {end, {start(0, 9)}, {retire}});
        run({local(0, 10)}, {end, {retire}, {on(Do::retire, 1)}}, {}, 2);
    }
    expect_least(10'000, 1e7);
}

TEST_F(SharedExplore, DestroyAgainstWake)
{
    for (const Ops &cover : covers) {
        const Ops doze = {at(Do::doze, 50), end[0]};
        run(cover, {doze, {start(0, 15)}});
        run(cover, {doze, {retire}});
        if (is_full()) {
            run(cover, {doze, {start(0, 5)}, {on(Do::retire, 1)}}, {}, 2);
        }
    }
    run({}, {{at(Do::doze, 50), end[0]}, {start(0, 5)}, {start(0, 6)}});
    expect_least(10'000, 1e7);
}

TEST_F(SharedExplore, EmptyAgainstOthers)
{
    const Ops empty = {at(Do::empty, 0), at(Do::pass, 12)};
    for (const Ops &cover : covers) {
        for (const lawn_time_t deadline : {9, 15, 30}) {
            run(cover, {empty, {start(0, deadline)}, {stop}});
            run(cover, {empty, {start(0, deadline), start(0, 12)}});
        }
        run(cover, {empty, {start(0, 15)}, {start(0, 30)}});
        run(cover, {empty, {start(0, 15), retire}});
    }
    expect_least(10'000, 1e9);
}

// Two that do three things, or more, at an owner that passes, sleeps and
// drains; with LAWN_TEST_FULL, all of starts, stops, syncs and a retire.
TEST_F(SharedExplore, ThreeCalls)
{
    const Op sync = on(Do::sync, 0);
    const Ops at_10 = {local(0, 10)};
    run({}, {night, {start(0, 15), start(0, 5)}, {stop, retire}});
    run(at_10, {twice_12, {start(0, 15), stop}, {retire}});
    run(at_10, {day, {start(0, 15), stop}, {retire}});
    run(at_10, {day, {start(0, 5), sync}, {start(0, 15)}});
    if (is_full()) {
        for (const Op &i : {start(0, 5), start(0, 15), stop, sync}) {
            for (const Op &j : {start(0, 5), start(0, 15), stop, sync}) {
                for (const Op &k : {start(0, 11), stop, sync, retire}) {
                    run(at_10, {day, {i, j}, {k}});
                }
            }
            for (const Op &k : {start(0, 11), stop, sync}) {
                run(at_10, {day, {i, retire}, {k}});
            }
        }
    }
    expect_least(100'000, 1e15);
}

// Two that do one thing each, at whatever the owner does: all of them, and what
// takes minutes, with LAWN_TEST_FULL.
TEST_F(SharedExplore, Every)
{
    std::vector<Ops> owners = {pass_12, {at(Do::sleep, 50)}};
    std::vector<Ops> before = {covers[0]};
    if (is_full()) {
        before.push_back(covers[1]);
        owners.insert(owners.end(), {{local(0, 15), at(Do::pass, 12)},
                                     {local(0, 15), at(Do::sleep, 50)},
                                     {at(Do::drain, 1, 1), at(Do::advance, 12)},
                                     {at(Do::empty, 0), at(Do::sleep, 50)},
                                     {at(Do::advance, 12), at(Do::sleep, 50)},
                                     {stop, at(Do::pass, 12)}});
        run({local(0, 10)}, {twice_12, {start(0, 15)}, {start(0, 30)}});
        run({local(0, 10)},
            {twice_12, {start(0, 15), stop}, {stop, start(0, 9)}});
        run({local(0, 10)}, {twice_12, {start(0, 15)}, {retire}},
            {local(0, 16)});
        run({local(0, 10)}, {{at(Do::pass, 12), end[0]}, {retire}, {stop}});
    }
    for (const Ops &cover : before) {
        for (const Ops &owner : owners) {
            for (const Op &i : {start(0, 5), start(0, 15), stop}) {
                for (const Op &j : {start(0, 11), on(Do::sync, 0), retire}) {
                    run(cover, {owner, {i}, {j}});
                }
            }
        }
    }
    expect_least(is_full() ? 100'000 : 2'000, is_full() ? 1e10 : 1e6);
}

// The states that are taken for the same lead to as many schedules as there
// are.
TEST(SharedExploreItself, MergesOnlyWhatGoesOnAlike)
{
    const std::vector<std::vector<Ops>> programs = {
        {pass_12, {start(0, 15)}},
        {end, {start(0, 9)}},
        {end, {retire}},
        {{local(0, 5)}, {start(0, 9)}},
        {{local(0, 5)}, {retire}},
        {pass_12, {retire}},
        {{at(Do::sleep, 50)}, {retire}},
        {pass_12, {on(Do::sync, 0)}},
        {{at(Do::empty, 0)}, {start(0, 9)}}};
    uint64_t runs = 0;
    for (const std::vector<Ops> &threads : programs) {
        for (const Ops &before : {Ops{}, Ops{local(0, 10)}}) {
            const Scenario scenario = {1, before, threads, {}};
            const uint64_t most = is_instrumented() ? 120 : 6'000;
            const Result all = World::explore(scenario, nullptr, most, false);
            const Result merged = World::explore(scenario, nullptr, most);
            if (all.is_complete) {
                EXPECT_EQ(static_cast<double>(all.runs - all.refused),
                          merged.schedules);
                EXPECT_LE(merged.runs, all.runs);
                runs += all.runs;
            }
        }
    }
    EXPECT_GE(runs, is_instrumented() ? 200U : 5'000U);
}

} // namespace

} // namespace shared_explore
