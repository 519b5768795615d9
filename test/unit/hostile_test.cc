// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Callers that do their worst: callbacks that stop, free, restart or drain
// everything, wherever the lawn holds it at that moment; calls made twice; and
// mistakes that debug builds catch.

#include "timer/place.h"

#include <lawn/timer.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace
{

constexpr lawn_time_t ttl = 1'000'000;
constexpr lawn_time_t late = 3 * ttl; // 300 of a crowd are due

// Timers in every place that a lawn has. After a stall, the nth of them that
// fires does a deed.
class Crowd : public testing::Test
{
protected:
    struct Item {
        lawn_timer_t timer; // first: what expires is the whole
        Crowd *crowd;
        unsigned fired;
    };

    ~Crowd() override
    {
        lawn_destroy(lawn_);
    }

    Item &add(lawn_time_t now, lawn_time_t after)
    {
        items_.push_back(std::make_unique<Item>());
        items_.back()->crowd = this;
        lawn_timer_init(&items_.back()->timer, on_expired);
        lawn_timer_start(lawn_, &items_.back()->timer, now, after);
        return *items_.back();
    }

    void populate()
    {
        lawn_destroy(lawn_);
        items_.clear();
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        for (lawn_time_t i = 0; i < 100; ++i) {
            Item &re_armed = add(0, 1000 + i);
            lawn_timer_start(lawn_, &re_armed.timer, 1, ttl + 777 * i);
            lawn_timer_pause(lawn_, &add(1, 2 * ttl + i).timer);
            add(2, ttl);
            Item &far = add(2, 50 * ttl);
            lawn_timer_start(lawn_, &far.timer, 3, 60 * ttl);
            add(3, ttl / 2 + i * i * 100);
        }
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        Item *const item = reinterpret_cast<Item *>(timer);
        EXPECT_FALSE(lawn_timer_is_active(timer));
        item->crowd->fired_one(item, now);
    }

    void fired_one(Item *item, lawn_time_t now)
    {
        const lawn_time_t deadline = lawn_timer_deadline(&item->timer);
        EXPECT_TRUE(is_exact_ ? deadline == now : deadline <= now);
        ++item->fired;
        if (++fired_ != deed_at_) {
            return;
        }
        lawn_timer_start(lawn_, &add(late, 5).timer, late, 0); // deferred
        for (const auto &i : items_) {
            places_.insert(lawn::where_is(&i->timer));
        }
        doer_ = item;
        deed_();
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    // The deed in each of some callbacks of an advance, which is the last of
    // it, or if `is_last` is false, one of 300.
    void each_time(const std::function<void()> &deed,
                   const std::function<void()> &after, bool is_last = true)
    {
        for (const unsigned at : {1U, 2U, 50U, 150U, 299U, 300U}) {
            SCOPED_TRACE(at);
            populate();
            fired_ = 0;
            deed_at_ = at;
            deed_ = deed;
            ASSERT_EQ(lawn_advance(lawn_, late, 0), is_last ? at : 300);
            ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
            after();
        }
        // Idle, paused, stray, native, listed, near, dated.
        EXPECT_EQ(places_, (std::set<uint64_t>{0, 1, 2, 3, 4, 5, 6}));
    }

    // From now on each that runs fires once, at its very deadline.
    void expect_exact()
    {
        for (const auto &i : items_) {
            i->fired = lawn_timer_is_active(&i->timer) ? 0 : 1;
        }
        is_exact_ = true;
        while (lawn_count(lawn_) != 0) {
            ASSERT_LE(lawn_next(lawn_), lawn_->now + 20'000'000'000);
            lawn_advance(lawn_, lawn_next(lawn_), 0);
        }
        is_exact_ = false;
        for (const auto &i : items_) {
            EXPECT_EQ(i->fired, 1U);
        }
    }

    std::unique_ptr<Item> take(Item *item)
    {
        const auto place =
            std::find_if(items_.begin(), items_.end(),
                         [item](const auto &i) { return i.get() == item; });
        std::unique_ptr<Item> taken = std::move(*place);
        items_.erase(place);
        return taken;
    }

    static void free_item(lawn_timer_t *timer, lawn_time_t)
    {
        Item *const item = reinterpret_cast<Item *>(timer);
        item->crowd->take(item).reset();
    }

    lawn_t *lawn_ = nullptr;
    std::vector<std::unique_ptr<Item>> items_;
    std::set<uint64_t> places_;
    std::function<void()> deed_;
    Item *doer_ = nullptr;
    bool is_exact_ = false;
    unsigned deed_at_ = 0;
    unsigned fired_ = 0;
};

TEST_F(Crowd, ACallbackStopsAndFreesEverything)
{
    each_time(
        [this] {
            for (auto &i : items_) {
                const bool was_active = lawn_timer_is_active(&i->timer);
                EXPECT_EQ(lawn_timer_stop(lawn_, &i->timer), was_active);
                i.reset(); // its own timer as well
            }
            items_.clear();
            EXPECT_EQ(lawn_count(lawn_), 0U);
        },
        [this] { EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY); });
}

TEST_F(Crowd, ACallbackStopsEverythingTwice)
{
    each_time(
        [this] {
            for (const auto &i : items_) {
                lawn_timer_stop(lawn_, &i->timer);
                EXPECT_FALSE(lawn_timer_stop(lawn_, &i->timer));
                EXPECT_FALSE(lawn_timer_pause(lawn_, &i->timer));
                EXPECT_EQ(lawn_timer_deadline(&i->timer), LAWN_TIME_INFINITY);
            }
        },
        [this] { EXPECT_EQ(lawn_advance(lawn_, 2 * late, 0), 0U); });
}

TEST_F(Crowd, ACallbackPausesEverythingTwice)
{
    each_time(
        [this] {
            for (const auto &i : items_) {
                const bool was_active = lawn_timer_is_active(&i->timer);
                EXPECT_EQ(lawn_timer_pause(lawn_, &i->timer), was_active);
                EXPECT_FALSE(lawn_timer_pause(lawn_, &i->timer));
            }
            EXPECT_EQ(lawn_count(lawn_), 0U);
        },
        [this] {
            for (size_t i = 0; i < items_.size(); ++i) {
                lawn_timer_start(lawn_, &items_[i]->timer, late, 1 + i);
            }
            expect_exact();
        });
}

TEST_F(Crowd, ACallbackStartsEverythingTwice)
{
    // To earlier than before, to what a deferred timer has, and to later.
    for (const lawn_time_t again : {0, 1, 10'000'000}) {
        each_time(
            [this, again] {
                for (size_t i = 0; i < items_.size(); ++i) {
                    lawn_timer_t *const timer = &items_[i]->timer;
                    lawn_timer_start(lawn_, timer, late, again * i);
                    const size_t count = lawn_count(lawn_);
                    lawn_timer_start(lawn_, timer, late, again * i);
                    EXPECT_EQ(lawn_count(lawn_), count);
                    EXPECT_EQ(lawn_timer_deadline(timer), late + again * i);
                }
                EXPECT_EQ(lawn_count(lawn_), items_.size());
            },
            [this] { expect_exact(); });
    }
}

TEST_F(Crowd, ACallbackDrainsEverythingAndFreesIt)
{
    each_time(
        [this] {
            const size_t running = lawn_count(lawn_);
            const std::unique_ptr<Item> doer = take(doer_);
            EXPECT_EQ(lawn_drain(lawn_, free_item), running);
            EXPECT_EQ(lawn_count(lawn_), 0U);
            items_.clear(); // what was paused, too
        },
        [this] { EXPECT_EQ(lawn_advance(lawn_, 2 * late, 0), 0U); });
}

TEST_F(Crowd, ACallbackStartsThousands)
{
    each_time(
        [this] {
            for (unsigned i = 0; i < 5000; ++i) {
                add(late, i % 7 * i);
            }
        },
        [this] {
            EXPECT_GE(lawn_count(lawn_), 5000U);
            EXPECT_EQ(lawn_next(lawn_), late);
            expect_exact();
        },
        false);
}

// All that a callback may not do is answered, and does nothing.
TEST_F(Crowd, ACallbackDoesWhatItMayNot)
{
    each_time(
        [this] {
            EXPECT_DEBUG_DEATH(lawn_advance(lawn_, late, 0), "busy");
            EXPECT_DEBUG_DEATH(lawn_destroy(lawn_), "busy");
            EXPECT_FALSE(lawn_settle(lawn_, 0));
        },
        [this] { expect_exact(); }, false);
}

TEST(Hostile, DrainInsideADrain)
{
    static lawn_t *lawn;
    static unsigned calls;
    calls = 0;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    std::vector<lawn_timer_t> timers(10);
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn, &timer, 0, 10);
    }
    const auto each = [](lawn_timer_t *timer, lawn_time_t now) {
        ++calls;
        lawn_timer_start(lawn, timer, now, 5); // a drain of its own ends it
        EXPECT_EQ(lawn_drain(lawn, nullptr), 1U);
        EXPECT_DEBUG_DEATH(lawn_destroy(lawn), "busy");
    };
    EXPECT_EQ(lawn_drain(lawn, each), 10U);
    EXPECT_EQ(calls, 10U);
    EXPECT_EQ(lawn_count(lawn), 0U);
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    lawn_destroy(lawn);
}

// While a drain hands them over, its callbacks stop and restart those to come.
TEST(Hostile, DrainOfWhatIsStoppedAndRestartedMeanwhile)
{
    static lawn_t *lawn;
    static std::vector<lawn_timer_t> timers;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    timers.assign(9, lawn_timer_t{});
    for (lawn_timer_t &timer : timers) {
        lawn_timer_start(lawn, &timer, 0, 10);
    }
    const unsigned drained =
        lawn_drain(lawn, [](lawn_timer_t *timer, lawn_time_t now) {
            if (timer != &timers[0]) {
                return;
            }
            for (size_t i = 1; i < timers.size(); i += 2) {
                EXPECT_TRUE(lawn_timer_stop(lawn, &timers[i]));
            }
            lawn_timer_start(lawn, &timers[2], now, 7);
            EXPECT_TRUE(lawn_timer_pause(lawn, &timers[4]));
            EXPECT_EQ(lawn_check(lawn), LAWN_OK);
        });
    EXPECT_EQ(drained, 3U); // 0, 6 and 8
    EXPECT_EQ(lawn_count(lawn), 1U);
    EXPECT_EQ(lawn_advance(lawn, 7, 0), 1U);
    lawn_destroy(lawn);
}

// Nothing can tell that a timer runs when it is initialised; a check can, then.
TEST(Hostile, InitOfARunningTimerIsFoundByACheck)
{
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    lawn_timer_t timer = {};
    lawn_timer_start(lawn, &timer, 0, 10);
    const lawn_timer_t before = timer;
    lawn_timer_init(&timer, nullptr);
    EXPECT_EQ(lawn_check(lawn), LAWN_ERR_CORRUPT);
    timer = before;
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    lawn_destroy(lawn);
}

#ifndef NDEBUG

// A timer of one lawn in the hands of another: a mistake that only debug builds
// look for.
class ForeignDeathTest : public testing::Test
{
protected:
    ForeignDeathTest()
    {
        EXPECT_EQ(lawn_create(nullptr, &its_own_), LAWN_OK);
        EXPECT_EQ(lawn_create(nullptr, &other_), LAWN_OK);
    }

    ~ForeignDeathTest() override
    {
        lawn_destroy(its_own_);
        lawn_destroy(other_);
    }

    void expect_mistakes()
    {
        EXPECT_DEATH(lawn_timer_stop(other_, &timer_), "may_hold");
        EXPECT_DEATH(lawn_timer_pause(other_, &timer_), "may_hold");
        EXPECT_DEATH(lawn_timer_start(other_, &timer_, 0, 1), "may_hold");
    }

    lawn_t *its_own_ = nullptr;
    lawn_t *other_ = nullptr;
    lawn_timer_t timer_ = {};
    lawn_timer_t neighbours_[3] = {};
};

TEST_F(ForeignDeathTest, TheOtherLawnIsEmpty)
{
    lawn_timer_start(its_own_, &timer_, 0, ttl);
    expect_mistakes();
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(its_own_, &neighbour, 0, ttl);
    }
    expect_mistakes();
}

TEST_F(ForeignDeathTest, TheOtherLawnHasTheSameTtl)
{
    lawn_timer_start(its_own_, &timer_, 0, ttl);
    for (lawn_timer_t &neighbour : neighbours_) {
        lawn_timer_start(other_, &neighbour, 0, ttl);
    }
    expect_mistakes();
    for (lawn_timer_t &neighbour : neighbours_) {
        EXPECT_TRUE(lawn_timer_stop(other_, &neighbour));
        lawn_timer_start(its_own_, &neighbour, 0, ttl);
    }
    lawn_timer_t alone = {};
    lawn_timer_start(other_, &alone, 0, ttl);
    expect_mistakes();
    lawn_timer_stop(other_, &alone);
}

TEST_F(ForeignDeathTest, TheTimerIsInTheTree)
{
    for (lawn_t *lawn : {its_own_, other_}) {
        lawn_timer_t *const timer = lawn == other_ ? neighbours_ : &timer_;
        lawn_timer_start(lawn, timer, 0, 100);
        lawn_timer_start(lawn, timer, 0, 1000);
        lawn_advance(lawn, 200, 0);
        ASSERT_EQ(lawn::where_is(timer), lawn::near);
    }
    EXPECT_DEATH(lawn_timer_stop(other_, &timer_), "place");
    EXPECT_TRUE(lawn_timer_stop(other_, neighbours_));
    expect_mistakes();
}

TEST_F(ForeignDeathTest, TheTimerWasNeverInitialised)
{
    timer_.place = UINT64_MAX - 7 + lawn::native; // no such queue
    expect_mistakes();
    timer_.place = 0;
}

#endif

} // namespace
