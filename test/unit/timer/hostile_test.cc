// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Callers that do their worst: callbacks that stop, free, restart or drain
// everything, wherever the lawn holds it at that moment; and calls made twice.

#include "timer/lawn_impl.h"
#include "times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <vector>

namespace
{

using lawn_test::ttl;
constexpr lawn_time_t late = 3 * ttl; // 500 of a crowd are due

// Timers in every place that a lawn has. After a stall, the nth of them that
// fires does a action.
class Crowd : public testing::Test
{
protected:
    struct Item {
        lawn_timer_t timer; // first: what expires is the whole
        Crowd *crowd;
        unsigned fired;
    };

    enum class Place { idle, paused, late_slot, slot, due, queue };

    ~Crowd() override
    {
        lawn_destroy(lawn_);
    }

    Place place_of(const lawn_timer_t *timer) const
    {
        if (!timer->link.next) {
            return Place::idle;
        }
        if (!lawn_timer_is_active(timer)) {
            return Place::paused;
        }
        if (timer->check < lawn::open_limit) {
            return timer->check <= late ? Place::late_slot : Place::slot;
        }
        const lawn_link_t *link = timer->link.next;
        while (link != &queue_->timers && link != &timer->link) {
            link = link->next;
        }
        return link == &timer->link ? Place::due : Place::queue;
    }

    Item &add(lawn_time_t now, lawn_time_t after)
    {
        items_.push_back(std::make_unique<Item>());
        items_.back()->crowd = this;
        lawn_timer_init(&items_.back()->timer, on_expired);
        lawn_timer_start(lawn_, &items_.back()->timer, now, after);
        return *items_.back();
    }

    Item &add_queued(lawn_time_t now)
    {
        Item &item = add(now, 1);
        lawn_queue_start(queue_, &item.timer, now);
        return item;
    }

    void populate()
    {
        lawn_destroy(lawn_);
        items_.clear();
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        ASSERT_EQ(lawn_queue_create(lawn_, ttl, &queue_), LAWN_OK);
        for (lawn_time_t i = 0; i < 100; ++i) {
            Item &re_armed = add(0, 1000 + i);
            lawn_timer_start(lawn_, &re_armed.timer, 1, ttl + 777 * i);
            lawn_timer_pause(lawn_, &add(1, 2 * ttl + i).timer);
            add(2, ttl);
            Item &far = add(2, 50 * ttl);
            lawn_timer_start(lawn_, &far.timer, 3, 60 * ttl);
            add(3, ttl / 2 + i * i * 100);
            add(3, 0);
            add_queued(3);
            lawn_timer_pause(lawn_, &add_queued(3).timer);
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
        if (++fired_ != action_at_) {
            return;
        }
        lawn_timer_start(lawn_, &add(late, 5).timer, late, 0); // deferred
        for (const auto &i : items_) {
            places_.insert(place_of(&i->timer));
        }
        doer_ = item;
        action_();
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    // The action in each of some callbacks of an advance, which is the last of
    // it, or if `is_last` is false, one of 500.
    void each_time(const std::function<void()> &action,
                   const std::function<void()> &after, bool is_last = true)
    {
        for (const unsigned at : {1U, 2U, 50U, 150U, 299U, 499U, 500U}) {
            SCOPED_TRACE(at);
            populate();
            fired_ = 0;
            action_at_ = at;
            action_ = action;
            ASSERT_EQ(lawn_advance(lawn_, late, 0), is_last ? at : 500);
            ASSERT_EQ(lawn_check(lawn_), LAWN_OK);
            after();
        }
        EXPECT_EQ(places_.size(), 6U); // all
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
    lawn_queue_t *queue_ = nullptr;
    std::vector<std::unique_ptr<Item>> items_;
    std::set<Place> places_;
    std::function<void()> action_;
    Item *doer_ = nullptr;
    bool is_exact_ = false;
    unsigned action_at_ = 0;
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
            EXPECT_LE(lawn_next(lawn_), late);
            expect_exact();
        },
        false);
}

TEST_F(Crowd, ACallbackStartsEverythingInAQueue)
{
    each_time(
        [this] {
            for (const auto &i : items_) {
                lawn_queue_start(queue_, &i->timer, late);
                lawn_queue_start(queue_, &i->timer, late);
                EXPECT_EQ(lawn_timer_deadline(&i->timer), late + ttl);
            }
            EXPECT_EQ(lawn_count(lawn_), items_.size());
            EXPECT_EQ(lawn_queue_count(queue_), items_.size());
        },
        [this] { expect_exact(); });
}

TEST_F(Crowd, ACallbackDestroysTheQueueForANewOne)
{
    each_time(
        [this] {
            lawn_queue_destroy(queue_);
            ASSERT_EQ(lawn_queue_create(lawn_, 5, &queue_), LAWN_OK);
            for (const auto &i : items_) {
                lawn_queue_start(queue_, &i->timer, late);
            }
        },
        [this] { expect_exact(); });
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
        lawn_timer_start(lawn, timer, now, 5);
        EXPECT_EQ(lawn_drain(lawn, nullptr),
                  10U); // leaves nothing to hand over
        EXPECT_DEBUG_DEATH(lawn_destroy(lawn), "busy");
    };
    EXPECT_EQ(lawn_drain(lawn, each), 1U);
    EXPECT_EQ(calls, 1U);
    EXPECT_EQ(lawn_count(lawn), 0U);
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    lawn_destroy(lawn);
}

// What a callback starts, in a slot or in a queue, is what to advance for, also
// while the drain goes on. A drain inside takes part of it.
TEST(Hostile, NextInsideADrainIsNoLaterThanWhatIsStartedThere)
{
    static lawn_t *lawn;
    static lawn_queue_t *queue;
    static std::vector<lawn_timer_t> timers;
    static lawn_time_t ttl;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    ASSERT_EQ(lawn_queue_create(lawn, 300, &queue), LAWN_OK);
    timers.assign(30, lawn_timer_t{});
    for (size_t i = 0; i < timers.size(); ++i) {
        lawn_timer_start(lawn, &timers[i], 0, i % 3 == 0 ? 0 : 1000 * i);
        if (i % 3 == 1) {
            lawn_queue_start(queue, &timers[i], 0);
        }
    }
    ttl = 1'000'000;
    const auto each = [](lawn_timer_t *timer, lawn_time_t now) {
        if (timer - timers.data() == 15) {
            lawn_drain(lawn, nullptr);
            EXPECT_EQ(lawn_next(lawn), LAWN_TIME_INFINITY);
        }
        ttl /= 2; // each earlier than all before
        lawn_timer_start(lawn, timer, now, ttl);
        EXPECT_LE(lawn_next(lawn), now + ttl);
        lawn_queue_start(queue, timer, now);
        EXPECT_LE(lawn_next(lawn), now + 300);
        lawn_timer_start(lawn, timer, now, ttl);
        EXPECT_LE(lawn_next(lawn), now + ttl);
        EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    };
    lawn_drain(lawn, each);
    EXPECT_GE(lawn_count(lawn), 1U);
    lawn_time_t earliest = LAWN_TIME_INFINITY;
    for (const lawn_timer_t &timer : timers) {
        earliest = std::min(earliest, lawn_timer_is_active(&timer)
                                          ? lawn_timer_deadline(&timer)
                                          : LAWN_TIME_INFINITY);
    }
    EXPECT_LE(lawn_next(lawn), earliest);
    EXPECT_EQ(lawn_advance(lawn, earliest, 0), 1U);
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
            EXPECT_TRUE(lawn_timer_pause(lawn, &timers[6]));
            lawn_timer_start(lawn, &timers[6], now, 17); // it has not fired yet
            EXPECT_EQ(lawn_check(lawn), LAWN_OK);
        });
    EXPECT_EQ(drained, 2U); // 0 and 8
    EXPECT_EQ(lawn_count(lawn), 2U);
    EXPECT_EQ(lawn_advance(lawn, 7, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn, 17, 0), 1U);
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

} // namespace
