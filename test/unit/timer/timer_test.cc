// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/timer.h, one by one, on virtual time. The oracle in
// test/model checks them all together.

#include "timer_fixture.h"
#include "times.h"

namespace
{

using lawn_test::second;
constexpr lawn_time_t day = 86400 * second;

using lawn_test::Times;

class Timer : public lawn_test::TimerFixture
{
};

TEST_F(Timer, FiresAtItsDeadlineAndNotATickBefore)
{
    for (const lawn_time_t ttl :
         {lawn_time_t{1}, lawn_time_t{15}, lawn_time_t{16}, lawn_time_t{4095},
          lawn_time_t{4097}, lawn_time_t{100'000}, second, 10 * day,
          lawn_time_t{1} << 62}) {
        Probe &p = probe();
        const lawn_time_t start_time = 12345;
        lawn_t *lawn = nullptr;
        ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
        lawn_timer_start(lawn, &p.timer, start_time, ttl);
        EXPECT_EQ(lawn_timer_deadline(&p.timer), start_time + ttl);
        EXPECT_EQ(lawn_advance(lawn, start_time + ttl - 1, 0), 0U);
        EXPECT_EQ(lawn_advance(lawn, start_time + ttl, 0), 1U);
        EXPECT_EQ(p.fired_at, Times{start_time + ttl});
        lawn_destroy(lawn);
    }
}

// A timer fires at the first poll at or after its deadline, whatever the
// interval of the polls.
TEST_F(Timer, IsLateByThePollingOnly)
{
    for (const lawn_time_t ttl : {second, 10 * day}) {
        for (const lawn_time_t polls : {7, 1000, 99'991}) {
            const lawn_time_t interval = ttl / polls + 1;
            Probe &p = probe();
            lawn_t *lawn = nullptr;
            ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
            lawn_timer_start(lawn, &p.timer, 0, ttl);
            lawn_time_t now = 0;
            while (p.fired_at.empty() && now < 2 * ttl) {
                now += interval;
                lawn_advance(lawn, now, 0);
            }
            EXPECT_EQ(p.fired_at,
                      Times{(ttl + interval - 1) / interval * interval});
            lawn_destroy(lawn);
        }
    }
}

// Of UCX's own suite for its timer wheel, three tests are disabled as broken
// (single precision, 10,000 timers' precision, overflow beyond the wheel).
// These are their counterparts.
TEST_F(Timer, UcxSingleTimerIsPrecise)
{
    Probe &p = probe();
    const lawn_time_t resolution = 1000;
    for (lawn_time_t i = 1; i <= 2000; ++i) {
        p.fired_at.clear();
        const lawn_time_t start_time = i * 10'000'000;
        const lawn_time_t ttl = i * resolution + i;
        start(p, start_time, ttl);
        // Sweeps at a share of the resolution that no slot divides.
        lawn_time_t now = start_time;
        while (p.fired_at.empty()) {
            ASSERT_LT(now, start_time + ttl + resolution);
            now += resolution * 99 / 100;
            lawn_advance(lawn_, now, 0);
        }
        ASSERT_GE(p.fired_at[0], start_time + ttl);
        ASSERT_LT(p.fired_at[0], start_time + ttl + resolution);
    }
}

TEST_F(Timer, UcxTenThousandTimersArePrecise)
{
    const lawn_time_t interval = 991;
    std::vector<lawn_time_t> deadlines;
    for (lawn_time_t i = 0; i < 10'000; ++i) {
        const lawn_time_t ttl = (i * 7919 % 10'007) * 1000 + i;
        start(probe(), i, ttl);
        deadlines.push_back(i + ttl);
    }
    for (lawn_time_t now = 10'000; lawn_count(lawn_) != 0; now += interval) {
        ASSERT_LT(now, 20'000'000U);
        lawn_advance(lawn_, now, 0);
    }
    for (size_t i = 0; i < probes_.size(); ++i) {
        const std::vector<lawn_time_t> &fired_at = probes_[i]->fired_at;
        ASSERT_EQ(fired_at.size(), 1U);
        ASSERT_GE(fired_at[0], deadlines[i]);
        // Those due before the first poll fire with it.
        ASSERT_LT(fired_at[0],
                  std::max<lawn_time_t>(deadlines[i], 9'009) + interval + 1);
    }
}

TEST_F(Timer, UcxOverflowBeyondTheWheelIsNone)
{
    // A wheel of 1024 slots clamps what lies beyond; there is no beyond here.
    std::vector<lawn_time_t> ttls;
    for (unsigned bit = 0; bit < 64; ++bit) {
        ttls.push_back(lawn_time_t{1} << bit);
        start(probe(), 0, ttls.back());
    }
    for (size_t i = 0; i < ttls.size(); ++i) {
        EXPECT_EQ(lawn_advance(lawn_, ttls[i] - 1, 0), 0U);
        EXPECT_EQ(lawn_advance(lawn_, ttls[i], 0), 1U);
        EXPECT_EQ(probes_[i]->fired_at, Times{ttls[i]});
    }
}

TEST_F(Timer, ZeroTtlIsDueAtTheNextAdvance)
{
    Probe &p = probe();
    p.then = [&](lawn_time_t now) { start(p, now, 0); };
    start(p, 100, 0);
    EXPECT_EQ(lawn_advance(lawn_, 100, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 100, 0), 1U);
    EXPECT_EQ(p.fired_at, (Times{100, 100}));
    EXPECT_LE(lawn_next(lawn_), 100U);
}

TEST_F(Timer, TimeThatGoesBackIsTheLatestSeen)
{
    Probe &p = probe();
    lawn_advance(lawn_, 1000, 0);
    start(p, 400, 50);
    EXPECT_EQ(lawn_timer_deadline(&p.timer), 1050U);
    EXPECT_EQ(lawn_advance(lawn_, 999, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 1050, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 0, 0), 0U);
}

TEST_F(Timer, BudgetLimitsTheTimersOfOneAdvance)
{
    for (int i = 0; i < 10; ++i) {
        start(probe(), 0, 10);
    }
    EXPECT_EQ(lawn_advance(lawn_, 20, 4), 4U);
    EXPECT_LE(lawn_next(lawn_), 20U);
    EXPECT_EQ(lawn_advance(lawn_, 20, 4), 4U);
    EXPECT_EQ(lawn_advance(lawn_, 20, 4), 2U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
}

// After a pass that used up its budget and left something, the next one may not
// be put off; what is left may be paused, and then fires nothing.
TEST_F(Timer, NextIsNowWhileABacklogIsLeft)
{
    for (int i = 0; i < 10; ++i) {
        start(probe(), 0, 1000);
    }
    for (int i = 0; i < 9; ++i) {
        lawn_timer_pause(lawn_, &probes_[i]->timer);
    }
    unsigned fired = 0;
    unsigned advances = 0;
    while (lawn_count(lawn_) != 0) {
        fired += lawn_advance(lawn_, 2000, 1);
        ASSERT_LE(++advances, 10U);
        ASSERT_EQ(lawn_next(lawn_), fired ? LAWN_TIME_INFINITY : 0U);
    }
    EXPECT_EQ(fired, 1U);
}

TEST_F(Timer, StopAndPauseTellWhetherItRan)
{
    Probe &p = probe();
    EXPECT_FALSE(lawn_timer_stop(lawn_, &p.timer));
    EXPECT_FALSE(lawn_timer_pause(lawn_, &p.timer));
    start(p, 0, 10);
    EXPECT_TRUE(lawn_timer_is_active(&p.timer));
    EXPECT_TRUE(lawn_timer_pause(lawn_, &p.timer));
    EXPECT_FALSE(lawn_timer_is_active(&p.timer));
    EXPECT_EQ(lawn_timer_deadline(&p.timer), LAWN_TIME_INFINITY);
    EXPECT_EQ(lawn_count(lawn_), 0U);
    EXPECT_EQ(lawn_next(lawn_), LAWN_TIME_INFINITY);
    EXPECT_FALSE(lawn_timer_pause(lawn_, &p.timer));
    EXPECT_EQ(lawn_advance(lawn_, 100, 0), 0U);
    start(p, 100, 10);
    EXPECT_TRUE(lawn_timer_stop(lawn_, &p.timer));
    EXPECT_FALSE(lawn_timer_stop(lawn_, &p.timer));
    EXPECT_EQ(lawn_advance(lawn_, 1000, 0), 0U);
    EXPECT_TRUE(p.fired_at.empty());
}

TEST_F(Timer, PausedTimerMayBeStartedEarlierAndLater)
{
    Probe &p = probe();
    start(p, 0, 1000);
    lawn_timer_pause(lawn_, &p.timer);
    start(p, 10, 20);
    EXPECT_EQ(lawn_advance(lawn_, 30, 0), 1U);
    start(p, 30, 1000);
    lawn_timer_pause(lawn_, &p.timer);
    start(p, 40, 5000);
    EXPECT_EQ(lawn_advance(lawn_, 5039, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 5040, 0), 1U);
}

TEST_F(Timer, StoppedTimerMayBeFreedAtOnce)
{
    auto timer = std::make_unique<lawn_timer_t>();
    lawn_timer_init(timer.get(), nullptr);
    start(probe(), 0, 10);
    lawn_timer_start(lawn_, timer.get(), 0, 10);
    start(probe(), 0, 10);
    EXPECT_TRUE(lawn_timer_stop(lawn_, timer.get()));
    timer.reset();
    EXPECT_EQ(lawn_advance(lawn_, 10, 0), 2U);
}

TEST_F(Timer, CallbackMayStopRestartAndFreeOthersOfItsPass)
{
    Probe &first = probe();
    Probe &stopped = probe();
    Probe &postponed = probe();
    Probe &hastened = probe();
    first.then = [&](lawn_time_t now) {
        EXPECT_TRUE(lawn_timer_stop(lawn_, &stopped.timer));
        start(postponed, now, 100);
        start(hastened, now, 1);
        probes_[1].reset();
    };
    for (Probe *p : {&first, &stopped, &postponed}) {
        start(*p, 0, 10);
    }
    start(hastened, 0, second);
    EXPECT_EQ(lawn_advance(lawn_, 50, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 51, 0), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 150, 0), 1U);
    EXPECT_EQ(hastened.fired_at, Times{51});
    EXPECT_EQ(postponed.fired_at, Times{150});
}

// A callback that reads a fresh clock starts timers later than its pass.
TEST_F(Timer, CallbackMayBringALaterTime)
{
    Probe &p = probe();
    Probe &other = probe();
    Probe &zero = probe();
    p.then = [&](lawn_time_t now) {
        start(zero, now, 0);
        start(other, now + 5000, 7000);
    };
    start(p, 0, 10'000);
    Probe &between = probe();
    start(between, 0, 12'000);
    EXPECT_EQ(lawn_advance(lawn_, 10'000, 0), 1U);
    EXPECT_EQ(lawn_timer_deadline(&other.timer), 22'000U);
    EXPECT_EQ(lawn_advance(lawn_, 15'000, 0), 2U);
    EXPECT_EQ(lawn_advance(lawn_, 21'999, 0), 0U);
    EXPECT_EQ(lawn_advance(lawn_, 22'000, 0), 1U);
}

TEST_F(Timer, DrainHandsOverWhatRuns)
{
    unsigned calls = 0;
    Probe &restarted = probe();
    start(restarted, 0, 10);
    start(probe(), 0, second);
    start(probe(), 0, LAWN_TIME_INFINITY);
    Probe &paused = probe();
    start(paused, 0, 10);
    lawn_timer_pause(lawn_, &paused.timer);
    static lawn_t *lawn;
    static unsigned *count;
    lawn = lawn_;
    count = &calls;
    const unsigned drained =
        lawn_drain(lawn_, [](lawn_timer_t *t, lawn_time_t) {
            EXPECT_FALSE(lawn_timer_is_active(t));
            if (++*count == 1) {
                lawn_timer_start(lawn, t, 0, 77);
            }
        });
    EXPECT_EQ(drained, 3U);
    EXPECT_EQ(calls, 3U);
    EXPECT_EQ(lawn_count(lawn_), 1U);
    EXPECT_EQ(lawn_advance(lawn_, 77, 0), 1U);
    EXPECT_EQ(lawn_drain(lawn_, nullptr), 0U);
}

TEST_F(Timer, DestroyDetachesWhatIsLeft)
{
    lawn_t *lawn = nullptr;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    Probe &running = probe();
    Probe &paused = probe();
    lawn_timer_start(lawn, &running.timer, 0, 10);
    lawn_timer_start(lawn, &paused.timer, 0, 10);
    lawn_timer_pause(lawn, &paused.timer);
    lawn_destroy(lawn);
    EXPECT_FALSE(lawn_timer_is_active(&running.timer));
    EXPECT_TRUE(running.fired_at.empty());
    start(running, 0, 5);
    start(paused, 0, 5);
    EXPECT_EQ(lawn_advance(lawn_, 5, 0), 2U);
    lawn_destroy(nullptr);
}

TEST_F(Timer, ZeroFilledIsIdle)
{
    lawn_timer_t timer = {};
    EXPECT_FALSE(lawn_timer_is_active(&timer));
    EXPECT_EQ(lawn_timer_deadline(&timer), LAWN_TIME_INFINITY);
    EXPECT_FALSE(lawn_timer_stop(lawn_, &timer));
    lawn_timer_start(lawn_, &timer, 0, 3);
    EXPECT_EQ(lawn_advance(lawn_, 3, 0), 1U);
}

TEST_F(Timer, CreateRefusesBadParameters)
{
    lawn_t *lawn = nullptr;
    EXPECT_EQ(lawn_create(nullptr, nullptr), LAWN_ERR_INVALID_PARAM);
    lawn_params_t params = {};
    params.allocator.alloc = [](void *, size_t) -> void * { return nullptr; };
    EXPECT_EQ(lawn_create(&params, &lawn), LAWN_ERR_INVALID_PARAM);
    params.allocator.release = [](void *, void *) {};
    EXPECT_EQ(lawn_create(&params, &lawn), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(lawn, nullptr);
}

// What is handed over and started anew stays, also when it is due at once.
TEST(TimerDrain, LeavesWhatIsStartedMeanwhile)
{
    static lawn_t *lawn;
    static unsigned calls;
    calls = 0;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    lawn_timer_t timer = {};
    lawn_timer_start(lawn, &timer, 0, 10);
    const auto each = [](lawn_timer_t *drained, lawn_time_t now) {
        if (++calls == 1) {
            lawn_timer_start(lawn, drained, now, 0);
        }
    };
    EXPECT_EQ(lawn_drain(lawn, each), 1U);
    EXPECT_EQ(lawn_count(lawn), 1U);
    EXPECT_EQ(lawn_advance(lawn, 0, 0), 1U);
    lawn_destroy(lawn);
}

TEST(TimerSettle, NotFromACallback)
{
    static lawn_t *lawn;
    static bool is_settled;
    is_settled = true;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    lawn_timer_t timer;
    lawn_timer_t later = {};
    lawn_timer_init(&timer, [](lawn_timer_t *, lawn_time_t) {
        is_settled = lawn_settle(lawn, 0);
    });
    lawn_timer_start(lawn, &timer, 0, 10);
    lawn_timer_start(lawn, &later, 0, 1'000'000);
    EXPECT_EQ(lawn_advance(lawn, 10, 0), 1U);
    EXPECT_FALSE(is_settled);
    EXPECT_TRUE(lawn_settle(lawn, 0));
    lawn_destroy(lawn);
}

TEST(TimerDeathTest, AdvanceInsideAnAdvanceIsAMistake)
{
    static lawn_t *lawn;
    ASSERT_EQ(lawn_create(nullptr, &lawn), LAWN_OK);
    lawn_timer_t timer;
    lawn_timer_init(&timer, [](lawn_timer_t *, lawn_time_t now) {
        EXPECT_EQ(lawn_advance(lawn, now, 0), 0U);
        lawn_destroy(lawn);
    });
    lawn_timer_start(lawn, &timer, 0, 1);
#ifdef NDEBUG
    EXPECT_EQ(lawn_advance(lawn, 1, 0), 1U);
#else
    EXPECT_DEATH(lawn_advance(lawn, 1, 0), "busy");
#endif
    lawn_destroy(lawn);
}

} // namespace
