// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an engine counts (lawn/engine.h), on virtual time, and who may read it.

#include "../../hang.h"
#include "../../stepping.h"
#include "engine_fixture.h"

#include <lawn/queue.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

using namespace lawn_test;

namespace
{

class EngineStats : public Engine
{
protected:
    lawn_histogram_t lateness() const
    {
        lawn_histogram_t late;
        lawn_engine_query_lateness(engine_, &late);
        return late;
    }

    void start_timers(unsigned count, lawn_time_t ttl)
    {
        for (unsigned i = 0; i < count; ++i) {
            start_timer(ttl);
        }
    }
};

// 9 ms are no stall, and yet 10,000 timers at 64 a pass wait for 1.4 s.
TEST_F(EngineStats, SlowPassesAreSeenInTheLateness)
{
    constexpr unsigned count = 10'000;
    constexpr unsigned passes = (count + 63) / 64;
    constexpr lawn_time_t step = 9 * msec;
    pass();
    start_timers(count, step);
    for (unsigned i = 0; i < passes; ++i) {
        EXPECT_EQ(lawn_engine_backlog(engine_),
                  i == 0 ? 0 : count - 64 * i); // those left by the pass before
        pass_at(now_ + step);
        EXPECT_EQ(stats().fired, std::min(count, 64 * (i + 1)));
        EXPECT_EQ(stats().worst_late, i * step);
        EXPECT_EQ(stats().budget_ends, std::min(i + 1, passes - 1));
    }
    EXPECT_EQ(lawn_engine_backlog(engine_), 0U);
    EXPECT_EQ(stats().stalls, 0U);
    EXPECT_EQ(stats().worst_stall, 0U);
    EXPECT_EQ(stats().worst_pass, step);
    EXPECT_EQ(stats().moved, 0U);
    const lawn_histogram_t late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), count);
    EXPECT_EQ(late.max, (passes - 1) * step);
    const lawn_time_t median = lawn_histogram_quantile(&late, 0.5);
    EXPECT_GE(median, passes / 2 * step);
    EXPECT_LE(median, passes / 2 * step * 9 / 8);
}

TEST_F(EngineStats, ABudgetThatIsJustEnoughLeavesNothing)
{
    pass();
    start_timers(64, 1);
    pass_at(now_ + 1);
    EXPECT_EQ(stats().fired, 64U);
    EXPECT_EQ(stats().budget_ends, 0U);
}

TEST_F(EngineStats, WhatIsMovedIsNotFired)
{
    pass();
    start_timer(sec);
    lawn_engine_start(engine_, &timers_[0].timer, 2 * sec); // lazily
    pass_at(start + sec);
    EXPECT_EQ(stats().moved, 1U);
    EXPECT_EQ(stats().fired, 0U);
    EXPECT_EQ(lateness().max, 0U);
}

// The plain timer inside of it may come up although nothing of the program is
// due, or long after the deadline that it had.
TEST_F(EngineStats, ASharedTimerIsAsLateAsItsCallback)
{
    lawn_shared_t timer;
    lawn_shared_init(&timer, lawn_engine_box(engine_), nullptr);
    lawn_shared_start(&timer, now_ + msec);
    pass();
    lawn_shared_stop(&timer);
    pass_at(now_ + 3 * msec);
    lawn_shared_start(&timer, now_ + msec);
    pass();
    lawn_shared_start(&timer, now_ + 5 * msec);
    pass_at(now_ + 3 * msec);
    EXPECT_EQ(stats().fired, 0U);
    EXPECT_EQ(stats().worst_late, 0U);
    lawn_histogram_t late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 0U);
    pass_at(now_ + 2 * msec + 7);
    EXPECT_EQ(stats().fired, 1U);
    EXPECT_EQ(stats().worst_late, 7U);
    late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 1U);
    lawn_shared_retire(&timer, nullptr);
    pass();
}

TEST_F(EngineStats, TheLongestPassIsKept)
{
    pass_at(start + sec); // no pass before it
    EXPECT_EQ(stats().worst_pass, 0U);
    pass();
    EXPECT_EQ(stats().worst_pass, 0U);
    pass_at(now_ + 5);
    EXPECT_EQ(stats().worst_pass, 5U);
    pass_at(now_ + 3);
    EXPECT_EQ(stats().worst_pass, 5U);
    pass_at(now_ + 6);
    EXPECT_EQ(stats().worst_pass, 6U);
    pass_at(now_ + 20 * msec); // a stall as well
    EXPECT_EQ(stats().worst_pass, 20 * msec);
    EXPECT_EQ(stats().worst_stall, 20 * msec);
    pass_at(now_ + 10 * msec);
    EXPECT_EQ(stats().stalls, 2U);
    EXPECT_EQ(stats().worst_pass, 20 * msec);
}

// Nothing was due when it ended, so it needs no second poll.
TEST_F(EngineStats, AnAbsenceThatEndsInASleepIsAStall)
{
    add('a');
    for (const bool waits : {false, true}) {
        SCOPED_TRACE(waits);
        lawn_engine_reset_stats(engine_);
        EXPECT_EQ(pass(), "a");
        now_ += sec;
        EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_TIMED_OUT);
        EXPECT_EQ(stats().stalls, 0U); // it has not slept
        start_timer(1);
        EXPECT_EQ(waits ? lawn_engine_wait(engine_, LAWN_TIME_INFINITY)
                        : lawn_engine_arm(engine_),
                  LAWN_OK);
        EXPECT_EQ(stats().stalls, 1U);
        EXPECT_EQ(stats().worst_stall, sec);
        EXPECT_EQ(stats().worst_pass, sec);
        EXPECT_EQ(pass_at(now_ + 1), "at");
        EXPECT_EQ(stats().stalls, 1U);
    }
    // Shorter ones count for the longest time without a pass. Sleeps do not.
    lawn_engine_reset_stats(engine_);
    pass();
    now_ += 5;
    start_timer(sec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    pass_at(now_ + sec / 2);
    EXPECT_EQ(stats().worst_pass, 5U);
    EXPECT_EQ(stats().stalls, 0U);
    // BUSY is no sleep: the pass counts it, and polls twice.
    now_ += sec;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    EXPECT_EQ(stats().stalls, 0U);
    EXPECT_EQ(pass(), "aat");
    EXPECT_EQ(stats().stalls, 1U);
}

// Before the first pass nothing was polled, so nothing is late.
TEST_F(EngineStats, ASleepBeforeTheFirstPassIsNoStall)
{
    now_ += sec;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(stats().stalls, 0U);
    EXPECT_EQ(stats().worst_pass, 0U);
    // The latest time at which one can sleep.
    create();
    now_ = LAWN_TIME_INFINITY - 1;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    now_ = LAWN_TIME_INFINITY;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    EXPECT_EQ(stats().stalls, 0U);
}

TEST_F(EngineStats, ADeadlineThatWasPastIsLate)
{
    lawn_timer_t timer = {};
    pass();
    lawn_timer_start_at(lawn_engine_lawn(engine_), &timer, now_, now_ - msec);
    pass_at(now_ + 2);
    EXPECT_EQ(stats().worst_late, msec + 2);
}

TEST_F(EngineStats, AQueuesAlarmIsNoTimer)
{
    lawn_queue_t *queue = nullptr;
    lawn_timer_t timers[3] = {};
    ASSERT_EQ(lawn_queue_create(lawn_engine_lawn(engine_), msec, &queue),
              LAWN_OK);
    pass();
    for (lawn_timer_t &timer : timers) {
        lawn_queue_start(queue, &timer, now_);
    }
    pass_at(now_ + 3 * msec);
    const lawn_histogram_t late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 3U);
    EXPECT_EQ(late.buckets[lawn_histogram_bucket(2 * msec)], 3U);
    EXPECT_EQ(stats().fired, 3U);
}

TEST_F(EngineStats, SourcesAreTimedWhereThatIsAskedFor)
{
    params_.time_sources = true;
    create();
    lawn_source_t *second = nullptr;
    const auto poll = [this](lawn_time_t ticks) {
        now_ += ticks;
        return 0U;
    };
    add([&] { return poll(3); });
    second = add([&] {
        if (second) {
            lawn_engine_remove(engine_, second); // and is timed nevertheless
        }
        second = nullptr;
        return poll(7);
    });
    add([&] { return poll(5); });
    pass();
    EXPECT_EQ(stats().worst_poll, 7U);
    EXPECT_EQ(stats().worst_poll_fn, reinterpret_cast<uintptr_t>(&call));
    EXPECT_EQ(stats().worst_poll_arg,
              reinterpret_cast<uintptr_t>(&functions_[1]));
    lawn_engine_reset_stats(engine_);
    pass();
    EXPECT_EQ(stats().worst_poll, 5U);
    EXPECT_EQ(stats().worst_poll_arg,
              reinterpret_cast<uintptr_t>(&functions_[2]));
}

// It may go back by a little, as between the counters of two processors.
TEST_F(EngineStats, APollInWhichTheClockGoesBackTookNoTime)
{
    params_.time_sources = true;
    create();
    add([&] { return now_ += 100, 0U; });
    add([&] { return now_ -= 30, 0U; });
    pass();
    EXPECT_EQ(stats().worst_poll, 100U);
}

// There it is never later than in the pass before.
TEST_F(EngineStats, AClockAtTheEndOfTimeIsNoStall)
{
    pass();
    for (int i = 0; i < 5; ++i) {
        pass_at(LAWN_TIME_INFINITY);
    }
    EXPECT_EQ(stats().stalls, 1U);
}

TEST_F(EngineStats, ResetBeginsAnew)
{
    pass();
    start_timers(2, 1);
    pass_at(now_ + sec);
    lawn_engine_reset_stats(engine_);
    const lawn_engine_stats_t none = {};
    const lawn_engine_stats_t reset = stats();
    EXPECT_EQ(memcmp(&reset, &none, sizeof(none)), 0);
    const lawn_histogram_t late = lateness();
    EXPECT_EQ(lawn_histogram_count(&late), 0U);
    EXPECT_EQ(late.max, 0U);
    pass_at(now_ + 2); // is the longest again
    EXPECT_EQ(stats().worst_pass, 2U);
    EXPECT_EQ(stats().passes, 1U);
}

// Nothing was polled yet, so nothing is late.
TEST_F(EngineStats, ResetBeforeTheFirstPassKnowsNoGap)
{
    lawn_engine_reset_stats(engine_);
    pass_at(now_ + 3600 * sec);
    EXPECT_EQ(stats().passes, 1U);
    EXPECT_EQ(stats().stalls, 0U);
    EXPECT_EQ(stats().worst_pass, 0U);
    pass_at(now_ + sec);
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(stats().worst_pass, sec);
}

// The structure of an older program is a part of today's, that of a newer one
// more than it.
TEST_F(EngineStats, QueryFillsWhatTheProgramKnows)
{
    pass();
    start_timer(1);
    pass_at(now_ + 1);
    struct {
        lawn_engine_stats_t known;
        uint64_t later;
    } larger;
    memset(&larger, 0xa5, sizeof(larger));
    lawn_engine_query_sized(engine_, &larger.known, 2 * sizeof(uint64_t));
    EXPECT_EQ(larger.known.passes, 2U);
    EXPECT_EQ(larger.known.fired, 1U);
    EXPECT_EQ(larger.known.stalls, 0xa5a5a5a5a5a5a5a5U);
    lawn_engine_query_sized(engine_, &larger.known, sizeof(larger));
    EXPECT_EQ(larger.known.worst_pass, 1U);
    EXPECT_EQ(larger.later, 0U);
}

// Every pass fires one timer and leaves some: who reads meanwhile sees the one
// with the other.
TEST_F(EngineStats, OtherThreadsReadWhatOnePassHasCounted)
{
    params_.budget = 1;
    create();
    pass();
    start_timers(3, 0);
    then_ = [this] {
        lawn_engine_start(engine_, &timers_[stats().fired % 3].timer, 0);
    };
    std::atomic<bool> is_over = false;
    Thread reader("the reader", [&] {
        uint64_t before = 0;
        for (unsigned i = 0; i < 20'000; ++i) {
            const lawn_engine_stats_t seen = stats();
            EXPECT_EQ(seen.fired, seen.budget_ends);
            EXPECT_GE(seen.fired, before);
            before = seen.fired;
            lateness();
            got_on();
        }
        is_over = true;
    });
    const Waiting waiting("the reader", "to have read");
    while (!is_over) {
        log_.clear();
        lawn_engine_progress(engine_);
    }
    reader.join();
    EXPECT_EQ(stats().fired, stats().budget_ends);
}

// Another process copies the histogram, some instructions at a time.
class EngineCopies : public EngineStats
{
protected:
    EngineCopies()
    {
        params_.lawn.allocator = {allocate, release, nullptr};
        create();
        copy_ = static_cast<lawn_histogram_t *>(
            allocate_shared(sizeof(lawn_histogram_t)));
        pass();
    }

    ~EngineCopies() override
    {
        munmap(copy_, sizeof(*copy_));
    }

    pid_t begin_copy()
    {
        return begin_stepping(
            [this] { lawn_engine_query_lateness(engine_, copy_); });
    }

    void fire(lawn_time_t late)
    {
        start_timer(0);
        pass_at(now_ + late);
    }

    // The buckets above that of the maximum.
    uint64_t count_above() const
    {
        uint64_t count = 0;
        for (unsigned i = lawn_histogram_bucket(copy_->max) + 1;
             i < LAWN_HISTOGRAM_BUCKETS; ++i) {
            count += copy_->buckets[i];
        }
        return count;
    }

    lawn_histogram_t *copy_;

private:
    static constexpr size_t head = 64; // for the size

    static void *allocate(void *, size_t size)
    {
        char *const memory = static_cast<char *>(allocate_shared(head + size));
        memcpy(memory, &size, sizeof(size));
        return memory + head;
    }

    static void release(void *, void *memory)
    {
        char *const begin = static_cast<char *>(memory) - head;
        size_t size = 0;
        memcpy(&size, begin, sizeof(size));
        munmap(begin, head + size);
    }
};

TEST_F(EngineCopies, HaveNoValueAboveTheirMaximum)
{
    if (!can_trace()) {
        printf("no ptrace here: nobody copies meanwhile\n");
        return;
    }
    const OnOneProcessor pinned;
    const pid_t pid = begin_copy();
    ASSERT_GT(pid, 0);
    // So high that the copy has most of these buckets still before it.
    for (unsigned bucket = 300; step(pid, 100);) {
        if (bucket < 400) {
            fire(lawn_histogram_bound(bucket++));
        }
    }
    EXPECT_GT(lawn_histogram_count(copy_), 0U);
    EXPECT_EQ(count_above(), 0U);
}

TEST_F(EngineCopies, AreOfOneSideOfAReset)
{
    if (!can_trace()) {
        printf("no ptrace here: nobody copies meanwhile\n");
        return;
    }
    const OnOneProcessor pinned;
    for (const unsigned steps : {30, 100, 300, 700}) {
        fire(5);
        const pid_t pid = begin_copy();
        ASSERT_GT(pid, 0);
        ASSERT_TRUE(step(pid, steps));
        lawn_engine_reset_stats(engine_);
        end_stepping(pid);
        EXPECT_EQ(lawn_histogram_count(copy_), 0U);
        EXPECT_EQ(count_above(), 0U);
    }
}

} // namespace
