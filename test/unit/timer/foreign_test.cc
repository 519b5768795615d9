// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A timer of one lawn in the hands of another, or one that was moved or
// overwritten while it ran, or never initialised: mistakes that only debug
// builds look for, and only where a function is not inline, which is each start
// to an earlier deadline, everything that is done to a lawn that is settled,
// and what an advance and a drain come upon.

#ifndef NDEBUG

#include "times.h"
#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <cstring>

namespace
{

using lawn_test::ttl;

// Parts of the sentences, of which a compiler may print the halves.
constexpr char overwritten[] = "neither moved nor overwritten";
constexpr char lost[] = "lost while it ran";

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

    void expect_mistakes(lawn_timer_t *timer,
                         const char *message = "is no other lawn's")
    {
        expect_mistakes_of_starts(timer, message);
        ASSERT_TRUE(lawn_settle(other_, 0));
        expect_mistakes_when_settled(timer, message);
    }

    void expect_mistakes_of_starts(lawn_timer_t *timer, const char *message)
    {
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, 1), message);
        EXPECT_DEATH(lawn_timer_start_at(other_, timer, 0, 0), message);
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, LAWN_TIME_INFINITY),
                     message);
        EXPECT_DEATH(lawn_queue_start(queue_, timer, 0), message);
    }

    void expect_mistakes_when_settled(lawn_timer_t *timer, const char *message)
    {
        EXPECT_DEATH(lawn_timer_stop(other_, timer), message);
        EXPECT_DEATH(lawn_timer_pause(other_, timer), message);
        EXPECT_DEATH(lawn_timer_start(other_, timer, 0, 2 * ttl), message);
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
    EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, 1), "is no other lawn's");
    lawn_timer_pause(its_own_, &timer_);
    EXPECT_DEATH(lawn_timer_stop(other_, &timer_), "is no other lawn's");
    EXPECT_DEATH(lawn_timer_pause(other_, &timer_), "is no other lawn's");
    EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, ttl),
                 "is no other lawn's");
}

TEST_F(ForeignDeathTest, TheTimerWasMoved)
{
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(other_, &neighbour, 0, ttl);
    }
    lawn_timer_t moved = neighbours_[1];
    expect_mistakes(&moved, overwritten);
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
    expect_mistakes_of_starts(&neighbours_[1], overwritten);
    expect_mistakes_when_settled(&neighbours_[1], overwritten);
    neighbours_[1] = neighbours_[0];
    expect_mistakes_of_starts(&neighbours_[1], overwritten);
    expect_mistakes_when_settled(&neighbours_[1], overwritten);
    neighbours_[1] = before;
}

// What was never initialised looks like anything.
TEST_F(ForeignDeathTest, TheTimerWasNotInitialised)
{
    lawn_timer_t garbage;
    memset(&garbage, 0xa5, sizeof garbage);
    expect_mistakes(&garbage, overwritten);
    EXPECT_DEATH(lawn_timer_stop(its_own_, &garbage), overwritten);
    EXPECT_DEATH(lawn_timer_pause(its_own_, &garbage), overwritten);
    garbage.link.next = nullptr; // idle, with a deadline
    expect_mistakes(&garbage, overwritten);
    garbage = {};
    garbage.deadline = 5;
    EXPECT_DEATH(lawn_timer_start(its_own_, &garbage, 0, 1), overwritten);
    garbage.link.next = &timer_.link; // half a link
    garbage.check = 5;
    EXPECT_DEATH(lawn_timer_start(its_own_, &garbage, 0, 1), overwritten);
}

TEST_F(ForeignDeathTest, ATimerInASlotHasACheckBeforeItsDeadline)
{
    lawn_timer_start(other_, &timer_, 0, ttl);
    const lawn_time_t check = timer_.check;
    timer_.check = timer_.deadline + 1;
    EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, 1), overwritten);
    timer_.check = check;
}

// What the list of a slot comes upon: the first, the last, one between, and
// one that was started again, so that it is in two.
class LostDeathTest : public ForeignDeathTest
{
protected:
    template <typename Lose> void expect_found(Lose lose)
    {
        for (unsigned i = 0; i < 3; ++i) {
            SCOPED_TRACE(i);
            for (lawn_timer_t &neighbour : neighbours_) {
                lawn_timer_start(other_, &neighbour, 0, ttl);
            }
            const auto act = [&](auto then) {
                lose(&neighbours_[i]);
                then();
            };
            EXPECT_DEATH(act([this] { lawn_advance(other_, 2 * ttl, 0); }),
                         lost);
            EXPECT_DEATH(act([this] { lawn_drain(other_, nullptr); }), lost);
        }
    }
};

TEST_F(LostDeathTest, ATimerIsInitialisedWhileItRuns)
{
    expect_found([](lawn_timer_t *timer) { lawn_timer_init(timer, nullptr); });
}

TEST_F(LostDeathTest, ATimerIsInitialisedWhileItRunsAndStarted)
{
    expect_found([this](lawn_timer_t *timer) {
        lawn_timer_init(timer, nullptr);
        lawn_timer_start(other_, timer, 0, 3 * ttl);
    });
}

TEST_F(LostDeathTest, ATimerIsOverwritten)
{
    for (const int byte : {0x00, 0x5a, 0xa5, 0xff}) {
        expect_found([byte](lawn_timer_t *timer) {
            memset(timer, byte, sizeof *timer);
        });
    }
}

TEST_F(LostDeathTest, TheNextStartFindsIt)
{
    lawn_timer_start(other_, &timer_, 0, ttl);
    const lawn_timer_t before = timer_;
    lawn_timer_init(&timer_, nullptr);
    EXPECT_DEATH(lawn_timer_start(other_, &neighbours_[0], 0, ttl), lost);
    EXPECT_DEATH(lawn_destroy(other_), lost);
    timer_ = before;
}

} // namespace

#endif
