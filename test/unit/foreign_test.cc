// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A timer of one lawn in the hands of another, or one that was moved or
// overwritten while it ran: mistakes that only debug builds look for, and only
// where a function is not inline, which is each start to an earlier deadline,
// and everything that is done to a lawn that is settled.

#ifndef NDEBUG

#include <lawn/queue.h>

#include <gtest/gtest.h>

namespace
{

constexpr lawn_time_t ttl = 1'000'000;

class ForeignDeathTest : public testing::Test
{
protected:
    ForeignDeathTest()
    {
        EXPECT_EQ(lawn_create(nullptr, &its_own_), LAWN_OK);
        EXPECT_EQ(lawn_create(nullptr, &other_), LAWN_OK);
        EXPECT_EQ(lawn_queue_create(other_, ttl, &queue_), LAWN_OK);
    }

    ~ForeignDeathTest() override
    {
        lawn_destroy(its_own_);
        lawn_destroy(other_);
    }

    void expect_mistakes(lawn_timer_t *timer)
    {
        expect_mistakes_of_starts(timer);
        ASSERT_TRUE(lawn_settle(other_, 0));
        expect_mistakes_when_settled(timer);
    }

    void expect_mistakes_of_starts(lawn_timer_t *timer)
    {
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, 1), "may_hold");
        EXPECT_DEATH(lawn_timer_start_at(other_, timer, 0, 0), "may_hold");
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, LAWN_TIME_INFINITY),
                     "may_hold");
        EXPECT_DEATH(lawn_queue_start(queue_, timer, 0), "may_hold");
    }

    void expect_mistakes_when_settled(lawn_timer_t *timer)
    {
        EXPECT_DEATH(lawn_timer_stop(other_, timer), "may_hold");
        EXPECT_DEATH(lawn_timer_pause(other_, timer), "may_hold");
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, 2 * ttl), "may_hold");
    }

    lawn_t *its_own_ = nullptr;
    lawn_t *other_ = nullptr;
    lawn_queue_t *queue_ = nullptr;
    lawn_timer_t timer_ = {};
    lawn_timer_t neighbours_[3] = {};
};

TEST_F(ForeignDeathTest, TheOtherLawnIsEmpty)
{
    lawn_timer_start(its_own_, &timer_, 0, ttl);
    expect_mistakes(&timer_);
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(its_own_, &neighbour, 0, ttl);
    }
    expect_mistakes(&timer_);
}

TEST_F(ForeignDeathTest, TheOtherLawnHasTheSameTtl)
{
    lawn_timer_start(its_own_, &timer_, 0, ttl);
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(other_, &neighbour, 0, ttl);
    }
    expect_mistakes(&timer_);
    for (lawn_timer_t &neighbour : neighbours_) {
        EXPECT_TRUE(lawn_timer_stop(other_, &neighbour));
    }
}

TEST_F(ForeignDeathTest, TheTimerIsInAQueue)
{
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(its_own_, ttl, &queue), LAWN_OK);
    lawn_queue_start(queue, &timer_, 0);
    expect_mistakes(&timer_);
    // The same call for the lawn's own is no mistake.
    lawn_timer_start(its_own_, &timer_, 0, 1);
    EXPECT_TRUE(lawn_timer_stop(its_own_, &timer_));
}

TEST_F(ForeignDeathTest, TheTimerIsDueOrPaused)
{
    lawn_timer_start(its_own_, &timer_, 0, 0);
    EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, 1), "may_hold");
    lawn_timer_pause(its_own_, &timer_);
    EXPECT_DEATH(lawn_timer_stop(other_, &timer_), "may_hold");
    EXPECT_DEATH(lawn_timer_pause(other_, &timer_), "may_hold");
    EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, ttl), "may_hold");
}

TEST_F(ForeignDeathTest, TheTimerWasMoved)
{
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(other_, &neighbour, 0, ttl);
    }
    lawn_timer_t moved = neighbours_[1];
    expect_mistakes(&moved);
}

TEST_F(ForeignDeathTest, TheTimerWasOverwritten)
{
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(other_, &neighbour, 0, ttl);
    }
    ASSERT_TRUE(lawn_settle(other_, 0));
    const lawn_timer_t before = neighbours_[1];
    lawn_timer_t elsewhere = {};
    elsewhere.link.next = elsewhere.link.prev = &elsewhere.link;
    neighbours_[1].link.next = &elsewhere.link;
    expect_mistakes_of_starts(&neighbours_[1]);
    expect_mistakes_when_settled(&neighbours_[1]);
    neighbours_[1] = neighbours_[0];
    expect_mistakes_of_starts(&neighbours_[1]);
    expect_mistakes_when_settled(&neighbours_[1]);
    neighbours_[1] = before;
}

} // namespace

#endif
