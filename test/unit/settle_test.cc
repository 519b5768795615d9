// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_settle(): what the oracle's random operations hardly ever meet.

#include "timer/observer.h"

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <vector>

namespace
{

// Of TTLs this long, the lawn keeps checks in steps of half a million ticks.
constexpr lawn_time_t long_ttl = (lawn_time_t{1} << 40) + 100'000;

class Settle : public testing::Test
{
protected:
    Settle()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }

    ~Settle() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    // They must outlive the checks of the destructor.
    std::vector<lawn_timer_t> &make(size_t count)
    {
        timers_.assign(count, lawn_timer_t{});
        return timers_;
    }

    lawn_t *lawn_ = nullptr;

private:
    std::vector<lawn_timer_t> timers_;
};

TEST_F(Settle, NothingRuns)
{
    EXPECT_TRUE(lawn_settle(lawn_, 1));
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
}

TEST_F(Settle, PausedAndReArmedTimersAreInNobodysWay)
{
    auto &timers = make(3);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn_, &timer, 0, 1'000'000);
    }
    lawn_timer_pause(lawn_, &timers[0]);
    lawn_timer_start(lawn_, &timers[1], 500'000, 10'000'000);
    lawn_timer_start(lawn_, &timers[2], 500'001, 5'000'000);
    EXPECT_LE(lawn_next(lawn_), 1'000'000U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), 5'500'001U);
    EXPECT_EQ(lawn_advance(lawn_, 5'500'000, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 5'500'001, 0), 1U);
}

TEST_F(Settle, StopsAtItsLimitAndGoesOn)
{
    auto &timers = make(100);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn_, &timer, 0, 1000);
        lawn_timer_start(lawn_, &timer, 0, 1'000'000);
    }
    unsigned calls = 1;
    while (!lawn_settle(lawn_, 10)) {
        EXPECT_LE(lawn_next(lawn_), 1'000'000U);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        ++calls;
    }
    EXPECT_EQ(calls, 11U);
    EXPECT_EQ(lawn_next(lawn_), 1'000'000U);
}

TEST_F(Settle, NotWhileSomethingIsDue)
{
    auto &timers = make(2);
    lawn_timer_start(lawn_, &timers[0], 0, 10);
    lawn_timer_start(lawn_, &timers[1], 0, 10);
    EXPECT_EQ(lawn_advance(lawn_, 20, 1), 1U);
    EXPECT_FALSE(lawn_settle(lawn_, 0));
    EXPECT_LE(lawn_next(lawn_), 20U);
    EXPECT_EQ(lawn_advance(lawn_, 20, 1), 1U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
}

TEST_F(Settle, ReArmingToALittleEarlierIsSeen)
{
    lawn_timer_t &timer = make(1)[0];
    lawn_timer_start(lawn_, &timer, 0, long_ttl);
    ASSERT_TRUE(lawn_settle(lawn_, 0));
    ASSERT_EQ(lawn_next(lawn_), long_ttl);
    lawn_timer_start(lawn_, &timer, 0, long_ttl - 1);
    EXPECT_LE(lawn_next(lawn_), long_ttl - 1);
    EXPECT_EQ(lawn_advance(lawn_, long_ttl - 1, 0), 1U);
}

// The check of a long TTL is rounded down: here it comes before the deadline.
TEST_F(Settle, HoldsBetweenTheCheckAndTheDeadline)
{
    lawn_timer_t &timer = make(1)[0];
    lawn_timer_start(lawn_, &timer, 0, long_ttl);
    ASSERT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_advance(lawn_, long_ttl - 1, 0), 0U);
    EXPECT_TRUE(lawn_settle(lawn_, 1));
    EXPECT_EQ(lawn_next(lawn_), long_ttl);
    EXPECT_EQ(lawn_advance(lawn_, long_ttl, 0), 1U);
}

TEST_F(Settle, FindsTheEarliestDeadlineOfAnObservedLawnToo)
{
    auto &timers = make(2);
    lawn::Observer observer = {[](lawn::Observer *, lawn::Event,
                                  const lawn_timer_t *, lawn_time_t,
                                  lawn_time_t) {}};
    lawn::observe(lawn_, &observer);
    lawn_timer_start(lawn_, &timers[0], 0, long_ttl);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), long_ttl);
    lawn_timer_start(lawn_, &timers[1], 0, long_ttl - 1);
    EXPECT_LE(lawn_next(lawn_), long_ttl - 1);
    EXPECT_EQ(lawn_advance(lawn_, long_ttl - 1, 0), 1U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), long_ttl);
    lawn::observe(lawn_, nullptr);
    EXPECT_EQ(lawn_advance(lawn_, long_ttl, 0), 1U);
}

// More queues than it looks at together, all within one step.
TEST_F(Settle, FindsTheEarliestDeadlineAmongManyTtls)
{
    for (const bool rising : {false, true}) {
        auto &timers = make(500);
        for (size_t i = 0; i < timers.size(); ++i) {
            const size_t plus = rising ? i : timers.size() - i;
            lawn_timer_start(lawn_, &timers[i], 0, long_ttl + plus);
        }
        EXPECT_TRUE(lawn_settle(lawn_, 0));
        EXPECT_EQ(lawn_next(lawn_), long_ttl + !rising);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_drain(lawn_, nullptr);
    }
}

} // namespace
