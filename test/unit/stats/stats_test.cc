// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/stats.h: histograms, and what is seen of a lawn from outside.

#include "../../stepping.h"

#include <lawn/queue.h>
#include <lawn/shared.h>
#include <lawn/stats.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace
{

TEST(Histogram, BucketsFollowEachOtherWithoutGaps)
{
    for (unsigned i = 0; i < LAWN_HISTOGRAM_BUCKETS; ++i) {
        const uint64_t bound = lawn_histogram_bound(i);
        EXPECT_EQ(lawn_histogram_bucket(bound), i);
        if (bound != UINT64_MAX) {
            EXPECT_EQ(lawn_histogram_bucket(bound + 1), i + 1);
        }
    }
    EXPECT_EQ(lawn_histogram_bucket(0), 0U);
    EXPECT_EQ(lawn_histogram_bound(LAWN_HISTOGRAM_BUCKETS - 1), UINT64_MAX);
    EXPECT_EQ(lawn_histogram_bound(UINT_MAX), UINT64_MAX);
}

TEST(Histogram, ABoundIsAtMostAnEighthAboveItsValues)
{
    std::mt19937_64 random(1);
    for (unsigned i = 0; i < 100'000; ++i) {
        const uint64_t value = random() >> random() % 64;
        const uint64_t bound =
            lawn_histogram_bound(lawn_histogram_bucket(value));
        EXPECT_GE(bound, value);
        EXPECT_LE(bound - value, value / 8);
    }
}

TEST(Histogram, QuantilesAreNeverBelowTheTrueOnes)
{
    std::mt19937_64 random(2);
    lawn_histogram_t histogram = {};
    std::vector<uint64_t> values;
    for (unsigned i = 0; i < 1000; ++i) {
        values.push_back(random() % 1'000'000 >> random() % 20);
        lawn_histogram_add(&histogram, values.back());
    }
    std::sort(values.begin(), values.end());
    EXPECT_EQ(lawn_histogram_count(&histogram), values.size());
    for (unsigned i = 1; i <= values.size(); ++i) {
        const uint64_t exact = values[i - 1];
        const uint64_t found = lawn_histogram_quantile(&histogram, i / 1000.0);
        EXPECT_GE(found, exact);
        EXPECT_LE(found - exact, exact / 8);
    }
    EXPECT_EQ(lawn_histogram_quantile(&histogram, 1), values.back());
    EXPECT_EQ(lawn_histogram_quantile(&histogram, 7), values.back());
    EXPECT_EQ(lawn_histogram_quantile(&histogram, NAN), values.back());
    EXPECT_EQ(lawn_histogram_quantile(&histogram, 0),
              lawn_histogram_quantile(&histogram, -1));
    EXPECT_EQ(lawn_histogram_quantile(&histogram, 0), values.front());
}

// Whoever copies the buckets and then the maximum, at any time.
TEST(Histogram, NoCountedValueIsAboveTheMaximum)
{
    if (!lawn_test::can_trace()) {
        printf("no ptrace here: nobody looks in between\n");
        return;
    }
    lawn_histogram_t *const histogram = static_cast<lawn_histogram_t *>(
        lawn_test::allocate_shared(sizeof(lawn_histogram_t)));
    ASSERT_NE(histogram, nullptr);
    const std::vector<uint64_t> values = {3, 40, 500, 6000};
    const pid_t pid = lawn_test::begin_stepping([&] {
        for (const uint64_t value : values) {
            lawn_histogram_add(histogram, value);
        }
    });
    ASSERT_GT(pid, 0);
    while (lawn_test::step(pid, 1)) {
        for (const uint64_t value : values) {
            const unsigned bucket = lawn_histogram_bucket(value);
            if (__atomic_load_n(&histogram->buckets[bucket],
                                __ATOMIC_RELAXED) != 0) {
                EXPECT_GE(__atomic_load_n(&histogram->max, __ATOMIC_RELAXED),
                          value);
            }
        }
    }
    EXPECT_EQ(lawn_histogram_count(histogram), values.size());
    EXPECT_EQ(histogram->max, values.back());
    munmap(histogram, sizeof(*histogram));
}

TEST(Histogram, AnEmptyOneIsAllZero)
{
    const lawn_histogram_t histogram = {};
    EXPECT_EQ(lawn_histogram_count(&histogram), 0U);
    for (const double q : {0.0, 0.5, 1.0}) {
        EXPECT_EQ(lawn_histogram_quantile(&histogram, q), 0U);
    }
}

class Look : public testing::Test
{
protected:
    Look()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        lawn_advance(lawn_, now_, 0);
    }

    ~Look() override
    {
        lawn_destroy(lawn_);
    }

    size_t due_at(lawn_time_t now, size_t max_looks = 0) const
    {
        return lawn_backlog(lawn_, now, max_looks);
    }

    std::string dump(lawn_time_t now) const
    {
        char *text = nullptr;
        size_t size = 0;
        FILE *const stream = open_memstream(&text, &size);
        EXPECT_EQ(lawn_dump(lawn_, now, stream), LAWN_OK);
        fclose(stream);
        const std::string lines(text, size);
        free(text);
        return lines;
    }

    static void rang(lawn_timer_t * /*timer*/, lawn_time_t /*now*/)
    {
    }

    lawn_time_t now_ = 1'000'000;
    lawn_t *lawn_ = nullptr;
    std::vector<lawn_timer_t> timers_;
};

TEST_F(Look, TheBacklogIsWhatAnAdvanceWouldFire)
{
    std::mt19937_64 random(3);
    timers_.resize(2000);
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(lawn_, 5000, &queue), LAWN_OK);
    for (lawn_timer_t &timer : timers_) {
        lawn_time_t ttl = random() >> random() % 64;
        if (random() % 4 == 0) {
            ttl = 5000;
            lawn_queue_start(queue, &timer, now_);
        } else {
            lawn_timer_start(lawn_, &timer, now_, ttl);
            ttl += random() % 2 == 0 ? 0 : ttl / 2; // lazily
            lawn_timer_start(lawn_, &timer, now_, ttl);
        }
        if (random() % 8 == 0) {
            lawn_timer_pause(lawn_, &timer);
        }
        now_ += random() % 10;
    }
    for (unsigned i = 0; i < 100; ++i) {
        now_ += random() >> random() % 64 % 40;
        const size_t due = due_at(now_);
        EXPECT_EQ(due_at(now_, timers_.size() + 1), due);
        const unsigned part = lawn_advance(lawn_, now_, 1);
        EXPECT_EQ(due_at(now_), due - part);
        EXPECT_EQ(lawn_advance(lawn_, now_, 0), due - part);
        EXPECT_EQ(due_at(now_), 0U);
    }
}

// It stands where it was, before others that are due.
TEST_F(Look, APausedTimerOfAQueueHidesNone)
{
    timers_.resize(3);
    lawn_queue_t *queue = nullptr;
    ASSERT_EQ(lawn_queue_create(lawn_, 100, &queue), LAWN_OK);
    for (lawn_timer_t &timer : timers_) {
        lawn_queue_start(queue, &timer, now_);
        now_ += 10;
    }
    lawn_timer_pause(lawn_, &timers_[0]);
    EXPECT_EQ(due_at(now_ + 79), 0U);
    EXPECT_EQ(due_at(now_ + 80), 1U);
    EXPECT_EQ(due_at(now_ + 90), 2U);
}

TEST_F(Look, TheBacklogIsCountedAsFarAsOneLooks)
{
    timers_.resize(100);
    for (lawn_timer_t &timer : timers_) {
        lawn_timer_start(lawn_, &timer, now_, 5);
    }
    EXPECT_EQ(due_at(now_ + 4), 0U);
    EXPECT_EQ(due_at(now_ + 5), 100U);
    EXPECT_EQ(due_at(now_ + 5, 99), 99U);
    EXPECT_EQ(due_at(now_ + 5, 1), 1U);
}

TEST_F(Look, WhatNeverFiresIsNoBacklog)
{
    timers_.resize(1);
    lawn_timer_start(lawn_, &timers_[0], now_, LAWN_TIME_INFINITY);
    EXPECT_EQ(due_at(LAWN_TIME_INFINITY), 0U);
}

TEST_F(Look, DumpHasALineForEachTimerThatRuns)
{
    timers_.resize(3);
    for (lawn_timer_t &timer : timers_) {
        lawn_timer_init(&timer, rang);
    }
    lawn_timer_start(lawn_, &timers_[0], now_, 500);
    lawn_timer_start(lawn_, &timers_[1], now_, 500);
    lawn_timer_stop(lawn_, &timers_[1]);
    EXPECT_EQ(dump(now_).find("deadline 1000500 left 500\n"),
              dump(now_).find("deadline"));
    EXPECT_NE(dump(now_ + 501).find("left -1\n"), std::string::npos);
    lawn_timer_start(lawn_, &timers_[2], now_, LAWN_TIME_INFINITY);
    const std::string lines = dump(now_);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
    EXPECT_NE(lines.find(" never\n"), std::string::npos);
    char address[64];
    snprintf(address, sizeof(address), "timer %p callback %p ",
             static_cast<void *>(&timers_[0]), reinterpret_cast<void *>(rang));
    EXPECT_NE(lines.find(address), std::string::npos);
}

// The plain timers of the second and the third are still where they were.
TEST_F(Look, ASharedTimerIsSeenByItsOwnDeadline)
{
    lawn_box_t *box = nullptr;
    ASSERT_EQ(lawn_box_create(lawn_, &box), LAWN_OK);
    std::vector<lawn_shared_t> shared(4);
    for (lawn_shared_t &timer : shared) {
        lawn_shared_init(&timer, box, nullptr);
        lawn_shared_start(&timer, now_ + 100);
    }
    lawn_shared_start(&shared[3], LAWN_TIME_INFINITY);
    lawn_box_drain(box, now_, 0);
    EXPECT_EQ(due_at(now_ + 99), 0U);
    EXPECT_EQ(due_at(now_ + 100), 3U);
    lawn_shared_stop(&shared[1]);
    lawn_shared_start(&shared[2], now_ + 500);
    EXPECT_EQ(due_at(now_ + 100), 1U);
    EXPECT_EQ(due_at(now_ + 500), 2U);
    const std::string lines = dump(now_);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
    EXPECT_NE(lines.find("deadline 1000100 left 100\n"), std::string::npos);
    EXPECT_NE(lines.find("deadline 1000500 left 500\n"), std::string::npos);
    EXPECT_NE(lines.find(" never\n"), std::string::npos);
    // What the owner does not know of does not fire in an advance.
    EXPECT_EQ(lawn_advance(lawn_, now_ + 100, 0), 1U);
    lawn_shared_start(&shared[2], now_ + 499);
    EXPECT_EQ(due_at(now_ + 499), 0U);
    EXPECT_EQ(lawn_box_drain(box, now_ + 100, 0), 1U);
    EXPECT_EQ(due_at(now_ + 499), 1U);
    for (lawn_shared_t &timer : shared) {
        lawn_shared_retire(&timer, nullptr);
    }
    lawn_box_destroy(box);
}

TEST_F(Look, DumpTellsOfAStreamThatFails)
{
    timers_.resize(1);
    lawn_timer_start(lawn_, &timers_[0], now_, 500);
    FILE *const stream = fopen("/dev/null", "r");
    EXPECT_EQ(lawn_dump(lawn_, now_, stream), LAWN_ERR_IO);
    fclose(stream);
}

} // namespace
