// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's timers as lawn/rte_compat.h makes them, by their names in DPDK, on
// virtual time: what they have in common with DPDK's, and what they do
// otherwise. rte_compat_lcore_test.cc has more than one lcore, and
// rte_compat_original_test.cc the two side by side.

#include "counted_malloc.h"
#include "rte_compat_fixture.h"

#include "rte_compat_dump.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace
{

TEST(RteSubsystem, IsNeededAndIsOne)
{
    Timer timer;
    current_lcore = 0;
    EXPECT_EQ(rte_timer_manage(), -EINVAL);
    EXPECT_EQ(rte_timer_next_ticks(), -EINVAL);
    EXPECT_EQ(rte_timer_stop(&timer.timer), -EINVAL);
    EXPECT_EQ(
        rte_timer_reset(&timer.timer, 1, SINGLE, 0, Timer::expired, &timer),
        -EINVAL);
    rte_timer_subsystem_finalize();

    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(rte_timer_subsystem_init(), 0);
        EXPECT_EQ(rte_timer_subsystem_init(), -EALREADY);
        EXPECT_EQ(
            rte_timer_reset(&timer.timer, 1, SINGLE, 0, Timer::expired, &timer),
            0);
        EXPECT_TRUE(rte_timer_pending(&timer.timer));
        rte_timer_subsystem_finalize();
        EXPECT_TRUE(rte_timer_pending(&timer.timer));
    }
    EXPECT_EQ(timer.runs(), 0U);
}

// DPDK's own tests end like that: what is pending has been freed.
TEST(RteSubsystem, EndsWithoutALookAtTimers)
{
    struct rte_timer timer, freed;
    current_lcore = 0;
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    rte_timer_init(&timer);
    EXPECT_EQ(rte_timer_reset(&timer, 1, PERIODICAL, 0, Timer::expired, &timer),
              0);
    memset(static_cast<void *>(&timer), 0xaa, sizeof timer);
    memcpy(&freed, &timer, sizeof timer);
    rte_timer_subsystem_finalize();
    EXPECT_EQ(memcmp(&timer, &freed, sizeof timer), 0);
}

TEST(RteSubsystem, TimersOfTheOneBeforeCanBeUsed)
{
    Timer one, two;
    current_lcore = 0;
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    for (Timer *const timer : {&one, &two}) {
        rte_timer_reset(&timer->timer, 1, SINGLE, 0, Timer::expired, timer);
    }
    rte_timer_subsystem_finalize();
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    EXPECT_EQ(lawn_rte_timer_manage_at(start), 0);
    EXPECT_EQ(rte_timer_stop(&one.timer), 0);
    EXPECT_FALSE(rte_timer_pending(&one.timer));
    for (Timer *const timer : {&one, &two}) {
        EXPECT_EQ(timer->runs(), 0U);
        EXPECT_EQ(lawn_rte_timer_reset_at(&timer->timer, start, 1, SINGLE, 0,
                                          Timer::expired, timer),
                  0);
    }
    EXPECT_EQ(lawn_rte_timer_manage_at(start + 1), 0);
    EXPECT_EQ(one.runs(), 1U);
    EXPECT_EQ(two.runs(), 1U);
    rte_timer_subsystem_finalize();
}

TEST(RteSubsystem, TakesALawnForEachLcore)
{
    constexpr unsigned lcores = 3;
    current_lcore = 0;
    allocated = 0;
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    EXPECT_GT(allocated, 0U);
    EXPECT_LE(allocated, lcores * size_t{24 * 1024});
    EXPECT_EQ(sizeof(struct rte_timer), 88U);
    rte_timer_subsystem_finalize();
}

TEST_F(RteTimer, RunsOnceWhenItIsDueAndNotBefore)
{
    for (const uint64_t ticks : {uint64_t{1}, uint64_t{1000}, UINT64_C(1) << 40,
                                 UINT64_C(123456789012345)}) {
        Timer timer;
        EXPECT_FALSE(rte_timer_pending(&timer.timer));
        EXPECT_EQ(reset(timer, ticks), 0);
        EXPECT_TRUE(rte_timer_pending(&timer.timer));
        const uint64_t due = now_ + ticks;
        manage(due - 1);
        EXPECT_EQ(timer.runs(), 0U);
        manage(due);
        EXPECT_EQ(timer.runs(), 1U);
        EXPECT_FALSE(rte_timer_pending(&timer.timer));
        manage(due + 10 * ticks);
        EXPECT_EQ(timer.runs(), 1U);
    }
}

// The calls that read the clock: 0 ticks are over at once, a year is not.
TEST_F(RteTimer, RunsOnTheClock)
{
    Timer soon;
    Timer late;
    rte_timer_reset_sync(&soon.timer, 0, SINGLE, LCORE_ID_ANY, Timer::expired,
                         &soon);
    rte_timer_reset_sync(&late.timer, lawn_time_from_sec(3e7), SINGLE,
                         LCORE_ID_ANY, Timer::expired, &late);
    EXPECT_EQ(rte_timer_next_ticks(), 0);
    EXPECT_EQ(rte_timer_manage(), 0);
    EXPECT_EQ(soon.runs(), 1U);
    EXPECT_EQ(late.runs(), 0U);
    EXPECT_GT(rte_timer_next_ticks(), 0);
    EXPECT_LE(rte_timer_next_ticks(),
              static_cast<int64_t>(lawn_time_from_sec(3e7)));
    rte_timer_stop_sync(&late.timer);
    EXPECT_EQ(rte_timer_next_ticks(), -ENOENT);
}

TEST_F(RteTimer, PassWithoutTimersReadsNoClock)
{
    Timer timer;
    clock_reads = 0;
    EXPECT_EQ(rte_timer_manage(), 0);
    EXPECT_EQ(clock_reads, 0U);
    rte_timer_reset(&timer.timer, 1, SINGLE, 0, Timer::expired, &timer);
    while (timer.runs() == 0) {
        EXPECT_EQ(rte_timer_manage(), 0);
    }
    clock_reads = 0;
    EXPECT_EQ(rte_timer_manage(), 0);
    EXPECT_EQ(clock_reads, 0U);
}

TEST_F(RteTimer, StoppedDoesNotRunAndMayBeResetAgain)
{
    Timer timer;
    EXPECT_EQ(rte_timer_stop(&timer.timer), 0);
    reset(timer, 100);
    EXPECT_EQ(rte_timer_stop(&timer.timer), 0);
    EXPECT_EQ(rte_timer_stop(&timer.timer), 0);
    EXPECT_FALSE(rte_timer_pending(&timer.timer));
    manage(start + 1000);
    EXPECT_EQ(timer.runs(), 0U);
    reset(timer, 100);
    manage(start + 1100);
    EXPECT_EQ(timer.runs(), 1U);
}

TEST_F(RteTimer, ResetMovesItToEarlierAndLater)
{
    Timer timer;
    reset(timer, 100);
    reset(timer, 500);
    manage(start + 499);
    EXPECT_EQ(timer.runs(), 0U);
    reset(timer, 1000000);
    reset(timer, 1);
    manage(start + 500);
    EXPECT_EQ(timer.runs(), 1U);
    manage(start + 2000000);
    EXPECT_EQ(timer.runs(), 1U);
}

TEST_F(RteTimer, WhatIsDueRunsWhenTheClockHasGoneBack)
{
    Timer due, later;
    reset(later, 100);
    manage(start + 50);
    now_ = start - 500;
    reset(due, 0);
    EXPECT_EQ(lawn_rte_timer_next_ticks_at(now_), 0);
    manage(now_);
    EXPECT_EQ(due.runs(), 1U);
    EXPECT_EQ(later.runs(), 0U);
    manage(start + 100);
    EXPECT_EQ(later.runs(), 1U);
}

TEST_F(RteTimer, TicksBeyondTheEndOfTimeAreNever)
{
    Timer timer;
    reset(timer, UINT64_MAX);
    manage(UINT64_MAX - 1);
    EXPECT_EQ(timer.runs(), 0U);
    EXPECT_TRUE(rte_timer_pending(&timer.timer));
}

TEST_F(RteTimer, TicksThatDoNotFitAreTheMostThatDo)
{
    Timer timer;
    reset(timer, UINT64_MAX - 2 * start);
    EXPECT_EQ(lawn_rte_timer_next_ticks_at(start), INT64_MAX);
}

TEST_F(RteTimer, PeriodicalKeepsItsPhaseAndForgetsWhatItMissed)
{
    Timer timer;
    reset(timer, 100, PERIODICAL);
    manage(start + 130);
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_TRUE(rte_timer_pending(&timer.timer));
    manage(start + 199);
    EXPECT_EQ(timer.runs(), 1U);
    manage(start + 200);
    EXPECT_EQ(timer.runs(), 2U);
    for (int i = 0; i < 10; ++i) {
        manage(start + 5250);
    }
    EXPECT_EQ(timer.runs(), 3U);
    manage(start + 5299);
    EXPECT_EQ(timer.runs(), 3U);
    manage(start + 5300);
    EXPECT_EQ(timer.runs(), 4U);
}

// What its function resets takes time, by which the lawn's has gone on.
TEST_F(RteTimer, PeriodicalKeepsItsPhaseWhateverItsFunctionDoes)
{
    Timer other;
    Timer timer;
    timer.then = [&] {
        now_ += 30;
        reset(other, 1000000);
    };
    reset(timer, 100, PERIODICAL);
    for (uint64_t i = 1; i <= 20; ++i) {
        manage(start + 100 * i - 1);
        EXPECT_EQ(timer.runs(), i - 1);
        manage(start + 100 * i);
        EXPECT_EQ(timer.runs(), i);
    }
}

TEST_F(RteTimer, PeriodicalOfNoTicksIsSingle)
{
    Timer timer;
    reset(timer, 0, PERIODICAL);
    manage(start);
    manage(start + 10);
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_FALSE(rte_timer_pending(&timer.timer));
}

TEST_F(RteTimer, FunctionStopsItsOwn)
{
    Timer timer;
    timer.then = [&] { EXPECT_EQ(rte_timer_stop(&timer.timer), 0); };
    reset(timer, 100, PERIODICAL);
    manage(start + 1000);
    manage(start + 2000);
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_FALSE(rte_timer_pending(&timer.timer));
}

TEST_F(RteTimer, FunctionResetsItsOwn)
{
    Timer timer;
    timer.then = [&] { EXPECT_EQ(reset(timer, 0), 0); };
    reset(timer, 100, PERIODICAL);
    for (size_t i = 1; i <= 5; ++i) {
        manage(start + 1000);
        EXPECT_EQ(timer.runs(), i); // not twice in one pass
    }
    timer.then = [&] { reset(timer, 7, PERIODICAL); };
    manage(start + 1000);
    manage(start + 1006);
    EXPECT_EQ(timer.runs(), 6U);
    manage(start + 1007);
    EXPECT_EQ(timer.runs(), 7U);
}

TEST_F(RteTimer, FunctionFreesItsOwn)
{
    Timer *timer = new Timer;
    reset(*timer, 100, PERIODICAL);
    timer->then = [&timer] {
        Timer *const self = timer;
        timer = nullptr;
        const std::function<void()> kept = std::move(self->then);
        delete self; // which stops it
    };
    manage(start + 1000);
    EXPECT_EQ(timer, nullptr);
    manage(start + 2000);
}

// Of timers that are due together, the first to run frees the others.
TEST_F(RteTimer, FunctionFreesOthersThatAreDue)
{
    std::vector<std::unique_ptr<Timer>> timers;
    size_t runs = 0;
    for (uint64_t i = 0; i < 20; ++i) {
        timers.push_back(std::make_unique<Timer>());
        Timer *const self = timers.back().get();
        self->then = [&timers, &runs, self] {
            ++runs;
            for (auto &timer : timers) {
                if (timer.get() != self) {
                    timer.reset();
                }
            }
        };
        reset(*self, 100 + i % 3, i % 2 ? SINGLE : PERIODICAL);
    }
    manage(start + 200);
    EXPECT_EQ(runs, 1U);
    manage(start + 250);
    EXPECT_LE(runs, 2U); // if it was periodical
}

// Whichever runs first.
TEST_F(RteTimer, FunctionResetsOthersThatAreDue)
{
    Timer first;
    Timer second;
    first.then = [&] { EXPECT_EQ(reset(second, 50), 0); };
    second.then = [&] { EXPECT_EQ(reset(first, 50), 0); };
    reset(first, 100);
    reset(second, 100);
    manage(start + 200);
    EXPECT_EQ(first.runs() + second.runs(), 1U);
    manage(start + 249);
    EXPECT_EQ(first.runs() + second.runs(), 1U);
    manage(start + 250);
    EXPECT_EQ(first.runs(), 1U);
    EXPECT_EQ(second.runs(), 1U);
}

TEST_F(RteTimer, WhatIsDueRunsOnceInAnyOrder)
{
    std::vector<std::unique_ptr<Timer>> timers;
    for (uint64_t i = 0; i < 300; ++i) {
        timers.push_back(std::make_unique<Timer>());
        reset(*timers.back(), i % 3 ? 1000 : i * i);
    }
    manage(start + 5000);
    for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t ticks = i % 3 ? 1000 : i * i;
        ASSERT_EQ(timers[i]->runs(), ticks <= 5000 ? 1U : 0U) << i;
    }
    manage(start + 300 * 300);
    manage(start + 400 * 400);
    for (const auto &timer : timers) {
        ASSERT_EQ(timer->runs(), 1U);
    }
}

TEST_F(RteTimer, PassInsideAFunctionDoesNothing)
{
    Timer first;
    Timer second;
    first.then = [&] { manage(start + 1000); };
    reset(first, 100);
    reset(second, 500);
    manage(start + 100);
    EXPECT_EQ(second.runs(), 0U);
    manage(start + 500);
    EXPECT_EQ(second.runs(), 1U);
}

TEST_F(RteTimer, NextTicksAreNeverTooMany)
{
    EXPECT_EQ(lawn_rte_timer_next_ticks_at(start), -ENOENT);
    Timer timer;
    reset(timer, 1000);
    uint64_t now = start;
    for (int i = 0; i < 100 && timer.runs() == 0; ++i) {
        const int64_t next = lawn_rte_timer_next_ticks_at(now);
        ASSERT_GE(next, 0);
        ASSERT_LE(now + static_cast<uint64_t>(next), start + 1000);
        now += static_cast<uint64_t>(next);
        manage(now);
    }
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_EQ(now, start + 1000);
    EXPECT_EQ(lawn_rte_timer_next_ticks_at(now), -ENOENT);
}

TEST(RteNames, Initialise)
{
    static struct rte_timer timer = RTE_TIMER_INITIALIZER;
    rte_timer_cb_t function = Timer::expired;
    current_lcore = 0;
    EXPECT_FALSE(rte_timer_pending(&timer));
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    EXPECT_EQ(rte_timer_stop(&timer), 0);
    EXPECT_EQ(rte_timer_reset(&timer, 1, SINGLE, 0, function, nullptr), 0);
    EXPECT_EQ(timer.f, function);
    EXPECT_EQ(rte_timer_stop(&timer), 0);
    rte_timer_subsystem_finalize();
}

// Without RTE_LIBRTE_TIMER_DEBUG calls are not counted.
TEST_F(RteTimer, StatsTellWhatIsPending)
{
    Timer one, two;
    reset(one, 100);
    reset(two, 100, PERIODICAL, 2);
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  pending = 2\n");
    manage(start + 100);
    EXPECT_EQ(one.runs(), 1U);
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  pending = 1\n");
}

} // namespace
