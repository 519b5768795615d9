// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a pacer lets go and when, and what it refuses.

#include "pacer_fixture.h"

#include <cmath>
#include <limits>

using namespace lawn_test;

namespace
{

using Pacer = PacerTest;

// A byte each nanosecond.
TEST_F(Pacer, ABurstGoesAtOnceAndTheRestAtTheRate)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 3000U);
    EXPECT_TRUE(take(flow, 1000));
    EXPECT_TRUE(take(flow, 2000));
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 0U);
    EXPECT_FALSE(take(flow, 1500));
    EXPECT_TRUE(lawn_pacer_is_waiting(&flow->pacer));
    EXPECT_EQ(lawn_pacer_next(&flow->pacer, 1500), start + 1500);
    pass_at(start + 1499);
    EXPECT_EQ(flow->called, 0U);
    EXPECT_FALSE(take(flow, 1500));
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 1499U);
    pass_at(start + 1500);
    EXPECT_EQ(flow->called, 1U);
    EXPECT_FALSE(lawn_pacer_is_waiting(&flow->pacer));
    EXPECT_TRUE(take(flow, 1500)); // asking has cost nothing
    EXPECT_FALSE(take(flow, 1));
}

TEST_F(Pacer, AnIdleFlowSavesUpNoMoreThanItsBurst)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 3000));
    now_ += 3600 * sec;
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 3000U);
    EXPECT_TRUE(take(flow, 3000));
    EXPECT_FALSE(take(flow, 1));
}

// A late poll costs no rate, as long as the burst covers it.
TEST_F(Pacer, WhatALatePollMissedCountsUpToTheBurst)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 3000));
    EXPECT_FALSE(take(flow, 1000));
    pass_at(start + 2500);
    EXPECT_TRUE(take(flow, 1000));
    EXPECT_TRUE(take(flow, 1000));
    EXPECT_FALSE(take(flow, 1000));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 3000);
}

TEST_F(Pacer, APacketAboveTheBurstGoesWhenNothingIsOwed)
{
    Flow *const flow = open(1e9, 100);
    EXPECT_TRUE(take(flow, 1500));
    EXPECT_FALSE(take(flow, 1500));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 1500);
    now_ = start + 1499;
    EXPECT_TRUE(take(flow, 99)); // which fits the burst
    EXPECT_FALSE(take(flow, 1500));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 1599);
    // Without a burst, so does each.
    Flow *const other = open(1e9, 0);
    EXPECT_TRUE(take(other, 1));
    EXPECT_FALSE(take(other, 1));
    now_ += 1;
    EXPECT_TRUE(take(other, 1));
    EXPECT_EQ(lawn_pacer_allowance(&other->pacer, now_), 0U);
}

TEST_F(Pacer, TheLatestAskedForIsWaitedFor)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 3000));
    EXPECT_FALSE(take(flow, 2000));
    EXPECT_FALSE(take(flow, 100));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 100);
    EXPECT_FALSE(take(flow, 500));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 500);
    lawn_pacer_stop(&flow->pacer);
    EXPECT_FALSE(lawn_pacer_is_waiting(&flow->pacer));
    pass_at(start + sec);
    EXPECT_EQ(flow->called, 0U);
}

// It has had its share, or the send queue is full.
TEST_F(Pacer, AFlowThatYieldsIsCalledInTheNextPass)
{
    Flow *const flow = open(1e9, 3000);
    Flow *const other = open(1e9, 3000);
    flow->on_ready = [&](lawn_time_t now) {
        lawn_pacer_yield(&flow->pacer, now);
    };
    lawn_pacer_yield(&flow->pacer, now_);
    lawn_pacer_yield(&other->pacer, now_);
    pass_at(now_);
    EXPECT_EQ(flow->called, 1U);
    EXPECT_EQ(other->called, 1U);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 3000U);
    pass_at(now_);
    EXPECT_EQ(flow->called, 2U);
    // Not while it owes more than its burst.
    lawn_pacer_force(&flow->pacer, now_, 4000);
    pass_at(now_ + 999);
    EXPECT_EQ(flow->called, 2U);
    pass_at(now_ + 1);
    EXPECT_EQ(flow->called, 3U);
}

// `ready` never comes when less may be taken than it was asked for.
TEST_F(Pacer, WhatIsForcedIsPaidForLater)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 3000));
    EXPECT_FALSE(take(flow, 1000));
    lawn_pacer_force(&flow->pacer, now_, 500);
    pass_at(start + 1000);
    EXPECT_EQ(flow->called, 0U);
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 1500);
    pass_at(start + 1500);
    EXPECT_EQ(flow->called, 1U);
    EXPECT_TRUE(take(flow, 1000));
}

TEST_F(Pacer, AWaitBecomesShorterAndLongerWithTheRate)
{
    Flow *const flow = open(1e9, 3000);
    const auto set_rate = [&](double rate, uint64_t burst) {
        EXPECT_EQ(lawn_pacer_set_rate(&flow->pacer, now_, rate, burst),
                  LAWN_OK);
    };
    EXPECT_TRUE(take(flow, 3000));
    EXPECT_FALSE(take(flow, 1000));
    set_rate(2e9, 3000);
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 500);
    now_ += 250; // 500 bytes are paid for
    set_rate(1e8, 3000);
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), now_ + 5000);
    // A larger burst gives more at once, a smaller one takes it back.
    set_rate(1e8, 3600);
    EXPECT_LE(lawn_timer_deadline(&flow->pacer.timer), now_);
    set_rate(1e8, 3000);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 500U);
    set_rate(1e8, 2000);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 0U);
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), now_ + 15'000);
    // An idle flow begins at the new rate with its burst.
    now_ += sec;
    set_rate(1e9, 1000);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 1000U);
}

// The callback of each does something else to itself and to the others.
TEST_F(Pacer, ACallbackMayDoAnything)
{
    std::vector<Flow *> some;
    for (int i = 0; i < 6; ++i) {
        some.push_back(open(1e9, 100));
        EXPECT_TRUE(take(some.back(), 100));
        EXPECT_FALSE(take(some.back(), 100));
    }
    unsigned called = 0;
    for (Flow *const flow : some) {
        flow->on_ready = [&, flow](lawn_time_t now) {
            now_ = now;
            switch (++called) {
            case 1: // frees itself and another
                for (auto &each : {flow, flow == some[0] ? some[1] : some[0]}) {
                    lawn_pacer_stop(&each->pacer);
                    each->pacer = {};
                }
                break;
            case 2: // takes, and waits again
                EXPECT_TRUE(take(flow, 100));
                EXPECT_FALSE(take(flow, 100));
                break;
            case 3: // becomes slower, and initialises itself anew
                EXPECT_EQ(lawn_pacer_set_rate(&flow->pacer, now, 1e6, 100),
                          LAWN_OK);
                EXPECT_EQ(init(flow, 1e9, 100), LAWN_OK);
                EXPECT_TRUE(take(flow, 100));
                break;
            default:
                break;
            }
        };
    }
    pass_at(start + 100);
    EXPECT_EQ(called, 5U);
    EXPECT_EQ(lawn_count(lawn_), 1U);
}

TEST_F(Pacer, OneThatIsZeroPacesNothing)
{
    lawn_pacer_t none = {};
    EXPECT_TRUE(lawn_pacer_take(&none, now_, 1'000'000));
    EXPECT_TRUE(lawn_pacer_take(&none, 0, 1'000'000));
    lawn_pacer_force(&none, now_, 1);
    lawn_pacer_yield(&none, now_);
    EXPECT_EQ(lawn_pacer_allowance(&none, now_), UINT64_MAX);
    EXPECT_EQ(lawn_pacer_next(&none, 1), 0U);
    EXPECT_FALSE(lawn_pacer_is_waiting(&none));
    lawn_pacer_stop(&none);
    EXPECT_EQ(lawn_pacer_set_rate(&none, now_, 1e9, 1), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_pacer_set_rate(nullptr, now_, 1e9, 1),
              LAWN_ERR_INVALID_PARAM);
}

TEST_F(Pacer, BadInputIsRefusedAndChangesNothing)
{
    constexpr double infinite = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 2000));
    const double least = 1e9 / 4294967296;
    for (const double rate : {0., -0., -1., nan, infinite, -infinite, 1e19,
                              9223372036854777856., 5e-324, least}) {
        EXPECT_EQ(init(flow, rate, 1), LAWN_ERR_INVALID_PARAM) << rate;
        EXPECT_EQ(lawn_pacer_set_rate(&flow->pacer, now_, rate, 1),
                  LAWN_ERR_INVALID_PARAM)
            << rate;
    }
    for (const uint64_t burst : {UINT64_MAX, uint64_t{1} << 63}) {
        EXPECT_EQ(init(flow, 1e9, burst), LAWN_ERR_INVALID_PARAM) << burst;
        EXPECT_EQ(lawn_pacer_set_rate(&flow->pacer, now_, 1e9, burst),
                  LAWN_ERR_INVALID_PARAM)
            << burst;
    }
    lawn_pacer_params_t params = {1e9, 1, 1e9};
    for (const double ticks : {-1., nan, infinite}) {
        params.ticks_per_sec = ticks;
        EXPECT_EQ(lawn_pacer_init(&flow->pacer, lawn_, &params, ready),
                  LAWN_ERR_INVALID_PARAM)
            << ticks;
    }
    params.ticks_per_sec = 1e9;
    EXPECT_EQ(lawn_pacer_init(nullptr, lawn_, &params, ready),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_pacer_init(&flow->pacer, nullptr, &params, ready),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_pacer_init(&flow->pacer, lawn_, nullptr, ready),
              LAWN_ERR_INVALID_PARAM);
    // Fields of a later version.
    char more[sizeof(params) + 8] = {};
    memcpy(more, &params, sizeof(params));
    more[sizeof(params)] = 1;
    EXPECT_EQ(lawn_pacer_init_sized(
                  &flow->pacer, lawn_,
                  reinterpret_cast<const lawn_pacer_params_t *>(more),
                  sizeof(more), ready),
              LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 1000U);
    EXPECT_FALSE(take(flow, 2000));
    EXPECT_EQ(init(flow, 1e9, 1), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 1000);
}

// Where time and numbers end.
TEST_F(Pacer, TheEndsOfTime)
{
    const double fastest = 9223372036854775808.; // 2^63
    Flow *const fast = open(fastest, uint64_t{1} << 62);
    EXPECT_TRUE(take(fast, uint64_t{1} << 62));
    EXPECT_FALSE(take(fast, 1));
    EXPECT_EQ(lawn_timer_deadline(&fast->pacer.timer), now_ + 1);
    for (int i = 0; i < 3; ++i) {
        lawn_pacer_force(&fast->pacer, now_, UINT64_MAX);
    }
    EXPECT_LT(lawn_pacer_next(&fast->pacer, 1), LAWN_TIME_INFINITY);
    const double slowest_rate = 1e9 / 4294967295.999;
    EXPECT_EQ(lawn_pacer_set_rate(&fast->pacer, now_, slowest_rate, 1),
              LAWN_OK);
    EXPECT_EQ(lawn_timer_deadline(&fast->pacer.timer), LAWN_TIME_INFINITY);
    Flow *const slow = open(1, 1);
    EXPECT_TRUE(take(slow, UINT64_MAX)); // more than the burst, and for ever
    EXPECT_EQ(lawn_pacer_next(&slow->pacer, 0), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_pacer_allowance(&slow->pacer, now_), 0U);
    EXPECT_FALSE(take(slow, 1));
    EXPECT_EQ(lawn_timer_deadline(&slow->pacer.timer), LAWN_TIME_INFINITY);
    lawn_pacer_force(&slow->pacer, now_, UINT64_MAX);
    EXPECT_EQ(lawn_pacer_set_rate(&slow->pacer, now_, .5, 1), LAWN_OK);
    EXPECT_EQ(lawn_timer_deadline(&slow->pacer.timer), LAWN_TIME_INFINITY);
    lawn_pacer_stop(&slow->pacer);
    // From there on, all is paid for at the end of time.
    Flow *const last = open(1e9, 100);
    now_ = LAWN_TIME_INFINITY - 50;
    EXPECT_TRUE(take(last, 100));
    EXPECT_FALSE(take(last, 1));
    EXPECT_EQ(lawn_timer_deadline(&last->pacer.timer), LAWN_TIME_INFINITY);
    now_ = LAWN_TIME_INFINITY - 2; // the last one, see lawn/timer.h
    EXPECT_FALSE(take(last, 1));
    // The largest product that there is.
    Flow *const slowest = open(slowest_rate, 1);
    EXPECT_TRUE(take(slowest, UINT64_MAX));
    EXPECT_EQ(lawn_pacer_next(&slowest->pacer, 1), LAWN_TIME_INFINITY);
}

// The flow waits until the clock has caught up.
TEST_F(Pacer, ATimeThatGoesBackGivesNothing)
{
    Flow *const flow = open(1e9, 3000);
    EXPECT_TRUE(take(flow, 3000));
    now_ = start - sec;
    EXPECT_EQ(lawn_pacer_allowance(&flow->pacer, now_), 0U);
    EXPECT_FALSE(take(flow, 1000));
    EXPECT_EQ(lawn_timer_deadline(&flow->pacer.timer), start + 1000);
}

// With the ticks of the clock, as a program is without ticks_per_sec.
TEST_F(Pacer, TheRateIsOfTheClockThatEverythingReads)
{
    Flow *const flow = open(1e9, 3000);
    lawn_pacer_params_t params = {};
    params.rate = 1;
    ASSERT_EQ(lawn_pacer_init(&flow->pacer, lawn_, &params, nullptr), LAWN_OK);
    EXPECT_TRUE(take(flow, 1));
    EXPECT_NEAR(static_cast<double>(lawn_pacer_next(&flow->pacer, 1) - now_),
                lawn_time_sec_value(), 1);
    // Nobody is called.
    EXPECT_FALSE(take(flow, 1));
    pass_at(lawn_pacer_next(&flow->pacer, 1));
    EXPECT_FALSE(lawn_pacer_is_waiting(&flow->pacer));
    EXPECT_TRUE(take(flow, 1));
}

} // namespace
