// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a pass meets so rarely that the oracle's random operations do not.

#include "timer/lawn_impl.h"
#include "timer_fixture.h"

#include <set>

namespace
{

using lawn_test::Times;

class TimerPass : public lawn_test::TimerFixture
{
protected:
    // Due in as many slots as there are timers, of several classes.
    Probes start_in_many_slots(size_t count)
    {
        Probes all = make(count);
        for (size_t i = 0; i < count; ++i) {
            start(*all[i], 0, 1 + (i % 60) * (size_t{1} << 3 * (i % 7)));
        }
        return all;
    }

    static constexpr lawn_time_t late = 100'000'000;
};

// More slots come up at once than are worked on at a time; each callback does
// something to those that wait in other slots.
TEST_F(TimerPass, ACallbackMayDoAnythingToOthersInManySlots)
{
    const Probes all = start_in_many_slots(400);
    std::set<Probe *> gone;
    std::set<Probe *> later;
    for (size_t i = 0; i < all.size(); ++i) {
        all[i]->then = [&, i](lawn_time_t now) {
            EXPECT_EQ(gone.count(all[i]) + later.count(all[i]), 0U);
            Probe *const other = all[(i * 37 + 11) % all.size()];
            Probe *const another = all[(i * 53 + 29) % all.size()];
            if (i % 2 == 0 && !gone.count(other) &&
                lawn_timer_stop(lawn_, &other->timer)) {
                free_probe(other);
                gone.insert(other);
                later.erase(other);
            }
            if (i % 3 == 0 && !gone.count(another)) {
                start(*another, now, 1 + i);
                later.insert(another);
            }
        };
    }
    const unsigned count = lawn_advance(lawn_, late, 0);
    EXPECT_EQ(fired().size(), count);
    EXPECT_GT(gone.size(), 20U);
    EXPECT_GT(later.size(), 20U);
    EXPECT_EQ(lawn_count(lawn_), later.size());
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    for (Probe *const probe : later) {
        probe->then = nullptr;
    }
    EXPECT_EQ(lawn_advance(lawn_, late + all.size(), 0), later.size());
}

// One callback, at any turn, does the same to all others that are due.
TEST_F(TimerPass, ACallbackMayDoAnythingToAllOthersThatAreDue)
{
    for (const size_t turn : {1, 2, 15, 16, 17, 18, 33, 99, 100}) {
        for (unsigned action = 0; action < 4; ++action) {
            lawn_destroy(lawn_);
            ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
            fired();
            const Probes all = start_in_many_slots(100);
            size_t fires = 0;
            const auto then = [&](lawn_time_t now) {
                if (++fires != turn) {
                    return;
                }
                for (Probe *const p : all) {
                    if (!lawn_timer_is_active(&p->timer)) {
                        continue;
                    }
                    if (action == 0) {
                        EXPECT_TRUE(lawn_timer_stop(lawn_, &p->timer));
                        free_probe(p);
                    } else if (action == 1) {
                        EXPECT_TRUE(lawn_timer_pause(lawn_, &p->timer));
                    } else {
                        start(*p, now, action == 2 ? 0 : 1000);
                    }
                }
                EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
            };
            for (Probe *const p : all) {
                p->then = then;
            }
            EXPECT_EQ(lawn_advance(lawn_, late, 0), turn);
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
            const size_t left = action < 2 ? 0 : all.size() - turn;
            EXPECT_EQ(lawn_count(lawn_), left);
            EXPECT_EQ(lawn_advance(lawn_, late, 0), action == 2 ? left : 0);
            EXPECT_EQ(lawn_advance(lawn_, late + 1000, 0),
                      action == 3 ? left : 0);
            for (Probe *const p : action == 0 ? Probes{} : all) {
                lawn_timer_stop(lawn_, &p->timer); // paused ones, too
            }
        }
    }
}

// Paused or re-armed, and resumed to be due at once: not within this pass.
TEST_F(TimerPass, WhatIsDueAgainWaitsForTheNextAdvance)
{
    for (const bool pauses : {false, true}) {
        const lawn_time_t from = lawn_now(lawn_);
        const Probes all = make(3);
        for (Probe *const p : all) {
            start(*p, from, 1000);
        }
        const auto then = [&](lawn_time_t now) {
            for (Probe *const p : all) {
                if (lawn_timer_is_active(&p->timer)) {
                    if (pauses) {
                        lawn_timer_pause(lawn_, &p->timer);
                    }
                    lawn_timer_start_at(lawn_, &p->timer, now, from + 1000);
                }
            }
        };
        for (Probe *const p : all) {
            p->then = then;
        }
        EXPECT_EQ(lawn_advance(lawn_, from + 5000, 0), 1U);
        EXPECT_EQ(lawn_advance(lawn_, from + 5000, 0), 1U);
        EXPECT_EQ(lawn_advance(lawn_, from + 5000, 0), 1U);
        EXPECT_EQ(lawn_count(lawn_), 0U);
    }
}

// A time before what the lawn has seen: what is due in between waits.
TEST_F(TimerPass, AsOfATimeBeforeTheLatest)
{
    const Probes all = make(4);
    start(*all[0], 0, 100);
    start(*all[1], 0, 200);
    start(*all[2], 0, 100'000);
    start(*all[3], 300, 0);
    lawn::Work work = lawn::advance_as_of(lawn_, 150, 0);
    EXPECT_EQ(work.fired, 1U);
    EXPECT_EQ(fired(), Probes{all[0]});
    EXPECT_EQ(lawn_now(lawn_), 300U);
    EXPECT_LE(lawn_next(lawn_), 200U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    work = lawn::advance_as_of(lawn_, 300, 0);
    EXPECT_EQ(work.fired, 2U);
    EXPECT_EQ(lawn_count(lawn_), 1U);
    EXPECT_GT(lawn_next(lawn_), 300U);
    // In the middle of a round that began later than that.
    for (Probe *const p : all) {
        start(*p, 300, 1000);
    }
    EXPECT_EQ(lawn::advance_as_of(lawn_, 2000, 1).fired, 1U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn::advance_as_of(lawn_, 1000, 0).fired, 0U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_LE(lawn_next(lawn_), 1300U);
    EXPECT_EQ(lawn_advance(lawn_, 0, 0), 3U);
}

// An advance that has nothing to do touches nothing, also where slots begin
// whose timers were stopped.
TEST_F(TimerPass, WorkIsWhatWasTouched)
{
    const Probes all = make(4);
    for (Probe *const p : all) {
        start(*p, 0, 1000);
    }
    lawn_timer_stop(lawn_, &all[0]->timer);
    lawn_timer_pause(lawn_, &all[1]->timer);
    start(*all[2], 0, 50'000); // re-armed
    EXPECT_EQ(lawn::advance_as_of(lawn_, 500, 0).touched, 0U);
    const lawn::Work work = lawn::advance_as_of(lawn_, 1100, 0);
    EXPECT_EQ(work.fired, 1U);
    EXPECT_EQ(work.touched, 3U); // fired, moved, let go of
    EXPECT_EQ(lawn::advance_as_of(lawn_, 1100, 0).touched, 0U);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &all[2]->timer));
    EXPECT_EQ(lawn::advance_as_of(lawn_, late, 0).touched, 0U);
}

// A queue's alarm and mark do not count when timers of the queue do.
TEST_F(TimerPass, OfAQueueItsTimersAreTouched)
{
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(lawn_, 1000, &queue), LAWN_OK);
    for (Probe *const p : make(3)) {
        lawn_queue_start(queue, &p->timer, 0);
    }
    const lawn::Work work = lawn::advance_as_of(lawn_, 1000, 0);
    EXPECT_EQ(work.fired, 3U);
    EXPECT_EQ(work.touched, 3U);
}

// The budget ends with the last timer that is due: nothing is left to do, in
// however many slots the timers were.
TEST_F(TimerPass, TheLastOfTheBudgetMayBeTheLastOfAll)
{
    for (const size_t count : {1, 2, 15, 16, 17, 40}) {
        start_in_many_slots(count);
        start(*make(1)[0], 0, 2 * late);
        EXPECT_EQ(lawn_advance(lawn_, late, static_cast<unsigned>(count)),
                  count);
        EXPECT_GT(lawn_next(lawn_), late);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }
}

TEST_F(TimerPass, DrainHandsOverWhatAStallHasLeft)
{
    const Probes all = make(1000);
    for (size_t i = 0; i < all.size(); ++i) {
        start(*all[i], 0, 1'000'000);
        start(*all[i], 0, 1'000'000 + i * 1000); // re-arm
    }
    EXPECT_EQ(lawn_advance(lawn_, 3'000'000, 5), 5U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 995U);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    for (Probe *const p : all) {
        ASSERT_FALSE(lawn_timer_is_active(&p->timer));
    }
    // The round that was going on is no obstacle to what follows.
    start(*all[0], 3'000'000, 500);
    EXPECT_EQ(lawn_advance(lawn_, 3'000'499, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 3'000'500, 0), 1U);
}

// After a drain the callback is still inside its pass.
TEST_F(TimerPass, CallbackMayDrain)
{
    const Probes all = make(3);
    all[0]->then = [&](lawn_time_t now) {
        if (all[0]->fired_at.size() == 1) {
            start(*all[1], now, 0);
            EXPECT_EQ(lawn_drain(lawn_, nullptr), 2U);
            EXPECT_FALSE(lawn_settle(lawn_, 0));
            start(*all[0], now, 0);
        }
    };
    start(*all[0], 0, 10);
    start(*all[1], 0, 100);
    start(*all[2], 0, 1'000'000);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    EXPECT_EQ(lawn_count(lawn_), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 1U);
    EXPECT_EQ(all[0]->fired_at, (Times{10, 10}));
}

// With slots still to do that the drain has emptied, and has filled again.
TEST_F(TimerPass, CallbackMayDrainWhileManySlotsAreDue)
{
    for (const size_t turn : {1, 16, 17, 50}) {
        lawn_destroy(lawn_);
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        const Probes all = start_in_many_slots(100);
        size_t fires = 0;
        const auto then = [&](lawn_time_t now) {
            if (++fires == turn) {
                EXPECT_EQ(lawn_drain(lawn_, nullptr), all.size() - turn);
                for (size_t i = 0; i < all.size(); ++i) {
                    start(*all[i], now, i % 3 * i);
                }
                EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
            }
        };
        for (Probe *const p : all) {
            p->then = then;
        }
        EXPECT_EQ(lawn_advance(lawn_, late, 0), turn);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        EXPECT_EQ(lawn_count(lawn_), all.size());
        EXPECT_EQ(lawn_advance(lawn_, late, 0), 34U); // of every third
        EXPECT_EQ(lawn_advance(lawn_, late + 200, 0), 66U);
    }
}

} // namespace
