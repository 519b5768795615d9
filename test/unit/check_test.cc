// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_check() judges most other tests, so it is judged here: each invariant is
// broken in a lawn that is whole otherwise, is found broken, and is mended.

#include "timer/lawn_impl.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace
{

using namespace lawn;

constexpr lawn_time_t ttl = 1'000'000;

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

    // Natives, strays and paused timers in one queue, which has no other.
    Queue *fill_queue()
    {
        for (size_t i = 0; i < 5; ++i) {
            start(i, i, ttl);
        }
        start(1, 5, ttl);
        lawn_timer_pause(handle_, &timers_[2]);
        return &lawn_->queues[queue_of(&timers_[0])];
    }

    // With timers in the tree alone.
    void fill_tree(size_t count)
    {
        for (size_t i = 0; i < count; ++i) {
            start(i, 0, 100);
            start(i, 0, 1000 + i);
        }
        lawn_advance(handle_, 200, 0);
        ASSERT_EQ(lawn_->near.count(), count);
    }

    void check_waiting()
    {
        lawn_timer_t *const deferred = &timers_[498];
        ASSERT_EQ(where_is(deferred), listed);
        lawn_link_t *const none = nullptr;
        expect_found(&deferred->place, deferred->place ^ listed ^ near);
        expect_found(&deferred->link.prev, none);
        unsigned dated_timers = 0;
        for (size_t i = 0; i < 400; ++i) {
            lawn_timer_t *const timer = &timers_[i];
            if (where_is(timer) == dated && ++dated_timers % 16 == 0) {
                expect_found(&timer->place, timer->place ^ dated ^ near);
                expect_found(&timer->link.prev, none);
                // Another day.
                expect_found(&timer->deadline, lawn_time_t{0});
                expect_found(&timer->deadline, LAWN_TIME_INFINITY);
            }
        }
        EXPECT_GT(dated_timers, 32U);
    }

    template <typename Value> void expect_found(Value *value, Value wrong)
    {
        const Value right = *value;
        ASSERT_NE(right, wrong);
        ASSERT_EQ(lawn_check(handle_), LAWN_OK);
        *value = wrong;
        EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT);
        *value = right;
        EXPECT_EQ(lawn_check(handle_), LAWN_OK);
    }

    lawn_t *handle_ = nullptr;
    Lawn *lawn_ = nullptr;
    std::vector<lawn_timer_t> timers_ = std::vector<lawn_timer_t>(500);
};

TEST_F(Check, LinksOfAQueue)
{
    Queue *const queue = fill_queue();
    lawn_link_t *const link = &timers_[3].link;
    lawn_link_t *const none = nullptr;
    for (lawn_link_t *const i : {&queue->head, link}) {
        expect_found(&i->next, none);
        expect_found(&i->prev, none);
        expect_found(&i->prev, i->next); // does not lead back
        expect_found(&i->next, &i->next->next[0].next[0]);
    }
}

TEST_F(Check, TimersOfAQueue)
{
    Queue *const queue = fill_queue();
    for (lawn_timer_t *const timer : {&timers_[0], &timers_[1], &timers_[2]}) {
        const uint64_t place = timer->place;
        expect_found(&timer->place, place - where_is(timer) + near);
        expect_found(&timer->place, place - where_is(timer) + idle);
        expect_found(&timer->place, place ^ 1U << queue_shift); // its queue
        // Later than the next one's, or than its own deadline.
        expect_found(&timer->place, place + (uint64_t{1} << check_shift) * ttl);
        expect_found(&timer->place, place - (uint64_t{1} << check_shift) * ttl);
        expect_found(&timer->deadline, lawn_time_t{5});
    }
    expect_found(&queue->strays, size_t{0});
    // A paused timer that is said to run, and the reverse.
    expect_found(&timers_[2].place, timers_[2].place ^ paused ^ stray);
    expect_found(&timers_[1].place, timers_[1].place ^ paused ^ stray);
}

TEST_F(Check, Bounds)
{
    const unsigned q = static_cast<unsigned>(fill_queue() - &lawn_->queues[0]);
    for (auto *const bounds : {&lawn_->bounds, &lawn_->stray_bounds}) {
        const lawn_time_t right = bounds->get(q);
        ASSERT_NE(right, LAWN_TIME_INFINITY);
        bounds->set(q, right + ttl); // later than a check
        EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT);
        bounds->set(q, right);
        EXPECT_EQ(lawn_check(handle_), LAWN_OK);
        // A tournament whose matches were not played: any of its words.
        auto *const words = reinterpret_cast<uint64_t *>(bounds);
        for (const unsigned i : {1U, 2U, bounds_leaves / 2, bounds_leaves - 1,
                                 bounds_leaves, bounds_leaves + 1}) {
            const uint64_t word = words[i];
            words[i] = word == 0 ? 1 : 0;
            EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT) << i;
            words[i] = word;
        }
        auto *const winners =
            reinterpret_cast<uint16_t *>(words + 2 * bounds_leaves);
        expect_found(&winners[1], static_cast<uint16_t>(q ^ 1));
    }
    // Earlier than that of all timers.
    const lawn_time_t strays = lawn_->stray_bounds.get(q);
    lawn_->stray_bounds.set(q, lawn_->bounds.get(q) - 1);
    EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT);
    lawn_->stray_bounds.set(q, strays);
}

TEST_F(Check, CountsAndNext)
{
    fill_queue();
    expect_found(&lawn_->running, size_t{5});
    expect_found(&lawn_->next, LAWN_TIME_INFINITY);
    lawn_drain(handle_, nullptr);
    fill_tree(10);
    expect_found(&lawn_->running, size_t{11});
    expect_found(&lawn_->next, LAWN_TIME_INFINITY);
}

TEST_F(Check, Tree)
{
    fill_tree(10);
    lawn_timer_t *const first = lawn_->near.first();
    expect_found(&first->deadline, lawn_time_t{5000}); // not the first
    // The last one, a leaf or not, fires before all others.
    expect_found(&timers_[9].deadline, lawn_time_t{500});
    // Subtrees that are lost, and ones in the wrong order.
    unsigned inner = 0;
    for (size_t i = 0; i < 10; ++i) {
        lawn_link_t *const link = &timers_[i].link;
        lawn_link_t *const none = nullptr;
        if (link->next) {
            expect_found(&link->next, none);
        }
        if (link->prev) {
            expect_found(&link->prev, none);
        }
        if (link->next && link->prev) {
            ++inner;
            std::swap(link->next, link->prev);
            EXPECT_EQ(lawn_check(handle_), LAWN_ERR_CORRUPT);
            std::swap(link->next, link->prev);
        }
    }
    EXPECT_GT(inner, 0U);
}

// In a pass that has a calendar and timers that wait for its end.
TEST_F(Check, WhatWaitsInAPass)
{
    static std::function<void(lawn_time_t)> in_pass;
    bool has_checked = false;
    in_pass = [&](lawn_time_t now) {
        start(498, now, 0);
        check_waiting();
        has_checked = true;
    };
    lawn_timer_init(&timers_[499],
                    [](lawn_timer_t *, lawn_time_t now) { in_pass(now); });
    for (size_t i = 0; i < 400; ++i) {
        start(i, 0, 100);
        start(i, 1, ttl + i * 1000);
    }
    start(499, 0, 100);
    start(499, 1, ttl + 50'500); // among the first
    EXPECT_EQ(lawn_advance(handle_, 2 * ttl, 0), 401U);
    EXPECT_TRUE(has_checked);
}

} // namespace
