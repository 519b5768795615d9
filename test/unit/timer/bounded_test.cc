// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// No advance touches more timers than its budget, whatever happened before it,
// and what is to be done is done in few: a timer moves at most ten times, once
// more where it was re-armed.
//
// LAWN_TEST_SCALE is the share of timers in percent (100), for runs under an
// instrument.

#include "timer/lawn_impl.h"
#include "times.h"

#include <lawn/queue.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace
{

using lawn_test::last_time;
using lawn_test::second;
constexpr size_t most_moves = 11;

size_t scaled(size_t count)
{
    const char *const text = getenv("LAWN_TEST_SCALE");
    const size_t percent = text ? strtoul(text, nullptr, 0) : 100;
    return std::max<size_t>(count * percent / 100, 1000);
}

class Bounded : public testing::Test
{
protected:
    Bounded()
    {
        EXPECT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }

    ~Bounded() override
    {
        EXPECT_EQ(lawn_check(lawn_), LAWN_OK);
        lawn_destroy(lawn_);
    }

    // Zero-filled objects of `stride` bytes that begin with a timer. Only that
    // much of the memory is ever touched.
    void make(size_t count, size_t stride = sizeof(lawn_timer_t))
    {
        arena_.reset(static_cast<char *>(calloc(count, stride)));
        ASSERT_NE(arena_, nullptr);
        count_ = count;
        stride_ = stride;
    }

    lawn_timer_t *timer(size_t i) const
    {
        return reinterpret_cast<lawn_timer_t *>(arena_.get() + i * stride_);
    }

    // Advances until nothing is left that is due, or was to be moved.
    void work_off(lawn_time_t now, unsigned budget)
    {
        size_t touched = 0;
        size_t advances = 0;
        lawn::Work work = {};
        do {
            work = lawn::advance_as_of(lawn_, now, budget);
            ASSERT_LE(work.touched, budget);
            ASSERT_LE(work.fired, work.touched);
            touched += work.touched;
            fired_ += work.fired;
            ASSERT_LE(++advances, count_ * (most_moves + 1) / budget + 2);
        } while (work.touched == budget);
        ASSERT_GT(lawn_next(lawn_), std::min(now, last_time));
        touched_ += touched;
        ASSERT_LE(touched, 2 * count_) << "of one time: a move and a fire";
    }

    // At each of these times.
    void work_off_all(unsigned budget, const std::vector<lawn_time_t> &clock)
    {
        for (const lawn_time_t now : clock) {
            work_off(now, budget);
            if (HasFatalFailure()) {
                return;
            }
        }
        EXPECT_LE(touched_, count_ * (most_moves + 1));
    }

    struct Free {
        void operator()(char *memory) const
        {
            free(memory);
        }
    };

    lawn_t *lawn_ = nullptr;
    size_t count_ = 0;
    size_t stride_ = 0;
    size_t fired_ = 0;
    size_t touched_ = 0;
    std::unique_ptr<char, Free> arena_; // outlives the lawn
};

TEST_F(Bounded, AMillionPaused)
{
    make(scaled(1'000'000));
    for (size_t i = 0; i < count_; ++i) {
        lawn_timer_start(lawn_, timer(i), 0, second);
        lawn_timer_pause(lawn_, timer(i));
    }
    lawn_timer_t last = {};
    lawn_timer_start(lawn_, &last, 0, second);
    work_off_all(64, {2 * second, lawn_time_t{1} << 62, last_time});
    EXPECT_EQ(fired_, 1U);
    EXPECT_EQ(touched_, count_ + 1); // each once, and then it is let go of
}

TEST_F(Bounded, AMillionReArmedAndOverdue)
{
    make(scaled(1'000'000));
    for (size_t i = 0; i < count_; ++i) {
        lawn_timer_start(lawn_, timer(i), 0, 1'000'000);
        lawn_timer_start(lawn_, timer(i), 1, second + i * 1000);
    }
    work_off_all(64, {1 + second + count_ * 1000});
    EXPECT_EQ(fired_, count_);
    EXPECT_EQ(touched_, count_); // none moves on its way
}

TEST_F(Bounded, AMillionReArmedAndNotOverdue)
{
    make(scaled(1'000'000));
    for (size_t i = 0; i < count_; ++i) {
        lawn_timer_start(lawn_, timer(i), 0, 1000);
        lawn_timer_start(lawn_, timer(i), 1, second + i % 1000);
    }
    work_off_all(64, {1000, second / 2, second, second + 1, second + 500});
    EXPECT_LT(fired_, count_);
    work_off_all(64, {second + 1000});
    EXPECT_EQ(fired_, count_);
}

TEST_F(Bounded, AMillionInOneSlot)
{
    make(scaled(1'000'000));
    const lawn_time_t ttl = (lawn_time_t{1} << 40) + 1;
    for (size_t i = 0; i < count_; ++i) {
        lawn_timer_start(lawn_, timer(i), 0, ttl + i);
    }
    std::vector<lawn_time_t> clock = {ttl - 1};
    for (size_t share = 1; share <= 16; ++share) {
        clock.push_back(ttl + count_ * share / 16);
    }
    work_off_all(64, clock);
    EXPECT_EQ(fired_, count_);
}

TEST_F(Bounded, AMillionThatAreDueAtOnce)
{
    make(scaled(1'000'000));
    for (size_t i = 0; i < count_; ++i) {
        if (i % 2 == 0) {
            lawn_timer_start(lawn_, timer(i), 100, 0);
        } else {
            lawn_timer_start_at(lawn_, timer(i), 100, i % 100);
        }
        if (i % 8 == 0) {
            lawn_timer_pause(lawn_, timer(i));
        }
    }
    work_off_all(64, {100});
    EXPECT_EQ(fired_, count_ - (count_ + 7) / 8);
    EXPECT_EQ(touched_, count_);
}

TEST_F(Bounded, AMillionInAThousandQueues)
{
    make(scaled(1'000'000));
    std::vector<lawn_queue_t *> queues(1000);
    for (size_t q = 0; q < queues.size(); ++q) {
        ASSERT_EQ(lawn_queue_create(lawn_, 1000 + 77 * q, &queues[q]), LAWN_OK);
    }
    size_t paused = 0;
    for (size_t i = 0; i < count_; ++i) {
        const bool in_first = i % 2 == 0;
        lawn_queue_t *const queue = queues[in_first ? 0 : i % queues.size()];
        lawn_queue_start(queue, timer(i), i / 1000);
        paused += i % 4 == 3 && lawn_timer_pause(lawn_, timer(i));
    }
    work_off_all(64, {5000, 20'000, 200'000});
    EXPECT_EQ(fired_, count_ - paused);
    EXPECT_LE(touched_, count_ + 3 * queues.size());
}

// In all slots of all classes, from any of which the clock jumps.
TEST_F(Bounded, GapsAndJumps)
{
    const std::vector<std::vector<lawn_time_t>> clocks = {
        {last_time},
        {lawn_time_t{1} << 62, last_time},
        {1000, second, 1000 * second, lawn_time_t{1} << 62,
         lawn_time_t{3} << 62, LAWN_TIME_INFINITY}};
    for (const unsigned budget : {1U, 64U, 1000U}) {
        for (const auto &clock : clocks) {
            std::mt19937_64 random(1);
            make(scaled(20'000));
            fired_ = touched_ = 0;
            for (size_t i = 0; i < count_; ++i) {
                const unsigned bits = 1 + static_cast<unsigned>(i % 64);
                const lawn_time_t ttl = random() >> (64 - bits);
                const lawn_time_t now = lawn_now(lawn_);
                const lawn_time_t before_end = last_time - now;
                lawn_timer_start(lawn_, timer(i), now,
                                 std::min(ttl, before_end));
            }
            work_off_all(budget, clock);
            ASSERT_EQ(fired_, count_);
            lawn_destroy(lawn_);
            ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
        }
    }
}

// One slot holds what is late and, behind it, what comes 64 slots later.
TEST_F(Bounded, CollidingTtls)
{
    const lawn_time_t width = 1 << 12;
    make(scaled(100'000));
    for (size_t i = 0; i < count_; ++i) {
        const size_t circle = i * 4 / count_;
        lawn_timer_start(lawn_, timer(i), circle * 64 * width, 64 * width - 1);
    }
    work_off_all(7, {3 * 64 * width, 4 * 64 * width - 2});
    EXPECT_EQ(fired_, (count_ * 3 + 3) / 4);
    work_off_all(7, {4 * 64 * width - 1});
    EXPECT_EQ(fired_, count_);
}

TEST_F(Bounded, StaleBitsOfStoppedTimersCostNoBudget)
{
    std::mt19937_64 random(1);
    make(scaled(100'000));
    for (size_t i = 0; i < count_; ++i) {
        lawn_timer_start(lawn_, timer(i), 0, random() >> random() % 63 | 1);
    }
    for (size_t i = 0; i < count_; ++i) {
        EXPECT_TRUE(lawn_timer_stop(lawn_, timer(i)));
    }
    lawn_timer_t last = {};
    lawn_timer_start_at(lawn_, &last, 0, last_time);
    work_off_all(1, {1000, second, lawn_time_t{1} << 62, last_time - 1});
    EXPECT_EQ(fired_, 0U);
    EXPECT_LE(touched_, 10U); // the moves of the last
    work_off_all(1, {last_time});
    EXPECT_EQ(fired_, 1U);
}

// The addresses make no difference, however regular they are.
TEST_F(Bounded, Strides)
{
    for (const size_t stride : {40, 64, 144, 4096, 46'368, 50'000}) {
        SCOPED_TRACE(stride);
        const size_t most = (size_t{40} << 20) / stride;
        make(std::min(scaled(100'000), most), stride);
        fired_ = touched_ = 0;
        const lawn_time_t now = lawn_now(lawn_);
        for (size_t i = 0; i < count_; ++i) {
            lawn_timer_start(lawn_, timer(i), now, 1000 + i);
            lawn_timer_start(lawn_, timer(i), now, second + i * 17);
        }
        work_off_all(64, {now + second, now + second + count_ * 17});
        EXPECT_EQ(fired_, count_);
        EXPECT_LE(touched_, 3 * count_);
    }
}

// The most that a timer can move: each slot begins as early before the deadline
// as its width allows.
TEST_F(Bounded, ATimerMovesTenTimes)
{
    for (const bool is_re_armed : {false, true}) {
        make(1);
        touched_ = fired_ = 0;
        lawn_time_t deadline = last_time;
        if (is_re_armed) {
            lawn_timer_start(lawn_, timer(0), 0, 5);
            deadline >>= 1; // what can be re-armed where it is
        }
        lawn_timer_start_at(lawn_, timer(0), 0, deadline);
        size_t wakes = 0;
        while (lawn_next(lawn_) != LAWN_TIME_INFINITY) {
            work_off(lawn_next(lawn_), 1);
            ASSERT_LE(++wakes, most_moves + 1);
        }
        EXPECT_EQ(fired_, 1U);
        EXPECT_EQ(touched_, (is_re_armed ? 11U : 10U) + 1);
        lawn_destroy(lawn_);
        ASSERT_EQ(lawn_create(nullptr, &lawn_), LAWN_OK);
    }
}

} // namespace
