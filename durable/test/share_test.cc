// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a target of posts may have, and how long the rest is put off, on virtual
// time.

#include "lawnd/share.h"

#include <gtest/gtest.h>
#include <lawn/time.h>

#include <vector>

namespace
{

using namespace lawnd;

constexpr uint64_t usec = 1000000;

lawn_time_t at(double seconds)
{
    return lawn_time_from_sec(seconds);
}

TEST(DurableShare, WhoAnswersMayHaveManyAndOthersOne)
{
    const DeliveryLimits limits;
    Posts posts;
    Share share;
    EXPECT_TRUE(share.may_post(limits, posts));
    const Standing begun = share.begin(&posts);
    EXPECT_FALSE(share.may_post(limits, posts));
    share.set_standing(Standing::good);
    for (unsigned i = 1; i < limits.posts_per_target; ++i) {
        EXPECT_TRUE(share.may_post(limits, posts));
        share.begin(&posts);
    }
    EXPECT_FALSE(share.may_post(limits, posts));
    share.end(begun, &posts, 0);
    EXPECT_TRUE(share.may_post(limits, posts));
    share.set_standing(Standing::silent);
    EXPECT_FALSE(share.may_post(limits, posts));
    EXPECT_EQ(posts.of(Standing::untried), 0U);
    EXPECT_EQ(posts.of(Standing::good), 15U);
}

// However many there are of a kind.
TEST(DurableShare, EachKindLeavesRoomForTheOthers)
{
    const DeliveryLimits limits;
    Posts posts;
    std::vector<Share> hanging(2000);
    std::vector<Share> fresh(2000);
    for (Share &share : hanging) {
        share.set_standing(Standing::silent);
        if (share.may_post(limits, posts)) {
            share.begin(&posts);
        }
        EXPECT_FALSE(share.may_wait(limits, 0, 0));
    }
    for (Share &share : fresh) {
        if (share.may_post(limits, posts)) {
            share.begin(&posts);
        }
    }
    EXPECT_EQ(posts.of(Standing::silent), limits.posts / 4);
    EXPECT_EQ(posts.of(Standing::untried), limits.posts / 2);
    Share good;
    good.set_standing(Standing::good);
    for (unsigned i = 0; i < limits.posts_per_target; ++i) {
        EXPECT_TRUE(good.may_post(limits, posts));
        good.begin(&posts);
    }
    EXPECT_TRUE(good.may_wait(limits, 0, limits.queued / 4 * 3));
}

// So many timers of one target come, are put off, and come again. Returns how
// often they come in the last of the seconds.
uint64_t returns_of(unsigned timers, unsigned posts_a_second, unsigned seconds)
{
    Share share;
    Posts posts;
    std::vector<double> next(timers, 0); // when each comes
    uint64_t returns = 0;
    for (unsigned step = 0; step < 10 * seconds; ++step) {
        const double now = step * 0.1;
        for (unsigned i = 0; i < posts_a_second / 10; ++i) {
            share.end(share.begin(&posts), &posts, at(now));
        }
        for (size_t i = 0; i < next.size(); ++i) {
            if (next[i] <= now) {
                const double pause =
                    static_cast<double>(share.put_off_us(at(now))) / usec;
                const double spread = 0.5 + static_cast<double>(i % 100) / 100;
                next[i] = now + pause * spread;
                returns += step >= 10 * (seconds - 1);
            }
        }
    }
    return returns;
}

TEST(DurableShare, WhatWaitsForATargetThatHangsRests)
{
    EXPECT_LE(returns_of(20000, 0, 900), 20000U / 40);
    EXPECT_LE(returns_of(20, 0, 900), 3U);
}

// Not for longer than it must: each may be posted as soon as there is room.
TEST(DurableShare, WhatWaitsForATargetThatIsSlowComesOftenEnough)
{
    const uint64_t returns = returns_of(20000, 1000, 60);
    EXPECT_GE(returns, 1000U);
    EXPECT_LE(returns, 10000U);
}

TEST(DurableShare, ThePauseGoesBack)
{
    Share share;
    double now = 0;
    for (unsigned i = 0; i < 10000; ++i) {
        now += 0.05;
        for (unsigned n = 0; n < 100; ++n) {
            share.put_off_us(at(now));
        }
    }
    EXPECT_EQ(share.put_off_us(at(now)), 120 * usec);
    Posts posts;
    for (unsigned i = 0; i < 8; ++i) {
        now += 121;
        share.end(share.begin(&posts), &posts, at(now));
    }
    EXPECT_EQ(share.put_off_us(at(now)), usec);
}

} // namespace
