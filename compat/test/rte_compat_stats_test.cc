// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// rte_timer_dump_stats() in a file with RTE_LIBRTE_TIMER_DEBUG, whose calls are
// counted.

namespace
{

thread_local unsigned this_lcore = 0;

} // namespace

#define LAWN_RTE_COMPAT
#define LAWN_RTE_LCORE_ID() this_lcore
#define LAWN_RTE_MAX_LCORE 4u
#define LAWN_RTE_HAS_LCORE(id) ((id) != 3)
#define RTE_LIBRTE_TIMER_DEBUG
#include <lawn/rte_compat.h>

#include "rte_compat_dump.h"

namespace
{

void stop_itself(struct rte_timer *timer, void *arg)
{
    if (arg) {
        EXPECT_EQ(rte_timer_stop(timer), 0);
    }
}

TEST(RteTimerStats, AreWhatDpdkTells)
{
    EXPECT_EQ(rte_timer_dump_stats(stdout), -EINVAL);
    ASSERT_EQ(rte_timer_subsystem_init(), 0);
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  reset = 0\n  stop = 0\n"
                            "  manage = 0\n  pending = 0\n");
    struct rte_timer timers[3];
    for (struct rte_timer &timer : timers) {
        rte_timer_init(&timer);
    }
    const auto reset = [&](unsigned i, uint64_t ticks, auto type, void *arg) {
        EXPECT_EQ(lawn_rte_timer_reset_at(&timers[i], 1000, ticks, type, i,
                                          stop_itself, arg),
                  0);
    };
    reset(0, 100, SINGLE, nullptr);
    reset(0, 50, SINGLE, nullptr); // again, and still one
    this_lcore = 1;
    reset(1, 50, PERIODICAL, nullptr);
    reset(2, 50, PERIODICAL, timers);
    EXPECT_EQ(lawn_rte_timer_reset_at(&timers[0], 0, 5, SINGLE, 3, stop_itself,
                                      nullptr),
              -EINVAL); // there is no such lcore
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  reset = 4\n  stop = 0\n"
                            "  manage = 0\n  pending = 3\n");
    for (this_lcore = 0; this_lcore < 3; ++this_lcore) {
        EXPECT_EQ(lawn_rte_timer_manage_at(1010), 0); // nothing is due
        EXPECT_EQ(lawn_rte_timer_manage_at(1050), 0);
    }
    // The periodical one has been reset, and the last has stopped itself.
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  reset = 5\n  stop = 1\n"
                            "  manage = 6\n  pending = 1\n");
    this_lcore = LCORE_ID_ANY; // a thread that is on none is not counted
    EXPECT_EQ(rte_timer_stop(&timers[1]), 0);
    EXPECT_EQ(dump_stats(), "Timer statistics:\n  reset = 5\n  stop = 1\n"
                            "  manage = 6\n  pending = 0\n");
    this_lcore = 0;
    rte_timer_subsystem_finalize();
}

} // namespace
