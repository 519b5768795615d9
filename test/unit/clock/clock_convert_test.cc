// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Conversions between ticks and other units, against their definition in exact
// integers.

#include "clock/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace lawn;

namespace
{

__extension__ typedef unsigned __int128 uint128;

TEST(ClockConvert, RoundsUp)
{
    EXPECT_EQ(ticks_from(1, 1, 1e9), 1000000000U);
    EXPECT_EQ(ticks_from(1, 1000000, 1e9), 1000U);
    EXPECT_EQ(ticks_from(1, 1000000000, 1e9), 1U);
    EXPECT_EQ(ticks_from(1.5, 1000000000, 1e9), 2U);
    EXPECT_EQ(ticks_from(1, 1000000000, 2.5e9), 3U);
    EXPECT_EQ(ticks_from(2, 1000000000, 2.5e9), 5U);
    EXPECT_EQ(ticks_from(1e-300, 1, 1e9), 1U);
    EXPECT_EQ(ticks_from(5e-324, 1000, 1e6), 1U);
    // 2^53 + 1 needs more than a double.
    EXPECT_EQ(ticks_from(9007199254740992.0, 1, 1), 9007199254740992U);
    EXPECT_EQ(ticks_from(3002399751580331.0, 1, 3), 9007199254740993U);
}

TEST(ClockConvert, NothingIsZero)
{
    const double infinity = std::numeric_limits<double>::infinity();
    for (double rate : {1e6, 2.6e9}) {
        EXPECT_EQ(ticks_from(0.0, 1, rate), 0U);
        EXPECT_EQ(ticks_from(-0.0, 1, rate), 0U);
        EXPECT_EQ(ticks_from(-1e-300, 1, rate), 0U);
        EXPECT_EQ(ticks_from(-1e300, 1, rate), 0U);
        EXPECT_EQ(ticks_from(-infinity, 1, rate), 0U);
        EXPECT_EQ(ticks_from(std::nan(""), 1, rate), 0U);
        EXPECT_EQ(ticks_from(-std::nan(""), 1, rate), 0U);
    }
}

TEST(ClockConvert, Saturates)
{
    const double infinity = std::numeric_limits<double>::infinity();
    const double two_to_64 = 18446744073709551616.0;
    const double below = std::nextafter(two_to_64, 0);
    EXPECT_EQ(ticks_from(infinity, 1, 1e9), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_from(1e300, 1, 1e9), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_from(1.7e308, 1000000000, 1e10), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_from(2 * two_to_64, 1, 1), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_from(two_to_64, 1, 1), LAWN_TIME_INFINITY);
    EXPECT_EQ(ticks_from(below, 1, 1), UINT64_MAX - 2047);
    EXPECT_EQ(ticks_from(two_to_64, 1000, 1), 18446744073709552U);
    // 2^64 - 1 is a number of ticks that only INFINITY may have.
    EXPECT_EQ(ticks_from(4294967295.0, 1, 4294967297.0), LAWN_TIME_INFINITY);
    // 2^64 - 1/2, which is 2^64 when rounded up, must not become 0.
    EXPECT_EQ(ticks_from(145295143558111.0, 1000, 126960500.0),
              LAWN_TIME_INFINITY);
}

// Against the definition, in integers: the least t with t/rate >= value/units.
TEST(ClockConvert, IsTheLeastThatIsNotShorter)
{
    std::mt19937_64 random(1);
    const uint64_t units[] = {1, 1000, 1000000, 1000000000};
    for (int i = 0; i < 200000; ++i) {
        const auto shift = static_cast<unsigned>(random() % 24);
        const uint64_t mantissa = random() >> (34 + random() % 30);
        const uint64_t rate = 1 + (random() >> (31 + random() % 20));
        const uint64_t unit = units[random() % 4];
        const double value =
            std::ldexp(static_cast<double>(mantissa), -static_cast<int>(shift));
        const uint64_t ticks =
            ticks_from(value, unit, static_cast<double>(rate));
        const uint128 wanted = uint128{mantissa} * rate;
        const uint128 one = uint128{unit} << shift;
        ASSERT_GE(ticks * one, wanted) << value << " " << unit << " " << rate;
        if (ticks > 0) {
            ASSERT_LT((ticks - 1) * one, wanted)
                << value << " " << unit << " " << rate;
        }
    }
}

TEST(ClockConvert, ThereAndBackIsNeverShorter)
{
    std::mt19937_64 random(2);
    std::uniform_real_distribution<double> exponent(-30, 40);
    std::uniform_real_distribution<double> rate_exponent(6, 10);
    const uint64_t units[] = {1, 1000, 1000000, 1000000000};
    for (int i = 0; i < 200000; ++i) {
        const double value = std::exp2(exponent(random));
        const double rate = std::pow(10, rate_exponent(random));
        const uint64_t unit = units[random() % 4];
        const uint64_t ticks = ticks_from(value, unit, rate);
        if (ticks == LAWN_TIME_INFINITY) {
            continue;
        }
        const double back = ticks_to(ticks, unit, rate);
        const double one_tick = static_cast<double>(unit) / rate;
        ASSERT_GE(back, value) << unit << " " << rate;
        ASSERT_LE(back, (value + one_tick) * (1 + 1e-15)) << unit;
    }
}

TEST(ClockConvert, BackNeverOverflows)
{
    EXPECT_EQ(ticks_to(0, 1, 1e9), 0.0);
    EXPECT_EQ(ticks_to(1500, 1000000, 1e9), 1.5);
    EXPECT_EQ(ticks_to(3, 1, 2), 1.5);
    EXPECT_DOUBLE_EQ(ticks_to(LAWN_TIME_INFINITY, 1, 1e9), 18446744073.709551);
    EXPECT_DOUBLE_EQ(ticks_to(LAWN_TIME_INFINITY, 1000000000, 1e6),
                     1.8446744073709551616e22);
}

} // namespace
