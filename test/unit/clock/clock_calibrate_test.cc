// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Calibration and the choice of a rate, on virtual clocks: of any frequency,
// noisy, preempted, stepping, standing still. No real clock is read.

#include "clock/calibrate.h"

#include "../../environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

using namespace lawn;

namespace
{

__extension__ typedef unsigned __int128 uint128;

// Time passes only by reading: each reading takes some of it, half before the
// clock is looked at and half after.
struct Machine {
    uint64_t hz = 2600000000;
    uint64_t grain = 1; // ticks that the counter advances by
    uint64_t cost_ps = 30000;
    uint64_t noise_ps = 0;     // a reading takes up to this much more
    uint64_t preempted_at = 0; // at this time, for this long
    uint64_t preempted_for = 0;
    bool reference_stands = false;
    // Ticks that the counter is ahead by, at a time in ps.
    std::function<int64_t(uint64_t)> step = [](uint64_t) { return 0; };
    // Nanoseconds that the reference is ahead by.
    std::function<int64_t(uint64_t)> reference_step = [](uint64_t) {
        return 0;
    };

    uint64_t now_ps = 1000000000;
    uint64_t readings = 0;
    std::minstd_rand random{1};

    void pass(uint64_t ps)
    {
        const uint64_t before = now_ps;
        now_ps += ps + (noise_ps ? random() % noise_ps : 0);
        if (before < preempted_at && now_ps >= preempted_at) {
            now_ps += preempted_for;
        }
    }

    uint64_t counter()
    {
        ++readings;
        pass(cost_ps / 2);
        const uint64_t ticks =
            static_cast<uint64_t>(uint128{now_ps} * hz / 1000000000000U);
        const uint64_t value = ticks - ticks % grain + (uint64_t{1} << 40) +
                               static_cast<uint64_t>(step(now_ps));
        pass(cost_ps / 2);
        return value;
    }

    uint64_t reference()
    {
        pass(cost_ps / 2);
        const uint64_t ns =
            reference_stands
                ? 5
                : now_ps / 1000 + static_cast<uint64_t>(reference_step(now_ps));
        pass(cost_ps / 2);
        return ns;
    }

    Clocks clocks()
    {
        return {
            [](void *arg) { return static_cast<Machine *>(arg)->counter(); },
            [](void *arg) { return static_cast<Machine *>(arg)->reference(); },
            this};
    }

    double error_ppm(const Rate &rate) const
    {
        const double truth = static_cast<double>(hz);
        return std::fabs(rate.ticks_per_sec - truth) / truth * 1e6;
    }
};

constexpr uint64_t ms_ps = 1000000000;
constexpr uint64_t span_ns = 20000000;

TEST(ClockCalibrate, AnyFrequency)
{
    for (uint64_t hz : {1000000U, 10000000U, 24000000U, 62500000U, 1000000000U,
                        1999999999U, 2596130163U}) {
        SCOPED_TRACE(hz);
        Machine machine;
        machine.hz = hz;
        Rate rate;
        ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
        EXPECT_EQ(rate.method, LAWN_CLOCK_BY_CALIBRATION);
        EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
        // The brackets, and a tick at each end.
        EXPECT_LE(rate.error_ppm, 4 + 2e6 / (static_cast<double>(hz) * 0.02));
    }
    Machine fast;
    fast.hz = 10000000000;
    Rate rate;
    ASSERT_TRUE(calibrate(fast.clocks(), span_ns, &rate));
    EXPECT_LE(fast.error_ppm(rate), 0.2);
}

TEST(ClockCalibrate, CoarseCounters)
{
    struct {
        uint64_t hz;
        uint64_t grain;
    } const table[] = {{62500000, 62}, {1000000000, 200}, {1000000000, 1000}};
    for (const auto &row : table) {
        Machine machine;
        machine.hz = row.hz;
        machine.grain = row.grain;
        Rate rate;
        ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
        EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
        EXPECT_LE(rate.error_ppm, 60);

        const auto hz = static_cast<double>(row.hz);
        const Rate announced = {LAWN_CLOCK_BY_FIRMWARE, hz, 0.01};
        ASSERT_TRUE(choose_rate(&announced, 1, machine.clocks(), &rate));
        EXPECT_EQ(rate.method, LAWN_CLOCK_BY_FIRMWARE);
        EXPECT_EQ(rate.error_ppm, 0.01);
    }
}

TEST(ClockCalibrate, KeepsTheTightestBrackets)
{
    // Most readings are late by a microsecond, which alone would be 100 ppm.
    for (unsigned seed = 1; seed <= 5; ++seed) {
        Machine machine;
        machine.noise_ps = 1000000;
        machine.random.seed(seed);
        Rate rate;
        ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
        EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
        EXPECT_LE(rate.error_ppm, 60);
    }
}

TEST(ClockCalibrate, PreemptionDoesNotMatter)
{
    // Around the begin, the middle and the end of the measurement.
    const uint64_t count = std::max<uint64_t>(lawn_test::scaled(60), 4);
    for (uint64_t around : {0U, 10U, 20U}) {
        for (uint64_t offset = 0; offset < 3000000; offset += 3000000 / count) {
            Machine machine;
            machine.preempted_at = machine.now_ps + around * ms_ps + 1 + offset;
            machine.preempted_for = 3 * ms_ps;
            Rate rate;
            ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
            ASSERT_LE(machine.error_ppm(rate), 1) << around << " " << offset;
            ASSERT_LE(rate.error_ppm, 5) << around << " " << offset;
        }
    }
}

TEST(ClockCalibrate, AStepIsNotAveragedIn)
{
    for (int64_t ticks : {2600, 2600000, -2600, -26000000}) {
        for (uint64_t at : {5U, 15U}) {
            SCOPED_TRACE(ticks);
            Machine machine;
            const uint64_t when = machine.now_ps + at * ms_ps;
            machine.step = [=](uint64_t now) { return now < when ? 0 : ticks; };
            Rate rate;
            ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
            EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
            EXPECT_LE(rate.error_ppm, 5);
        }
    }
}

// It goes back behind where a half of the measurement began, which is of no use
// then; the next one is.
TEST(ClockCalibrate, AReferenceThatWasSetBackIsMeasuredAgain)
{
    for (uint64_t at : {5U, 15U}) {
        SCOPED_TRACE(at);
        Machine machine;
        const uint64_t when = machine.now_ps + at * ms_ps;
        machine.reference_step = [=](uint64_t now) {
            return now < when ? 100'000'000 : 0;
        };
        Rate rate;
        ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
        EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
        EXPECT_LE(rate.error_ppm, 5);
        EXPECT_GT(machine.now_ps, when + 20 * ms_ps);
    }
}

// For as long as it is read once, in the middle or at the end.
TEST(ClockCalibrate, ACounterThatRunsBackForATimeIsMeasuredAgain)
{
    for (uint64_t at : {10U, 20U}) {
        SCOPED_TRACE(at);
        Machine machine;
        const uint64_t from = machine.now_ps + at * ms_ps;
        const uint64_t to = from + 2'000'000;
        machine.step = [=](uint64_t now) {
            return now < from || now > to
                       ? int64_t{0}
                       : -2 * static_cast<int64_t>((now - from) / 1000 * 26 /
                                                   10);
        };
        Rate rate;
        ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
        EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
        EXPECT_LE(rate.error_ppm, 5);
        EXPECT_GT(machine.now_ps, to);
    }
}

TEST(ClockCalibrate, OwnsUpToASlewedReference)
{
    // The rate drifts by 20 ppm per 10 ms, back and forth.
    Machine machine;
    machine.step = [](uint64_t now) {
        const uint64_t in_period = now % (20 * ms_ps);
        const uint64_t up =
            in_period < 10 * ms_ps ? in_period : 20 * ms_ps - in_period;
        return static_cast<int64_t>(up / ms_ps * 52);
    };
    Rate rate;
    ASSERT_TRUE(calibrate(machine.clocks(), span_ns, &rate));
    EXPECT_LE(machine.error_ppm(rate), rate.error_ppm);
    EXPECT_GE(rate.error_ppm, 20);
    EXPECT_LE(rate.error_ppm, 60);
}

TEST(ClockCalibrate, RefusesACounterThatKeepsStepping)
{
    Machine machine;
    machine.step = [](uint64_t now) {
        const uint64_t n = now / (7 * ms_ps);
        return static_cast<int64_t>(n * n * 100000);
    };
    Rate rate;
    EXPECT_FALSE(calibrate(machine.clocks(), span_ns, &rate));
}

TEST(ClockCalibrate, RefusesClocksThatStandStill)
{
    Rate rate;
    Machine stopped;
    stopped.hz = 0;
    EXPECT_FALSE(calibrate(stopped.clocks(), 1000000, &rate));
    Machine frozen;
    frozen.reference_stands = true;
    EXPECT_FALSE(calibrate(frozen.clocks(), 1000000, &rate));
    Machine backwards;
    backwards.step = [](uint64_t now) {
        return -2 * static_cast<int64_t>(now / 1000 * 26 / 10);
    };
    EXPECT_FALSE(calibrate(backwards.clocks(), 1000000, &rate));
}

// ---- the order of preference

TEST(ClockChoose, TakesTheFirstThatIsNotContradicted)
{
    const Rate announced[] = {{LAWN_CLOCK_BY_CPUID, 0, 0},
                              {LAWN_CLOCK_BY_HYPERVISOR, 2.6e9, 0.4},
                              {LAWN_CLOCK_BY_PERF, 2.6e9, 0.1}};
    Machine machine;
    Rate rate;
    ASSERT_TRUE(choose_rate(announced, 3, machine.clocks(), &rate));
    EXPECT_EQ(rate.method, LAWN_CLOCK_BY_HYPERVISOR);
    EXPECT_EQ(rate.ticks_per_sec, 2.6e9);
    EXPECT_EQ(rate.error_ppm, 0.4);
    EXPECT_LT(machine.now_ps, 5 * ms_ps) << "the check is to be short";
}

TEST(ClockChoose, RejectsAWrongRate)
{
    for (double factor : {1.0025, 0.9975, 2.0, 1e-3, 1e9}) {
        SCOPED_TRACE(factor);
        const Rate announced[] = {{LAWN_CLOCK_BY_CPUID, 2.6e9 * factor, 0.1},
                                  {LAWN_CLOCK_BY_PERF, 2.6e9, 0.1}};
        Machine machine;
        Rate rate;
        ASSERT_TRUE(choose_rate(announced, 2, machine.clocks(), &rate));
        EXPECT_EQ(rate.method, LAWN_CLOCK_BY_PERF);
        ASSERT_TRUE(choose_rate(announced, 1, machine.clocks(), &rate));
        EXPECT_EQ(rate.method, LAWN_CLOCK_BY_CALIBRATION);
        EXPECT_LE(machine.error_ppm(rate), 1);
    }
}

TEST(ClockChoose, AdmitsADisagreement)
{
    const Rate announced = {LAWN_CLOCK_BY_FIRMWARE, 2.6e9 * 1.0003, 0.1};
    Machine machine;
    Rate rate;
    ASSERT_TRUE(choose_rate(&announced, 1, machine.clocks(), &rate));
    EXPECT_EQ(rate.method, LAWN_CLOCK_BY_FIRMWARE);
    EXPECT_GE(rate.error_ppm, 300);
    EXPECT_LE(rate.error_ppm, 400);
}

TEST(ClockChoose, MeasuresWhereNothingIsAnnounced)
{
    Machine machine;
    Rate rate;
    ASSERT_TRUE(choose_rate(nullptr, 0, machine.clocks(), &rate));
    EXPECT_EQ(rate.method, LAWN_CLOCK_BY_CALIBRATION);
    EXPECT_LE(machine.error_ppm(rate), 1);

    Machine stopped;
    stopped.hz = 0;
    const Rate announced = {LAWN_CLOCK_BY_CPUID, 2.6e9, 0.1};
    EXPECT_FALSE(choose_rate(&announced, 1, stopped.clocks(), &rate))
        << "a counter that stands still is no clock, whatever it announces";
}

} // namespace
