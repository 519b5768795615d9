// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/periodic.h, on virtual time.

#include "engine_fixture.h"

#include <lawn/lawn.hpp>
#include <lawn/periodic.h>

#include <memory>
#include <random>

using namespace lawn_test;

namespace
{

struct PeriodicCall {
    lawn_time_t now;
    uint64_t periods;

    bool operator==(const PeriodicCall &other) const
    {
        return now == other.now && periods == other.periods;
    }
};

std::ostream &operator<<(std::ostream &out, const PeriodicCall &call)
{
    return out << "at " << call.now << ": " << call.periods;
}

// A periodic timer that remembers how it was called.
struct Ticker {
    Ticker()
    {
        lawn_periodic_init(&periodic, [](lawn_periodic_t *at, lawn_time_t now,
                                         uint64_t periods) {
            Ticker *const self = reinterpret_cast<Ticker *>(at);
            self->calls.push_back({now, periods});
            if (self->then) {
                self->then();
            }
        });
    }

    lawn_periodic_t periodic; // first, so it has the ticker's address
    std::vector<PeriodicCall> calls;
    std::function<void()> then;
};

using Calls = std::vector<PeriodicCall>;

class Periodic : public Engine
{
protected:
    lawn_time_t next() const
    {
        return lawn_periodic_deadline(&ticker_.periodic);
    }

    lawn_status_t begin(lawn_time_t period)
    {
        return lawn_engine_start_periodic(engine_, &ticker_.periodic, period);
    }

    Ticker ticker_;
};

TEST_F(Periodic, KeepsItsPhaseHoweverLateThePassesAre)
{
    now_ = start + 3; // no pass has seen that
    ASSERT_EQ(begin(10), LAWN_OK);
    EXPECT_EQ(next(), start + 13);
    Calls expected;
    for (lawn_time_t n = 1; n <= 1000; ++n) {
        const lawn_time_t deadline = start + 3 + 10 * n;
        EXPECT_EQ(next(), deadline);
        pass_at(deadline - 1);
        EXPECT_EQ(ticker_.calls, expected);
        pass_at(deadline + n % 9); // late, but by less than a period
        expected.push_back({now_, 1});
        EXPECT_EQ(ticker_.calls, expected);
    }
    EXPECT_EQ(stats().fired, 1000U);
}

TEST_F(Periodic, LatePassIsOneCallThatTellsHowManyPeriodsHavePassed)
{
    begin(10);
    pass_at(start + 19);
    EXPECT_EQ(next(), start + 20);
    pass_at(start + 519); // 20, 30, ... 510
    EXPECT_EQ(next(), start + 520);
    pass();
    pass_at(start + 530); // exactly at a deadline: that has come
    EXPECT_EQ(next(), start + 540);
    pass();
    EXPECT_EQ(ticker_.calls,
              (Calls{{start + 19, 1}, {start + 519, 50}, {start + 530, 2}}));
}

TEST_F(Periodic, RandomPassesMissNoPeriodAndCountNoneTwice)
{
    std::mt19937_64 random;
    for (int round = 0; round < 200; ++round) {
        const lawn_time_t period = 1 + random() % (1U << random() % 20);
        const lawn_time_t begun = now_;
        begin(period);
        ticker_.calls.clear();
        uint64_t told = 0;
        for (int i = 0; i < 50; ++i) {
            pass_at(now_ + random() % (3 * period));
            uint64_t sum = 0;
            for (const PeriodicCall &call : ticker_.calls) {
                EXPECT_GE(call.periods, 1U);
                sum += call.periods;
            }
            EXPECT_LE(ticker_.calls.size(), static_cast<size_t>(i) + 1);
            EXPECT_GE(sum, told);
            told = sum;
            ASSERT_EQ(told, (now_ - begun) / period);
            ASSERT_EQ(next(), begun + (told + 1) * period);
        }
    }
}

TEST_F(Periodic, FiresOnceInAPassEvenIfTheLawnsTimeIsAhead)
{
    begin(1);
    add([this] {
        now_ += 5; // a poll that takes long, and whose start is told the time
        lawn_timer_t timer = {};
        lawn_engine_start(engine_, &timer, 1);
        lawn_engine_stop(engine_, &timer);
        return 0U;
    });
    pass_at(start + 1);
    EXPECT_EQ(ticker_.calls, (Calls{{start + 1, 1}}));
    EXPECT_EQ(next(), start + 2);
    EXPECT_EQ(work_, 1U);
    pass(); // the five that the poll has taken
    EXPECT_EQ(ticker_.calls.back(), (PeriodicCall{start + 6, 5}));
}

TEST_F(Periodic, CallbackSeesTheNextDeadlineAndMayStop)
{
    ticker_.then = [this] {
        EXPECT_TRUE(lawn_periodic_is_active(&ticker_.periodic));
        EXPECT_EQ(next(), start + 20);
        EXPECT_TRUE(lawn_periodic_stop(&ticker_.periodic));
        EXPECT_FALSE(lawn_periodic_stop(&ticker_.periodic));
    };
    begin(10);
    pass_at(start + 10);
    EXPECT_FALSE(lawn_periodic_is_active(&ticker_.periodic));
    EXPECT_EQ(next(), LAWN_TIME_INFINITY);
    pass_at(start + 100);
    EXPECT_EQ(ticker_.calls.size(), 1U);
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
}

TEST_F(Periodic, CallbackMayStartItWithAnotherPeriod)
{
    ticker_.then = [this] {
        if (ticker_.calls.size() == 1) {
            EXPECT_EQ(begin(3), LAWN_OK);
            EXPECT_EQ(next(), now_ + 3);
        }
    };
    begin(10);
    pass_at(start + 14);
    pass_at(start + 16);
    pass_at(start + 17);
    pass_at(start + 20);
    EXPECT_EQ(ticker_.calls,
              (Calls{{start + 14, 1}, {start + 17, 1}, {start + 20, 1}}));
}

TEST_F(Periodic, CallbackMayFreeItOnceItIsStopped)
{
    auto other = std::make_unique<Ticker>();
    unsigned count = 0;
    other->then = [&] {
        ++count;
        EXPECT_TRUE(lawn_periodic_stop(&other->periodic));
        other.reset(); // and this function with it
    };
    lawn_engine_start_periodic(engine_, &other->periodic, 10);
    begin(10);
    pass_at(start + 10);
    pass_at(start + 20);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(ticker_.calls.size(), 2U);
}

TEST_F(Periodic, PeriodOf0IsRefusedAndChangesNothing)
{
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    lawn_periodic_t *const periodic = &ticker_.periodic;
    for (const bool runs : {false, true}) {
        EXPECT_EQ(begin(0), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_periodic_start(lawn, periodic, now_, 0),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_periodic_start_at(lawn, periodic, now_, now_ + 5, 0),
                  LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_periodic_is_active(periodic), runs);
        if (!runs) {
            begin(10);
        }
    }
    pass_at(start + 25);
    EXPECT_EQ(ticker_.calls, (Calls{{start + 25, 2}}));
    EXPECT_EQ(next(), start + 30);
}

TEST_F(Periodic, EnormousPeriodsDoNotOverflow)
{
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    const lawn_time_t half = lawn_time_t{1} << 63;
    lawn_periodic_start_at(lawn, &ticker_.periodic, now_, start + 1,
                           LAWN_TIME_INFINITY - start);
    pass_at(start + 1);
    EXPECT_EQ(ticker_.calls, (Calls{{start + 1, 1}}));
    EXPECT_EQ(next(), LAWN_TIME_INFINITY);
    EXPECT_TRUE(lawn_periodic_is_active(&ticker_.periodic));
    lawn_periodic_start(lawn, &ticker_.periodic, now_, half);
    pass_at(start + half);
    EXPECT_EQ(ticker_.calls.size(), 1U);
    pass_at(start + 1 + half);
    EXPECT_EQ(ticker_.calls.back(), (PeriodicCall{now_, 1}));
    EXPECT_EQ(next(), LAWN_TIME_INFINITY);
    pass_at(LAWN_TIME_INFINITY - 2);
    EXPECT_EQ(ticker_.calls.size(), 2U);
    lawn_periodic_start(lawn, &ticker_.periodic, now_, LAWN_TIME_INFINITY);
    EXPECT_EQ(next(), LAWN_TIME_INFINITY);
    EXPECT_TRUE(lawn_periodic_stop(&ticker_.periodic));
}

TEST_F(Periodic, FirstDeadlineGivesThePhase)
{
    lawn_t *const lawn = lawn_engine_lawn(engine_);
    lawn_periodic_start_at(lawn, &ticker_.periodic, now_, start + 4, 10);
    pass_at(start + 5);
    EXPECT_EQ(next(), start + 14);
    lawn_periodic_start_at(lawn, &ticker_.periodic, now_, start - 20, 10);
    pass_at(start + 6); // -20, -10, 0
    EXPECT_EQ(ticker_.calls, (Calls{{start + 5, 1}, {start + 6, 3}}));
    EXPECT_EQ(next(), start + 10);
}

TEST(PeriodicLawn, DeadlineOf0IsADeadlineToo)
{
    const lawn::lawn_ptr lawn = lawn::make_lawn();
    Ticker ticker;
    lawn_periodic_start_at(lawn.get(), &ticker.periodic, 0, 0, 10);
    lawn_advance(lawn.get(), 7, 0);
    EXPECT_EQ(ticker.calls, (Calls{{7, 1}}));
    EXPECT_EQ(lawn_periodic_deadline(&ticker.periodic), 10U);
}

TEST(PeriodicLawn, EndsWithItsLawnAndMovesToAnother)
{
    lawn::lawn_ptr first = lawn::make_lawn();
    const lawn::lawn_ptr second = lawn::make_lawn();
    Ticker ticker;
    EXPECT_FALSE(lawn_periodic_stop(&ticker.periodic));
    lawn_periodic_start(first.get(), &ticker.periodic, 0, 5);
    lawn_periodic_start(second.get(), &ticker.periodic, 0, 5);
    EXPECT_EQ(lawn_count(first.get()), 0U);
    lawn_periodic_start(first.get(), &ticker.periodic, 0, 5);
    EXPECT_EQ(lawn_count(second.get()), 0U);
    first.reset();
    EXPECT_FALSE(lawn_periodic_is_active(&ticker.periodic));
    EXPECT_EQ(lawn_periodic_deadline(&ticker.periodic), LAWN_TIME_INFINITY);
    EXPECT_FALSE(lawn_periodic_stop(&ticker.periodic));
    lawn_periodic_start(second.get(), &ticker.periodic, 0, 5);
    lawn_advance(second.get(), 5, 0);
    EXPECT_EQ(ticker.calls, (Calls{{5, 1}}));
    lawn_periodic_stop(&ticker.periodic);
}

TEST(PeriodicLawn, ZeroFilledIsATimerWithoutACallback)
{
    const lawn::lawn_ptr lawn = lawn::make_lawn();
    lawn_periodic_t periodic = {};
    EXPECT_FALSE(lawn_periodic_is_active(&periodic));
    EXPECT_FALSE(lawn_periodic_stop(&periodic));
    EXPECT_EQ(lawn_periodic_deadline(&periodic), LAWN_TIME_INFINITY);
    lawn_periodic_start(lawn.get(), &periodic, 0, 5);
    EXPECT_EQ(lawn_advance(lawn.get(), 12, 0), 1U);
    EXPECT_EQ(lawn_periodic_deadline(&periodic), 15U);
    EXPECT_TRUE(lawn_periodic_stop(&periodic));
}

TEST(PeriodicLawn, CarriesACallableInCpp)
{
    lawn_time_t now = 100;
    lawn_engine_params_t params = {};
    params.clock = [](void *arg) { return *static_cast<lawn_time_t *>(arg); };
    params.clock_arg = &now;
    params.ticks_per_sec = 1000;
    lawn::engine engine = lawn::make_engine(&params);
    uint64_t told = 0;
    unsigned plain = 0;
    lawn::periodic counted(
        [&](lawn_time_t, uint64_t periods) { told += periods; });
    lawn::periodic once(
        [&](auto &self, lawn_time_t, uint64_t) { EXPECT_TRUE(self.stop()); });
    {
        lawn::periodic gone([&](lawn_time_t) { ++plain; });
        EXPECT_EQ(gone.start(engine, 10), LAWN_OK);
        EXPECT_EQ(counted.start(engine, std::chrono::milliseconds(10)),
                  LAWN_OK);
        EXPECT_EQ(once.start(engine, 10), LAWN_OK);
        EXPECT_EQ(once.start(engine, 0), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(counted.deadline(), 110U);
        now = 135;
        engine.progress();
    }
    EXPECT_FALSE(once.is_active());
    EXPECT_TRUE(counted.is_active());
    now = 150;
    engine.progress();
    EXPECT_EQ(told, 5U);
    EXPECT_EQ(plain, 1U);
    EXPECT_FALSE(once.stop());
    EXPECT_EQ(once.start(lawn_engine_lawn(engine.get()), now, 5), LAWN_OK);
    EXPECT_TRUE(once.stop());
}

} // namespace
