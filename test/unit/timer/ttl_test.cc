// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Every TTL where something changes, the powers of two and the borders of the
// slots, each with its neighbours: exact to the tick, alone and together,
// wherever the clock stands, and whatever it does.

#include "timer/slots.h"
#include "times.h"

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace
{

using lawn_test::end_of_time;

// "Never".

void add_with_neighbours(std::set<lawn_time_t> *ttls, lawn_time_t ttl)
{
    for (const lawn_time_t i : {ttl - 1, ttl, ttl + 1}) {
        ttls->insert(i); // 0 - 1 is LAWN_TIME_INFINITY, and 0 comes after that
    }
}

std::set<lawn_time_t> powers()
{
    std::set<lawn_time_t> ttls;
    for (unsigned bit = 0; bit < 64; ++bit) {
        add_with_neighbours(&ttls, lawn_time_t{1} << bit);
    }
    add_with_neighbours(&ttls, 0);
    return ttls;
}

std::set<lawn_time_t> powers_and_borders()
{
    std::set<lawn_time_t> ttls = powers();
    for (unsigned c = 0; c < lawn::class_count; ++c) {
        for (lawn_time_t slot = 1; slot <= lawn::slot_count; ++slot) {
            const lawn_time_t ttl = slot << lawn::shift_of(c);
            if (lawn::slot_of(c, ttl) == slot) {
                add_with_neighbours(&ttls, ttl);
            }
        }
    }
    return ttls;
}

// Where the clock may stand: at its beginning and its end, and where a 32-bit
// or a signed one would turn over.
constexpr lawn_time_t clocks[] = {0,
                                  1,
                                  (lawn_time_t{1} << 32) - 1,
                                  lawn_time_t{1} << 32,
                                  (lawn_time_t{1} << 63) - 1,
                                  lawn_time_t{1} << 63,
                                  LAWN_TIME_INFINITY - (lawn_time_t{1} << 32),
                                  LAWN_TIME_INFINITY - 5000,
                                  LAWN_TIME_INFINITY - 2,
                                  LAWN_TIME_INFINITY - 1};

// The last two deadlines never come.
lawn_time_t deadline_of(lawn_time_t now, lawn_time_t ttl)
{
    return ttl >= end_of_time - 1 - now || now == end_of_time ? end_of_time
                                                              : now + ttl;
}

lawn_time_t later_of(lawn_time_t now, lawn_time_t step)
{
    return step > end_of_time - now ? end_of_time : now + step;
}

class Ttl : public testing::TestWithParam<lawn_time_t>
{
protected:
    ~Ttl() override
    {
        lawn_destroy(lawn_);
    }

    void create()
    {
        lawn_destroy(lawn_);
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }

    // Fires what was started, each at its deadline: timers by deadline.
    void expect_exact(const std::map<lawn_time_t, unsigned> &expected)
    {
        for (const auto &[deadline, count] : expected) {
            if (deadline == end_of_time) {
                break;
            }
            if (deadline > lawn_->now) {
                ASSERT_EQ(lawn_advance(lawn_, deadline - 1, 0), 0U) << deadline;
            }
            ASSERT_LE(lawn_next(lawn_), deadline);
            ASSERT_EQ(lawn_advance(lawn_, deadline, 0), count) << deadline;
            ASSERT_GT(lawn_next(lawn_), deadline);
        }
        const auto never = expected.find(end_of_time);
        ASSERT_EQ(lawn_advance(lawn_, end_of_time, 0), 0U);
        ASSERT_EQ(lawn_count(lawn_),
                  never == expected.end() ? 0U : never->second);
        ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    lawn_t *lawn_ = nullptr;
};

TEST_P(Ttl, EachAloneIsExact)
{
    const lawn_time_t now = GetParam();
    for (const lawn_time_t ttl : powers()) {
        SCOPED_TRACE(ttl);
        create();
        lawn_timer_t timer = {};
        lawn_timer_start(lawn_, &timer, now, ttl);
        ASSERT_EQ(lawn_timer_deadline(&timer), deadline_of(now, ttl));
        expect_exact({{deadline_of(now, ttl), 1}});
        lawn_timer_stop(lawn_, &timer);
    }
}

TEST_P(Ttl, AllTogetherAreExact)
{
    const lawn_time_t now = GetParam();
    const std::set<lawn_time_t> ttls = powers_and_borders();
    ASSERT_GT(ttls.size(), 2500U);
    // Started once; re-armed to later, and to earlier, from other TTLs; and
    // paused meanwhile.
    for (const unsigned way : {0U, 1U, 2U, 3U}) {
        SCOPED_TRACE(way);
        create();
        std::vector<lawn_timer_t> timers(ttls.size());
        std::map<lawn_time_t, unsigned> expected;
        auto timer = timers.begin();
        for (const lawn_time_t ttl : ttls) {
            const lawn_time_t other = way == 1   ? ttl / 3
                                      : way == 2 ? later_of(ttl, ttl / 2 + 9)
                                                 : ttl;
            if (way != 0) {
                lawn_timer_start(lawn_, &*timer, now, other);
            }
            if (way == 3) {
                lawn_timer_pause(lawn_, &*timer);
            }
            lawn_timer_start(lawn_, &*timer++, now, ttl);
            ++expected[deadline_of(now, ttl)];
        }
        ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
        expect_exact(expected);
        create(); // before the timers go
    }
}

// A clock that goes back and forth counts as the latest it has told.
TEST_P(Ttl, ABackwardClockIsTheLatestSeen)
{
    const uint64_t seed = GetParam();
    const std::set<lawn_time_t> ttls = powers();
    create();
    std::mt19937_64 random(seed);
    std::vector<lawn_timer_t> timers(ttls.size());
    std::multiset<lawn_time_t> expected;
    auto timer = timers.begin();
    lawn_time_t latest = GetParam();
    lawn_advance(lawn_, latest, 0);
    for (const lawn_time_t ttl : ttls) {
        const lawn_time_t now = random() % 2 ? latest : random() % (latest + 1);
        lawn_timer_start(lawn_, &*timer++, now, ttl);
        expected.insert(deadline_of(latest, ttl));
    }
    while (latest < end_of_time) {
        const lawn_time_t step = random() >> (random() % 64);
        const lawn_time_t forth = later_of(latest, step);
        const lawn_time_t back = latest - random() % (latest / 2 + 1);
        const bool is_forth = random() % 2 == 0;
        latest = is_forth ? forth : latest;
        unsigned due = 0;
        while (!expected.empty() && *expected.begin() <= latest &&
               *expected.begin() != end_of_time) {
            expected.erase(expected.begin());
            ++due;
        }
        ASSERT_EQ(lawn_advance(lawn_, is_forth ? forth : back, 0), due);
    }
    for (lawn_timer_t &i : timers) {
        lawn_timer_stop(lawn_, &i);
    }
}

INSTANTIATE_TEST_SUITE_P(FromEachClock, Ttl, testing::ValuesIn(clocks));

// Only what is started for no time at all is ever due.
TEST(FrozenClock, FiresWhatHasNoTtlOncePerAdvance)
{
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    static lawn_t *of_callback;
    of_callback = lawn;
    lawn_timer_t zero;
    lawn_timer_init(&zero, [](lawn_timer_t *timer, lawn_time_t now) {
        lawn_timer_start(of_callback, timer, now, 0);
    });
    lawn_timer_t one = {};
    const lawn_time_t now = 12345;
    lawn_timer_start(lawn, &zero, now, 0);
    lawn_timer_start(lawn, &one, now, 1);
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_EQ(lawn_advance(lawn, now, 0), 1U);
        // Re-armed on each, as by ACKs while nothing moves.
        lawn_timer_start(lawn, &one, now, 1 + i % 3);
    }
    EXPECT_TRUE(lawn_timer_is_active(&one));
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    lawn_destroy(lawn);
}

} // namespace
