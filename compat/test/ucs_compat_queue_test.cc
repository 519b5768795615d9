// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// UCX's timer queue as lawn/ucs_compat.h makes it, by its names in UCX and on
// virtual time.

#define LAWN_UCS_COMPAT
#include <lawn/ucs_compat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace
{

constexpr ucs_time_t begin = 1000000;

class UcsQueue : public testing::Test
{
protected:
    UcsQueue()
    {
        EXPECT_EQ(ucs_timerq_init(&queue_), UCS_OK);
    }

    ~UcsQueue() override
    {
        ucs_timerq_cleanup(&queue_);
    }

    // Timers with ids from 0 on, of 10 ticks.
    void add(int count)
    {
        for (int id = 0; id < count; ++id) {
            ucs_timerq_add(&queue_, id, 10);
        }
    }

    void remove(int count)
    {
        for (int id = 0; id < count; ++id) {
            ucs_timerq_remove(&queue_, id);
        }
    }

    // The ids, in any order.
    std::vector<int> expired(ucs_time_t now)
    {
        std::vector<int> ids;
        ucs_timer_t *timer = nullptr;
        ucs_timerq_for_each_expired(timer, &queue_, now,
                                    { ids.push_back(timer->id); });
        return ids;
    }

    ucs_timer_queue_t queue_ = {};
};

using Ids = std::vector<int>;

TEST_F(UcsQueue, KnowsItsTimersById)
{
    EXPECT_TRUE(ucs_timerq_is_empty(&queue_));
    EXPECT_EQ(ucs_timerq_min_interval(&queue_), UCS_TIME_INFINITY);
    EXPECT_EQ(ucs_timerq_add(&queue_, 1, 50), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue_, -2, 20), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue_, 3, 30), UCS_OK);
    EXPECT_EQ(ucs_timerq_add(&queue_, 1, 10), UCS_ERR_ALREADY_EXISTS);
    EXPECT_EQ(ucs_timerq_size(&queue_), 3);
    EXPECT_EQ(ucs_timerq_min_interval(&queue_), 20U);
    EXPECT_EQ(ucs_timerq_remove(&queue_, -2), UCS_OK);
    EXPECT_EQ(ucs_timerq_remove(&queue_, -2), UCS_ERR_NO_ELEM);
    EXPECT_EQ(ucs_timerq_min_interval(&queue_), 30U);
    EXPECT_FALSE(ucs_timerq_is_empty(&queue_));
    EXPECT_EQ(ucs_timerq_remove(&queue_, 3), UCS_OK);
    EXPECT_EQ(ucs_timerq_remove(&queue_, 1), UCS_OK);
    EXPECT_TRUE(ucs_timerq_is_empty(&queue_));
    EXPECT_EQ(expired(begin), Ids{});
}

TEST_F(UcsQueue, IsDueAtOnceAndKeepsItsPhase)
{
    ucs_timerq_add(&queue_, 1, 10);
    EXPECT_EQ(expired(begin), Ids{1});
    EXPECT_EQ(expired(begin + 9), Ids{});
    EXPECT_EQ(expired(begin + 14), Ids{1});
    EXPECT_EQ(expired(begin + 19), Ids{});
    EXPECT_EQ(expired(begin + 20), Ids{1});
    EXPECT_EQ(expired(begin + 95), Ids{1}); // for all that were missed
    EXPECT_EQ(expired(begin + 95), Ids{});
    EXPECT_EQ(expired(begin + 100), Ids{1});
    EXPECT_EQ(expired(begin), Ids{});
    unsigned fired = 0;
    for (ucs_time_t t = 107; t <= 7100; t += 7) {
        fired += !expired(begin + t).empty();
    }
    EXPECT_EQ(fired, 700U);
}

TEST_F(UcsQueue, IntervalsOfNothingAndForever)
{
    ucs_timerq_add(&queue_, 1, 0);
    EXPECT_EQ(expired(begin), Ids{1});
    EXPECT_EQ(expired(begin), Ids{});
    EXPECT_EQ(expired(begin + 1), Ids{1});
    ucs_timerq_remove(&queue_, 1);
    ucs_timerq_add(&queue_, 2, UCS_TIME_INFINITY);
    EXPECT_EQ(expired(begin + 2), Ids{2});
    EXPECT_EQ(expired(UCS_TIME_INFINITY - 1), Ids{});
    EXPECT_EQ(expired(UCS_TIME_INFINITY), Ids{});
    ucs_timerq_remove(&queue_, 2);
    EXPECT_EQ(expired(UCS_TIME_INFINITY), Ids{});
}

TEST_F(UcsQueue, FiresAllThatIsDue)
{
    constexpr int count = 300;
    constexpr auto interval_of = [](int id) {
        return static_cast<ucs_time_t>(id * 7 + 1);
    };
    for (int id = 0; id < count; ++id) {
        ucs_timerq_add(&queue_, id, interval_of(id));
    }
    ASSERT_EQ(expired(begin).size(), static_cast<size_t>(count));
    for (ucs_time_t t = 1; t <= 5000; ++t) {
        Ids due;
        for (int id = 0; id < count; ++id) {
            if (t % interval_of(id) == 0) {
                due.push_back(id);
            }
        }
        Ids ids = expired(begin + t);
        std::sort(ids.begin(), ids.end());
        ASSERT_EQ(ids, due) << t;
    }
}

TEST_F(UcsQueue, TheLoopMayRemoveAndAdd)
{
    add(4);
    std::vector<int> ids;
    ucs_timer_t *timer = nullptr;
    ucs_timerq_for_each_expired(timer, &queue_, begin, {
        const int id = timer->id;
        ids.push_back(id);
        EXPECT_EQ(ucs_timerq_remove(&queue_, id), UCS_OK);
        EXPECT_EQ(ucs_timerq_add(&queue_, id, 10), UCS_OK);
    });
    EXPECT_EQ(ids.size(), 4U);
    EXPECT_EQ(expired(begin + 1).size(), 4U);
}

TEST_F(UcsQueue, WhatABrokenLoopDoesNotReachIsNext)
{
    add(4);
    ucs_timer_t *timer = nullptr;
    int reached = -1;
    ucs_timerq_for_each_expired(timer, &queue_, begin, {
        reached = timer->id;
        break;
    });
    const std::vector<int> rest = expired(begin);
    EXPECT_EQ(rest.size(), 3U);
    EXPECT_EQ(std::count(rest.begin(), rest.end(), reached), 0);
}

// Removed are timers that the loop has still to look at, the next one included.
TEST_F(UcsQueue, TheLoopMayRemoveOthers)
{
    for (int kept = 0; kept < 4; ++kept) {
        add(4);
        Ids ids;
        ucs_timer_t *timer = nullptr;
        ucs_timerq_for_each_expired(timer, &queue_, begin, {
            ids.push_back(timer->id);
            for (int id = 0; id < 4; ++id) {
                if (id != kept && id != timer->id) {
                    ucs_timerq_remove(&queue_, id);
                }
            }
        });
        EXPECT_EQ(ids.back(), kept);
        EXPECT_LE(ids.size(), 2U);
        remove(4);
    }
}

// Each timer fires once: in the inner loop or, if that breaks, in the outer.
TEST_F(UcsQueue, ALoopMayRunInsideALoop)
{
    for (const size_t most : {size_t{0}, size_t{2}, SIZE_MAX}) {
        add(5);
        Ids ids;
        ucs_timer_t *outer = nullptr;
        ucs_timerq_for_each_expired(outer, &queue_, begin, {
            ids.push_back(outer->id);
            ucs_timer_t *inner = nullptr;
            size_t count = 0;
            ucs_timerq_for_each_expired(inner, &queue_, begin, {
                ids.push_back(inner->id);
                if (++count > most) {
                    break;
                }
            });
        });
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(ids, (Ids{0, 1, 2, 3, 4}));
        EXPECT_EQ(expired(begin + 9), Ids{});
        remove(5);
    }
}

TEST_F(UcsQueue, ThreadsShareIt)
{
    constexpr int rounds = 20000;
    std::atomic<int> waiting{3};
    std::vector<std::thread> threads;
    for (int first : {0, 100, 200}) {
        threads.emplace_back([&, first] {
            --waiting;
            while (waiting > 0) {
                std::this_thread::yield(); // so that all begin at once
            }
            for (int i = 0; i < rounds; ++i) {
                const int id = first + i % 20;
                ASSERT_EQ(ucs_timerq_add(&queue_, id, 1), UCS_OK);
                expired(static_cast<ucs_time_t>(i));
                ASSERT_EQ(ucs_timerq_remove(&queue_, id), UCS_OK);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    EXPECT_TRUE(ucs_timerq_is_empty(&queue_));
}

} // namespace
