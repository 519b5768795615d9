// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's timers between processes as lawn/rte_timer_alt.h makes them, by DPDK's
// names, with lcores of our own: this process manages, its children start and
// stop, on a clock that they share and the test moves. With real processes of
// DPDK's: rte_alt_processes_test.cc.

#include "../../test/environment.h"
#include "rte_alt_fixture.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

namespace
{

using lawn_test::scaled;

TEST_F(RteAlt, RunsAtItsTimeAndNotATickBefore)
{
    EXPECT_EQ(reset(3, 100), 0);
    EXPECT_TRUE(rte_timer_pending(timer(3)));
    manage(begin + 99);
    EXPECT_TRUE(runs.empty());
    manage(begin + 100);
    EXPECT_EQ(runs, std::vector<unsigned>{3});
    EXPECT_FALSE(rte_timer_pending(timer(3)));
    manage(begin + 1000);
    EXPECT_EQ(runs.size(), 1U);
}

TEST_F(RteAlt, AnotherProcessStartsStopsAndResets)
{
    const pid_t pid = in_living_child([] {
        return reset(1, 100) | reset(2, 100) | stop(2) | reset(3, 100) |
               reset(3, 200) | reset(4, 200) | reset(4, 100);
    });
    EXPECT_EQ(shared->result, 0);
    manage(begin + 99);
    EXPECT_TRUE(runs.empty());
    manage(begin + 100);
    std::sort(runs.begin(), runs.end());
    EXPECT_EQ(runs, (std::vector<unsigned>{1, 4}));
    manage(begin + 200);
    EXPECT_EQ(runs.back(), 3U);
    manage(begin + 300);
    EXPECT_EQ(runs.size(), 3U);
    kill_child(pid);
}

TEST_F(RteAlt, WhatIsDueCanBeStoppedUntilItRuns)
{
    reset(0, 100);
    shared->now = begin + 500;
    EXPECT_EQ(stop(0), 0);
    EXPECT_FALSE(rte_timer_pending(timer()));
    manage(begin + 500);
    EXPECT_TRUE(runs.empty());
}

TEST_F(RteAlt, PeriodsKeepTheirPhase)
{
    reset(0, 100, PERIODICAL);
    manage(begin + 100);
    manage(begin + 250); // late
    manage(begin + 299);
    EXPECT_EQ(runs.size(), 2U);
    manage(begin + 300);
    manage(begin + 550); // two were missed, and one is made up for
    manage(begin + 599);
    EXPECT_EQ(runs.size(), 4U);
    manage(begin + 600);
    EXPECT_EQ(runs.size(), 5U);
    EXPECT_EQ(stop(0), 0);
    manage(begin + 1000);
    EXPECT_EQ(runs.size(), 5U);
}

TEST_F(RteAlt, TheFunctionResetsAndStopsItsTimer)
{
    const pid_t pid = in_living_child(
        [] { return reset(0, 100) | reset(1, 100, PERIODICAL); });
    EXPECT_EQ(reset(1, 1), -EACCES) << "it is the child's";
    then = [this] {
        const unsigned number = runs.back();
        EXPECT_EQ(number == 0 ? reset(0, 50) : stop(1), 0);
        // Its memory may be anything now.
        if (number == 1) {
            memset(static_cast<void *>(timer(1)), 0xa5, sizeof(rte_timer));
        }
    };
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 2U);
    EXPECT_TRUE(rte_timer_pending(timer(0)));
    EXPECT_EQ(timer(1)->status, 0xa5a5a5a5a5a5a5a5U);
    rte_timer_init(timer(1));
    then = nullptr;
    kill_child(pid); // the one that was reset is this process's
    manage(begin + 100 + msec);
    EXPECT_EQ(runs.size(), 3U);
    EXPECT_EQ(runs.back(), 0U);
    EXPECT_EQ(reset(1, 1), 0);
}

TEST_F(RteAlt, OthersAreRefusedWhatRunsNow)
{
    const pid_t pid = in_living_child([] { return reset(0, 100); });
    then = [this] {
        std::thread([] {
            EXPECT_EQ(reset(0, 50), -1);
            EXPECT_EQ(stop(0), -1);
        }).join();
        EXPECT_EQ(status_of(in_child([] {
                      return reset(0, 50) == -1 && stop(0) == -1 ? 0 : 1;
                  })),
                  0);
        EXPECT_EQ(manage(begin + 100), 0) << "in itself, which does nothing";
    };
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 1U);
    kill_child(pid);
}

TEST_F(RteAlt, TimersRunOnTheirLcores)
{
    EXPECT_EQ(reset(0, 100, SINGLE, 1), 0);
    EXPECT_EQ(reset(1, 100, SINGLE, 2), 0);
    EXPECT_EQ(reset(1, 100, SINGLE, 0), 0) << "moved";
    EXPECT_EQ(reset(2, 100, SINGLE, LCORE_ID_ANY), 0);
    shared->now = begin + 100;
    const unsigned two[] = {1, 2};
    rte_timer_alt_manage(shared->id, two, 2, expired);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
    rte_timer_alt_manage(shared->id, nullptr, 2, expired);
    EXPECT_EQ(runs.size(), 3U);
}

// Only without a list is it the caller's lcore that is meant.
TEST_F(RteAlt, AnEmptyListOfLcoresIsNone)
{
    const unsigned lcores[] = {0};
    EXPECT_EQ(reset(0, 100), 0);
    shared->now = begin + 100;
    EXPECT_EQ(rte_timer_alt_manage(shared->id, lcores, 0, expired), 0);
    EXPECT_EQ(runs.size(), 0U);
    EXPECT_EQ(rte_timer_alt_manage(shared->id, nullptr, 0, expired), 0);
    EXPECT_EQ(runs.size(), 1U);
}

TEST_F(RteAlt, TicksBeyondTheEndOfTimeAreNever)
{
    EXPECT_EQ(reset(0, UINT64_MAX), 0);
    EXPECT_EQ(reset(1, UINT64_MAX - begin), 0);
    manage(UINT64_MAX - 1);
    EXPECT_TRUE(runs.empty());
    EXPECT_TRUE(rte_timer_pending(timer(0)));
    EXPECT_EQ(stop(0), 0);
}

TEST_F(RteAlt, APeriodBeyondTheEndOfTimeIsNever)
{
    manage(UINT64_MAX - 250);
    EXPECT_EQ(reset(0, 100, PERIODICAL), 0);
    manage(UINT64_MAX - 150);
    manage(UINT64_MAX - 50);
    EXPECT_EQ(runs.size(), 2U);
    manage(UINT64_MAX - 40);
    manage(UINT64_MAX - 2);
    EXPECT_EQ(runs.size(), 2U);
    EXPECT_TRUE(rte_timer_pending(timer(0)));
    EXPECT_EQ(stop(0), 0);
    EXPECT_FALSE(rte_timer_pending(timer(0)));
}

TEST_F(RteAlt, TheFunctionMayEndThePeriods)
{
    EXPECT_EQ(reset(0, 100, PERIODICAL), 0);
    then = [] { timer(0)->period = 0; };
    manage(begin + 100);
    EXPECT_FALSE(rte_timer_pending(timer(0)));
    manage(begin + 200);
    EXPECT_EQ(runs.size(), 1U);
}

TEST_F(RteAlt, WhatADeadProcessHadCanBeUsedAgain)
{
    const pid_t pid = in_living_child(
        [] { return reset(0, 100) | reset(1, 100) | reset(2, 100); });
    EXPECT_EQ(stop(0), -EACCES);
    kill_child(pid);
    // Killed as it reset this one, and as it stopped that one.
    lawn_rte_set_status(timer(1), timer(1)->status | LAWN_RTE_TIMER_CONFIG);
    lawn_rte_set_status(timer(2), timer(2)->status | LAWN_RTE_TIMER_CONFIG);
    EXPECT_EQ(reset(0, 100), -EACCES) << "nobody has noticed yet";
    EXPECT_EQ(reset(1, 100), -1);
    manage(begin + msec);
    manage(begin + 2 * msec);
    runs.clear();
    EXPECT_EQ(reset(0, 100), 0);
    EXPECT_EQ(reset(1, 100), 0);
    EXPECT_EQ(stop(2), 0);
    manage(begin + 3 * msec);
    EXPECT_EQ(runs.size(), 2U);
}

TEST_F(RteAlt, ThereAreManyDatas)
{
    std::vector<uint32_t> ids(3);
    for (uint32_t i = 0; i < 3; ++i) {
        ASSERT_EQ(rte_timer_data_alloc(&ids[i]), 0);
        EXPECT_EQ(ids[i], i + 1);
    }
    EXPECT_EQ(rte_timer_data_dealloc(2), 0);
    ASSERT_EQ(rte_timer_data_alloc(&ids[1]), 0);
    EXPECT_EQ(ids[1], 2U);
    for (const uint32_t id : ids) {
        rte_timer_data_dealloc(id);
    }
}

class RteAltManager : public RteAlt
{
protected:
    // What manages data 1 from `turn` on. In the first turn, a timer that runs
    // does not return.
    static void run(rte_timer *timer)
    {
        ++shared->runs[timer - shared->timers];
        while (shared->turn == 1) {
            pause();
        }
    }

    static pid_t manager(unsigned turn)
    {
        return in_child([turn] {
            uint32_t id = 0;
            while (shared->turn != turn) {
                sched_yield();
            }
            if (rte_timer_data_alloc(&id) != 0 || id != 1) {
                return 1;
            }
            shared->is_up = true;
            for (;;) {
                rte_timer_alt_manage(id, nullptr, 0, run);
            }
        });
    }

    static void wait_for_turn(unsigned turn)
    {
        shared->is_up = false;
        shared->turn = turn;
        while (!shared->is_up) {
            sched_yield();
        }
    }

    static int reset1(unsigned i, uint64_t ticks)
    {
        return rte_timer_alt_reset(1, timer(i), ticks, SINGLE, 0, nullptr,
                                   nullptr);
    }

    static int stop1(unsigned i)
    {
        return rte_timer_alt_stop(1, timer(i));
    }
};

// Timers that it ran, that were pending, and that never were can be used again
// as soon as another process manages.
TEST_F(RteAltManager, MayBeKilledWhileATimerRuns)
{
    const pid_t first = manager(1);
    const pid_t second = manager(2);
    const pid_t other = in_child([] {
        while (shared->turn != 3) {
            sched_yield();
        }
        shared->result = reset1(3, 1000);
        shared->is_up = true;
        for (;;) {
            pause();
        }
        return 0;
    });
    wait_for_turn(1);
    EXPECT_EQ(reset1(1, 1000), 0);
    EXPECT_EQ(reset1(0, 0), 0);
    while (shared->runs[0] == 0) {
        sched_yield();
    }
    EXPECT_EQ(stop1(0), -1) << "it runs";
    kill_child(first);
    wait_for_turn(2);
    wait_for_turn(3);
    EXPECT_EQ(shared->result, 0);
    lawn_rte_alt_t *const alt = lawn_rte_alts[1];
    alt->look_at = LAWN_TIME_INFINITY;
    EXPECT_EQ(stop1(3), -1) << "that client is not known here";
    EXPECT_EQ(alt->client, nullptr);
    EXPECT_EQ(stop1(3), -EACCES);
    EXPECT_EQ(stop1(0), 0);
    EXPECT_EQ(reset1(0, 0), 0);
    EXPECT_EQ(stop1(1), 0);
    EXPECT_EQ(reset1(1, 0), 0);
    while (shared->runs[0] != 2 || shared->runs[1] == 0) {
        ASSERT_FALSE(HasFailure());
    }
    kill_child(second);
    kill_child(other);
    uint32_t id = 0;
    rte_timer_data_dealloc(1);
    EXPECT_EQ(rte_timer_data_alloc(&id), 0);
    EXPECT_EQ(id, 1U);
    rte_timer_data_dealloc(1);
}

TEST_F(RteAltManager, IsFoundAgainByAProcessThatHasKnownAnother)
{
    const pid_t first = manager(4);
    const pid_t second = manager(5);
    wait_for_turn(4);
    EXPECT_EQ(reset1(0, 1000), 0);
    kill_child(first);
    wait_for_turn(5);
    lawn_rte_alts[1]->look_at = 0; // now
    EXPECT_EQ(reset1(1, 0), 0);
    while (shared->runs[1] == 0) {
        sched_yield();
    }
    EXPECT_EQ(stop1(0), 0) << "it ended with its manager";
    kill_child(second);
    EXPECT_EQ(stop1(1), 0);
    lawn_rte_alts[1]->look_at = 0;
    EXPECT_EQ(reset1(1, 0), -EINVAL);
    uint32_t id = 0;
    rte_timer_data_dealloc(1);
    EXPECT_EQ(rte_timer_data_alloc(&id), 0);
    EXPECT_EQ(id, 1U);
    rte_timer_data_dealloc(1);
}

// Threads of one process at the same timers: no slot is lost, or used twice.
TEST_F(RteAlt, ThreadsOfAProcessShareItsTimers)
{
    const uint64_t rounds = scaled(50000);
    std::atomic<unsigned> running{2};
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 2; ++seed) {
        threads.emplace_back([&running, seed, rounds] {
            std::mt19937 random(seed);
            for (uint64_t i = 0; i < rounds; ++i) {
                const unsigned number = random() % 4;
                const int ret = random() % 3 == 0
                                    ? stop(number)
                                    : reset(number, random() % 30);
                EXPECT_TRUE(ret == 0 || ret == -1) << ret;
            }
            --running;
        });
    }
    while (running > 0) {
        manage(shared->now + 10);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(stop(i), 0);
    }
    manage(shared->now + 10);
    runs.clear();
    for (unsigned i = 0; i < 128; ++i) {
        ASSERT_EQ(reset(i, 100), 0) << i;
    }
    manage(shared->now + 100);
    std::sort(runs.begin(), runs.end());
    EXPECT_EQ(runs.size(), 128U);
    EXPECT_EQ(std::unique(runs.begin(), runs.end()), runs.end());
}

// A stop that said 0 was in time, whatever the manager was just doing.
TEST_F(RteAlt, StopNeverLies)
{
    const uint64_t rounds = scaled(100000);
    shared->is_up = false;
    const pid_t pid = in_child([rounds] {
        std::mt19937 random(1);
        shared->is_up = true;
        for (uint64_t i = 0; i < rounds; ++i) {
            int ret;
            while ((ret = reset(0, random() % 30)) == -1) {
                sched_yield();
            }
            for (unsigned wait = random() % 100; wait > 0; --wait) {
                cycles();
            }
            if (ret != 0 || ((ret = stop(0)) != 0 && ret != -1)) {
                return 1;
            }
            const uint32_t before = shared->runs[0];
            for (unsigned wait = random() % 100; ret == 0 && wait > 0; --wait) {
                cycles();
            }
            if (ret == 0 && shared->runs[0] != before) {
                return 2;
            }
        }
        return 0;
    });
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        manage(shared->now + 10);
        runs.clear();
    }
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A periodical timer has the same status before it runs and after. So the
// status goes to and fro here as fast as it can, and nobody may stop the timer:
// its slot is that of a timer which has just expired.
TEST_F(RteAlt, AStopThatFindsTheTimerRunningDoesNotTakeItForStopped)
{
    EXPECT_EQ(reset(0, 100, PERIODICAL), 0);
    const uint64_t pending = timer()->status;
    const uint64_t running = lawn_rte_alt_status(
        LAWN_RTE_TIMER_RUNNING, 0,
        lawn_shm_owner_id(lawn_rte_alts[shared->id][0].shm));
    EXPECT_TRUE(
        lawn_shm_stop(lawn_rte_alts[shared->id][0].client, timer()->slot));
    std::atomic<bool> is_over{false};
    std::thread manager([&] {
        while (!is_over) {
            lawn_rte_set_status(timer(), running);
            lawn_rte_set_status(timer(), pending);
        }
    });
    for (uint64_t i = 0; i < scaled(200000) && !HasFailure(); ++i) {
        EXPECT_EQ(stop(0), -1);
    }
    is_over = true;
    manager.join();
    lawn_rte_set_status(timer(), LAWN_RTE_TIMER_STOP);
}

// Whatever a process was doing: the manager goes on, every timer can be used
// again, and runs once.
TEST_F(RteAlt, AProcessIsKilledAtAnyTime)
{
    constexpr unsigned used = 16;
    std::mt19937 random(3);
    const uint64_t kills = scaled(300);
    for (uint64_t kill = 0; kill < kills && !HasFailure(); ++kill) {
        const unsigned seed = static_cast<unsigned>(random());
        shared->is_up = false;
        const pid_t pid = in_child([seed] {
            std::mt19937 own(seed);
            shared->is_up = true;
            for (;;) {
                const unsigned i = own() % used;
                if (own() % 3 == 0) {
                    stop(i);
                } else {
                    reset(i, own() % 100, own() % 2 ? SINGLE : PERIODICAL,
                          own() % 2);
                }
            }
            return 0;
        });
        while (!shared->is_up) {
            sched_yield();
        }
        for (unsigned passes = 0; passes < random() % 500; ++passes) {
            manage(shared->now + 10, passes % 2);
        }
        kill_child(pid);
        for (unsigned pass = 0; pass < 4; ++pass) {
            manage(shared->now + msec, pass % 2);
        }
        runs.clear();
        for (unsigned i = 0; i < used; ++i) {
            ASSERT_EQ(reset(i, 100, SINGLE, i % 2), 0) << "timer " << i;
        }
        manage(shared->now + 100, 0);
        manage(shared->now, 1);
        EXPECT_EQ(runs.size(), used);
    }
}

} // namespace
