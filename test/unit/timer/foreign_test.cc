// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A timer of one lawn in the hands of another, or one that was moved or
// overwritten while it ran, or never initialised: mistakes that only debug
// builds look for, and only where a function is not inline, which is each start
// to an earlier deadline, everything that is done to a lawn that is settled or
// destroyed, and what an advance and a drain come upon. A lawn in the hands of
// another thread, while one is inside of it, is such a mistake, too.

#ifndef NDEBUG

#include "times.h"
#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

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

// A lawn whose memory stays as the destroy has left it.
class GoneDeathTest : public testing::Test
{
protected:
    GoneDeathTest()
    {
        lawn_params_t params = {};
        params.allocator.alloc = [](void *arg, size_t size) -> void * {
            auto &kept = *static_cast<std::deque<std::vector<char>> *>(arg);
            kept.emplace_back(size);
            return kept.back().data();
        };
        params.allocator.release = [](void *, void *) {};
        params.allocator.arg = &kept_;
        EXPECT_EQ(lawn_create(&params, &lawn_), LAWN_OK);
        lawn_timer_start(lawn_, &timer_, 5, ttl);
        lawn_destroy(lawn_);
    }

    std::deque<std::vector<char>> kept_;
    lawn_t *lawn_ = nullptr;
    lawn_timer_t timer_ = {};
};

TEST_F(GoneDeathTest, NothingUsesALawnThatWasDestroyed)
{
    constexpr char gone[] = "not destroyed before";
    EXPECT_FALSE(lawn_timer_is_active(&timer_));
    EXPECT_DEATH(lawn_timer_start(lawn_, &timer_, 5, ttl), gone);
    EXPECT_DEATH(lawn_timer_start_at(lawn_, &timer_, 5, 9), gone);
    EXPECT_DEATH(lawn_timer_stop(lawn_, &timer_), gone);
    EXPECT_DEATH(lawn_timer_pause(lawn_, &timer_), gone);
    EXPECT_DEATH(lawn_advance(lawn_, 5, 0), gone);
    EXPECT_DEATH(lawn_settle(lawn_, 0), gone);
    EXPECT_DEATH(lawn_drain(lawn_, nullptr), gone);
    EXPECT_DEATH(lawn_destroy(lawn_), gone);
}

// Calls `act` in another thread, from inside a callback.
template <class Act> void call_inside(lawn_t *lawn, Act act)
{
    struct Caller {
        lawn_timer_t timer;
        Act act;
    } caller = {{}, act};
    lawn_timer_init(&caller.timer, [](lawn_timer_t *timer, lawn_time_t) {
        std::thread(reinterpret_cast<Caller *>(timer)->act).join();
    });
    lawn_timer_start(lawn, &caller.timer, 0, 0);
    lawn_advance(lawn, 0, 0);
}

TEST_F(ForeignDeathTest, NoThreadUsesTheLawnThatAnotherAdvances)
{
    constexpr char inside[] = "no other thread is in a pass";
    const std::vector<std::function<void()>> acts = {
        [this] { lawn_timer_start(other_, &timer_, 0, ttl); },
        [this] { lawn_timer_stop(other_, &timer_); },
        [this] { lawn_timer_pause(other_, &timer_); },
        [this] { lawn_queue_start(queue_, &timer_, 0); },
        [this] { lawn_advance(other_, 0, 0); },
        [this] { lawn_settle(other_, 0); },
        [this] { lawn_drain(other_, nullptr); },
        [this] { lawn_destroy(other_); },
    };
    for (const auto &act : acts) {
        EXPECT_DEATH(call_inside(other_, act), inside);
    }
    // In turn, a lawn is for any thread; and another lawn is, at any time.
    for (size_t i = 0; i < 5; ++i) {
        std::thread(acts[i]).join();
        acts[i]();
    }
    call_inside(its_own_, acts[0]);
    EXPECT_TRUE(lawn_timer_stop(other_, &timer_));
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
