// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Engines on clocks that lie: that go back, stand still, or tell another time
// on each processor.

#include "engine_fixture.h"

#include <cstdlib>
#include <random>

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

TEST_F(Engine, AClockThatGoesBackNeitherFiresNorStalls)
{
    start_timer(sec);
    pass_at(start + sec - 1);
    const uint64_t stalls = stats().stalls;
    // To the beginning of time, and slowly up again.
    for (const lawn_time_t now : {lawn_time_t{0}, lawn_time_t{1}, start - sec,
                                  start, start + sec - 1}) {
        EXPECT_EQ(pass_at(now), "");
        EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
        EXPECT_EQ(lawn_engine_now(engine_), start + sec - 1);
    }
    EXPECT_EQ(stats().stalls, stalls);
    EXPECT_EQ(pass_at(start + sec), "t");
    // A timer that is started meanwhile counts from the latest time.
    now_ = 0;
    start_timer(5);
    EXPECT_EQ(lawn_timer_deadline(&timers_.back().timer), start + sec + 5);
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
