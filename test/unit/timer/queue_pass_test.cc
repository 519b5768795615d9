// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Queues in the middle of things: destroyed, started and drained in callbacks,
// by the hundred under a budget, in the sight of observers, and without memory.

#include "timer/lawn_impl.h"
#include "timer_fixture.h"
#include "times.h"
#include <lawn/observer.h>

#include <algorithm>
#include <string>

namespace
{

using lawn_test::ttl;

class QueuePass : public lawn_test::TimerFixture
{
protected:
    Probe &start_in(lawn_queue_t *queue, lawn_time_t now)
    {
        Probe &p = probe();
        lawn_queue_start(queue, &p.timer, now);
        return p;
    }

    Probes start_some(lawn_queue_t *queue, size_t count, lawn_time_t now)
    {
        Probes some;
        while (some.size() < count) {
            some.push_back(&start_in(queue, now));
        }
        return some;
    }

    // What a callback may do to the queue that is firing, and to others.
    enum class Action { destroy_own, replace_own, destroy_other, destroy_all };

    void do_deed(Action action, lawn_time_t now)
    {
        if (action != Action::destroy_other) {
            lawn_queue_destroy(own_);
            own_ = nullptr;
        }
        if (action == Action::replace_own) {
            own_ = create(ttl); // most likely where the other one was
            start_in(own_, now);
        }
        if (action == Action::destroy_other || action == Action::destroy_all) {
            lawn_queue_destroy(other_);
            other_ = nullptr;
        }
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    }

    lawn_queue_t *own_ = nullptr;
    lawn_queue_t *other_ = nullptr;
};

TEST_F(QueuePass, ACallbackMayDestroyQueues)
{
    for (const Action action : {Action::destroy_own, Action::replace_own,
                                Action::destroy_other, Action::destroy_all}) {
        for (const size_t doer : {0, 4, 9}) {
            SCOPED_TRACE(doer);
            own_ = create(ttl);
            other_ = create(ttl);
            const lawn_time_t now = lawn_now(lawn_);
            const Probes own = start_some(own_, 10, now);
            const Probes other = start_some(other_, 10, now);
            bool is_done = false;
            own[doer]->then = [&](lawn_time_t then) {
                do_deed(action, then);
                is_done = true;
            };
            lawn_advance(lawn_, now + ttl, 0);
            EXPECT_TRUE(is_done);
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
            const Probes all_fired = fired();
            for (size_t i = 0; i < 10; ++i) {
                const bool may_fire =
                    action == Action::destroy_other || i <= doer;
                EXPECT_EQ(own[i]->fired_at.size(), may_fire ? 1U : 0U) << i;
                EXPECT_FALSE(lawn_timer_is_active(&own[i]->timer));
                EXPECT_FALSE(lawn_timer_is_active(&other[i]->timer));
            }
            EXPECT_EQ(lawn_count(lawn_),
                      action == Action::replace_own ? 1U : 0U);
            EXPECT_EQ(lawn_advance(lawn_, now + 2 * ttl, 0),
                      action == Action::replace_own ? 1U : 0U);
            lawn_queue_destroy(own_);
            lawn_queue_destroy(other_);
            fired();
        }
    }
}

// By a timer of no queue, before the alarm and after it; with timers of a TTL
// of 0 that wait for the end of the pass.
TEST_F(QueuePass, AnyCallbackMayDestroyAQueueWithDeferredTimers)
{
    for (const lawn_time_t when : {1, 2}) {
        lawn_queue_t *const zero = create(0);
        lawn_queue_t *const kept = create(0);
        const lawn_time_t now = lawn_now(lawn_);
        Probe &member = start_in(zero, now);
        Probe &doer = probe();
        start(doer, now, when);
        Probe &deferred = probe();
        Probe &survivor = probe();
        doer.then = [&](lawn_time_t then) {
            lawn_queue_start(zero, &deferred.timer, then);
            lawn_queue_start(kept, &survivor.timer, then);
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
            lawn_queue_destroy(zero);
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        };
        lawn_advance(lawn_, now + 1, 1);
        lawn_advance(lawn_, now + 2, 0);
        EXPECT_FALSE(lawn_timer_is_active(&deferred.timer));
        EXPECT_FALSE(lawn_timer_is_active(&member.timer));
        EXPECT_TRUE(deferred.fired_at.empty());
        EXPECT_EQ(lawn_count(lawn_), 1U);
        EXPECT_EQ(lawn_advance(lawn_, now + 2, 0), 1U);
        EXPECT_EQ(survivor.fired_at.size(), 1U);
        lawn_queue_destroy(kept);
    }
}

TEST_F(QueuePass, ACallbackMayStopPauseAndRestartMembersThatAreDue)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 6, 0);
    all[0]->then = [&](lawn_time_t now) {
        EXPECT_TRUE(lawn_timer_stop(lawn_, &all[1]->timer));
        free_probe(all[1]);
        EXPECT_TRUE(lawn_timer_pause(lawn_, &all[2]->timer));
        lawn_queue_start(queue, &all[3]->timer, now);
        start(*all[4], now, 5);
        lawn_queue_start(queue, &all[0]->timer, now);
        EXPECT_EQ(lawn_queue_count(queue), 3U);
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    };
    EXPECT_EQ(lawn_advance(lawn_, ttl, 0), 2U);
    EXPECT_EQ(fired(), (Probes{all[0], all[5]}));
    EXPECT_EQ(lawn_advance(lawn_, ttl + 5, 0), 1U);
    all[0]->then = nullptr;
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl, 0), 2U);
    EXPECT_EQ(fired(), (Probes{all[4], all[3], all[0]}));
    EXPECT_EQ(lawn_queue_count(queue), 0U);
}

TEST_F(QueuePass, ACallbackThatBringsALaterTimeDoesNotHastenTheRest)
{
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 2, 0);
    Probe &later = start_in(queue, 100);
    all[0]->then = [&](lawn_time_t now) {
        lawn_queue_start(queue, &all[0]->timer, now + 500);
    };
    EXPECT_EQ(lawn_advance(lawn_, ttl, 0), 2U);
    EXPECT_TRUE(later.fired_at.empty()); // due now, but not in that pass
    EXPECT_LE(lawn_next(lawn_), ttl + 100);
    EXPECT_EQ(lawn_advance(lawn_, 0, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl + 499, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 2 * ttl + 500, 0), 1U);
}

TEST_F(QueuePass, HundredsOfQueuesUnderABudgetOfOne)
{
    constexpr size_t queues = 300;
    std::vector<lawn_queue_t *> all;
    std::vector<Probes> members;
    for (size_t i = 0; i < queues; ++i) {
        all.push_back(create(ttl + i));
        members.push_back(start_some(all[i], i % 4, 0));
        if (i % 4 == 3) {
            lawn_timer_pause(lawn_, &members[i][0]->timer);
            lawn_timer_stop(lawn_, &members[i][2]->timer);
        }
    }
    const size_t running = lawn_count(lawn_);
    size_t fires = 0;
    size_t advances = 0;
    while (lawn_count(lawn_) != 0) {
        const lawn::Work work = lawn::advance_as_of(lawn_, 2 * ttl, 1);
        ASSERT_LE(work.touched, 1U);
        ASSERT_LE(work.fired, work.touched);
        fires += work.fired;
        ASSERT_LE(++advances, 4 * queues);
    }
    EXPECT_EQ(fires, running);
    for (size_t i = 0; i < queues; ++i) {
        EXPECT_EQ(lawn_queue_count(all[i]), 0U);
        for (size_t m = 1; m < members[i].size(); ++m) {
            EXPECT_GE(members[i][m]->fired_at.size() + (m == 2), 1U);
        }
    }
}

// Not to fire anything is work, too.
TEST_F(QueuePass, TheAlarmsOfEmptyQueuesCostBudget)
{
    constexpr size_t queues = 100;
    constexpr unsigned budget = 10;
    for (size_t i = 0; i < queues; ++i) {
        lawn_timer_stop(lawn_, &start_in(create(ttl), 0).timer);
    }
    size_t touched = 0;
    for (size_t i = 0; i < queues / budget; ++i) {
        const lawn::Work work = lawn::advance_as_of(lawn_, ttl, budget);
        EXPECT_EQ(work.fired, 0U);
        EXPECT_LE(work.touched, budget);
        touched += work.touched;
    }
    EXPECT_EQ(touched, queues);
    EXPECT_EQ(lawn::advance_as_of(lawn_, 2 * ttl, budget).touched, 0U);
}

// Within each queue the order holds however small the budget.
TEST_F(QueuePass, ABudgetDoesNotChangeTheOrder)
{
    for (const unsigned budget : {1U, 2U, 7U, 64U}) {
        const lawn_time_t now = lawn_now(lawn_);
        Probes members[3];
        for (Probes &some : members) {
            some = start_some(create(ttl), 100, now);
            lawn_timer_pause(lawn_, &some[33]->timer);
            some.erase(some.begin() + 33);
        }
        unsigned advances = 0;
        while (lawn_count(lawn_) != 0) {
            const lawn::Work work =
                lawn::advance_as_of(lawn_, now + ttl, budget);
            ASSERT_LE(work.touched, budget);
            ASSERT_LE(++advances, 300 / budget + 5);
        }
        const Probes order = fired();
        for (const Probes &some : members) {
            Probes own;
            std::copy_if(order.begin(), order.end(), std::back_inserter(own),
                         [&](Probe *p) {
                             return std::find(some.begin(), some.end(), p) !=
                                    some.end();
                         });
            ASSERT_EQ(own, some);
        }
    }
}

TEST_F(QueuePass, DrainHandsOverMembersButNoAlarm)
{
    lawn_queue_t *const queue = create(ttl);
    lawn_queue_t *const zero = create(0);
    start_some(queue, 10, 0);
    lawn_timer_pause(lawn_, &start_in(queue, 0).timer);
    start_some(zero, 5, 0);
    start(probe(), 0, 10);
    size_t shown = 0;
    lawn_for_each(
        lawn_,
        [](const lawn_timer_t *timer, void *arg) {
            EXPECT_EQ(timer->expired, on_expired);
            ++*static_cast<size_t *>(arg);
        },
        &shown);
    EXPECT_EQ(shown, 16U);
    EXPECT_EQ(lawn_count(lawn_), 16U);
    EXPECT_EQ(lawn_drain(lawn_, on_drained), 16U);
    EXPECT_EQ(fired().size(), 16U);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(lawn_queue_count(queue), 0U);
    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
    // The queues are as good as new.
    const Probes again = start_some(queue, 3, 5);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 4, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, ttl + 5, 0), 3U);
    EXPECT_EQ(fired(), again);
}

// Wherever the lawn has the alarm when a drain's callback starts into the
// queue.
TEST_F(QueuePass, WhatADrainStartsInAQueueFiresInTime)
{
    for (const lawn_time_t after : {lawn_time_t{0}, ttl}) {
        for (const bool has_members : {false, true}) {
            for (const lawn_time_t other_ttl :
                 {lawn_time_t{0}, lawn_time_t{10}, 50 * ttl}) {
                lawn_queue_t *const queue = create(after);
                const lawn_time_t now = lawn_now(lawn_);
                Probe &other = probe();
                start(other, now, other_ttl);
                if (has_members) {
                    start_in(queue, now);
                }
                Probe &anew = probe();
                other.then = [&](lawn_time_t then) {
                    lawn_queue_start(queue, &anew.timer, then);
                    EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
                };
                EXPECT_EQ(lawn_drain(lawn_, on_drained), 1U + has_members);
                EXPECT_EQ(lawn_count(lawn_), 1U);
                EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
                EXPECT_LE(lawn_next(lawn_), now + after);
                EXPECT_EQ(lawn_advance(lawn_, now + after, 0), 1U);
                lawn_queue_destroy(queue);
            }
        }
    }
}

TEST_F(QueuePass, AMemberMayDrainTheLawnInItsCallback)
{
    for (const bool restarts : {false, true}) {
        lawn_queue_t *const queue = create(ttl);
        const lawn_time_t now = lawn_now(lawn_);
        const Probes all = start_some(queue, 5, now);
        all[1]->then = [&](lawn_time_t then) {
            EXPECT_EQ(lawn_drain(lawn_, nullptr), 3U);
            if (restarts) {
                lawn_queue_start(queue, &all[4]->timer, then);
            }
            EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        };
        EXPECT_EQ(lawn_advance(lawn_, now + ttl, 0), 2U);
        EXPECT_EQ(lawn_count(lawn_), restarts ? 1U : 0U);
        EXPECT_EQ(lawn_advance(lawn_, now + 2 * ttl, 0), restarts ? 1U : 0U);
        lawn_queue_destroy(queue);
    }
}

struct EventLog : lawn_observer_t {
    std::string text;
    std::vector<const lawn_timer_t *> timers;
};

// Only what the program does and what fires: alarms are the lawn's own.
TEST_F(QueuePass, AnObserverSeesNoAlarm)
{
    EventLog log;
    log.event = [](lawn_observer_t *observer, lawn_event_t event,
                   const lawn_timer_t *timer, lawn_time_t, lawn_time_t after) {
        EventLog *const self = static_cast<EventLog *>(observer);
        self->text += "+-=!>"[static_cast<int>(event)];
        if (timer) {
            EXPECT_EQ(timer->expired, on_expired);
            self->timers.push_back(timer);
        }
        if (event == LAWN_EVENT_START) {
            EXPECT_EQ(after, ttl);
        }
    };
    lawn_observe(lawn_, &log);
    lawn_queue_t *const queue = create(ttl);
    const Probes all = start_some(queue, 4, 0);
    lawn_queue_start(queue, &all[0]->timer, 0);
    lawn_timer_pause(lawn_, &all[1]->timer);
    lawn_timer_stop(lawn_, &all[2]->timer);
    EXPECT_TRUE(lawn_settle(lawn_, 0));
    EXPECT_EQ(lawn_next(lawn_), ttl);
    EXPECT_EQ(lawn_advance(lawn_, 5, 0), 0U); // an idle one is seen too
    EXPECT_EQ(log.text, "+++++=->");
    EXPECT_EQ(lawn_advance(lawn_, ttl, 0), 2U);
    EXPECT_EQ(log.text, "+++++=->>!!");
    EXPECT_EQ(fired(), (Probes{all[3], all[0]}));
    EXPECT_EQ(log.timers.back(), &all[0]->timer);
    log.text.clear();
    lawn_queue_start(queue, &all[0]->timer, ttl);
    lawn_queue_start(queue, &all[1]->timer, ttl);
    lawn_queue_destroy(queue); // stops those that run
    EXPECT_EQ(log.text, "++--");
    lawn_queue_start(create(ttl), &all[0]->timer, ttl);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 1U);
    EXPECT_EQ(log.text, "++--+-");
    lawn_unobserve(lawn_, &log);
}

// An allocator that counts, and refuses on demand.
struct Memory {
    int live = 0;
    bool refuses = false;

    lawn_params_t params()
    {
        lawn_params_t params = {};
        params.allocator.arg = this;
        params.allocator.alloc = [](void *arg, size_t size) -> void * {
            Memory *const self = static_cast<Memory *>(arg);
            if (self->refuses) {
                return nullptr;
            }
            ++self->live;
            return malloc(size);
        };
        params.allocator.release = [](void *arg, void *memory) {
            --static_cast<Memory *>(arg)->live;
            free(memory);
        };
        return params;
    }
};

TEST(QueueMemory, IsAllGivenBack)
{
    Memory memory;
    const lawn_params_t params = memory.params();
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(&params, &lawn), LAWN_OK);
    EXPECT_EQ(memory.live, 1);
    std::vector<lawn_timer_t> timers(30);
    lawn_queue_t *queues[10];
    for (size_t i = 0; i < 10; ++i) {
        ASSERT_EQ(lawn_queue_create(lawn, i * ttl, &queues[i]), LAWN_OK);
        EXPECT_EQ(memory.live, 2 + int(i));
        for (size_t t = 0; t < 3; ++t) {
            lawn_queue_start(queues[i], &timers[3 * i + t], 0);
        }
        lawn_timer_pause(lawn, &timers[3 * i]);
    }
    for (const size_t i : {0, 4, 9}) { // the first, middle, last
        lawn_queue_destroy(queues[i]);
        EXPECT_EQ(lawn_check(lawn), LAWN_OK);
        EXPECT_FALSE(lawn_timer_is_active(&timers[3 * i + 1]));
    }
    EXPECT_EQ(memory.live, 8);
    EXPECT_EQ(lawn_count(lawn), 14U);
    EXPECT_EQ(lawn_advance(lawn, ttl, 0), 2U);
    EXPECT_EQ(memory.live, 8); // an advance frees nothing
    lawn_destroy(lawn);        // the queues that are left, too
    EXPECT_EQ(memory.live, 0);
    for (const lawn_timer_t &timer : timers) {
        EXPECT_FALSE(lawn_timer_is_active(&timer));
    }
}

TEST(QueueMemory, WithoutAnyThereIsNoQueue)
{
    Memory memory;
    const lawn_params_t params = memory.params();
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(&params, &lawn), LAWN_OK);
    lawn_queue_t *queue = nullptr;
    memory.refuses = true;
    EXPECT_EQ(lawn_queue_create(lawn, ttl, &queue), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(queue, nullptr);
    EXPECT_EQ(lawn_check(lawn), LAWN_OK);
    memory.refuses = false;
    EXPECT_EQ(lawn_queue_create(lawn, ttl, &queue), LAWN_OK);
    memory.refuses = true; // what follows needs none
    lawn_timer_t timers[3] = {};
    for (lawn_timer_t &timer : timers) {
        lawn_queue_start(queue, &timer, 0);
    }
    EXPECT_EQ(lawn_advance(lawn, ttl, 0), 3U);
    lawn_queue_destroy(queue);
    lawn_destroy(lawn);
    EXPECT_EQ(memory.live, 0);
}

} // namespace
