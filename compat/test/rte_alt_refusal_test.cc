// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What lawn/rte_timer_alt.h refuses: what is not there, what there is no room
// or no memory for, and what another thread or process has.

#include "rte_alt_fixture.h"

#include <climits>

#include <sys/resource.h>

namespace
{

unsigned allocations_left = UINT_MAX; // before the first that fails
std::function<void()> on_allocation;  // before each

bool may_allocate()
{
    if (on_allocation) {
        on_allocation();
    }
    const bool may = allocations_left != 0;
    allocations_left -= may && allocations_left != UINT_MAX;
    return may;
}

} // namespace

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : nullptr;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : nullptr;
}
}

namespace
{

TEST_F(RteAlt, RefusesBadInput)
{
    EXPECT_EQ(rte_timer_alt_reset(5, timer(), 1, SINGLE, 0, nullptr, nullptr),
              -EINVAL)
        << "no such data";
    EXPECT_EQ(rte_timer_alt_reset(64, timer(), 1, SINGLE, 0, nullptr, nullptr),
              -EINVAL);
    EXPECT_EQ(reset(0, 1, SINGLE, 3), -EINVAL) << "no such lcore";
    EXPECT_EQ(reset(0, 1, SINGLE, 5), -EINVAL);
    EXPECT_EQ(rte_timer_alt_stop(64, timer()), -EINVAL);
    EXPECT_EQ(stop(0), 0) << "was never started";
    EXPECT_EQ(rte_timer_alt_manage(64, nullptr, 0, expired), -EINVAL);
    EXPECT_EQ(rte_timer_alt_manage(7, nullptr, 0, expired), -EINVAL);
    EXPECT_EQ(rte_timer_alt_manage(5, nullptr, 0, expired), -EINVAL);
    EXPECT_EQ(rte_timer_data_dealloc(5), -EINVAL);
    EXPECT_EQ(manage(begin, 3), -EINVAL) << "no such lcore";
    EXPECT_EQ(manage(begin, 5), -EINVAL);
    const unsigned lcores[] = {0, 3};
    const uint32_t id = shared->id;
    EXPECT_EQ(rte_timer_stop_all(id, lcores, 2, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(rte_timer_stop_all(64, lcores, 0, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(rte_timer_stop_all(7, lcores, 0, nullptr, nullptr), -EINVAL);
    EXPECT_EQ(rte_timer_data_dealloc(64), -EINVAL);
    EXPECT_EQ(rte_timer_data_dealloc(9), -EINVAL);
    EXPECT_EQ(status_of(in_child([this] {
                  const unsigned lcore = 0;
                  reset(0, 1);
                  return manage(begin) == -EACCES &&
                                 rte_timer_stop_all(shared->id, &lcore, 1,
                                                    nullptr, nullptr) == -EACCES
                             ? 0
                             : 1;
              })),
              0)
        << "manages what it has not allocated";
}

// The lcore's file is there, but this process has no descriptor left for it. So
// it does not know whose the timer is, and leaves it alone.
TEST_F(RteAlt, ATimerOfAnLcoreThatCannotBeOpenedIsNotTaken)
{
    const pid_t pid = in_living_child(
        [] { return reset(0, 100, SINGLE, 1) | reset(1, 100, SINGLE, 1); });
    const uint64_t status = timer()->status;
    EXPECT_EQ(status_of(in_child([] {
                  int ret = reset(2, 100); // opens the file of lcore 0
                  rlimit limit = {};
                  ret |= getrlimit(RLIMIT_NOFILE, &limit);
                  limit.rlim_cur = 3;
                  ret |= setrlimit(RLIMIT_NOFILE, &limit);
                  const bool is_refused =
                      reset(0, 200) == -EINVAL && stop(1) == -EINVAL;
                  limit.rlim_cur = limit.rlim_max;
                  ret |= setrlimit(RLIMIT_NOFILE, &limit);
                  return ret == 0 && is_refused ? 0 : 1;
              })),
              0);
    EXPECT_EQ(timer()->status, status);
    EXPECT_TRUE(rte_timer_pending(timer(1)));
    manage(begin + 100, 1);
    EXPECT_EQ(runs.size(), 2U);
    kill_child(pid);
}

// As if another thread were in the middle of a call: no two meet often enough.
TEST_F(RteAlt, OneCallAtATime)
{
    EXPECT_EQ(reset(0, 100), 0);
    const uint64_t pending = timer()->status;
    lawn_rte_set_status(timer(), pending | LAWN_RTE_TIMER_CONFIG);
    EXPECT_EQ(reset(0, 50), -1);
    EXPECT_EQ(stop(0), -1);
    lawn_rte_set_status(timer(), pending);
    EXPECT_EQ(stop(0), 0);
}

// Another process has known before this one that the manager was replaced, so
// it could take the timer that this one was starting.
TEST_F(RteAlt, WhatAnotherHasTakenMeanwhileIsLeftAlone)
{
    const uint64_t of_another =
        lawn_rte_alt_status(LAWN_RTE_TIMER_PENDING, 0, 12345);
    const auto is_left_alone = [of_another](int expected) {
        on_clock = [of_another] {
            on_clock = nullptr;
            timer()->slot = 99;
            lawn_rte_set_status(timer(), of_another);
        };
        timer()->period = 7;
        timer()->f = [](rte_timer *, void *) {};
        timer()->arg = shared;
        lawn_rte_set_status(timer(), LAWN_RTE_TIMER_STOP);
        return reset(0, 100, PERIODICAL) == expected && timer()->slot == 99 &&
               timer()->period == 7 && timer()->f && timer()->arg == shared &&
               timer()->status == of_another;
    };
    for (unsigned i = 0; i < 200; ++i) { // and no slot is lost
        ASSERT_TRUE(is_left_alone(-1));
    }
    for (unsigned i = 1; i <= 128; ++i) {
        ASSERT_EQ(reset(i, 100), 0);
    }
    EXPECT_TRUE(is_left_alone(-ENOSPC));
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 128U);
}

// Two threads have the same status for a timer. The first has taken it, and
// then their client has gone.
TEST_F(RteAlt, NoTimerIsTakenTwiceByOneClient)
{
    const uint64_t config =
        lawn_rte_alt_status(LAWN_RTE_TIMER_CONFIG, 0, 12345);
    lawn_rte_set_status(timer(), config);
    EXPECT_EQ(lawn_rte_alt_take(shared->id, timer(), config), -1);
    EXPECT_EQ(stop(0), 0) << "by another client";
}

TEST_F(RteAlt, NoMoreArePendingThanThereIsRoomFor)
{
    for (unsigned round = 1; round <= 3; ++round) {
        for (unsigned i = 0; i < 128; ++i) {
            // It asks whether there is a manager.
            lawn_rte_alts[shared->id][0].look_at = 0;
            ASSERT_EQ(reset(i, 100), 0);
        }
        EXPECT_EQ(reset(128, 100), -ENOSPC);
        EXPECT_FALSE(rte_timer_pending(timer(128)));
        EXPECT_EQ(reset(0, 200), 0) << "one that is pending";
        for (unsigned i = 0; round == 2 && i < 128; ++i) {
            ASSERT_EQ(stop(i), 0);
        }
        manage(begin + round * 1000);
        manage(begin + round * 1000); // what was let go of
    }
    EXPECT_EQ(runs.size(), 2 * 128U);
}

TEST_F(RteAlt, ThereAreNoMoreDatasThanNumbers)
{
    for (uint32_t expected = 1; expected < 64; ++expected) {
        uint32_t id = 99;
        EXPECT_EQ(rte_timer_data_alloc(&id), 0);
        EXPECT_EQ(id, expected);
    }
    uint32_t id = 99;
    EXPECT_EQ(rte_timer_data_alloc(&id), -ENOSPC);
    EXPECT_EQ(id, 99U);
    EXPECT_EQ(rte_timer_data_dealloc(7), 0);
    EXPECT_EQ(rte_timer_data_alloc(nullptr), 0) << "who guesses the number";
    for (uint32_t other = 1; other < 64; ++other) {
        EXPECT_EQ(rte_timer_data_dealloc(other), 0);
    }
}

// Somebody was too early, or too late.
TEST_F(RteAlt, ARefusedStartTakesNoNumber)
{
    EXPECT_EQ(rte_timer_alt_reset(1, timer(), 1, SINGLE, 0, nullptr, nullptr),
              -EINVAL);
    uint32_t id = 99;
    EXPECT_EQ(rte_timer_data_alloc(&id), 0);
    EXPECT_EQ(id, 1U);
    EXPECT_EQ(rte_timer_data_dealloc(1), 0);
    EXPECT_EQ(rte_timer_data_dealloc(1), -EINVAL);
}

TEST_F(RteAlt, ADirectoryWithoutRoomForFilesIsRefused)
{
    const std::string good = directory_name;
    for (const std::string &bad : {good + "/none", std::string(5000, 'a')}) {
        directory_name = bad;
        uint32_t id = 99;
        EXPECT_EQ(rte_timer_data_alloc(&id), -EIO);
        EXPECT_EQ(id, 99U);
        EXPECT_EQ(rte_timer_alt_manage(1, nullptr, 0, expired), -EINVAL);
        EXPECT_EQ(
            rte_timer_alt_reset(1, timer(), 1, SINGLE, 0, nullptr, nullptr),
            -EINVAL);
        rte_timer_data_dealloc(1);
    }
    directory_name = good;
}

// Each of its allocations fails in turn.
TEST_F(RteAlt, ADataWithoutMemoryIsRefused)
{
    uint32_t id = 99;
    int ret = -ENOMEM;
    unsigned failures = 0;
    for (; ret != 0 && failures < 100; ++failures) {
        allocations_left = failures;
        ret = rte_timer_data_alloc(&id);
        allocations_left = UINT_MAX;
        EXPECT_TRUE(ret == 0 || ret == -ENOMEM) << ret;
        EXPECT_EQ(id, ret == 0 ? 1U : 99U);
    }
    EXPECT_GT(failures, 3 * 5U); // in each lcore's engine and owner
    EXPECT_EQ(rte_timer_data_dealloc(1), 0);
}

// Both have found none. The one that comes second uses the first's.
TEST_F(RteAlt, TwoThreadsMakeOneTable)
{
    lawn_rte_alt_t *other = nullptr;
    on_allocation = [&] {
        on_allocation = nullptr;
        other = lawn_rte_alt_all(1);
    };
    EXPECT_EQ(lawn_rte_alt_all(1), other);
    EXPECT_NE(other, nullptr);
    rte_timer_data_dealloc(1);
}

TEST_F(RteAlt, AStopIsRefusedWhenTheDataIsGone)
{
    EXPECT_EQ(reset(0, 100), 0);
    rte_timer_data_dealloc(shared->id);
    EXPECT_EQ(stop(0), -EINVAL);
    EXPECT_TRUE(rte_timer_pending(timer()));
}

// Without the lock, another thread may find the next manager and start it.
TEST_F(RteAlt, ARefusedStartGivesTheTimerBackUnderTheLock)
{
    const pid_t pid = in_child([] {
        const uint64_t config = lawn_rte_alt_config(shared->id, 0);
        lawn_rte_set_status(timer(), config);
        shared->is_up = true;
        while (shared->is_up) {
            sched_yield();
        }
        lawn_rte_alt_t *const alt = lawn_rte_alts[shared->id];
        lawn_rte_spin(&alt->lock);
        const int ret = lawn_rte_alt_start(alt, timer(), config, 100, SINGLE,
                                           nullptr, nullptr);
        const bool is_given_back = timer()->status == config;
        lawn_rte_alt_unlock(alt);
        return ret == -EINVAL && is_given_back ? 0 : 1;
    });
    while (!shared->is_up) {
        sched_yield();
    }
    rte_timer_data_dealloc(shared->id);
    shared->is_up = false;
    EXPECT_EQ(status_of(pid), 0);
}

TEST_F(RteAlt, StartsAreRefusedWhenTheDataIsGone)
{
    // One step of each at a time.
    const auto take_turns = [] {
        shared->is_up = !shared->is_up;
        const bool was_up = shared->is_up;
        while (shared->is_up == was_up) {
            sched_yield();
        }
    };
    const pid_t pid = in_child([&take_turns] {
        bool is_right = reset(1, 100) == 0;
        // It does not ask whether the manager is gone.
        lawn_rte_alts[shared->id][0].look_at = LAWN_TIME_INFINITY;
        take_turns();
        is_right &= reset(1, 100) == -EINVAL && reset(1, 100) == -EINVAL &&
                    !rte_timer_pending(timer(1));
        take_turns();
        is_right &= reset(1, 100) == 0;
        shared->is_up = !shared->is_up;
        return is_right ? 0 : 1;
    });
    while (!shared->is_up) {
        sched_yield();
    }
    rte_timer_data_dealloc(shared->id);
    take_turns();
    uint32_t id = 99;
    EXPECT_EQ(rte_timer_data_alloc(&id), 0);
    EXPECT_EQ(id, shared->id);
    take_turns();
    EXPECT_EQ(status_of(pid), 0);
}

// The first one has the files of the first number.
TEST_F(RteAlt, AnotherProcessGetsAnotherNumber)
{
    EXPECT_EQ(status_of(in_child([] {
                  uint32_t id = 99;
                  return rte_timer_data_alloc(&id) == 0 && id == 1 &&
                                 rte_timer_data_dealloc(id) == 0
                             ? 0
                             : 1;
              })),
              0);
}

// Another thread starts a timer of the first number while this one finds out
// that the number is taken. Here it is this thread, between two steps.
TEST_F(RteAlt, AnotherNumberTakesNothingFromThoseWhoUseTheFirst)
{
    for (unsigned i = 0; i < 3; ++i) {
        const pid_t pid = in_living_child([i] {
            int started = 1;
            unsigned left = i;
            on_allocation = [&] {
                if (left-- == 0) { // once
                    started = reset(i, 100);
                }
            };
            uint32_t id = 99;
            return rte_timer_data_alloc(&id) == 0 && id == 1 &&
                           rte_timer_data_dealloc(id) == 0
                       ? started
                       : 2;
        });
        EXPECT_EQ(shared->result, 0);
        manage(shared->now + 100);
        EXPECT_EQ(shared->runs[i], 1U);
        kill_child(pid);
    }
}

} // namespace
