// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers as each thread by itself sees them, on virtual time and in one
// thread: what is a message and what is not, what each call answers, and who
// lets go of what. shared_threads_test.cc has more threads than one,
// test/model the ways in which their steps interleave.

#include <lawn/shared.h>

#include "../../misuse.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace
{

constexpr unsigned timer_count = 10;

struct Owned {
    lawn_shared_t timer; // first
    std::vector<lawn_time_t> fired_at;
    unsigned released = 0;
    std::function<void(lawn_time_t)> then;
};

Owned *owned(lawn_shared_t *timer)
{
    return reinterpret_cast<Owned *>(timer);
}

void on_expired(lawn_shared_t *timer, lawn_time_t now)
{
    EXPECT_FALSE(lawn_shared_is_active(timer));
    owned(timer)->fired_at.push_back(now);
    if (owned(timer)->then) {
        owned(timer)->then(now);
    }
}

void on_released(lawn_shared_t *timer, lawn_time_t)
{
    ++owned(timer)->released;
}

class Shared : public testing::Test
{
protected:
    Shared()
    {
        lawn_params_t params = {};
        params.allocator.alloc = [](void *arg, size_t size) {
            ++*static_cast<unsigned *>(arg);
            return malloc(size);
        };
        params.allocator.release = [](void *arg, void *memory) {
            --*static_cast<unsigned *>(arg);
            free(memory);
        };
        params.allocator.arg = &live_;
        EXPECT_EQ(lawn_create(&params, &lawn_), LAWN_OK);
        EXPECT_EQ(lawn_box_create(lawn_, &box_), LAWN_OK);
        for (unsigned i = 0; i < timer_count; ++i) {
            timers_.push_back(std::make_unique<Owned>());
            lawn_shared_init(&timers_.back()->timer, box_, on_expired);
        }
    }

    ~Shared() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        for (const std::unique_ptr<Owned> &i : timers_) {
            if (i->released == 0) {
                lawn_shared_retire(&i->timer, on_released);
            }
        }
        lawn_box_destroy(box_);
        lawn_destroy(lawn_);
        for (const std::unique_ptr<Owned> &i : timers_) {
            EXPECT_EQ(i->released, 1U);
        }
        EXPECT_EQ(live_, 0U);
    }

    lawn_shared_t *timer(unsigned i)
    {
        return &timers_[i]->timer;
    }

    // Messages, and timers fired, of a pass.
    unsigned drain(lawn_time_t now, unsigned budget = 0)
    {
        return lawn_box_drain(box_, now, budget);
    }

    unsigned pass(lawn_time_t now)
    {
        drain(now);
        return lawn_advance(lawn_, now, 0);
    }

    unsigned live_ = 0; // allocations
    lawn_t *lawn_ = nullptr;
    lawn_box_t *box_ = nullptr;
    std::vector<std::unique_ptr<Owned>> timers_;
};

using Times = std::vector<lawn_time_t>;

TEST_F(Shared, FiresAtItsDeadlineAndNotATickBefore)
{
    EXPECT_FALSE(lawn_shared_is_active(timer(0)));
    EXPECT_TRUE(lawn_shared_start(timer(0), 1000));
    EXPECT_TRUE(lawn_shared_is_active(timer(0)));
    EXPECT_EQ(lawn_shared_deadline(timer(0)), 1000U);
    EXPECT_EQ(drain(10), 1U);
    EXPECT_EQ(drain(10), 0U);
    EXPECT_EQ(pass(999), 0U);
    EXPECT_EQ(pass(1000), 1U);
    EXPECT_EQ(timers_[0]->fired_at, Times{1000});
    EXPECT_FALSE(lawn_shared_is_active(timer(0)));
    EXPECT_EQ(lawn_shared_deadline(timer(0)), LAWN_TIME_INFINITY);
    EXPECT_EQ(pass(5000), 0U);
}

TEST_F(Shared, ALaterDeadlineCostsTheOwnerNothing)
{
    lawn_shared_start(timer(0), 1000);
    EXPECT_EQ(drain(10), 1U);
    for (lawn_time_t deadline = 1001; deadline < 2000; ++deadline) {
        lawn_shared_start(timer(0), deadline);
    }
    EXPECT_EQ(drain(10), 0U);
    // Looked at once on the way, which fires nothing.
    EXPECT_EQ(pass(1000), 0U);
    EXPECT_EQ(pass(1998), 0U);
    EXPECT_EQ(pass(1999), 1U);
    EXPECT_EQ(timers_[0]->fired_at, Times{1999});
}

TEST_F(Shared, AnEarlierDeadlineIsAMessage)
{
    lawn_shared_start(timer(0), 1000);
    EXPECT_EQ(drain(10), 1U);
    lawn_shared_start(timer(0), 500);
    EXPECT_EQ(drain(10), 1U);
    EXPECT_EQ(pass(499), 0U);
    EXPECT_EQ(pass(500), 1U);
    EXPECT_EQ(pass(2000), 0U);
}

TEST_F(Shared, IsInTheBoxOnce)
{
    for (lawn_time_t i = 0; i < 100; ++i) {
        lawn_shared_start(timer(0), 1000 - i);
        lawn_shared_stop(timer(1));
        lawn_shared_start(timer(1), 1000 + i);
    }
    EXPECT_EQ(drain(10), 2U);
    EXPECT_EQ(pass(901), 1U);
    EXPECT_EQ(pass(1099), 1U);
}

TEST_F(Shared, StopSaysWhetherItRan)
{
    EXPECT_FALSE(lawn_shared_stop(timer(0)));
    lawn_shared_start(timer(0), 1000);
    EXPECT_TRUE(lawn_shared_stop(timer(0))); // in the box
    EXPECT_FALSE(lawn_shared_stop(timer(0)));
    EXPECT_EQ(pass(2000), 0U);
    lawn_shared_start(timer(0), 3000);
    pass(2000);
    EXPECT_TRUE(lawn_shared_stop(timer(0))); // in the lawn
    EXPECT_EQ(pass(3000), 0U);
    lawn_shared_start(timer(0), 4000);
    EXPECT_EQ(pass(4000), 1U);
    EXPECT_FALSE(lawn_shared_stop(timer(0))); // has fired
}

TEST_F(Shared, AStoppedTimerIsStartedAgainWithoutAMessage)
{
    lawn_shared_start(timer(0), 1000);
    drain(10);
    for (lawn_time_t i = 0; i < 100; ++i) {
        EXPECT_TRUE(lawn_shared_stop(timer(0)));
        EXPECT_TRUE(lawn_shared_start(timer(0), 1000 + i));
    }
    EXPECT_EQ(drain(10), 0U);
    EXPECT_EQ(pass(1098), 0U);
    EXPECT_EQ(pass(1099), 1U);
}

TEST_F(Shared, TheOwnersStartIsTheSame)
{
    EXPECT_TRUE(lawn_shared_start_local(timer(0), 1000));
    EXPECT_EQ(drain(10), 0U);
    EXPECT_TRUE(lawn_shared_start_local(timer(0), 2000)); // later: a store
    EXPECT_EQ(pass(1999), 0U);
    EXPECT_TRUE(lawn_shared_start_local(timer(0), 3000));
    EXPECT_TRUE(lawn_shared_start_local(timer(0), 2500)); // earlier
    EXPECT_EQ(pass(2500), 1U);
    EXPECT_EQ(timers_[0]->fired_at, Times{2500});
    EXPECT_TRUE(lawn_shared_start_local(timer(0), LAWN_TIME_INFINITY));
    EXPECT_TRUE(lawn_shared_is_active(timer(0)));
    EXPECT_EQ(lawn_shared_deadline(timer(0)), LAWN_TIME_INFINITY);
    EXPECT_EQ(pass(LAWN_TIME_INFINITY), 0U);
    EXPECT_TRUE(lawn_shared_stop(timer(0)));
}

TEST_F(Shared, AnyDeadline)
{
    pass(1000);
    lawn_shared_start(timer(0), 0); // past
    lawn_shared_start(timer(1), LAWN_TIME_INFINITY);
    lawn_shared_start(timer(2), LAWN_TIME_INFINITY - 1); // never, too
    lawn_shared_start(timer(3), LAWN_TIME_INFINITY - 2);
    lawn_shared_start(timer(4), lawn_time_t{1} << 63);
    EXPECT_EQ(drain(1000), 5U);
    EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 1U);
    EXPECT_EQ(timers_[0]->fired_at, Times{1000});
    EXPECT_EQ(pass((lawn_time_t{1} << 63) - 1), 0U);
    EXPECT_EQ(pass(lawn_time_t{1} << 63), 1U);
    EXPECT_EQ(pass(LAWN_TIME_INFINITY - 3), 0U);
    EXPECT_EQ(pass(LAWN_TIME_INFINITY - 2), 1U);
    EXPECT_EQ(timers_[3]->fired_at, Times{LAWN_TIME_INFINITY - 2});
    EXPECT_TRUE(lawn_shared_is_active(timer(1)));
    EXPECT_TRUE(lawn_shared_is_active(timer(2)));
}

TEST_F(Shared, ADrainTakesNoMoreThanItsBudget)
{
    for (unsigned i = 0; i < timer_count; ++i) {
        lawn_shared_start(timer(i), 1000);
    }
    EXPECT_EQ(drain(10, 4), 4U);
    EXPECT_FALSE(lawn_box_sleep(box_, 2000)); // there is more
    EXPECT_EQ(drain(10, 4), 4U);
    EXPECT_EQ(drain(10, 4), 2U);
    EXPECT_EQ(drain(10, 4), 0U);
    EXPECT_EQ(pass(1000), timer_count);
}

// What is older goes first, so a flood of messages keeps none waiting for ever.
TEST_F(Shared, MessagesThatWereLeftComeBeforeNewOnes)
{
    for (unsigned i = 0; i < 5; ++i) {
        lawn_shared_start(timer(i), 1000);
    }
    EXPECT_EQ(drain(10, 1), 1U);
    for (unsigned i = 5; i < timer_count; ++i) {
        lawn_shared_start(timer(i), 20);
    }
    EXPECT_EQ(drain(20, 4), 4U);
    EXPECT_EQ(lawn_advance(lawn_, 20, 0), 0U);
    EXPECT_EQ(drain(20, 5), 5U);
    EXPECT_EQ(lawn_advance(lawn_, 20, 0), 5U);
    EXPECT_EQ(pass(1000), 5U);
}

TEST_F(Shared, ACallbackMayDoAnything)
{
    timers_[0]->then = [this](lawn_time_t now) {
        EXPECT_TRUE(lawn_shared_start(timer(0), now)); // due at once: not now
        EXPECT_TRUE(lawn_shared_stop(timer(1)));
        EXPECT_TRUE(lawn_shared_start_local(timer(2), now + 10));
        lawn_shared_retire(timer(3), on_released);
        EXPECT_EQ(lawn_box_drain(box_, now, 0), 2U); // timer 0, and 3 goes
        EXPECT_EQ(timers_[3]->released, 1U);
    };
    lawn_shared_start(timer(0), 100);
    for (unsigned i = 1; i < 4; ++i) {
        lawn_shared_start(timer(i), 101);
    }
    EXPECT_EQ(pass(100), 1U);
    timers_[0]->then = nullptr;
    EXPECT_EQ(pass(100), 1U);
    EXPECT_EQ(timers_[0]->fired_at, (Times{100, 100}));
    EXPECT_EQ(pass(109), 0U);
    EXPECT_EQ(pass(110), 1U);
}

TEST_F(Shared, ACallbackMayRetireItsOwnTimer)
{
    timers_[0]->then = [this](lawn_time_t now) {
        lawn_shared_retire(timer(0), on_released);
        EXPECT_EQ(timers_[0]->released, 0U);
        lawn_box_drain(box_, now, 0);
        EXPECT_EQ(timers_[0]->released, 1U);
    };
    lawn_shared_start(timer(0), 100);
    EXPECT_EQ(pass(100), 1U);
}

TEST_F(Shared, ARetiredTimerNeverFiresAndIsReleasedByTheOwner)
{
    lawn_shared_start(timer(1), 100); // one in the box, one in the lawn
    drain(10);
    lawn_shared_start(timer(0), 100);
    for (unsigned i = 0; i < 3; ++i) {
        lawn_shared_retire(timer(i), on_released);
        EXPECT_FALSE(lawn_shared_is_active(timer(i)));
        EXPECT_EQ(timers_[i]->released, 0U);
    }
    EXPECT_EQ(drain(10), 3U);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(timers_[i]->released, 1U);
    }
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(pass(1000), 0U);
}

TEST_F(Shared, ReleasedMayFreeTheTimer)
{
    Owned *const timer = new Owned;
    lawn_shared_init(&timer->timer, box_, on_expired);
    lawn_shared_start(&timer->timer, 100);
    drain(10);
    lawn_shared_retire(&timer->timer, [](lawn_shared_t *released, lawn_time_t) {
        delete owned(released);
    });
    EXPECT_EQ(drain(10), 1U);
    Owned silent;
    lawn_shared_init(&silent.timer, box_, nullptr);
    lawn_shared_start(&silent.timer, 50);
    EXPECT_EQ(pass(50), 1U); // fires, and calls nobody
    lawn_shared_retire(&silent.timer, nullptr);
    EXPECT_EQ(drain(60), 1U);
}

TEST_F(Shared, ADestroyedBoxTakesNoStart)
{
    lawn_shared_start(timer(0), 100); // in the lawn, and, the next, in the box
    lawn_shared_start(timer(3), 0);
    drain(10);
    lawn_shared_start(timer(1), 100);
    lawn_shared_retire(timer(2), on_released);
    lawn_box_destroy(box_);
    box_ = nullptr;
    EXPECT_EQ(timers_[2]->released, 1U);
    for (const unsigned i : {0, 1, 3, 4}) {
        EXPECT_FALSE(lawn_shared_is_active(timer(i)));
        EXPECT_FALSE(lawn_shared_start(timer(i), 100));
        EXPECT_FALSE(lawn_shared_start_local(timer(i), 100));
        EXPECT_FALSE(lawn_shared_is_active(timer(i)));
        EXPECT_FALSE(lawn_shared_stop(timer(i)));
        lawn_shared_sync(timer(i));
    }
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 0U);
    lawn_shared_retire(timer(0), on_released); // at once
    EXPECT_EQ(timers_[0]->released, 1U);
    EXPECT_EQ(live_, 2U); // the lawn, and the box until the last has gone
}

TEST_F(Shared, BoxesOfOneLawnAreIndependent)
{
    lawn_box_t *other = nullptr;
    ASSERT_EQ(lawn_box_create(lawn_, &other), LAWN_OK);
    Owned timer_of_other;
    lawn_shared_init(&timer_of_other.timer, other, on_expired);
    lawn_shared_start(&timer_of_other.timer, 100);
    lawn_shared_start(timer(0), 100);
    EXPECT_EQ(drain(10), 1U);
    EXPECT_EQ(lawn_box_drain(other, 10, 0), 1U);
    lawn_shared_retire(&timer_of_other.timer, on_released);
    lawn_timer_t plain = {};
    lawn_timer_start(lawn_, &plain, 10, 90);
    lawn_box_destroy(other);
    EXPECT_EQ(timer_of_other.released, 1U);
    EXPECT_EQ(pass(100), 2U);
    lawn_box_destroy(nullptr);
}

TEST_F(Shared, ADrainOfTheLawnLeavesTimersThatMayBeStartedAgain)
{
    lawn_shared_start(timer(0), 100);
    lawn_shared_start(timer(1), 100);
    drain(10);
    EXPECT_TRUE(lawn_shared_stop(timer(1)));
    lawn_timer_t plain;
    lawn_timer_init(&plain, nullptr);
    lawn_timer_start(lawn_, &plain, 10, 20);
    static std::vector<lawn_timer_t *> drained;
    drained.clear();
    EXPECT_EQ(lawn_drain(lawn_, [](lawn_timer_t *each,
                                   lawn_time_t) { drained.push_back(each); }),
              1U);
    EXPECT_EQ(drained, std::vector<lawn_timer_t *>{&plain});
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_FALSE(lawn_shared_is_active(timer(0)));
    EXPECT_FALSE(lawn_shared_stop(timer(0)));
    EXPECT_EQ(pass(200), 0U);
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_TRUE(lawn_shared_start(timer(i), 300));
    }
    EXPECT_EQ(pass(299), 0U);
    EXPECT_EQ(pass(300), 2U);
}

TEST_F(Shared, AnEarlierDeadlineWakesTheSleeperOnce)
{
    unsigned wakes = 0;
    lawn_box_on_wake(
        box_, [](void *arg) { ++*static_cast<unsigned *>(arg); }, &wakes);
    lawn_shared_start(timer(0), 1000);
    EXPECT_EQ(wakes, 0U); // does not sleep
    EXPECT_FALSE(lawn_box_sleep(box_, 1000));
    drain(10);
    EXPECT_TRUE(lawn_box_sleep(box_, 1000));
    EXPECT_TRUE(lawn_box_sleep(box_, 1000));
    lawn_shared_start(timer(0), 2000); // no message
    lawn_shared_start(timer(1), 1000); // not before it wakes
    EXPECT_EQ(wakes, 0U);
    EXPECT_FALSE(lawn_box_sleep(box_, 1000)); // but not again
    lawn_shared_start(timer(1), 999);         // in the box already
    EXPECT_EQ(wakes, 1U);
    lawn_shared_start(timer(2), 500);
    EXPECT_EQ(wakes, 1U); // is up
    EXPECT_EQ(drain(20), 2U);
    EXPECT_TRUE(lawn_box_sleep(box_, LAWN_TIME_INFINITY));
    EXPECT_EQ(drain(30), 0U); // up by itself
    lawn_shared_start(timer(3), 500);
    EXPECT_EQ(wakes, 1U);
    EXPECT_EQ(drain(40), 1U);
    EXPECT_TRUE(lawn_box_sleep(box_, 500));
    lawn_shared_retire(timer(3), on_released);
    EXPECT_EQ(wakes, 2U);
    EXPECT_EQ(drain(50), 1U);
}

TEST_F(Shared, ASleeperThatNobodyCanWakeGetsItsMessages)
{
    EXPECT_TRUE(lawn_box_sleep(box_, LAWN_TIME_INFINITY));
    EXPECT_TRUE(lawn_shared_start(timer(0), 100));
    EXPECT_EQ(pass(100), 1U);
}

TEST_F(Shared, NoMemoryAndNoArguments)
{
    lawn_box_t *box = box_;
    EXPECT_EQ(lawn_box_create(nullptr, &box), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_box_create(lawn_, nullptr), LAWN_ERR_INVALID_PARAM);
    lawn_params_t params = {};
    bool is_out = false;
    params.allocator.alloc = [](void *arg, size_t size) {
        return *static_cast<bool *>(arg) ? nullptr : malloc(size);
    };
    params.allocator.release = [](void *, void *memory) { free(memory); };
    params.allocator.arg = &is_out;
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(&params, &lawn), LAWN_OK);
    is_out = true;
    EXPECT_EQ(lawn_box_create(lawn, &box), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(box, box_); // left alone
    lawn_destroy(lawn);
}

using SharedDeathTest = Shared;

TEST_F(SharedDeathTest, ARetiredTimerIsNotStarted)
{
    lawn_shared_retire(timer(0), on_released);
    EXPECT_MISUSE(EXPECT_FALSE(lawn_shared_start(timer(0), 10)), "ssert");
    EXPECT_MISUSE(EXPECT_FALSE(lawn_shared_start_local(timer(0), 10)), "ssert");
    EXPECT_EQ(pass(10), 0U);
}

TEST_F(SharedDeathTest, ACallbackDoesNotWaitForItself)
{
    timers_[0]->then = [this](lawn_time_t) {
        lawn_shared_sync(timer(1)); // does not run
        lawn_shared_sync(timer(0));
    };
    lawn_shared_start(timer(0), 10);
    // All of the pass: a callback that began before a fork is not the child's.
    EXPECT_MISUSE(EXPECT_EQ(pass(10), 1U), "is_own");
}

TEST_F(SharedDeathTest, ACallbackDoesNotDestroyTheBox)
{
    timers_[0]->then = [this](lawn_time_t) {
        EXPECT_MISUSE(lawn_box_destroy(box_), "ssert");
    };
    lawn_shared_start(timer(0), 10);
    EXPECT_EQ(pass(10), 1U);
    EXPECT_TRUE(lawn_shared_start(timer(0), 20));
    timers_[0]->then = nullptr;
    EXPECT_EQ(pass(20), 1U);
}

} // namespace
