// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a pass meets so rarely that the oracle's random operations do not.

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <vector>

namespace
{

// What remains of it goes to queues, never to the tree.
constexpr lawn_time_t far_ttl = lawn_time_t{1} << 43;

struct TimerPass : testing::Test {
    TimerPass()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        self = this;
    }

    ~TimerPass() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    // They must outlive the checks of the destructor.
    std::vector<lawn_timer_t> &make(size_t count, lawn_expired_fn_t expired)
    {
        timers_.resize(count);
        for (lawn_timer_t &timer : timers_) {
            lawn_timer_init(&timer, expired);
        }
        return timers_;
    }

    static void note(lawn_timer_t *timer, lawn_time_t)
    {
        self->fired_.push_back(timer);
    }

    void expect_all_in_order(lawn_time_t now)
    {
        ASSERT_EQ(lawn_advance(lawn_, now, 0), timers_.size());
        for (size_t i = 0; i < timers_.size(); ++i) {
            ASSERT_EQ(fired_[i], &timers_[i]) << i;
        }
    }

    static TimerPass *self; // for the callbacks

    lawn_t *lawn_ = nullptr;
    std::vector<lawn_timer_t> timers_;
    std::vector<lawn_timer_t *> fired_;
};

TimerPass *TimerPass::self;

// While others have all the queues for single TTLs, a TTL's timers stand in
// that of their class; the later ones here get one of their own.
TEST_F(TimerPass, OneTtlIsInOrderFromTwoQueues)
{
    constexpr lawn_time_t ttl = 1'000'000;
    std::vector<lawn_timer_t> others(20'000);
    for (size_t i = 0; i < others.size(); ++i) {
        lawn_timer_start(lawn_, &others[i], 0, 1000 * ttl + i);
    }
    std::vector<lawn_timer_t> &timers = make(100, note);
    for (size_t i = 0; i < timers.size(); ++i) {
        if (i == timers.size() / 2) {
            for (lawn_timer_t &other : others) {
                lawn_timer_stop(lawn_, &other);
            }
        }
        lawn_timer_start(lawn_, &timers[i], i, ttl);
    }
    expect_all_in_order(2 * ttl);
}

// Those that were moved are in the queue of what remained of their time, those
// that were started afterwards in that of the TTL.
TEST_F(TimerPass, OneTtlIsInOrderAfterMoves)
{
    std::vector<lawn_timer_t> &timers = make(80, note);
    for (const lawn_time_t now : {lawn_time_t{0}, far_ttl / 2}) {
        for (size_t i = 0; i < 40; ++i) {
            lawn_timer_start(lawn_, &timers[i], now, far_ttl);
        }
    }
    EXPECT_EQ(lawn_advance(lawn_, far_ttl, 0), 0U);
    for (size_t i = 40; i < 80; ++i) {
        lawn_timer_start(lawn_, &timers[i], far_ttl, far_ttl);
    }
    expect_all_in_order(3 * far_ttl);
}

TEST_F(TimerPass, OneTtlIsInOrderAfterSettling)
{
    std::vector<lawn_timer_t> &timers = make(81, note);
    // One to settle for, soon after the checks of the next forty.
    lawn_timer_start(lawn_, &timers[0], 0, far_ttl - 1);
    lawn_timer_start(lawn_, &timers[0], 0, far_ttl + 1);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    for (const lawn_time_t ttl : {far_ttl, 4 * far_ttl}) {
        for (size_t i = 1; i < 41; ++i) {
            lawn_timer_start(lawn_, &timers[i], 0, ttl);
        }
    }
    EXPECT_EQ(lawn_advance(lawn_, far_ttl / 2, 0), 0U);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), far_ttl + 1);
    for (size_t i = 41; i < 81; ++i) {
        lawn_timer_start(lawn_, &timers[i], far_ttl / 2, 4 * far_ttl);
    }
    expect_all_in_order(5 * far_ttl);
}

// Overdue timers that wait to be put in order.
TEST_F(TimerPass, DrainHandsOverWhatAStallHasLeft)
{
    std::vector<lawn_timer_t> &timers = make(1000, nullptr);
    for (size_t i = 0; i < timers.size(); ++i) {
        lawn_timer_start(lawn_, &timers[i], 0, 1'000'000);
        lawn_timer_start(lawn_, &timers[i], 0, 1'000'000 + i * 1000); // re-arm
    }
    EXPECT_EQ(lawn_advance(lawn_, 3'000'000, 5), 5U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 995U);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    for (const lawn_timer_t &timer : timers) {
        ASSERT_FALSE(lawn_timer_is_active(&timer));
    }
}

// After a drain the callback is still inside its pass.
TEST_F(TimerPass, CallbackMayDrain)
{
    std::vector<lawn_timer_t> &timers =
        make(3, [](lawn_timer_t *timer, lawn_time_t now) {
            self->fired_.push_back(timer);
            if (self->fired_.size() == 1) {
                lawn_timer_start(self->lawn_, timer + 1, now, 0);
                EXPECT_EQ(lawn_drain(self->lawn_, nullptr), 2U);
                EXPECT_FALSE(lawn_settle(self->lawn_, 0));
                lawn_timer_start(self->lawn_, timer, now, 0);
            }
        });
    lawn_timer_start(lawn_, &timers[0], 0, 10);
    lawn_timer_start(lawn_, &timers[1], 0, 10);
    lawn_timer_start(lawn_, &timers[2], 0, 1'000'000);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    EXPECT_EQ(lawn_count(lawn_), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    EXPECT_EQ(fired_, (std::vector<lawn_timer_t *>{&timers[0], &timers[0]}));
}

} // namespace
