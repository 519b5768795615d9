// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/rte_timer.h beside DPDK's rte_timer, on the same TSC: a program that
// does the same on both, and what lawn/rte_timer.h says that DPDK does
// otherwise. Time is waited for by reading the TSC, and never asserted but in
// the direction in which a late reader cannot go wrong.

#include "rte_compat_program.h"

#include <lawn/rte_timer.h>

#include <gtest/gtest.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>

#include <sched.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace
{

// EAL on the processor that we are on; once per process.
class Eal : public testing::Environment
{
public:
    void SetUp() override
    {
        std::string arguments[] = {
            "rte_compat_original_test",
            "--lcores=0@" + std::to_string(sched_getcpu()),
            "--no-huge",
            "--no-pci",
            "--no-shconf",
            "--no-telemetry",
            "--log-level=error",
        };
        std::vector<char *> argv;
        for (std::string &argument : arguments) {
            argv.push_back(argument.data());
        }
        argv.push_back(nullptr);
        ASSERT_GE(rte_eal_init(static_cast<int>(argv.size() - 1), argv.data()),
                  0);
        ASSERT_EQ(rte_timer_subsystem_init(), 0);
        ASSERT_EQ(lawn_rte_timer_subsystem_init(), 0);
    }

    void TearDown() override
    {
        lawn_rte_timer_subsystem_finalize();
        rte_timer_subsystem_finalize();
        rte_eal_cleanup();
    }
};

const testing::Environment *const added =
    testing::AddGlobalTestEnvironment(new Eal);

struct Original {
    using Timer = struct rte_timer;
    static constexpr auto single = SINGLE;
    static constexpr auto periodical = PERIODICAL;
    static constexpr auto init = rte_timer_init;
    static constexpr auto reset = rte_timer_reset;
    static constexpr auto stop = rte_timer_stop;
    static constexpr auto pending = rte_timer_pending;
    static constexpr auto manage = rte_timer_manage;
};

struct Ours {
    using Timer = lawn_rte_timer_t;
    static constexpr auto single = LAWN_RTE_TIMER_SINGLE;
    static constexpr auto periodical = LAWN_RTE_TIMER_PERIODICAL;
    static constexpr auto init = lawn_rte_timer_init;
    static constexpr auto reset = lawn_rte_timer_reset;
    static constexpr auto stop = lawn_rte_timer_stop;
    static constexpr auto pending = lawn_rte_timer_pending;
    static constexpr auto manage = lawn_rte_timer_manage;
};

template <class Api> struct Timer {
    typename Api::Timer timer;
    std::function<void()> then;
    unsigned runs = 0;

    Timer()
    {
        Api::init(&timer);
    }

    ~Timer()
    {
        Api::stop(&timer);
    }

    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    template <class Type> int reset(uint64_t ticks, Type type)
    {
        return Api::reset(&timer, ticks, type, rte_lcore_id(), expired, this);
    }

    static void expired(typename Api::Timer *, void *arg)
    {
        Timer *const self = static_cast<Timer *>(arg);
        ++self->runs;
        if (self->then) {
            self->then();
        }
    }
};

void wait_for(uint64_t ticks)
{
    const uint64_t begin = rte_get_timer_cycles();
    while (rte_get_timer_cycles() - begin < ticks) {
    }
}

TEST(RteOriginal, HasTheSameTicks)
{
    const uint64_t before = rte_get_timer_cycles();
    const uint64_t ours = LAWN_RTE_CYCLES();
    EXPECT_LE(before, ours);
    EXPECT_LE(ours, rte_get_timer_cycles());
    EXPECT_EQ(LAWN_RTE_LCORE_ID(), rte_lcore_id());
}

TEST(RteProgram, DoesTheSameOnBoth)
{
    program_result theirs;
    program_result ours;
    program_on_dpdk(&theirs);
    program_on_lawn(&ours);
    EXPECT_EQ(memcmp(&theirs, &ours, sizeof ours), 0);
    EXPECT_EQ(theirs.errors, 0U);
    EXPECT_EQ(theirs.acked, 48U);
    EXPECT_EQ(theirs.given_up, 16U);
    EXPECT_EQ(theirs.statistics, 5U);
    EXPECT_EQ(theirs.pending, 0U);
}

// Neither runs it before its time, and neither long after if it is asked.
template <class Api> void expect_never_early()
{
    const uint64_t msec = rte_get_timer_hz() / 1000;
    for (const uint64_t ticks : {uint64_t{0}, uint64_t{1}, msec / 100, msec}) {
        Timer<Api> timer;
        const uint64_t begin = rte_get_timer_cycles();
        ASSERT_EQ(timer.reset(ticks, Api::single), 0);
        EXPECT_TRUE(Api::pending(&timer.timer));
        while (timer.runs == 0) {
            EXPECT_EQ(Api::manage(), 0);
        }
        EXPECT_GE(rte_get_timer_cycles() - begin, ticks);
        EXPECT_FALSE(Api::pending(&timer.timer));
    }
}

TEST(RteOriginal, NeitherIsEarly)
{
    expect_never_early<Original>();
    expect_never_early<Ours>();
}

// Of two timers that are due in the same pass, the first to run stops the
// other: the result of that, and how many run.
template <class Api> std::pair<int, unsigned> stop_of_what_is_due()
{
    Timer<Api> first;
    Timer<Api> second;
    int status = 1;
    const auto stop = [&](Timer<Api> &other) {
        if (first.runs + second.runs == 1) {
            status = Api::stop(&other.timer);
        }
    };
    first.then = [&] { stop(second); };
    second.then = [&] { stop(first); };
    first.reset(1000, Api::single);
    second.reset(1000, Api::single);
    wait_for(2000);
    Api::manage();
    return {status, first.runs + second.runs};
}

TEST(RteOriginal, RefusesToStopWhatIsDue)
{
    EXPECT_EQ(stop_of_what_is_due<Original>(), std::make_pair(-1, 2U));
    EXPECT_EQ(stop_of_what_is_due<Ours>(), std::make_pair(0, 1U));
}

// Passes after a stall of fifty periods, and the most that its end explains.
template <class Api> std::pair<unsigned, uint64_t> runs_after_a_stall()
{
    const uint64_t period = rte_get_timer_hz() / 10000;
    Timer<Api> timer;
    timer.reset(period, Api::periodical);
    wait_for(51 * period);
    const uint64_t begin = rte_get_timer_cycles();
    for (int i = 0; i < 50; ++i) {
        Api::manage();
    }
    return {timer.runs, 2 + (rte_get_timer_cycles() - begin) / period};
}

TEST(RteOriginal, MakesUpForEveryMissedPeriod)
{
    EXPECT_EQ(runs_after_a_stall<Original>().first, 50U);
    const auto [runs, most] = runs_after_a_stall<Ours>();
    EXPECT_GE(runs, 1U);
    EXPECT_LE(runs, most);
}

template <class Api> unsigned runs_of_the_longest_ticks()
{
    Timer<Api> timer;
    timer.reset(UINT64_MAX, Api::single);
    Api::manage();
    return timer.runs;
}

TEST(RteOriginal, TakesVeryManyTicksForNone)
{
    EXPECT_EQ(runs_of_the_longest_ticks<Original>(), 1U);
    EXPECT_EQ(runs_of_the_longest_ticks<Ours>(), 0U);
}

// Reset to 0 by its own function: once per pass, on both.
template <class Api> void expect_once_per_pass()
{
    Timer<Api> timer;
    timer.then = [&] { EXPECT_EQ(timer.reset(0, Api::single), 0); };
    timer.reset(0, Api::single);
    for (unsigned pass = 1; pass <= 10; ++pass) {
        Api::manage();
        EXPECT_EQ(timer.runs, pass);
    }
}

TEST(RteOriginal, NeitherRunsTwiceInAPass)
{
    expect_once_per_pass<Original>();
    expect_once_per_pass<Ours>();
}

} // namespace
