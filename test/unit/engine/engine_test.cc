// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/engine.h about a pass, on virtual time.

#include "../../misuse.h"
#include "engine_fixture.h"

using namespace lawn_test;

namespace
{

TEST_F(Engine, CreateRefusesInvalidParams)
{
    lawn_engine_t *engine = nullptr;
    EXPECT_EQ(lawn_engine_create(&params_, nullptr), LAWN_ERR_INVALID_PARAM);
    for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()}) {
        lawn_engine_params_t params = params_;
        params.ticks_per_sec = rate;
        EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_ERR_INVALID_PARAM);
    }
    lawn_engine_params_t params = params_;
    params.lawn.allocator.release = nullptr;
    EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(engine, nullptr);
}

TEST_F(Engine, DefaultsRunOnTheProcessorsClock)
{
    lawn_engine_t *engine = nullptr;
    const lawn_time_t before = lawn_get_time();
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    EXPECT_GE(lawn_engine_now(engine), before);
    EXPECT_EQ(lawn_engine_progress(engine), 0U);
    EXPECT_LE(lawn_engine_now(engine), lawn_get_time());
    lawn_engine_destroy(engine);
    lawn_engine_destroy(nullptr);
}

TEST_F(Engine, EveryFailedAllocationIsReportedAndLeaksNothing)
{
    lawn_engine_t *engine = nullptr;
    const unsigned live = allocations_.live;
    unsigned points = 0;
    for (lawn_status_t status = LAWN_ERR_NO_MEMORY; status != LAWN_OK;) {
        allocations_.left = points;
        status = lawn_engine_create(&params_, &engine);
        if (status == LAWN_OK) {
            break;
        }
        ASSERT_EQ(status, LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(engine, nullptr);
        EXPECT_EQ(allocations_.live, live);
        ++points;
    }
    EXPECT_EQ(points, 2U); // the engine and its lawn
    allocations_.left = 0;
    EXPECT_EQ(lawn_engine_add(engine, call, nullptr, -1, nullptr),
              LAWN_ERR_NO_MEMORY);
    lawn_engine_destroy(engine);
    EXPECT_EQ(allocations_.live, live);
}

TEST_F(Engine, PassReadsTheClockOncePollsInOrderAndThenExpires)
{
    add('a');
    add('b');
    add('c');
    start_timer(5);
    EXPECT_EQ(lawn_engine_now(engine_), start);
    EXPECT_EQ(pass_at(start + 4), "abc");
    clock_reads_ = 0;
    EXPECT_EQ(pass_at(start + 5), "abct");
    EXPECT_EQ(clock_reads_, 1U);
    EXPECT_EQ(lawn_engine_now(engine_), start + 5);
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
    EXPECT_EQ(stats().passes, 2U);
    EXPECT_EQ(stats().fired, 1U);
}

TEST_F(Engine, ReturnsTheWorkDone)
{
    pass();
    EXPECT_EQ(work_, 0U);
    add([] { return 3U; });
    add([] { return 0U; });
    add([] { return 4U; });
    start_timer(0);
    pass();
    EXPECT_EQ(work_, 8U);
    add([] { return UINT_MAX; }); // must not wrap to "nothing"
    pass();
    EXPECT_EQ(work_, UINT_MAX);
}

TEST_F(Engine, WhatIsReceivedStopsItsTimerFirst)
{
    start_timer(5);
    add([this] {
        return unsigned{lawn_engine_stop(engine_, &timers_[0].timer)};
    });
    EXPECT_EQ(pass_at(start + 5), "");
    EXPECT_EQ(work_, 1U);
}

TEST_F(Engine, ExpiresWithTheTimeReadBeforeThePoll)
{
    start_timer(5);
    add([this] {
        now_ = start + 5;
        return 0U;
    });
    EXPECT_EQ(pass_at(start + 4), "");
    EXPECT_EQ(pass(), "t");
}

// The program is stopped in a source, which then starts a timer.
TEST_F(Engine, ATimeThatASourceBringsExpiresNothing)
{
    start_timer(5);
    const size_t other = timers_.size();
    bool has_stopped = false;
    add([&] {
        if (has_stopped) { // what came meanwhile
            return unsigned{lawn_engine_stop(engine_, &timers_[0].timer)};
        }
        has_stopped = true;
        now_ += sec;
        start_timer(7);
        return 0U;
    });
    EXPECT_EQ(pass_at(start + 4), "");
    EXPECT_EQ(work_, 0U);
    EXPECT_LE(lawn_engine_next(engine_), start + 5);
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(work_, 1U);
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(lawn_timer_deadline(&timers_[other].timer), start + 4 + sec + 7);
    EXPECT_EQ(pass_at(start + 4 + sec + 7), "t");
}

TEST_F(Engine, BudgetIsPerPassAndPollingComesBetween)
{
    params_.budget = 4;
    create();
    add('p');
    for (int i = 0; i < 10; ++i) {
        start_timer(5);
    }
    EXPECT_EQ(pass_at(start + 5), "ptttt");
    EXPECT_EQ(work_, 4U);
    EXPECT_EQ(pass(), "ptttt");
    EXPECT_EQ(pass(), "ptt");
    EXPECT_EQ(pass(), "p");
    EXPECT_EQ(work_, 0U);
}

TEST_F(Engine, BudgetIs64ByDefault)
{
    for (int i = 0; i < 65; ++i) {
        start_timer(5);
    }
    EXPECT_EQ(pass_at(start + 5), std::string(64, 't'));
    EXPECT_EQ(pass(), "t");
}

// A timer is looked at before its deadline, and moved.
TEST_F(Engine, APassThatOnlyMovesTimersIsWork)
{
    start_timer(sec);
    const lawn_time_t first = lawn_engine_next(engine_);
    ASSERT_LT(first, start + sec);
    EXPECT_EQ(pass_at(first - 1), "");
    EXPECT_EQ(work_, 0U);
    EXPECT_EQ(pass_at(first), "");
    EXPECT_EQ(work_, 1U);
    EXPECT_EQ(stats().fired, 0U);
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(work_, 0U);
    EXPECT_GT(lawn_engine_next(engine_), first);
    EXPECT_EQ(pass_at(start + sec), "t");
    EXPECT_EQ(work_, 1U);
}

TEST_F(Engine, BudgetIsForAllThatIsTouched)
{
    params_.budget = 4;
    create();
    for (int i = 0; i < 10; ++i) {
        start_timer(5);
        lawn_timer_pause(lawn_engine_lawn(engine_), &timers_.back().timer);
    }
    start_timer(500); // and is moved at first
    start_timer(10);
    now_ = start + 10;
    std::vector<unsigned> works;
    std::string fired;
    do {
        fired += pass();
        works.push_back(work_);
        // Only where it ended at its budget is something left.
        EXPECT_EQ(work_ == 4, lawn_engine_next(engine_) <= now_);
    } while (work_ != 0 && works.size() < 100);
    EXPECT_EQ(works, (std::vector<unsigned>{4, 4, 3, 0}));
    EXPECT_EQ(fired, "t");
    EXPECT_EQ(stats().fired, 1U);
}

TEST_F(Engine, StartReadsTheClock)
{
    add([this] {
        now_ += 100;
        start_timer(50);
        return 0U;
    });
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(lawn_timer_deadline(&timers_[0].timer), start + 150);
    EXPECT_TRUE(lawn_engine_stop(engine_, &timers_[0].timer));
    EXPECT_FALSE(lawn_engine_stop(engine_, &timers_[0].timer));
}

TEST_F(Engine, ANegativeTtlIsAMistake)
{
    lawn_timer_t timer = {};
    const lawn_time_t later = now_ + 5;
    EXPECT_MISUSE(lawn_engine_start(engine_, &timer, now_ - later), "negative");
    lawn_engine_stop(engine_, &timer);
    lawn_engine_start(engine_, &timer, LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_timer_deadline(&timer), LAWN_TIME_INFINITY);
    lawn_engine_stop(engine_, &timer);
}

TEST_F(Engine, TimeDoesNotGoBack)
{
    pass_at(start + 100);
    EXPECT_EQ(pass_at(start + 50), "");
    EXPECT_EQ(lawn_engine_now(engine_), start + 100);
    start_timer(10);
    EXPECT_EQ(lawn_timer_deadline(&timers_[0].timer), start + 110);
    EXPECT_EQ(pass_at(start + 109), "");
    EXPECT_EQ(pass_at(start + 109 - msec), "");
    EXPECT_EQ(pass_at(start + 110), "t");
    EXPECT_EQ(stats().stalls, 0U);
}

TEST_F(Engine, SourcesAddedInAPassArePolledFromTheNext)
{
    bool is_added = false;
    const auto add_once = [&] {
        if (!is_added) {
            add('n');
        }
        is_added = true;
        return 0U;
    };
    add(add_once);
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(pass(), "n");
    is_added = false;
    then_ = add_once; // from a timer
    start_timer(0);
    EXPECT_EQ(pass(), "nt");
    EXPECT_EQ(pass(), "nn");
}

TEST_F(Engine, SourcesMayBeRemovedInAPass)
{
    // Each source of five, and a timer, removes each set of them.
    for (unsigned who = 0; who < 6; ++who) {
        for (unsigned victims = 0; victims < 32; ++victims) {
            create();
            lawn_source_t *sources[5];
            const auto remove = [&] {
                for (unsigned i = 0; i < 5; ++i) {
                    if (victims >> i & 1) {
                        lawn_engine_remove(engine_, sources[i]);
                    }
                }
                victims = 0;
                return 0U;
            };
            std::string first_pass;
            std::string second_pass;
            for (unsigned i = 0; i < 5; ++i) {
                const char name = static_cast<char>('a' + i);
                sources[i] = add([this, remove, name, is_it = i == who] {
                    note(name);
                    return is_it ? remove() : 0U;
                });
                const bool is_victim = victims >> i & 1;
                first_pass += i > who && is_victim ? "" : std::string(1, name);
                second_pass += is_victim ? "" : std::string(1, name);
            }
            const unsigned remaining = victims;
            then_ = [&] { remove(); };
            if (who == 5) {
                start_timer(0);
                first_pass += 't';
            }
            EXPECT_EQ(pass(), first_pass) << who << ' ' << remaining;
            EXPECT_EQ(pass(), second_pass) << who << ' ' << remaining;
            victims = remaining;
        }
    }
}

TEST_F(Engine, SourcesMayBeReplacedInAPass)
{
    lawn_source_t *source = nullptr;
    unsigned generation = 0;
    Function replace = [&] {
        note('r');
        lawn_engine_remove(engine_, source);
        // Removed before it was ever polled.
        lawn_engine_remove(engine_, add('x'));
        if (++generation < 3) {
            source = add(replace);
        }
        return 0U;
    };
    source = add(replace);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(pass(), "r");
    }
    EXPECT_EQ(pass(), "");
}

TEST_F(Engine, RemovingTwiceInAPassIsAMistake)
{
    lawn_source_t *source = nullptr;
    source = add([&] {
        lawn_engine_remove(engine_, source);
        EXPECT_DEBUG_DEATH(lawn_engine_remove(engine_, source), "poll");
        return note('a');
    });
    add('b');
    EXPECT_EQ(pass(), "ab");
    EXPECT_EQ(pass(), "b");
}

TEST_F(Engine, SourcesMayBeRemovedBetweenPasses)
{
    lawn_source_t *const a = add('a');
    lawn_source_t *const b = add('b');
    lawn_source_t *const c = add('c');
    lawn_engine_remove(engine_, b);
    EXPECT_EQ(pass(), "ac");
    lawn_engine_remove(engine_, c);
    add('d');
    lawn_engine_remove(engine_, a);
    EXPECT_EQ(pass(), "d");
}

TEST_F(Engine, IsNotReentrant)
{
    const auto reenter = [this] {
        EXPECT_DEBUG_DEATH(lawn_engine_progress(engine_), "is_inside");
        EXPECT_DEBUG_DEATH(lawn_engine_destroy(engine_), "is_inside");
        EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_INVALID_PARAM);
        return note('p');
    };
    add(reenter);
    then_ = reenter;
    start_timer(0);
    EXPECT_EQ(pass(), "ptp");
}

// The engine's lawn may also be advanced and drained by its own functions.
TEST_F(Engine, DoesNotRunSleepOrEndInsideItsLawn)
{
    add('a');
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    static lawn_engine_t *engine;
    static unsigned calls;
    engine = engine_;
    calls = 0;
    const auto each = [](lawn_timer_t *, lawn_time_t) {
        EXPECT_EQ(lawn_engine_arm(engine), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_engine_wait(engine, 0), LAWN_ERR_INVALID_PARAM);
        EXPECT_DEBUG_DEATH(lawn_engine_progress(engine), "is_inside");
        EXPECT_DEBUG_DEATH(lawn_engine_destroy(engine), "is_inside");
        ++calls;
    };
    lawn_timer_t timer;
    lawn_timer_init(&timer, each);
    lawn_timer_start(lawn, &timer, now_, 5);
    EXPECT_EQ(lawn_advance(lawn, now_ + 5, 0), 1U);
    lawn_timer_start(lawn, &timer, now_, 5);
    EXPECT_EQ(lawn_drain(lawn, each), 1U);
    EXPECT_EQ(calls, 2U);
    EXPECT_EQ(log_, "");
    EXPECT_EQ(stats().passes, 0U);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
}

TEST_F(Engine, ALatePassIsAStallAndPollsTwice)
{
    add('a');
    add('b');
    start_timer(1);
    // The first pass has none before it.
    EXPECT_EQ(pass_at(start + sec), "abt");
    EXPECT_EQ(pass_at(now_ + 10 * msec - 1), "ab");
    EXPECT_EQ(stats().stalls, 0U);
    start_timer(1);
    EXPECT_EQ(pass_at(now_ + 10 * msec), "ababt");
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(stats().worst_stall, 10 * msec);
    EXPECT_EQ(pass(), "ab");
    pass_at(now_ + sec);
    pass_at(now_ + 20 * msec);
    EXPECT_EQ(stats().stalls, 3U);
    EXPECT_EQ(stats().worst_stall, sec);
}

TEST_F(Engine, TheSecondPollOfAStallSavesATimer)
{
    unsigned polls = 0;
    add([&] {
        // The ACK is behind a batch of other completions.
        return ++polls == 3 && lawn_engine_stop(engine_, &timers_[0].timer);
    });
    pass();
    start_timer(sec);
    EXPECT_EQ(pass_at(start + 2 * sec), "");
    EXPECT_EQ(polls, 3U);
}

TEST_F(Engine, AStallPollsWhatWasThereWhenItBegan)
{
    lawn_source_t *gone = nullptr;
    pass();
    add([this, &gone] {
        if (gone) {
            lawn_engine_remove(engine_, gone);
            add('n');
        }
        gone = nullptr;
        return note('a');
    });
    gone = add('b');
    EXPECT_EQ(pass_at(now_ + sec), "aa");
    EXPECT_EQ(pass(), "an");
}

TEST_F(Engine, TheStallThresholdIsAParameter)
{
    params_.stall_threshold = 3;
    create();
    add('a');
    pass();
    EXPECT_EQ(pass_at(now_ + 2), "a");
    EXPECT_EQ(pass_at(now_ + 3), "aa");
    params_.stall_threshold = LAWN_TIME_INFINITY;
    create();
    add('a');
    pass();
    EXPECT_EQ(pass_at(LAWN_TIME_INFINITY - 1), "a");
}

} // namespace
