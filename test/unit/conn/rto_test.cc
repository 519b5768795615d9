// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of RFC 6298 against values computed by hand, and against the
// RFC's formulas in floating point; at the ends of 64 bits it must saturate.

#include "conn/rto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace lawn;

namespace
{

constexpr lawn_time_t infinity = LAWN_TIME_INFINITY;

TEST(Rto, FollowsTheRfcOverASeries)
{
    const struct {
        lawn_time_t r, srtt, rttvar, rto;
    } series[] = {
        {8000, 8000, 4000, 24000},  // SRTT = R, RTTVAR = R / 2
        {16000, 9000, 5000, 29000}, // 3000 + 8000 / 4; 7000 + 2000
        {9000, 9000, 3750, 24000},  // no error: RTTVAR shrinks by a quarter
        {1000, 8000, 4813, 27252},  // 2812.5 + 2000 is rounded
    };
    Rtt rtt = {0, 0};
    for (const auto &step : series) {
        rtt = rtt_update(rtt, step.r);
        EXPECT_EQ(rtt.srtt, step.srtt);
        EXPECT_EQ(rtt.rttvar, step.rttvar);
        EXPECT_EQ(rto_from_rtt(rtt, 1, 1, infinity), step.rto);
    }
}

TEST(Rto, GranularityIsTheLeastSpread)
{
    EXPECT_EQ(rto_from_rtt({1000, 24}, 100, 1, infinity), 1100U);
    EXPECT_EQ(rto_from_rtt({1000, 25}, 100, 1, infinity), 1100U);
    EXPECT_EQ(rto_from_rtt({1000, 26}, 100, 1, infinity), 1104U);
}

TEST(Rto, IsClamped)
{
    EXPECT_EQ(rto_from_rtt({1000, 100}, 1, 1401, 2000), 1401U);
    EXPECT_EQ(rto_from_rtt({1000, 100}, 1, 1, 1399), 1399U);
    EXPECT_EQ(rto_from_rtt({1000, 100}, 1, 1400, 1400), 1400U);
}

TEST(Rto, StaysWithinATickOfTheFormulas)
{
    std::mt19937_64 random(6298);
    std::uniform_int_distribution<lawn_time_t> samples(1, 10'000'000);
    Rtt rtt = rtt_update({0, 0}, samples(random));
    for (int i = 0; i < 10000; ++i) {
        const lawn_time_t r = samples(random);
        const double srtt = static_cast<double>(rtt.srtt);
        const double sample = static_cast<double>(r);
        const double rttvar = 0.75 * static_cast<double>(rtt.rttvar) +
                              0.25 * std::fabs(srtt - sample);
        rtt = rtt_update(rtt, r);
        ASSERT_NEAR(static_cast<double>(rtt.rttvar), rttvar, 0.5);
        ASSERT_NEAR(static_cast<double>(rtt.srtt),
                    0.875 * srtt + 0.125 * sample, 0.5);
    }
}

TEST(Rto, SteadyRoundTripsConverge)
{
    Rtt rtt = rtt_update({0, 0}, 1'000'000);
    for (int i = 0; i < 1000; ++i) {
        rtt = rtt_update(rtt, 5000);
    }
    EXPECT_NEAR(static_cast<double>(rtt.srtt), 5000, 4); // 8 * 1/2 tick
    EXPECT_LE(rtt.rttvar, 6U); // and RTTVAR settles 2 above the error
}

TEST(Rto, SaturatesAtTheEndsOf64Bits)
{
    // (7 * (2^64 - 1) + 1) / 8 is 7 * 2^61 - 3/4.
    const Rtt rtt = rtt_update({infinity, infinity}, 1);
    EXPECT_EQ(rtt.srtt, 7 * (lawn_time_t{1} << 61) - 1);
    EXPECT_EQ(rtt.rttvar, infinity);
    // (3 * (2^64 - 1) + 2^61) / 4
    EXPECT_EQ(rtt_update(rtt, infinity).rttvar,
              3 * (lawn_time_t{1} << 62) + (lawn_time_t{1} << 59) - 1);
    EXPECT_EQ(rto_from_rtt({infinity, infinity}, 1, 1, infinity), infinity);
    EXPECT_EQ(rto_from_rtt({1, 1}, infinity, 1, infinity), infinity);
    EXPECT_EQ(rto_from_rtt({infinity, infinity}, infinity, 1, 7), 7U);
    // The smallest sample: SRTT 0 would mean that nothing was measured.
    EXPECT_EQ(rtt_update({1, 0}, 1).srtt, 1U);
}

// By a tick at least, unless the factor is 1.
TEST(Rto, BacksOffFromAnyRto)
{
    EXPECT_EQ(rto_back_off(1, 1.5, 1000), 2U);
    EXPECT_EQ(rto_back_off(9, 1.1, 1000), 10U);
    EXPECT_EQ(rto_back_off(7, 1 + 1e-9, 1000), 8U);
    EXPECT_EQ(rto_back_off(999, 1.25, 1000), 1000U);
    for (int bit = 0; bit < 64; ++bit) {
        // A double can only hold a neighbour of most of these.
        const lawn_time_t rto = (lawn_time_t{1} << bit) / 5 * 3 + 1;
        EXPECT_EQ(rto_back_off(rto, 1, infinity), rto);
        EXPECT_GT(rto_back_off(rto, 1.01, infinity), rto);
        EXPECT_EQ(rto_back_off(rto, 1.01, rto + 1), rto + 1);
    }
}

TEST(Rto, BacksOffUpToTheMaximum)
{
    EXPECT_EQ(rto_back_off(100, 2, 1000), 200U);
    EXPECT_EQ(rto_back_off(100, 1.5, 1000), 150U);
    EXPECT_EQ(rto_back_off(100, 1, 1000), 100U);
    EXPECT_EQ(rto_back_off(600, 2, 1000), 1000U);
    EXPECT_EQ(rto_back_off(1000, 2, 1000), 1000U);
    EXPECT_EQ(rto_back_off(1, 1e300, infinity), infinity);
    EXPECT_EQ(rto_back_off(infinity, 1e300, infinity), infinity);
    EXPECT_EQ(rto_back_off(infinity / 2 + 1, 2, infinity), infinity);
    // Not representable in a double: must not shrink.
    const lawn_time_t odd = (lawn_time_t{1} << 60) + 1;
    EXPECT_EQ(rto_back_off(odd, 1, infinity), odd);
}

} // namespace
