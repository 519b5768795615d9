// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/rte_compat.h by DPDK's names, with lcores of our own: 0 to 2, and each
// thread is on the one that it says. A clock that counts its reads. A timer
// that notes where it ran, and passes on virtual time.

#ifndef LAWN_TEST_RTE_COMPAT_FIXTURE_H
#define LAWN_TEST_RTE_COMPAT_FIXTURE_H

#include <lawn/time.h>

inline thread_local unsigned current_lcore = 0;
inline thread_local unsigned clock_reads = 0;

inline uint64_t read_clock()
{
    ++clock_reads;
    return lawn_get_time();
}

#define LAWN_RTE_COMPAT
#define LAWN_RTE_LCORE_ID() current_lcore
#define LAWN_RTE_MAX_LCORE 4u
#define LAWN_RTE_HAS_LCORE(id) ((id) != 3)
#define LAWN_RTE_CYCLES() read_clock()
#include <lawn/rte_compat.h>

#include <gtest/gtest.h>

#include <functional>
#include <vector>

struct Timer {
    struct rte_timer timer; // first: the callback's timer is this
    std::function<void()> then;
    std::vector<unsigned> ran_on; // lcores

    Timer()
    {
        rte_timer_init(&timer);
    }

    ~Timer()
    {
        rte_timer_stop(&timer);
    }

    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;

    static void expired(struct rte_timer *timer, void *arg)
    {
        Timer *const self = static_cast<Timer *>(arg);
        EXPECT_EQ(timer, &self->timer);
        EXPECT_FALSE(rte_timer_pending(timer));
        self->ran_on.push_back(current_lcore);
        if (self->then) {
            self->then();
        }
    }

    size_t runs() const
    {
        return ran_on.size();
    }
};

constexpr uint64_t start = 1000000; // of a test's time

class RteTimer : public testing::Test
{
protected:
    RteTimer()
    {
        current_lcore = 0;
        EXPECT_EQ(rte_timer_subsystem_init(), 0);
    }

    ~RteTimer() override
    {
        rte_timer_subsystem_finalize();
    }

    int reset(Timer &timer, uint64_t ticks, enum rte_timer_type type = SINGLE,
              unsigned lcore = LCORE_ID_ANY)
    {
        return lawn_rte_timer_reset_at(&timer.timer, now_, ticks, type, lcore,
                                       Timer::expired, &timer);
    }

    // Passes on one lcore.
    void manage(uint64_t now, unsigned lcore = 0)
    {
        const unsigned before = current_lcore;
        current_lcore = lcore;
        now_ = now;
        EXPECT_EQ(lawn_rte_timer_manage_at(now), 0);
        current_lcore = before;
    }

    uint64_t now_ = start;
};

#endif
