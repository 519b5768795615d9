// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's timers as lawn/rte_compat.h makes them, on more than one lcore: this
// thread changes between them as it likes; then all of it at random, beside a
// model; and then by as many threads.

#include "../../test/environment.h"
#include "../../test/yield.h"
#include "rte_compat_fixture.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace
{

using lawn_test::environment;

constexpr unsigned no_lcore = 3;

TEST_F(RteTimer, RunsOnItsLcoreOnly)
{
    Timer timer;
    EXPECT_EQ(reset(timer, 100, SINGLE, 1), 0);
    manage(start + 200, 0);
    manage(start + 200, 2);
    EXPECT_EQ(timer.runs(), 0U);
    manage(start + 200, 1);
    EXPECT_EQ(timer.ran_on, std::vector<unsigned>{1});

    current_lcore = 2;
    reset(timer, 100); // any: our own
    manage(start + 300, 0);
    manage(start + 300, 1);
    manage(start + 300, 2);
    EXPECT_EQ(timer.ran_on, (std::vector<unsigned>{1, 2}));
}

TEST_F(RteTimer, IsMovedAndStoppedFromOtherLcores)
{
    Timer timer;
    reset(timer, 100, PERIODICAL, 0);
    current_lcore = 1;
    EXPECT_EQ(reset(timer, 100, PERIODICAL, 2), 0);
    manage(start + 200, 0);
    EXPECT_EQ(timer.runs(), 0U);
    manage(start + 200, 2);
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_EQ(rte_timer_stop(&timer.timer), 0);
    manage(start + 1000, 2);
    EXPECT_EQ(timer.runs(), 1U);
}

// From lcore to lcore, as in DPDK's example.
TEST_F(RteTimer, FunctionMovesItsOwn)
{
    Timer timer;
    timer.then = [&] {
        EXPECT_EQ(reset(timer, 10, SINGLE, (current_lcore + 1) % 3), 0);
    };
    reset(timer, 10, SINGLE, 0);
    for (uint64_t i = 1; i <= 6; ++i) {
        for (unsigned lcore = 3; lcore-- > 0;) {
            manage(start + 10 * i, lcore);
        }
    }
    EXPECT_EQ(timer.ran_on, (std::vector<unsigned>{0, 1, 2, 0, 1, 2}));
}

TEST_F(RteTimer, OtherLcoresAreRefusedWhatIsDue)
{
    Timer first;
    Timer second;
    // Whichever runs first; the other is still to run.
    first.then = second.then = [&] {
        if (first.runs() + second.runs() > 1) {
            return;
        }
        current_lcore = 1;
        for (Timer *timer : {&first, &second}) {
            EXPECT_EQ(rte_timer_stop(&timer->timer), -1);
            EXPECT_EQ(reset(*timer, 5), -1);
        }
        current_lcore = LCORE_ID_ANY; // a thread that is on none
        EXPECT_EQ(rte_timer_stop(&first.timer), -1);
        current_lcore = 0;
    };
    reset(first, 100);
    reset(second, 100);
    manage(start + 100);
    EXPECT_EQ(first.runs(), 1U);
    EXPECT_EQ(second.runs(), 1U);
    current_lcore = 1;
    EXPECT_EQ(rte_timer_stop(&first.timer), 0);
    EXPECT_EQ(reset(second, 5), 0);
    manage(start + 105, 1);
    EXPECT_EQ(second.ran_on, (std::vector<unsigned>{0, 1}));
}

// As if another lcore were in the middle of a call: no two meet often enough.
TEST_F(RteTimer, OneCallAtATime)
{
    Timer timer;
    reset(timer, 100);
    const uint64_t status = timer.timer.status;
    timer.timer.status = LAWN_RTE_TIMER_CONFIG;
    EXPECT_EQ(rte_timer_stop(&timer.timer), -1);
    EXPECT_EQ(reset(timer, 5), -1);
    EXPECT_FALSE(rte_timer_pending(&timer.timer));
    timer.timer.status = status;
    manage(start + 99);
    EXPECT_EQ(timer.runs(), 0U);
    manage(start + 100);
    EXPECT_EQ(timer.runs(), 1U);
}

// Another lcore is about to stop it: it has it, and waits for the lock. What is
// due by then does not run.
TEST_F(RteTimer, WhatIsBeingStoppedDoesNotRun)
{
    Timer timer;
    reset(timer, 100);
    uint64_t was = 0;
    ASSERT_TRUE(lawn_rte_timer_take(&timer.timer, &was));
    manage(start + 100);
    EXPECT_EQ(timer.runs(), 0U);
    lawn_rte_timer_leave(&timer.timer, was);
    lawn_rte_set_status(&timer.timer, LAWN_RTE_TIMER_STOP);
    manage(start + 200);
    EXPECT_EQ(timer.runs(), 0U);
    EXPECT_EQ(reset(timer, 100), 0);
    manage(start + 300);
    EXPECT_EQ(timer.runs(), 1U);
}

// Another lcore has the timer at the first try, and has let go of it by the
// second.
TEST_F(RteTimer, TheSyncCallsTryAgain)
{
    Timer timer;
    reset(timer, 100);
    const uint64_t pending = timer.timer.status;
    unsigned yields = 0;
    on_yield = [&] {
        ++yields;
        timer.timer.status = pending;
    };
    timer.timer.status = LAWN_RTE_TIMER_CONFIG;
    rte_timer_reset_sync(&timer.timer, 100, SINGLE, 0, Timer::expired, &timer);
    EXPECT_TRUE(rte_timer_pending(&timer.timer));
    EXPECT_EQ(yields, 1U);
    timer.timer.status = LAWN_RTE_TIMER_CONFIG;
    rte_timer_stop_sync(&timer.timer);
    EXPECT_FALSE(rte_timer_pending(&timer.timer));
    EXPECT_EQ(yields, 2U);
    on_yield = nullptr;
}

TEST_F(RteTimer, LcoresThatDoNotExistAreRefused)
{
    Timer timer;
    for (const unsigned lcore : {no_lcore, 4U, 1000U}) {
        EXPECT_EQ(reset(timer, 1, SINGLE, lcore), -EINVAL);
    }
    // A thread that is on none may still use others'.
    current_lcore = LCORE_ID_ANY;
    EXPECT_EQ(rte_timer_manage(), -EINVAL);
    EXPECT_EQ(reset(timer, 1), -EINVAL);
    EXPECT_EQ(reset(timer, 1, SINGLE, 2), 0);
    manage(start + 1, 2);
    EXPECT_EQ(timer.runs(), 1U);
    EXPECT_EQ(reset(timer, 1, SINGLE, 2), 0);
    EXPECT_EQ(rte_timer_stop(&timer.timer), 0);
}

// Timers on three lcores, reset and stopped at random, also by their functions;
// and what must become of them.
class World
{
public:
    explicit World(uint64_t seed) : random_(seed)
    {
        current_lcore = 0;
        EXPECT_EQ(rte_timer_subsystem_init(), 0);
        for (Entry &entry : entries_) {
            rte_timer_init(&entry.timer);
            entry.world = this;
        }
    }

    ~World()
    {
        rte_timer_subsystem_finalize();
    }

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    void step()
    {
        current_lcore = any_of(3);
        if (any_of(3) == 0) {
            pass();
        } else {
            act();
        }
    }

    size_t runs() const
    {
        return runs_;
    }

private:
    struct Entry {
        struct rte_timer timer; // first: the callback's timer is this
        World *world = nullptr;
        bool is_pending = false;
        bool is_new = false; // since the pass that runs began
        unsigned lcore = 0;
        uint64_t due = 0;
        uint64_t period = 0;
    };

    unsigned any_of(unsigned n)
    {
        return static_cast<unsigned>(random_() % n);
    }

    // From a tick to a day.
    uint64_t any_ticks()
    {
        return random_() >> (17 + any_of(47)) >> any_of(2) * 20;
    }

    void act()
    {
        Entry &entry = entries_[any_of(count)];
        if (any_of(4) == 0) {
            ASSERT_EQ(rte_timer_stop(&entry.timer), 0);
            entry.is_pending = false;
            entry.is_new = true;
        } else {
            const uint64_t ticks = any_ticks();
            const bool is_periodical = any_of(3) == 0;
            entry.lcore = any_of(3);
            ASSERT_EQ(
                lawn_rte_timer_reset_at(&entry.timer, now_, ticks,
                                        is_periodical ? PERIODICAL : SINGLE,
                                        entry.lcore, expired, this),
                0);
            entry.is_pending = true;
            entry.is_new = true;
            entry.due = now_ + ticks;
            entry.period = is_periodical ? ticks : 0;
        }
    }

    void pass()
    {
        now_ += any_ticks();
        for (Entry &entry : entries_) {
            entry.is_new = false;
        }
        ASSERT_EQ(lawn_rte_timer_manage_at(now_), 0);
        for (Entry &entry : entries_) {
            ASSERT_EQ(rte_timer_pending(&entry.timer), entry.is_pending);
            ASSERT_FALSE(entry.is_pending && !entry.is_new &&
                         entry.lcore == current_lcore && entry.due <= now_);
        }
    }

    static void expired(struct rte_timer *timer, void *arg)
    {
        static_cast<World *>(arg)->run(*reinterpret_cast<Entry *>(timer));
    }

    void run(Entry &entry)
    {
        ++runs_;
        ASSERT_TRUE(entry.is_pending && !entry.is_new);
        ASSERT_EQ(entry.lcore, current_lcore);
        ASSERT_LE(entry.due, now_);
        ASSERT_FALSE(rte_timer_pending(&entry.timer));
        // So that other functions' acts are not taken for this one's.
        entry.is_new = true;
        entry.is_pending = entry.period != 0;
        if (entry.period) {
            entry.due += ((now_ - entry.due) / entry.period + 1) * entry.period;
        }
        for (unsigned i = any_of(3); i > 0; --i) {
            act();
        }
    }

    static constexpr unsigned count = 50;

    std::mt19937_64 random_;
    uint64_t now_ = start;
    size_t runs_ = 0;
    Entry entries_[count];
};

TEST(RteWorld, BehavesAsTheModel)
{
    const uint64_t only = environment("LAWN_TEST_SEED", 0);
    const uint64_t scale = environment("LAWN_TEST_SCALE", 100);
    const uint64_t seeds = only ? 1 : std::max<uint64_t>(scale / 5, 2);
    for (uint64_t i = 1; i <= seeds; ++i) {
        const uint64_t seed = only ? only : i;
        SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
        World world(seed);
        for (int n = 0; n < 20000; ++n) {
            world.step();
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        EXPECT_GT(world.runs(), 2000U);
    }
}

// Three threads, an lcore each. Functions hand their timers on, and others
// reach for them meanwhile. Only who has a timer touches its counters, which
// the sanitizers watch, and none is lost.
class Crowd
{
public:
    explicit Crowd(uint64_t runs) : wanted_(runs)
    {
        EXPECT_EQ(rte_timer_subsystem_init(), 0);
        for (Entry &entry : entries_) {
            rte_timer_init(&entry.timer);
            entry.random.seed(static_cast<uint64_t>(&entry - entries_));
            EXPECT_EQ(lawn_rte_timer_reset_at(&entry.timer, now_, 1, SINGLE, 0,
                                              expired, this),
                      0);
        }
    }

    ~Crowd()
    {
        rte_timer_subsystem_finalize();
    }

    Crowd(const Crowd &) = delete;
    Crowd &operator=(const Crowd &) = delete;

    void work(unsigned lcore)
    {
        std::mt19937_64 random(lcore);
        current_lcore = lcore;
        while (runs_ < wanted_) {
            EXPECT_EQ(lawn_rte_timer_manage_at(++now_), 0);
            Entry &entry = entries_[random() % count];
            const int status = lawn_rte_timer_reset_at(
                &entry.timer, now_, random() % 50, SINGLE,
                static_cast<unsigned>(random() % 3), expired, this);
            EXPECT_TRUE(status == 0 || status == -1);
        }
    }

    // When all have left.
    uint64_t stop_and_count()
    {
        uint64_t sum = 0;
        current_lcore = LCORE_ID_ANY;
        for (Entry &entry : entries_) {
            EXPECT_TRUE(rte_timer_pending(&entry.timer));
            rte_timer_stop_sync(&entry.timer);
            EXPECT_FALSE(rte_timer_pending(&entry.timer));
            sum += entry.runs;
        }
        EXPECT_EQ(sum, runs_);
        return sum;
    }

private:
    struct Entry {
        struct rte_timer timer; // first: the callback's timer is this
        uint64_t runs;
        std::mt19937_64 random;
    };

    static void expired(struct rte_timer *timer, void *arg)
    {
        Entry &entry = *reinterpret_cast<Entry *>(timer);
        Crowd &crowd = *static_cast<Crowd *>(arg);
        ++entry.runs;
        ++crowd.runs_;
        EXPECT_EQ(lawn_rte_timer_reset_at(
                      timer, crowd.now_, entry.random() % 50, SINGLE,
                      static_cast<unsigned>(entry.random() % 3), expired, arg),
                  0);
    }

    static constexpr unsigned count = 64;

    const uint64_t wanted_;
    std::atomic<uint64_t> now_{start};
    std::atomic<uint64_t> runs_{0};
    Entry entries_[count] = {};
};

TEST(RteCrowd, LosesNothing)
{
    const uint64_t runs = 1000 * environment("LAWN_TEST_SCALE", 100);
    Crowd crowd(runs);
    std::vector<std::thread> threads;
    for (unsigned lcore = 0; lcore < 3; ++lcore) {
        threads.emplace_back([&crowd, lcore] { crowd.work(lcore); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    EXPECT_GE(crowd.stop_and_count(), runs);
}

} // namespace
