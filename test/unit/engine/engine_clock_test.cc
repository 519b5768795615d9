// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Engines on clocks that lie: that go back, stand still, or tell another time
// on each processor.

#include "engine_fixture.h"
#include "engine_kernel.h"

#include <cstdlib>
#include <random>

#include <time.h>

using namespace lawn_test;

namespace
{

// The lawn's time may be ahead of the clock, by which the engine expires.
TEST_F(Engine, WaitsByTheClockWhenTheLawnIsAhead)
{
    start_timer(10);
    lawn_timer_t ahead = {};
    lawn_timer_start(lawn_engine_lawn(engine_), &ahead, now_ + 20, 100);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_LE(lawn_engine_next(engine_), start + 10);
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_EQ(pass_at(start + 10), "t");
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_next(engine_), start + 120);
    lawn_engine_stop(engine_, &ahead);
}

TEST_F(Engine, AClockThatStandsStillIsNoStall)
{
    start_timer(1);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(pass(), "");
    }
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(stats().stalls, 0U);
    EXPECT_EQ(pass_at(now_ + 1), "t");
}

// As where two processors differ: it is waited for, and however often it
// happens, the time goes no faster.
TEST_F(Engine, AClockThatGoesBackALittleIsWaitedFor)
{
    start_timer(sec);
    pass_at(start + sec - 1);
    const uint64_t stalls = stats().stalls;
    for (int i = 0; i < 1000; ++i) {
        for (const lawn_time_t back : {lawn_time_t{1}, msec / 2, msec}) {
            EXPECT_EQ(pass_at(start + sec - 1 - back), "");
            EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
            EXPECT_EQ(lawn_engine_now(engine_), start + sec - 1);
        }
        EXPECT_EQ(pass_at(start + sec - 1), "");
    }
    EXPECT_EQ(stats().stalls, stalls);
    EXPECT_EQ(stats().clock_steps, 0U);
    EXPECT_EQ(pass_at(start + sec), "t");
    // A timer that is started meanwhile counts from the latest pass.
    now_ = start + sec - msec;
    start_timer(5);
    EXPECT_EQ(lawn_timer_deadline(&timers_.back().timer), start + sec + 5);
}

TEST_F(Engine, AStepBackLeavesTimersWhatRemained)
{
    now_ = 2000 * sec;
    pass();
    start_timer(10 * msec);
    EXPECT_EQ(pass_at(now_ + 4 * msec), "");
    EXPECT_EQ(pass_at(now_ - 1000 * sec), "");
    EXPECT_EQ(lawn_engine_now(engine_), 2000 * sec + 4 * msec);
    EXPECT_EQ(pass_at(now_ + 6 * msec - 1), "");
    EXPECT_EQ(pass_at(now_ + 1), "t");
    EXPECT_EQ(lawn_engine_now(engine_), 2000 * sec + 10 * msec);
    EXPECT_EQ(lawn_engine_time(engine_), 2000 * sec + 10 * msec);
    EXPECT_EQ(stats().clock_steps, 1U);
    EXPECT_EQ(stats().worst_step, 1000 * sec);
    EXPECT_EQ(stats().stalls, 0U);
    // Again, by the least that is a step, and to the beginning.
    start_timer(10 * msec);
    EXPECT_EQ(pass_at(now_ - msec - 1), "");
    EXPECT_EQ(stats().worst_step, 1000 * sec);
    EXPECT_EQ(pass_at(0), "");
    EXPECT_EQ(stats().clock_steps, 3U);
    EXPECT_EQ(stats().worst_step, 1000 * sec + 10 * msec - msec - 1);
    EXPECT_EQ(pass_at(10 * msec - 1), "");
    EXPECT_EQ(pass_at(10 * msec), "t");
    // And forward: the time has passed.
    start_timer(sec);
    EXPECT_EQ(pass_at(now_ + sec), "t");
    EXPECT_EQ(stats().stalls, 1U);
}

// A start has read the clock after the latest pass.
TEST_F(Engine, AStepBackGoesOnFromTheLatestStart)
{
    now_ = 2000 * sec;
    pass();
    start_timer(10 * msec);
    now_ += sec;
    start_timer(sec);
    EXPECT_EQ(pass_at(now_ - 1500 * sec), "t");
    EXPECT_EQ(lawn_engine_now(engine_), 2001 * sec);
    EXPECT_EQ(lawn_engine_time(engine_), 2001 * sec);
    EXPECT_EQ(stats().worst_step, 1500 * sec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(pass_at(now_ + sec - 1), "");
    EXPECT_EQ(pass_at(now_ + 1), "t");
}

// After a suspend, in which the counter may have gone on.
TEST_F(Engine, ASleepCountsTheTimeInSuspend)
{
    kernel.clock = -1;
    EXPECT_GE(lawn_engine_fd(engine_), 0);
    EXPECT_EQ(kernel.clock, CLOCK_BOOTTIME);
}

// Where the sum with the offset has no room, time does not go back either.
TEST_F(Engine, AStepBackFromFarOnLeavesAnOrder)
{
    constexpr lawn_time_t far = UINT64_MAX - 5 * sec;
    pass_at(far);
    start_timer(sec);
    pass_at(10);
    EXPECT_EQ(lawn_engine_now(engine_), far);
    EXPECT_EQ(pass_at(far), "");
    EXPECT_EQ(lawn_engine_now(engine_), far);
    EXPECT_EQ(pass_at(far + sec - 1), "");
    EXPECT_EQ(pass_at(far + sec), "t");
}

// What the kernel is told is never so long that it could overflow.
TEST_F(Engine, AFarDeadlineIsWaitedForInSteps)
{
    start_timer(lawn_time_t{1} << 62);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_GT(kernel.set_to, 0U);
    EXPECT_LE(kernel.set_to, 3'600'000'000'000U);
}

// Whoever reads the clock first finds it.
TEST_F(Engine, AStepBackIsFoundByEveryReading)
{
    const std::function<void()> readings[] = {
        [this] {
            start_timer(5 * msec);
            EXPECT_EQ(lawn_timer_deadline(&timers_.back().timer),
                      lawn_engine_now(engine_) + 5 * msec);
        },
        [this] {
            EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
            EXPECT_LE(kernel.set_to, 10 * msec + 1);
            EXPECT_GE(kernel.set_to, 10 * msec);
        },
        [this] { EXPECT_EQ(lawn_engine_wait(engine_, 5), LAWN_ERR_TIMED_OUT); },
    };
    for (const std::function<void()> &reading : readings) {
        now_ = 2000 * sec;
        create();
        start_timer(10 * msec);
        now_ -= 1000 * sec;
        reading();
        EXPECT_EQ(stats().clock_steps, 1U);
        now_ += 10 * msec - 1;
        pass();
        EXPECT_TRUE(lawn_timer_is_active(&(timers_.end() - 1)->timer) ||
                    lawn_timer_is_active(&(timers_.end() - 2)->timer));
        EXPECT_EQ(pass_at(now_ + 1), "t");
        EXPECT_EQ(stats().clock_steps, 1U);
        lawn_drain(lawn_engine_lawn(engine_), nullptr);
        timers_.clear();
    }
}

TEST_F(Engine, TimeIsTheClocksAndNotBeforeThePass)
{
    pass();
    now_ = start + 5;
    EXPECT_EQ(lawn_engine_time(engine_), start + 5);
    EXPECT_EQ(lawn_engine_now(engine_), start);
    // Back by little or much, which the next pass finds, not this.
    for (const lawn_time_t back : {lawn_time_t{1}, sec}) {
        now_ = start - back;
        EXPECT_EQ(lawn_engine_time(engine_), start);
        EXPECT_EQ(stats().clock_steps, 0U);
    }
    pass();
    now_ += 7;
    EXPECT_EQ(lawn_engine_time(engine_), start + 7);
    EXPECT_EQ(stats().clock_steps, 1U);
}

// As if a thread were held up between reading the clock and adding the offset,
// while the engine finds that the clock has gone back.
TEST(EngineClock, TimeIsNotOfTwoReadings)
{
    struct World {
        lawn_time_t now = 5000 * sec;
        lawn_engine_t *engine = nullptr;
        bool is_held_up = false;
    } world;
    lawn_engine_params_t params = {};
    params.ticks_per_sec = 1e9;
    params.clock_arg = &world;
    params.clock = [](void *arg) {
        World *const own = static_cast<World *>(arg);
        const lawn_time_t now = own->now;
        if (own->is_held_up) {
            own->is_held_up = false;
            own->now -= 1000 * sec;
            lawn_engine_progress(own->engine);
        }
        return now;
    };
    ASSERT_EQ(lawn_engine_create(&params, &world.engine), LAWN_OK);
    lawn_engine_progress(world.engine);
    world.is_held_up = true;
    EXPECT_EQ(lawn_engine_time(world.engine), 5000 * sec);
    lawn_engine_stats_t stats;
    lawn_engine_query(world.engine, &stats);
    EXPECT_EQ(stats.clock_steps, 1U);
    lawn_engine_destroy(world.engine);
}

// Two processors whose counters differ, by an offset and in their rates, and a
// thread that is moved between them. Which one is read is random.
struct Processors {
    uint64_t real = 0; // time, in ticks of the first
    uint64_t offset = 0;
    uint64_t ppm = 0; // by which the second is faster
    std::mt19937_64 random;

    uint64_t greatest_error() const
    {
        return offset + real / 1000000 * ppm + ppm;
    }

    lawn_time_t read()
    {
        return random() % 2 ? real : real + greatest_error();
    }
};

// The run of one seed.
class Migrant
{
public:
    Migrant(uint64_t seed, uint64_t offset, uint64_t ppm)
    {
        processors_.random.seed(seed);
        processors_.offset = offset;
        processors_.ppm = ppm;
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return static_cast<Processors *>(arg)->read();
        };
        params.clock_arg = &processors_;
        params.ticks_per_sec = 1e9;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
        for (Entry &entry : entries_) {
            entry = {{}, this, 0, 0};
            lawn_timer_init(&entry.timer, on_expired);
        }
    }

    ~Migrant()
    {
        lawn_engine_destroy(engine_);
    }

    Migrant(const Migrant &) = delete;
    Migrant &operator=(const Migrant &) = delete;

    void run(unsigned passes)
    {
        for (unsigned i = 0; i < passes; ++i) {
            processors_.real += any_of(2000);
            Entry &entry = entries_[any_of(std::size(entries_))];
            if (any_of(4) == 0) {
                lawn_engine_stop(engine_, &entry.timer);
            } else {
                const lawn_time_t ttl = any_of(1U << (1 + any_of(20)));
                entry.started = processors_.real;
                entry.ttl = ttl;
                lawn_engine_start(engine_, &entry.timer, ttl);
            }
            lawn_engine_progress(engine_);
            EXPECT_NE(lawn_engine_arm(engine_), LAWN_ERR_IO);
            expect_none_overdue();
        }
        EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
        lawn_engine_stats_t stats;
        lawn_engine_query(engine_, &stats);
        EXPECT_EQ(stats.stalls, 0U);
        EXPECT_EQ(stats.clock_steps, 0U);
        EXPECT_GT(fired_, passes / 100);
    }

private:
    struct Entry {
        lawn_timer_t timer; // first
        Migrant *migrant;
        lawn_time_t started; // really
        lawn_time_t ttl;
    };

    unsigned any_of(size_t count)
    {
        return static_cast<unsigned>(processors_.random() % count);
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        const Entry *const entry = reinterpret_cast<Entry *>(timer);
        entry->migrant->fired(*entry, now);
    }

    void fired(const Entry &entry, lawn_time_t now)
    {
        ++fired_;
        // By the time that the lawn goes by, which does not go back, exact.
        EXPECT_GE(now, lawn_timer_deadline(&entry.timer));
        EXPECT_GE(now, last_fired_at_);
        last_fired_at_ = now;
        // And really early by no more than the counters differ.
        EXPECT_GE(processors_.real + processors_.greatest_error(),
                  entry.started + entry.ttl);
    }

    // Late by no more than that either.
    void expect_none_overdue()
    {
        for (const Entry &entry : entries_) {
            if (lawn_timer_is_active(&entry.timer)) {
                EXPECT_LT(processors_.real, entry.started + entry.ttl +
                                                processors_.greatest_error());
            }
        }
    }

    Processors processors_;
    lawn_engine_t *engine_ = nullptr;
    Entry entries_[50];
    lawn_time_t last_fired_at_ = 0;
    size_t fired_ = 0;
};

TEST(EngineClock, MayDifferBetweenProcessors)
{
    const char *const text = getenv("LAWN_TEST_SEED");
    const uint64_t only = text ? strtoull(text, nullptr, 0) : 0;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : 10); ++seed) {
        SCOPED_TRACE("LAWN_TEST_SEED=" + std::to_string(seed));
        // Some thousand ticks apart, and up to 100 ppm.
        Migrant migrant(seed, seed * 1000, seed % 5 * 25);
        migrant.run(1000);
        if (testing::Test::HasFailure()) {
            return;
        }
    }
}

} // namespace
