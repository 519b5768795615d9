// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What DPDK's event timer adapter needs of lawn/rte_timer_alt.h beside resets
// and stops: rte_timer_stop_all(), and timers of threads that have no lcore.

#include "rte_alt_fixture.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace
{

class RteAltStopAll : public RteAlt
{
protected:
    // What it was called for is in `stopped`.
    static void on_stopped(rte_timer *timer, void *arg)
    {
        const ptrdiff_t number = timer - shared->timers;
        static_cast<RteAltStopAll *>(arg)->stopped.push_back(
            static_cast<unsigned>(number));
        EXPECT_FALSE(rte_timer_pending(timer));
        EXPECT_EQ(rte_timer_alt_stop(shared->id, timer), 0);
        memset(static_cast<void *>(timer), 0xa5, sizeof(*timer)); // it is free
    }

    int stop_all(const std::vector<unsigned> &lcores)
    {
        const int ret = rte_timer_stop_all(shared->id, lcores.data(),
                                           static_cast<int>(lcores.size()),
                                           on_stopped, this);
        std::sort(stopped.begin(), stopped.end());
        return ret;
    }

    std::vector<unsigned> stopped;
};

TEST_F(RteAltStopAll, StopsWhatIsPendingOnTheLcoresThatItIsGiven)
{
    reset(0, 100);
    reset(1, 100, PERIODICAL);
    reset(2, 0); // due
    reset(3, UINT64_MAX);
    reset(4, 100, SINGLE, 1);
    reset(5, 100, SINGLE, 2);
    reset(6, 100);
    stop(6);
    EXPECT_EQ(stop_all({0, 2}), 0);
    EXPECT_EQ(stopped, (std::vector<unsigned>{0, 1, 2, 3, 5}));
    EXPECT_EQ(manage(begin + 1000), 0);
    EXPECT_EQ(manage(begin + 1000, 2), 0);
    EXPECT_TRUE(runs.empty());
    EXPECT_EQ(manage(begin + 1000, 1), 0);
    EXPECT_EQ(runs, std::vector<unsigned>{4});
}

TEST_F(RteAltStopAll, WithoutAFunctionItStopsAllTheSame)
{
    const unsigned lcore = 0;
    reset(0, 100);
    EXPECT_EQ(rte_timer_stop_all(shared->id, &lcore, 1, nullptr, nullptr), 0);
    EXPECT_FALSE(rte_timer_pending(timer()));
    manage(begin + 100);
    EXPECT_TRUE(runs.empty());
}

// The data goes on, and has as much room as before.
TEST_F(RteAltStopAll, AllCanBeStartedAgain)
{
    for (unsigned round = 1; round <= 3; ++round) {
        stopped.clear();
        for (unsigned i = 0; i < 128; ++i) {
            rte_timer_init(timer(i));
            ASSERT_EQ(reset(i, 100), 0) << i;
        }
        if (round % 2 != 0) {
            manage(shared->now); // it knows them by now
        }
        EXPECT_EQ(stop_all({0}), 0);
        EXPECT_EQ(stopped.size(), 128U);
    }
    rte_timer_init(timer());
    EXPECT_EQ(reset(0, 100), 0);
    manage(shared->now + 99);
    EXPECT_TRUE(runs.empty());
    manage(shared->now + 1);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
}

TEST_F(RteAltStopAll, StopsTimersOfOtherProcessesToo)
{
    const pid_t pid =
        in_living_child([] { return reset(0, 100) | reset(1, 100); });
    EXPECT_EQ(shared->result, 0);
    EXPECT_EQ(stop(0), -EACCES);
    EXPECT_EQ(stop_all({0}), 0);
    EXPECT_EQ(stopped, (std::vector<unsigned>{0, 1}));
    rte_timer_init(timer());
    EXPECT_EQ(reset(0, 100), 0) << "it is nobody's";
    kill_child(pid);
}

TEST_F(RteAltStopAll, TheFunctionMayStartItsTimerAnew)
{
    const unsigned lcore = 0;
    const auto again = [](rte_timer *timer, void *) {
        EXPECT_EQ(rte_timer_alt_reset(shared->id, timer, 100, SINGLE, 1,
                                      nullptr, nullptr),
                  0);
    };
    reset(0, 100);
    EXPECT_EQ(rte_timer_stop_all(shared->id, &lcore, 1, again, nullptr), 0);
    EXPECT_TRUE(rte_timer_pending(timer()));
    manage(begin + 100, 1);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
}

TEST_F(RteAltStopAll, WaitsForTheThreadThatManages)
{
    std::thread other;
    std::atomic<bool> is_over{false};
    then = [&] {
        other = std::thread([&] {
            EXPECT_EQ(stop_all({0}), 0);
            is_over = true;
        });
        for (unsigned i = 0; i < 100; ++i) {
            sched_yield();
        }
        EXPECT_FALSE(is_over);
    };
    reset(0, 100);
    reset(1, 200);
    manage(begin + 100);
    other.join();
    EXPECT_EQ(runs, std::vector<unsigned>{0});
    EXPECT_EQ(stopped, std::vector<unsigned>{1});
}

// The adapter has the timers of a thread without an lcore there.
TEST_F(RteAltStopAll, TheHighestLcoreTakesTimersAlthoughThereIsNone)
{
    std::thread([] {
        current_lcore = LCORE_ID_ANY;
        EXPECT_EQ(reset(0, 100, SINGLE, LAWN_RTE_MAX_LCORE - 1), 0);
        EXPECT_EQ(reset(1, 100, SINGLE, LAWN_RTE_MAX_LCORE - 1), 0);
        EXPECT_EQ(stop(1), 0);
        EXPECT_EQ(reset(1, 100, SINGLE, LCORE_ID_ANY), -EINVAL);
    }).join();
    EXPECT_EQ(manage(begin + 100, LAWN_RTE_MAX_LCORE - 1), 0);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
}

} // namespace
