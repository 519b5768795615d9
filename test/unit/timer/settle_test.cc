// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_settle(): what the oracle's random operations hardly ever meet.

#include "timer/lawn_impl.h"
#include <lawn/observer.h>

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <vector>

namespace
{

// Of TTLs this long, slots are 2^38 ticks wide and more.
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

    void expect_settled(lawn_time_t next)
    {
        EXPECT_TRUE(lawn_settle(lawn_, 0));
        EXPECT_EQ(lawn_next(lawn_), next);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    // Nothing fires before `deadline`, `count` do then, and the lawn says so.
    void expect_fires_at(lawn_time_t deadline, unsigned count = 1)
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        EXPECT_LE(lawn_next(lawn_), deadline);
        EXPECT_EQ(lawn_advance(lawn_, deadline - 1, 0), 0U);
        EXPECT_LE(lawn_next(lawn_), deadline);
        EXPECT_EQ(lawn_advance(lawn_, deadline, 0), count);
    }

    lawn_t *lawn_ = nullptr;

private:
    std::vector<lawn_timer_t> timers_;
};

// A limit that is too low for a later slot is no reason to wake for an earlier
// one that stops have left empty.
TEST_F(Settle, NobodyWakesForAnEmptySlotAtTheLimit)
{
    auto &timers = make(12);
    for (size_t i = 0; i < 10; ++i) {
        lawn_timer_start(lawn_, &timers[i], 0, long_ttl);
    }
    // Slots of two classes, both before that of the others.
    lawn_timer_start(lawn_, &timers[10], 0, 100);
    lawn_timer_start(lawn_, &timers[11], 0, 1'000'000);
    lawn_timer_stop(lawn_, &timers[10]);
    lawn_timer_stop(lawn_, &timers[11]);
    EXPECT_FALSE(lawn_settle(lawn_, 9));
    EXPECT_EQ(lawn_next(lawn_), timers[0].check);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    expect_settled(long_ttl);
    expect_fires_at(long_ttl, 10);
}

// An advance does not leave the lawn to wake for one either.
TEST_F(Settle, NobodyWakesForAnEmptySlotAfterAnAdvance)
{
    auto &timers = make(3);
    lawn_timer_start(lawn_, &timers[0], 0, 10);
    lawn_timer_start(lawn_, &timers[1], 0, 1000);
    lawn_timer_start(lawn_, &timers[2], 0, long_ttl);
    lawn_timer_stop(lawn_, &timers[1]);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    EXPECT_EQ(lawn_next(lawn_), timers[2].check);
    const lawn::Lawn *const lawn = lawn::impl_of(lawn_);
    EXPECT_EQ(lawn->filled[lawn::class_of(1000)], 0U); // nor looks at it again
    EXPECT_EQ(lawn->occupied, uint64_t{1} << lawn::class_of(long_ttl));
    expect_fires_at(long_ttl);
}

// The budget ends with the last timer of a slot.
TEST_F(Settle, NobodyLooksAgainAtASlotThatTheBudgetHasEmptied)
{
    auto &timers = make(3);
    lawn_timer_start(lawn_, &timers[0], 0, 1000);
    lawn_timer_start(lawn_, &timers[1], 0, 1000);
    lawn_timer_start(lawn_, &timers[2], 0, 1100);
    EXPECT_EQ(lawn_advance(lawn_, 1000, 2), 2U);
    EXPECT_EQ(lawn_next(lawn_), timers[2].check);
    const unsigned c = lawn::class_of(1100);
    EXPECT_EQ(lawn::impl_of(lawn_)->filled[c],
              lawn::bit_of(lawn::slot_of(c, 1100)));
    expect_fires_at(1100);
}

TEST_F(Settle, NothingRuns)
{
    EXPECT_TRUE(lawn_settle(lawn_, 1));
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    lawn_timer_t &timer = make(1)[0];
    lawn_timer_start(lawn_, &timer, 0, 1000);
    lawn_timer_pause(lawn_, &timer);
    expect_settled(LAWN_TIME_INFINITY);
    lawn_timer_start(lawn_, &timer, 0, 10);
    expect_fires_at(10);
}

// If it took the timer out, the lawn would still wake for the slot, in vain.
TEST_F(Settle, AReArmLeavesTheTimerInItsSlot)
{
    lawn_timer_t &timer = make(1)[0];
    lawn_timer_start(lawn_, &timer, 0, long_ttl);
    const lawn_time_t check = timer.check;
    expect_settled(long_ttl);
    lawn_timer_start(lawn_, &timer, 0, 4 * long_ttl);
    EXPECT_EQ(timer.check, check);
    EXPECT_EQ(lawn_next(lawn_), check);
    expect_fires_at(4 * long_ttl);
}

TEST_F(Settle, TimersThatNeverFireAreNoDeadline)
{
    auto &timers = make(3);
    lawn_timer_start(lawn_, &timers[0], 0, LAWN_TIME_INFINITY);
    expect_settled(LAWN_TIME_INFINITY);
    lawn_timer_start(lawn_, &timers[1], 5, LAWN_TIME_INFINITY - 6);
    expect_settled(LAWN_TIME_INFINITY);
    lawn_timer_start(lawn_, &timers[2], 5, long_ttl);
    expect_settled(long_ttl + 5);
    lawn_timer_start(lawn_, &timers[1], 5, 100); // from never
    expect_fires_at(105);
    lawn_timer_start(lawn_, &timers[2], 105, LAWN_TIME_INFINITY); // to never
    expect_settled(LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_advance(lawn_, LAWN_TIME_INFINITY, 0), 0U);
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
    expect_settled(5'500'001);
    expect_fires_at(5'500'001);
}

// Nothing moves, so whoever asks again without an advance is told the same.
TEST_F(Settle, WhatIsDueIsForAnAdvance)
{
    auto &timers = make(3);
    lawn_timer_start(lawn_, &timers[0], 0, 10);
    lawn_timer_start(lawn_, &timers[1], 0, 500);
    lawn_timer_start(lawn_, &timers[2], 20, 1000);
    for (int i = 0; i < 100; ++i) {
        EXPECT_FALSE(lawn_settle(lawn_, 0));
        EXPECT_LE(lawn_next(lawn_), 10U);
        EXPECT_EQ(lawn_count(lawn_), 3U);
    }
    EXPECT_EQ(lawn_advance(lawn_, 20, 0), 1U);
    expect_settled(500);
}

TEST_F(Settle, LooksAtNoMoreThanItMay)
{
    auto &timers = make(100);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn_, &timer, 0, 1000);
        lawn_timer_start(lawn_, &timer, 0, 1'000'000);
    }
    for (const unsigned most : {1U, 10U, 99U}) {
        EXPECT_FALSE(lawn_settle(lawn_, most));
        EXPECT_LE(lawn_next(lawn_), 1000U); // it may have been any of them
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }
    EXPECT_TRUE(lawn_settle(lawn_, 100));
    EXPECT_EQ(lawn_next(lawn_), 1'000'000U);
}

// Where it may not look at enough, each early wake-up brings what is left
// nearer to its deadline, until it may.
TEST_F(Settle, AnEarlyWakeUpRefinesIt)
{
    auto &timers = make(1000);
    for (size_t i = 0; i < timers.size(); ++i) {
        lawn_timer_start(lawn_, &timers[i], 0, long_ttl + i * 1'000'000);
    }
    unsigned wakes = 0;
    while (!lawn_settle(lawn_, 10)) {
        const lawn_time_t next = lawn_next(lawn_);
        ASSERT_GT(next, lawn_now(lawn_));
        ASSERT_LE(next, long_ttl);
        ASSERT_EQ(lawn_advance(lawn_, next, 0), next == long_ttl ? 1U : 0U);
        ASSERT_LE(++wakes, 10U);
    }
    EXPECT_GT(wakes, 0U);
    if (lawn_timer_is_active(&timers[0])) {
        EXPECT_EQ(lawn_next(lawn_), long_ttl);
        expect_fires_at(long_ttl);
    }
}

// Who may look at enough sleeps until each deadline, and never in between.
TEST_F(Settle, ASleeperWakesOncePerBatch)
{
    constexpr unsigned batches = 20;
    auto &timers = make(500);
    for (size_t i = 0; i < timers.size(); ++i) {
        const lawn_time_t batch = i % batches;
        // Some re-armed, some paused on their way.
        if (i % 3 == 0) {
            lawn_timer_start(lawn_, &timers[i], 0, 77 + i);
        }
        if (i % 7 == 0) {
            lawn_timer_pause(lawn_, &timers[i]);
        }
        lawn_timer_start(lawn_, &timers[i], 0,
                         (long_ttl >> batch) + 1000 * batch);
    }
    unsigned wakes = 0;
    while (lawn_count(lawn_) != 0) {
        ASSERT_TRUE(lawn_settle(lawn_, 600));
        ASSERT_GT(lawn_advance(lawn_, lawn_next(lawn_), 0), 0U);
        ASSERT_LE(++wakes, batches);
    }
    EXPECT_EQ(wakes, batches);
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
    lawn_timer_start(lawn_, &timers[0], 20, 0);
    EXPECT_FALSE(lawn_settle(lawn_, 0));
    EXPECT_LE(lawn_next(lawn_), 20U);
    // Due since the settling, as the time goes on without an advance.
    EXPECT_EQ(lawn_advance(lawn_, 20, 0), 1U);
    lawn_timer_start(lawn_, &timers[0], 20, 1000);
    expect_settled(1020);
    lawn_timer_stop(lawn_, &timers[1]);
    lawn_timer_start(lawn_, &timers[1], 2000, 10);
    EXPECT_FALSE(lawn_settle(lawn_, 0));
    EXPECT_LE(lawn_next(lawn_), 1020U);
    EXPECT_EQ(lawn_advance(lawn_, 2000, 0), 1U);
}

// Paused timers that are overdue, and the rest of a round: nothing is due.
TEST_F(Settle, WhatIsLeftOfARoundMayBeNothing)
{
    auto &timers = make(20);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn_, &timer, 0, 1000);
        lawn_timer_pause(lawn_, &timer);
    }
    lawn_timer_start(lawn_, &timers[0], 0, long_ttl);
    EXPECT_EQ(lawn_advance(lawn_, 2000, 3), 0U);
    EXPECT_LE(lawn_next(lawn_), 2000U); // as far as it is known
    expect_settled(long_ttl);
    lawn_timer_start(lawn_, &timers[19], 2000, 5);
    expect_fires_at(2005);
    expect_settled(long_ttl);
    expect_fires_at(long_ttl);
}

// Every way to a deadline before the one that it was settled for: where the
// timer already lies, an inline start would not be heard of.
TEST_F(Settle, WhatIsStartedEarlierAfterwardsIsHeardOf)
{
    for (const lawn_time_t earlier :
         {lawn_time_t{1}, lawn_time_t{50'000}, long_ttl / 2, long_ttl - 10}) {
        for (unsigned way = 0; way < 6; ++way) {
            SCOPED_TRACE(way);
            const lawn_time_t now = lawn_now(lawn_);
            const lawn_time_t deadline = now + long_ttl - earlier;
            auto &timers = make(3);
            lawn_timer_start(lawn_, &timers[0], now, long_ttl);
            lawn_timer_start(lawn_, &timers[1], now, 2 * long_ttl);
            if (way == 1) {
                lawn_timer_pause(lawn_, &timers[0]); // before
            }
            expect_settled(now + (way == 1 ? 2 : 1) * long_ttl);
            if (way == 2) {
                lawn_timer_pause(lawn_, &timers[0]); // after
            }
            lawn_timer_t *const timer = &timers[way == 3   ? 1
                                                : way == 4 ? 2
                                                           : 0];
            if (way == 5) {
                lawn_timer_start_at(lawn_, timer, now, deadline);
            } else {
                lawn_timer_start(lawn_, timer, now, deadline - now);
            }
            expect_fires_at(deadline);
            lawn_drain(lawn_, nullptr);
        }
    }
}

TEST_F(Settle, WhatIsStartedLaterAfterwardsIsHeardOf)
{
    auto &timers = make(2);
    lawn_timer_start(lawn_, &timers[0], 0, long_ttl);
    lawn_timer_start(lawn_, &timers[1], 0, long_ttl + 7);
    expect_settled(long_ttl);
    lawn_timer_start(lawn_, &timers[0], 1, long_ttl + 50);
    expect_settled(long_ttl + 7);
    expect_fires_at(long_ttl + 7);
    expect_fires_at(long_ttl + 51);
}

TEST_F(Settle, AStopOfTheEarliestLeavesAnEarlyWakeUpAtWorst)
{
    for (const bool pauses : {false, true}) {
        const lawn_time_t now = lawn_now(lawn_);
        auto &timers = make(2);
        lawn_timer_start(lawn_, &timers[0], now, long_ttl);
        lawn_timer_start(lawn_, &timers[1], now, long_ttl + 7);
        expect_settled(now + long_ttl);
        EXPECT_TRUE(pauses ? lawn_timer_pause(lawn_, &timers[0])
                           : lawn_timer_stop(lawn_, &timers[0]));
        EXPECT_LE(lawn_next(lawn_), now + long_ttl + 7);
        expect_settled(now + long_ttl + 7);
        expect_fires_at(now + long_ttl + 7);
        lawn_timer_stop(lawn_, &timers[0]);
    }
}

// A slot of a long TTL begins before the deadline.
TEST_F(Settle, HoldsBetweenTheSlotAndTheDeadline)
{
    lawn_timer_t &timer = make(1)[0];
    lawn_timer_start(lawn_, &timer, 0, long_ttl);
    expect_settled(long_ttl);
    for (lawn_time_t now = 1000; now < long_ttl; now += long_ttl / 50) {
        const lawn::Work work = lawn::advance_as_of(lawn_, now, 0);
        EXPECT_EQ(work.touched, 0U);
        EXPECT_EQ(lawn_next(lawn_), long_ttl);
    }
    EXPECT_TRUE(lawn_settle(lawn_, 1));
    expect_fires_at(long_ttl);
}

TEST_F(Settle, FindsTheEarliestDeadlineOfAnObservedLawnToo)
{
    auto &timers = make(2);
    lawn_observer_t observer = {[](lawn_observer_t *, lawn_event_t,
                                   const lawn_timer_t *, lawn_time_t,
                                   lawn_time_t) {}};
    lawn_observe(lawn_, &observer);
    lawn_timer_start(lawn_, &timers[0], 0, long_ttl);
    expect_settled(long_ttl);
    lawn_timer_start(lawn_, &timers[1], 0, long_ttl - 1);
    expect_fires_at(long_ttl - 1);
    expect_settled(long_ttl);
    lawn_unobserve(lawn_, &observer);
    expect_fires_at(long_ttl);
}

// All within one slot, rising and falling.
TEST_F(Settle, FindsTheEarliestDeadlineAmongManyTtls)
{
    for (const bool rising : {false, true}) {
        auto &timers = make(500);
        for (size_t i = 0; i < timers.size(); ++i) {
            const size_t plus = rising ? i : timers.size() - i;
            lawn_timer_start(lawn_, &timers[i], 0, long_ttl + plus);
        }
        expect_settled(long_ttl + !rising);
        lawn_drain(lawn_, nullptr);
    }
}

// A slot of a coarse class may begin first and end last.
TEST_F(Settle, FindsTheEarliestDeadlineAmongTheClasses)
{
    for (unsigned bit = 1; bit < 62; ++bit) {
        auto &timers = make(3);
        const lawn_time_t now = lawn_now(lawn_);
        const lawn_time_t deadline = now + (lawn_time_t{1} << bit) + 3;
        // Long ago, just now, and in between.
        lawn_timer_start_at(lawn_, &timers[0], now, deadline + 2);
        lawn_timer_start_at(lawn_, &timers[1], deadline - 3, deadline + 1);
        lawn_timer_start_at(lawn_, &timers[2], now, deadline);
        expect_settled(deadline);
        expect_fires_at(deadline);
        expect_settled(deadline + 1);
        lawn_drain(lawn_, nullptr);
    }
}

} // namespace
