// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The child of a fork of a process that has used lawn/rte_timer_alt.h: what its
// parent has is not its own, and it cannot spoil it.

#include "rte_alt_fixture.h"

#include <algorithm>

namespace
{

TEST_F(RteAlt, TheChildOfAForkHasTimersOfItsOwn)
{
    EXPECT_EQ(reset(0, 100), 0);
    EXPECT_EQ(reset(1, 100), 0);
    EXPECT_EQ(stop(1), 0); // it keeps the slot for the next
    const pid_t pid = in_living_child(
        [] {
            return reset(0, 100) == -EACCES && stop(0) == -EACCES ? reset(2, 50)
                                                                  : 1;
        },
        in_fork);
    EXPECT_EQ(shared->result, 0);
    EXPECT_EQ(reset(1, 100), 0);
    manage(begin + 50);
    EXPECT_EQ(runs, std::vector<unsigned>{2});
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 3U);
    EXPECT_FALSE(rte_timer_pending(timer(0)));
    EXPECT_FALSE(rte_timer_pending(timer(1)));
    kill_child(pid);
}

// The parent is what manages, too.
TEST_F(RteAlt, TheChildOfAForkManagesAndEndsNothing)
{
    EXPECT_EQ(reset(0, 3 * msec), 0);
    EXPECT_EQ(status_of(in_fork([this] {
                  const bool is_refused =
                      manage(begin + 3 * msec) == -EACCES && runs.empty();
                  shared->now = begin;
                  return is_refused ? rte_timer_data_dealloc(shared->id) : 1;
              })),
              0);
    manage(begin + msec);
    manage(begin + 2 * msec);
    manage(begin + 3 * msec);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
    EXPECT_EQ(reset(0, 100), 0);
}

TEST_F(RteAlt, TheChildOfAForkEndsNoTimerOfAProcessThatOnlyStarts)
{
    const pid_t pid = in_living_child([] {
        const int ret = reset(0, 3 * msec);
        return ret | status_of(in_fork([] {
                   return reset(1, 3 * msec) |
                          rte_timer_data_dealloc(shared->id);
               }));
    });
    EXPECT_EQ(shared->result, 0);
    manage(begin + msec);
    manage(begin + 2 * msec);
    manage(begin + 3 * msec);
    EXPECT_EQ(runs, std::vector<unsigned>{0});
    kill_child(pid);
}

// Nobody gives the lock back in the child. The thread may have been about to
// free the client.
TEST_F(RteAlt, TheChildOfAForkDoesNotWaitForAThreadOfItsParent)
{
    EXPECT_EQ(reset(0, 100), 0);
    lawn_rte_alt_t *const alt = &lawn_rte_alts[shared->id][0];
    lawn_shm_client_t *const client = alt->client;
    lawn_rte_spin(&alt->lock);
    const pid_t pid = in_fork([client] {
        alarm(60); // rather than to wait for ever
        const int ret = reset(1, 100);
        lawn_shm_close(client);
        return ret;
    });
    lawn_rte_alt_unlock(alt);
    EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(stop(0), 0);
}

// The pass of the parent never ends in the child.
TEST_F(RteAlt, TheChildOfAForkInAPassCanEndItsUse)
{
    EXPECT_EQ(reset(0, 100), 0);
    then = [] {
        EXPECT_EQ(status_of(in_fork([] {
                      static lawn_rte_alt_t of_parents[LAWN_RTE_MAX_LCORE];
                      std::copy_n(lawn_rte_alts[shared->id], LAWN_RTE_MAX_LCORE,
                                  of_parents);
                      return rte_timer_data_dealloc(shared->id);
                  })),
                  0);
    };
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 1U);
    EXPECT_EQ(reset(0, 100), 0);
}

// The thread that forks is the one that the function runs on.
TEST_F(RteAlt, TheChildOfAForkIsRefusedWhatRunsInItsParent)
{
    EXPECT_EQ(reset(0, 100), 0);
    then = [] {
        EXPECT_EQ(status_of(in_fork([] {
                      return reset(0, 50) == -1 && stop(0) == -1 ? 0 : 1;
                  })),
                  0);
    };
    manage(begin + 100);
    EXPECT_EQ(runs.size(), 1U);
    EXPECT_FALSE(rte_timer_pending(timer()));
}

} // namespace
