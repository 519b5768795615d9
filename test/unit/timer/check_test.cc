// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_check() judges most other tests, so it is judged here: each invariant is
// broken in a lawn that is whole otherwise, is found broken, and is mended.

#include "timer/lawn_impl.h"
#include "times.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace
{

using lawn_test::ttl;

using namespace lawn;

class Check : public testing::Test
{
protected:
    Check()
    {
        EXPECT_EQ(lawn_create(nullptr, &handle_), LAWN_OK);
        lawn_ = impl_of(handle_);
    }

    ~Check() override
    {
        EXPECT_EQ(lawn_check(handle_), LAWN_OK);
        lawn_destroy(handle_);
    }

    void start(size_t i, lawn_time_t now, lawn_time_t after)
    {
        lawn_timer_start(handle_, &timers_[i], now, after);
    }

    lawn_queue_t *create_queue(lawn_time_t after)
    {
        lawn_queue_t *queue = nullptr;
        EXPECT_EQ(lawn_queue_create(handle_, after, &queue), LAWN_OK);
        return queue;
    }

    // Natives, re-armed and paused timers in one slot.
    lawn_link_t *fill_slot()
    {
        for (size_t i = 0; i < 5; ++i) {
            start(i, 0, ttl);
        }
        start(1, 0, 2 * ttl);
        lawn_timer_pause(handle_, &timers_[2]);
        const unsigned c = class_of(ttl);
        lawn_link_t *const slot = &lawn_->slots[index_of(c, slot_of(c, ttl))];
        EXPECT_EQ(slot->next, &timers_[0].link);
        EXPECT_EQ(slot->prev, &timers_[4].link);
        return slot;
    }

    void expect_corrupt()
    {
        EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT);
    }

    template <typename Value> void expect_found(Value *value, Value wrong)
    {
        const Value right = *value;
        ASSERT_NE(right, wrong);
        ASSERT_EQ(lawn_check(handle_), LAWN_OK);
        *value = wrong;
        expect_corrupt();
        *value = right;
        EXPECT_EQ(lawn_check(handle_), LAWN_OK);
    }

    // Of a list whose head is `head`, with the timers from `first` on in it.
    void expect_links_found(lawn_link_t *head, lawn_link_t *link)
    {
        lawn_link_t *const none = nullptr;
        for (lawn_link_t *const i : {head, link}) {
            expect_found(&i->next, none);
            expect_found(&i->prev, none);
            expect_found(&i->prev, i->next); // does not lead back
            expect_found(&i->next, i->next->next);
        }
    }

    lawn_t *handle_ = nullptr;
    Lawn *lawn_ = nullptr;
    std::vector<lawn_timer_t> timers_ = std::vector<lawn_timer_t>(10);
};

TEST_F(Check, NoLawn)
{
    EXPECT_EQ(lawn_check(nullptr), LAWN_ERR_CORRUPT);
}

TEST_F(Check, LinksOfASlot)
{
    lawn_link_t *const slot = fill_slot();
    expect_links_found(slot, &timers_[3].link);
    lawn_link_t *const empty = &lawn_->slots[index_of(20, 63)];
    lawn_link_t *const none = nullptr;
    expect_found(&empty->next, none);
    expect_found(&empty->prev, none);
}

TEST_F(Check, BitsOfASlot)
{
    fill_slot();
    const unsigned c = class_of(ttl);
    expect_found(&lawn_->filled[c], uint64_t{0});
    expect_found(&lawn_->filled[c], ~bit_of(slot_of(c, ttl)));
    expect_found(&lawn_->occupied, uint64_t{0});
    expect_found(&lawn_->occupied, ~(uint64_t{1} << c));
    // A class is not occupied without the bit of a slot.
    expect_found(&lawn_->occupied, uint64_t{1} << c | uint64_t{1} << (c + 1));
    // Bits may stand for empty slots, of those before the end of time.
    for (unsigned i = 0; i < class_count; ++i) {
        const lawn_time_t last = slot_of(i, LAWN_TIME_INFINITY);
        lawn_->filled[i] =
            last < slot_count ? (uint64_t{1} << (last + 1)) - 1 : ~uint64_t{0};
    }
    lawn_->occupied = (uint64_t{1} << class_count) - 1;
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
}

TEST_F(Check, TimersOfASlot)
{
    fill_slot();
    const unsigned c = class_of(ttl);
    const lawn_time_t width = lawn_time_t{1} << shift_of(c);
    for (lawn_timer_t *const timer : {&timers_[0], &timers_[1], &timers_[2]}) {
        const lawn_time_t check = timer->check;
        expect_found(&timer->check, check + 1); // no begin of a slot
        expect_found(&timer->check, check - 1);
        expect_found(&timer->check, check + width); // of another slot
        expect_found(&timer->check, check - width);
        expect_found(&timer->check, LAWN_TIME_INFINITY);
        expect_found(&timer->check, lawn_time_t{0}); // seen already
        expect_found(&timer->deadline, check - 1);   // before the check
    }
    // The next one of the circle, in front of this one's.
    expect_found(&timers_[1].check, timers_[1].check + slot_count * width);
    // A paused timer that is said to run, and the reverse.
    expect_found(&timers_[2].deadline, ttl);
    expect_found(&timers_[1].deadline, LAWN_TIME_INFINITY);
    // The last one in the next slot, which its deadline and the order allow.
    start(4, 0, 2 * ttl);
    expect_found(&timers_[4].check, timers_[4].check + width);
}

// A slot that is late, with timers behind that are a circle later.
TEST_F(Check, OrderOfASlot)
{
    fill_slot();
    const unsigned c = class_of(ttl);
    const lawn_time_t width = lawn_time_t{1} << shift_of(c);
    const lawn_time_t circle = slot_count * width;
    start(5, circle, ttl); // sees a time that no advance has seen
    ASSERT_EQ(timers_[5].check, timers_[0].check + circle);
    ASSERT_EQ(timers_[5].link.prev, &timers_[4].link);
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
    std::swap(timers_[5].check, timers_[1].check); // whose deadline allows it
    timers_[1].deadline += circle;
    expect_corrupt();
    std::swap(timers_[5].check, timers_[1].check);
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
}

TEST_F(Check, CountsAndTimes)
{
    fill_slot();
    for (const size_t wrong : {0, 3, 5}) {
        expect_found(&lawn_->running, wrong);
    }
    const lawn_time_t check = timers_[0].check;
    expect_found(&lawn_->next, lawn_time_t{0});
    expect_found(&lawn_->next, LAWN_TIME_INFINITY);
    expect_found(&lawn_->wake, check + 1);
    for (const lawn_time_t late : {check + 1, LAWN_TIME_INFINITY}) {
        set_wake(lawn_, late); // both
        expect_corrupt();
    }
    set_wake(lawn_, check);
    expect_found(&lawn_->inline_limit, open_limit + 1);
    lawn_->done = lawn_->round_time = check; // it has been seen, and is there
    expect_corrupt();
    lawn_->done = lawn_->round_time = 0;
    lawn_->done = 1;
    expect_corrupt();
    lawn_->done = 0;
}

TEST_F(Check, WhatASettledLawnWakesFor)
{
    fill_slot();
    ASSERT_TRUE(lawn_settle(handle_, 0));
    ASSERT_EQ(lawn_->wake, ttl);
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
    set_wake(lawn_, ttl + 1);
    expect_corrupt();
    set_wake(lawn_, ttl);
    expect_found(&lawn_->inline_limit,
                 open_limit); // an inline start would be missed
}

TEST_F(Check, WhatIsDueAtOnce)
{
    start(0, 100, 0);
    start(1, 100, 0);
    start(2, 100, 0);
    lawn_timer_pause(handle_, &timers_[1]);
    expect_links_found(&lawn_->due, &timers_[1].link);
    expect_found(&timers_[0].check, open_limit - 1); // inline starts would move
    expect_found(&timers_[0].check, lawn_time_t{100});
    expect_found(&timers_[0].deadline, lawn_time_t{101}); // is not due
    expect_found(&timers_[0].deadline, LAWN_TIME_INFINITY);
    set_wake(lawn_, 101);
    expect_corrupt();
    set_wake(lawn_, 100);
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
}

TEST_F(Check, ObserversAndPasses)
{
    fill_slot();
    lawn_observer_t observer = {[](lawn_observer_t *, lawn_event_t,
                                   const lawn_timer_t *, lawn_time_t,
                                   lawn_time_t) {}};
    lawn_observe(handle_, &observer);
    expect_found(&lawn_->inline_limit, open_limit);
    expect_found(&lawn_->next, lawn_->wake);
    void *const none = nullptr;
    expect_found(&lawn_->observer, none);
    lawn_unobserve(handle_, &observer);
    expect_found(&lawn_->busy, true); // the limit is open
}

// Also while a pass runs, which closes the limit.
TEST_F(Check, InAPass)
{
    static std::function<void()> in_pass;
    bool has_checked = false;
    lawn_link_t *const slot = fill_slot();
    in_pass = [&] {
        has_checked = true;
        expect_found(&lawn_->inline_limit, open_limit);
        expect_found(&lawn_->running, size_t{1});
        expect_found(&lawn_->filled[class_of(ttl)], uint64_t{0});
        expect_links_found(slot, &timers_[3].link);
        start(7, 10, 0); // not for this pass
        start(8, 10, 0);
        expect_links_found(&lawn_->due, &timers_[7].link);
    };
    lawn_timer_init(&timers_[6],
                    [](lawn_timer_t *, lawn_time_t) { in_pass(); });
    start(6, 0, 10);
    EXPECT_EQ(lawn_advance(handle_, 10, 0), 1U);
    EXPECT_TRUE(has_checked);
}

TEST_F(Check, TimersOfAQueue)
{
    lawn_queue_t *const queue = create_queue(ttl);
    for (size_t i = 0; i < 5; ++i) {
        lawn_queue_start(queue, &timers_[i], i);
    }
    lawn_timer_pause(handle_, &timers_[2]);
    expect_links_found(&queue->timers, &timers_[3].link);
    expect_found(&timers_[1].check, open_limit - 1);
    expect_found(&timers_[1].check, lawn_time_t{1});
    expect_found(&timers_[3].deadline, lawn_time_t{ttl}); // before the last
    expect_found(&timers_[0].deadline, lawn_time_t{ttl + 2});
    expect_found(&timers_[2].deadline, lawn_time_t{ttl + 2}); // runs
    expect_found(&timers_[3].deadline, LAWN_TIME_INFINITY);
    expect_found(&queue->lawn, static_cast<lawn_t *>(nullptr));
}

TEST_F(Check, AlarmsOfQueues)
{
    lawn_queue_t *const queues[] = {create_queue(ttl), create_queue(2 * ttl)};
    Queue *const queue = static_cast<Queue *>(queues[0]);
    lawn_queue_start(queue, &timers_[0], 5);
    lawn_queue_start(queue, &timers_[1], 6);
    lawn_timer_t *const alarm = &queue->alarm.timer;
    ASSERT_EQ(alarm->deadline, ttl + 5);
    expect_found(&alarm->deadline, lawn_time_t{ttl + 6});
    const lawn_expired_fn_t expired = nullptr;
    expect_found(&alarm->expired, expired);
    Queue *const none = nullptr;
    expect_found(&queue->prev, none);
    expect_found(&lawn_->queues->prev, queue);
    // One that was lost: nobody would look at the queue.
    list_remove(&alarm->link);
    alarm->link.next = nullptr;
    expect_corrupt();
    file(lawn_, alarm);
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
    // An early one does no harm.
    EXPECT_TRUE(lawn_timer_stop(handle_, &timers_[0]));
    EXPECT_EQ(lawn_check(handle_), LAWN_OK);
}

} // namespace
