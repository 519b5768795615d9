// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn/lawn.hpp: the clock, and its conversions against those of the C API and
// against exact arithmetic, at this machine's rate and at others.

#include <lawn/lawn.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <type_traits>

namespace
{

using namespace std::chrono_literals;
using lawn::tsc_clock;
using lawn::detail::ticks_of;
using std::chrono::duration;
using std::chrono::nanoseconds;

lawn_time_t ticks_at(double ticks_per_sec, nanoseconds span)
{
    return ticks_of(span, lawn::detail::rate_of(ticks_per_sec));
}

TEST(TscClock, IsATrivialClock)
{
    static_assert(std::is_same_v<tsc_clock::rep, tsc_clock::duration::rep>);
    static_assert(
        std::is_same_v<tsc_clock::period, tsc_clock::duration::period>);
    static_assert(std::is_same_v<tsc_clock::time_point::clock, tsc_clock>);
    static_assert(
        std::is_same_v<tsc_clock::time_point::duration, tsc_clock::duration>);
    static_assert(tsc_clock::is_steady &&noexcept(tsc_clock::now()));
    const lawn_time_t before = lawn_get_time();
    tsc_clock::time_point last = tsc_clock::time_point::min();
    for (int i = 0; i < 10'000; ++i) {
        const tsc_clock::time_point now = tsc_clock::now();
        ASSERT_GE(now, last);
        last = now;
    }
    // The counter may be read some tens of cycles off program order.
    EXPECT_GE(last.time_since_epoch() + 1us, tsc_clock::from_ticks(before));
    EXPECT_LE(last.time_since_epoch(),
              tsc_clock::from_ticks(lawn_get_time()) + 1us);
}

TEST(TscClock, TicksAreThoseOfTheCFunction)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i) {
        // Up to 2^53 a double is the span itself.
        const auto nsec =
            static_cast<int64_t>(random() >> (11 + random() % 53));
        ASSERT_EQ(tsc_clock::to_ticks(nanoseconds(nsec)),
                  lawn_time_from_nsec(static_cast<double>(nsec)))
            << nsec;
    }
}

TEST(TscClock, TicksAreExactAtAnyRate)
{
    std::mt19937_64 random(2);
    for (int i = 0; i < 100'000; ++i) {
        const auto nsec = static_cast<int64_t>(random() >> (1 + random() % 63));
        const uint64_t rate = 1 + (random() >> (14 + random() % 50));
        const auto product = static_cast<lawn::detail::uint128>(nsec) * rate;
        const auto ticks = (product + 999'999'999) / 1'000'000'000;
        ASSERT_EQ(ticks_at(static_cast<double>(rate), nanoseconds(nsec)),
                  ticks < LAWN_TIME_INFINITY ? static_cast<lawn_time_t>(ticks)
                                             : LAWN_TIME_INFINITY)
            << nsec << " ns at " << rate;
    }
    EXPECT_EQ(ticks_at(0.25, 4s), 1U);
    EXPECT_EQ(ticks_at(0.25, 4s + 1ns), 2U);
    EXPECT_EQ(ticks_at(std::numeric_limits<double>::denorm_min(), 1ns), 1U);
    // 2^80 / 10^9 = 2^71 / 5^9
    const auto exact = lawn::detail::uint128{1} << 71;
    EXPECT_EQ(ticks_at(0x1p80, 1ns),
              static_cast<lawn_time_t>(exact / 1'953'125 + 1));
    EXPECT_EQ(ticks_at(0x1p80, 1s), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_at(0x1p110, nanoseconds(int64_t{1} << 60)),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_at(std::numeric_limits<double>::max(), 1ns),
              LAWN_TIME_INFINITY);
}

TEST(TscClock, AnyDurationConvertsAndSaturates)
{
    using Picoseconds = duration<int64_t, std::pico>;
    using Thirds = duration<int64_t, std::ratio<1, 3>>;
    using Minutes8 = duration<int8_t, std::ratio<60>>;
    using Unsigned = duration<uint64_t, std::nano>;
    constexpr double inf = std::numeric_limits<double>::infinity();
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    using lawn::detail::nsec_of;
    EXPECT_EQ(nsec_of(3ms), 3'000'000ns);
    EXPECT_EQ(nsec_of(Picoseconds(1)), 1ns);
    EXPECT_EQ(nsec_of(Picoseconds(1000)), 1ns);
    EXPECT_EQ(nsec_of(Picoseconds(1001)), 2ns);
    EXPECT_EQ(nsec_of(Thirds(20'000'000'001)), 6'666'666'667s);
    EXPECT_EQ(nsec_of(Thirds(1)), 333'333'334ns);
    EXPECT_EQ(nsec_of(Minutes8(127)), 127min);
    EXPECT_EQ(nsec_of(Unsigned(UINT64_MAX)), nanoseconds::max());
    EXPECT_EQ(nsec_of(duration<double>(0.5)), 500ms);
    EXPECT_EQ(nsec_of(duration<double, std::nano>(7.01)), 8ns);
    EXPECT_EQ(nsec_of(duration<double>(1e300)), nanoseconds::max());
    EXPECT_EQ(nsec_of(Picoseconds(-1)), 0ns);
    EXPECT_EQ(nsec_of(std::chrono::hours::min()), 0ns);

    EXPECT_EQ(tsc_clock::to_ticks(0s), 0U);
    EXPECT_EQ(tsc_clock::to_ticks(-5s), 0U);
    EXPECT_EQ(tsc_clock::to_ticks(nanoseconds::min()), 0U);
    EXPECT_EQ(tsc_clock::to_ticks(duration<double>(nan)), 0U);
    EXPECT_EQ(tsc_clock::to_ticks(duration<double>(-inf)), 0U);
    EXPECT_EQ(tsc_clock::to_ticks(duration<double>(inf)), LAWN_TIME_INFINITY);
    EXPECT_EQ(tsc_clock::to_ticks(nanoseconds::max()), LAWN_TIME_INFINITY);
    EXPECT_EQ(tsc_clock::to_ticks(std::chrono::seconds::max()),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(tsc_clock::to_ticks(std::chrono::hours::max()),
              LAWN_TIME_INFINITY);
}

TEST(TscClock, TicksToNanosecondsAndBack)
{
    std::mt19937_64 random(3);
    for (const double rate :
         {3e4, 1e6, 24e6, 999'999'999.0, 1e9, 2.1e9, 2'399'987'654.321, 5e9}) {
        const lawn::detail::clock_rate at = lawn::detail::clock_rate_of(rate);
        const auto longest_tick = static_cast<int64_t>(1e9 / rate) + 1;
        for (int i = 0; i < 20'000; ++i) {
            const lawn_time_t ticks = random() >> (1 + random() % 63);
            const nanoseconds nsec = nsec_at(ticks, at);
            const nanoseconds step = nsec_at(ticks + 1, at) - nsec;
            ASSERT_GE(step, 0ns); // never back
            ASSERT_LE(step.count(), longest_tick);

            const nanoseconds span(
                static_cast<int64_t>(random() >> (4 + random() % 60)));
            const lawn_time_t there = ticks_of(span, at.ticks);
            if (there == LAWN_TIME_INFINITY) {
                continue;
            }
            const nanoseconds back = nsec_at(there, at);
            ASSERT_GE(back, span) << rate;
            ASSERT_LE((back - span).count(), longest_tick) << rate;
        }
        EXPECT_EQ(nsec_at(0, at), 0ns);
        EXPECT_EQ(nsec_at(LAWN_TIME_INFINITY, at), nanoseconds::max());
    }
    // 292 years and above.
    EXPECT_EQ(nsec_at(LAWN_TIME_INFINITY - 1, lawn::detail::clock_rate_of(1e9)),
              nanoseconds::max());
    EXPECT_EQ(nsec_at(21, lawn::detail::clock_rate_of(2.1e9)), 10ns);
    EXPECT_EQ(nsec_at(20, lawn::detail::clock_rate_of(2.1e9)), 9ns);
    EXPECT_GE(tsc_clock::from_ticks(tsc_clock::to_ticks(1s)), 1s);
    EXPECT_LE(tsc_clock::from_ticks(tsc_clock::to_ticks(1s)), 1s + 1us);
}

} // namespace
