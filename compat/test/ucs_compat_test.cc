// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// UCX's timer wheel as lawn/ucs_compat.h makes it, by its names in UCX and on
// virtual time: what it has in common with UCX's, and what it does where that
// is wrong. ucs_compat_original_test.cc has the two side by side.

#define LAWN_UCS_COMPAT
#include <lawn/ucs_compat.h>

#include "counted_malloc.h"
#include "ucs_compat_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace
{

constexpr ucs_time_t resolution = 1024;
constexpr ucs_time_t start = 1000000 * resolution + 77;

struct Timer {
    ucs_wtimer_t timer; // first: the callback's timer is this
    ucs_twheel_t *wheel;
    std::function<void()> then;
    std::vector<ucs_time_t> fired;

    explicit Timer(ucs_twheel_t *of) : timer(), wheel(of)
    {
        EXPECT_EQ(ucs_wtimer_init(&timer, expired), UCS_OK);
    }

    ~Timer()
    {
        ucs_wtimer_remove(wheel, &timer); // before it is cleaned up
    }

    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    static void expired(ucs_wtimer_t *self)
    {
        Timer *const timer = reinterpret_cast<Timer *>(self);
        EXPECT_FALSE(lawn_ucs_wtimer_is_active(self));
        timer->fired.push_back(ucs_twheel_get_time(timer->wheel));
        if (timer->then) {
            timer->then();
        }
    }
};

using Times = std::vector<ucs_time_t>;

class UcsWheel : public testing::Test
{
protected:
    UcsWheel()
    {
        EXPECT_EQ(ucs_twheel_init(&wheel_, resolution, start), UCS_OK);
    }

    ~UcsWheel() override
    {
        ucs_twheel_cleanup(&wheel_);
    }

    // Adds, and sweeps every `step` until it has fired once; when, after start.
    ucs_time_t fires_after(ucs_time_t delta, ucs_time_t step)
    {
        Timer timer(&wheel_);
        const ucs_time_t begin = ucs_twheel_get_time(&wheel_);
        EXPECT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, delta), UCS_OK);
        for (ucs_time_t now = begin; timer.fired.empty(); now += step) {
            if (now - begin > delta + 2 * step) {
                ADD_FAILURE() << "never, with delta " << delta;
                break;
            }
            ucs_twheel_sweep(&wheel_, now);
        }
        ucs_wtimer_remove(&wheel_, &timer.timer);
        return timer.fired.empty() ? 0 : timer.fired[0] - begin;
    }

    ucs_twheel_t wheel_ = {};
};

TEST(UcsMemory, OfATimerIsSmall)
{
    EXPECT_LE(sizeof(ucs_wtimer_t), 48U);
}

TEST(UcsMemory, IsThatOfALawn)
{
    constexpr size_t most = 24 * 1024;
    ucs_twheel_t wheel;
    allocated = 0;
    ASSERT_EQ(ucs_twheel_init(&wheel, resolution, start), UCS_OK);
    EXPECT_GT(allocated, 0U);
    EXPECT_LE(allocated + sizeof wheel, most);
    allocated = 0;
    ucs_wtimer_t timers[1000];
    for (ucs_time_t i = 0; i < 1000; ++i) {
        ucs_wtimer_init(&timers[i], [](ucs_wtimer_t *) {});
        ucs_wtimer_add(&wheel, &timers[i], i * i * resolution);
    }
    ucs_twheel_sweep(&wheel, start + 500 * 500 * resolution);
    ucs_twheel_cleanup(&wheel);
    EXPECT_EQ(allocated, 0U);
}

TEST(UcsMemory, OfAQueueIsSmall)
{
    EXPECT_LE(sizeof(ucs_timer_queue_t), 72U);
    EXPECT_LE(sizeof(ucs_timer_t), 32U);
}

TEST_F(UcsWheel, BeginsEmptyAtTheTimeGiven)
{
    EXPECT_TRUE(ucs_twheel_is_empty(&wheel_));
    EXPECT_EQ(ucs_twheel_get_time(&wheel_), start);
    ucs_twheel_sweep(&wheel_, start + 5);
    EXPECT_EQ(ucs_twheel_get_time(&wheel_), start + 5);
}

TEST_F(UcsWheel, AddOfAnActiveTimerIsBusyAndTheFirstAddFires)
{
    Timer timer(&wheel_);
    ASSERT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, 3 * resolution), UCS_OK);
    EXPECT_TRUE(lawn_ucs_wtimer_is_active(&timer.timer));
    EXPECT_FALSE(ucs_twheel_is_empty(&wheel_));
    EXPECT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, 900 * resolution),
              UCS_ERR_BUSY);
    EXPECT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, resolution), UCS_ERR_BUSY);
    ucs_twheel_sweep(&wheel_, start + 3 * resolution - 1);
    EXPECT_EQ(timer.fired, Times{});
    ucs_twheel_sweep(&wheel_, start + 3 * resolution);
    ucs_twheel_sweep(&wheel_, start + 2000 * resolution);
    EXPECT_EQ(timer.fired, Times{start + 3 * resolution});
    EXPECT_TRUE(ucs_twheel_is_empty(&wheel_));
}

TEST_F(UcsWheel, RemovedTimersDoNotFireAndMayBeAddedAgain)
{
    Timer timer(&wheel_);
    ucs_wtimer_remove(&wheel_, &timer.timer);
    ucs_wtimer_add(&wheel_, &timer.timer, 2 * resolution);
    ucs_wtimer_remove(&wheel_, &timer.timer);
    ucs_wtimer_remove(&wheel_, &timer.timer);
    EXPECT_TRUE(ucs_twheel_is_empty(&wheel_));
    ucs_twheel_sweep(&wheel_, start + 10 * resolution);
    EXPECT_EQ(timer.fired, Times{});
    ASSERT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, resolution), UCS_OK);
    ucs_twheel_sweep(&wheel_, start + 11 * resolution);
    EXPECT_EQ(timer.fired, Times{start + 11 * resolution});
}

TEST_F(UcsWheel, DelayedSweepFiresEverythingOnce)
{
    std::vector<std::unique_ptr<Timer>> timers;
    for (ucs_time_t i = 0; i < 10000; ++i) {
        timers.push_back(std::make_unique<Timer>(&wheel_));
        ucs_wtimer_add(&wheel_, &timers.back()->timer,
                       resolution * (1 + i % 1500) + i % 7);
    }
    ucs_twheel_sweep(&wheel_, start + 50000 * resolution);
    ucs_twheel_sweep(&wheel_, start + 90000 * resolution);
    for (const auto &timer : timers) {
        ASSERT_EQ(timer->fired, Times{start + 50000 * resolution});
    }
    EXPECT_TRUE(ucs_twheel_is_empty(&wheel_));
}

// Of timers that are due together, the first to fire frees the others.
TEST_F(UcsWheel, CallbacksMayRemoveAndFree)
{
    std::vector<std::unique_ptr<Timer>> timers;
    Times fired;
    for (ucs_time_t i = 0; i < 20; ++i) {
        timers.push_back(std::make_unique<Timer>(&wheel_));
        Timer *const self = timers.back().get();
        self->then = [&timers, &fired, self, this] {
            fired.push_back(ucs_twheel_get_time(&wheel_));
            for (auto &timer : timers) {
                if (timer.get() != self) {
                    ucs_wtimer_remove(&wheel_, &timer->timer);
                    timer.reset();
                }
            }
        };
        ucs_wtimer_add(&wheel_, &self->timer, resolution + i % 3);
    }
    const ucs_time_t now = start + 2 * resolution;
    ucs_twheel_sweep(&wheel_, now);
    ucs_twheel_sweep(&wheel_, now + resolution);
    EXPECT_EQ(fired, Times{now});
    EXPECT_TRUE(ucs_twheel_is_empty(&wheel_));
}

TEST_F(UcsWheel, CallbacksMayAdd)
{
    Timer first(&wheel_);
    Timer second(&wheel_);
    first.then = [&] {
        if (first.fired.size() > 1) {
            return;
        }
        EXPECT_EQ(ucs_wtimer_add(&wheel_, &first.timer, 5), UCS_OK);
        EXPECT_EQ(ucs_wtimer_add(&wheel_, &first.timer, 1), UCS_ERR_BUSY);
        EXPECT_EQ(ucs_wtimer_add(&wheel_, &second.timer, 9), UCS_OK);
    };
    ucs_wtimer_add(&wheel_, &first.timer, resolution);
    const ucs_time_t now = start + 2 * resolution;
    ucs_twheel_sweep(&wheel_, now);
    ucs_twheel_sweep(&wheel_, now + 4);
    EXPECT_EQ(first.fired, Times{now});
    ucs_twheel_sweep(&wheel_, now + 5);
    EXPECT_EQ(first.fired, (Times{now, now + 5}));
    EXPECT_EQ(second.fired, Times{});
    ucs_twheel_sweep(&wheel_, now + 9);
    EXPECT_EQ(second.fired, Times{now + 9});
}

TEST_F(UcsWheel, DeltasBeyondTheSlotsAreExact)
{
    for (const ucs_time_t slots :
         Times{1022, 1023, 1024, 1025, 10000, 1 << 20}) {
        const ucs_time_t delta = slots * resolution + slots % 5;
        EXPECT_EQ(fires_after(delta, delta - 1), 2 * (delta - 1));
        EXPECT_EQ(fires_after(delta, delta), delta);
    }
    EXPECT_EQ(fires_after(10000 * resolution, resolution), 10000 * resolution);
}

TEST_F(UcsWheel, DeltasBeyondTheMaximumAreCutToIt)
{
    const ucs_time_t most = 1023 * resolution;
    EXPECT_EQ(wheel_.max_delta, UCS_TIME_INFINITY);
    wheel_.max_delta = most;
    EXPECT_EQ(fires_after(most - 1, 1), most - 1);
    for (const ucs_time_t delta :
         Times{most, most + 1, 1 << 30, INT64_MAX, UCS_TIME_INFINITY}) {
        Timer timer(&wheel_);
        const ucs_time_t now = ucs_twheel_get_time(&wheel_);
        ucs_wtimer_add(&wheel_, &timer.timer, delta);
        ucs_twheel_sweep(&wheel_, now + most - 1);
        EXPECT_EQ(timer.fired, Times{});
        ucs_twheel_sweep(&wheel_, now + most);
        EXPECT_EQ(timer.fired, Times{now + most});
    }
    Timer past(&wheel_);
    ucs_wtimer_add(&wheel_, &past.timer, ucs_time_t(-5)); // still due at once
    ucs_twheel_sweep(&wheel_, ucs_twheel_get_time(&wheel_));
    EXPECT_EQ(past.fired.size(), 1U);
}

TEST_F(UcsWheel, DeltasBelowTheResolutionAreExact)
{
    for (const ucs_time_t delta : Times{0, 1, 2, 511, 1022, 1023}) {
        EXPECT_EQ(fires_after(delta, 1), delta);
    }
}

TEST_F(UcsWheel, SweepsOfAnyIntervalDoNotDrift)
{
    for (const ucs_time_t percent : Times{1, 50, 99, 101, 150, 199, 250}) {
        const ucs_time_t step = resolution * percent / 100;
        for (const ucs_time_t slots : Times{1, 2, 100, 1000}) {
            const ucs_time_t delta = slots * resolution;
            const ucs_time_t after = fires_after(delta, step);
            EXPECT_GE(after, delta) << percent;
            EXPECT_LT(after, delta + step) << percent;
        }
    }
}

TEST_F(UcsWheel, AStallFiresATimerThatAddsItselfOnce)
{
    Timer timer(&wheel_);
    timer.then = [&] {
        ucs_wtimer_add(&wheel_, &timer.timer, 10 * resolution);
    };
    timer.then();
    const ucs_time_t late = start + 500 * resolution;
    ucs_twheel_sweep(&wheel_, late);
    EXPECT_EQ(timer.fired, Times{late});
    ucs_twheel_sweep(&wheel_, late + 10 * resolution - 1);
    EXPECT_EQ(timer.fired, Times{late});
    ucs_twheel_sweep(&wheel_, late + 10 * resolution);
    EXPECT_EQ(timer.fired, (Times{late, late + 10 * resolution}));
}

TEST_F(UcsWheel, ATimerThatAddsItselfForNothingFiresOncePerSweep)
{
    Timer timer(&wheel_);
    timer.then = [&] { ucs_wtimer_add(&wheel_, &timer.timer, 0); };
    timer.then();
    ucs_twheel_sweep(&wheel_, start);
    EXPECT_EQ(timer.fired, Times{start});
    ucs_twheel_sweep(&wheel_, start);
    EXPECT_EQ(timer.fired, (Times{start, start}));
}

TEST_F(UcsWheel, AClockThatGoesBackFiresNothing)
{
    Timer timer(&wheel_);
    ucs_wtimer_add(&wheel_, &timer.timer, 5 * resolution);
    for (const ucs_time_t back : {ucs_time_t{1}, resolution, start}) {
        ucs_twheel_sweep(&wheel_, start - back);
        EXPECT_EQ(ucs_twheel_get_time(&wheel_), start);
        EXPECT_EQ(timer.fired, Times{});
    }
    ucs_twheel_sweep(&wheel_, start + 5 * resolution);
    EXPECT_EQ(timer.fired, Times{start + 5 * resolution});
}

TEST_F(UcsWheel, ANegativeDeltaIsDueAndInfinityIsNot)
{
    Timer timer(&wheel_);
    Timer never(&wheel_);
    const ucs_time_t before = start - 100;
    const ucs_time_t tick = 40;
    ucs_wtimer_add(&wheel_, &timer.timer,
                   before - ucs_twheel_get_time(&wheel_) + tick);
    ucs_wtimer_add(&wheel_, &never.timer, UCS_TIME_INFINITY);
    ucs_twheel_sweep(&wheel_, start);
    EXPECT_EQ(timer.fired, Times{start});
    ucs_twheel_sweep(&wheel_, UCS_TIME_INFINITY - 1);
    EXPECT_EQ(never.fired, Times{});
}

TEST_F(UcsWheel, DeltasCountFromTheLatestSweepOrTheTimeGiven)
{
    const ucs_time_t now = start + 50 * resolution;
    const ucs_time_t delta = 100 * resolution;
    Timer plain(&wheel_);
    Timer made_up(&wheel_);
    Timer at(&wheel_);
    ucs_wtimer_add(&wheel_, &plain.timer, delta);
    ucs_wtimer_add(&wheel_, &made_up.timer,
                   now - ucs_twheel_get_time(&wheel_) + delta);
    ASSERT_EQ(lawn_ucs_wtimer_add_at(&wheel_, &at.timer, now, delta), UCS_OK);
    ASSERT_EQ(lawn_ucs_wtimer_add_at(&wheel_, &at.timer, now, 1), UCS_ERR_BUSY);
    EXPECT_EQ(ucs_twheel_get_time(&wheel_), now);
    for (ucs_time_t t = now; t <= now + delta; t += resolution) {
        ucs_twheel_sweep(&wheel_, t);
    }
    EXPECT_EQ(plain.fired, Times{start + delta});
    EXPECT_EQ(made_up.fired, Times{now + delta});
    EXPECT_EQ(at.fired, Times{now + delta});
}

TEST_F(UcsWheel, ASweepInsideACallbackOnlyTellsTheTime)
{
    Timer first(&wheel_);
    Timer second(&wheel_);
    const ucs_time_t later = start + 600 * resolution;
    first.then = [&] {
        ucs_twheel_sweep(&wheel_, later);
        EXPECT_EQ(second.fired, Times{});
    };
    ucs_wtimer_add(&wheel_, &first.timer, 2 * resolution);
    ucs_wtimer_add(&wheel_, &second.timer, 400 * resolution);
    ucs_twheel_sweep(&wheel_, start + 3 * resolution);
    EXPECT_EQ(second.fired, Times{});
    ucs_twheel_sweep(&wheel_, start + 4 * resolution);
    EXPECT_EQ(second.fired, Times{later});
}

TEST_F(UcsWheel, CleaningUpMakesTimersIdle)
{
    Timer timer(&wheel_);
    ucs_wtimer_add(&wheel_, &timer.timer, resolution);
    ucs_twheel_cleanup(&wheel_);
    EXPECT_FALSE(lawn_ucs_wtimer_is_active(&timer.timer));
    ucs_wtimer_remove(&wheel_, &timer.timer);
    EXPECT_EQ(timer.fired, Times{});
    ASSERT_EQ(ucs_twheel_init(&wheel_, 0, start), UCS_OK);
    EXPECT_EQ(ucs_wtimer_add(&wheel_, &timer.timer, resolution), UCS_OK);
}

TEST(UcsProgram, RunsUnchanged)
{
    program_result result;
    program_on_lawn(&result);
    EXPECT_EQ(result.status, UCS_OK);
    for (unsigned i = 0; i < PROGRAM_PEERS; ++i) {
        EXPECT_EQ(result.sends[i], std::min(i % 8 + 1, 6U));
    }
    EXPECT_EQ(result.acked, 48U);
    EXPECT_EQ(result.given_up, 16U);
    EXPECT_EQ(result.busy, 264U);
    EXPECT_EQ(result.keepalives, 10U);
    EXPECT_EQ(result.statistics, 25U);
    EXPECT_TRUE(result.is_empty);
}

} // namespace
