// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of the estimator, against values computed by hand and against
// RFC 6298's formulas in floating point. At the ends of 64 bits it must
// saturate.

#include "conn/rto.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace lawn;

namespace
{

TEST(Rto, AveragesAsTheRfcOverASeries)
{
    const struct {
        lawn_time_t r, srtt, rttvar;
    } series[] = {
        {8000, 8000, 4000},  // SRTT = R, RTTVAR = R / 2
        {16000, 9000, 5000}, // 3000 + 8000 / 4; 7000 + 2000
        {9000, 9000, 3750},  // no error: RTTVAR shrinks by a quarter
        {1000, 8000, 4812},  // 2812.5 + 2000
    };
    lawn_time_t srtt;
    lawn_time_t rttvar;
    average_first(&srtt, &rttvar, series[0].r);
    for (const auto &step : series) {
        if (&step != &series[0]) {
            average(&srtt, &rttvar, step.r);
        }
        EXPECT_EQ(srtt >> 3, step.srtt);
        EXPECT_EQ(rttvar >> 2, step.rttvar);
    }
}

TEST(Rto, AveragesAsTheFormulas)
{
    std::mt19937_64 random(1);
    for (int shift = 8; shift <= 56; shift += 8) {
        const lawn_time_t most = lawn_time_t{1} << shift;
        lawn_time_t srtt;
        lawn_time_t rttvar;
        average_first(&srtt, &rttvar, most / 2);
        double s = static_cast<double>(most / 2);
        double v = s / 2;
        for (int i = 0; i < 1000; ++i) {
            const lawn_time_t r = random() % (most + 1);
            average(&srtt, &rttvar, r);
            v = 0.75 * v + 0.25 * std::fabs(s - static_cast<double>(r));
            s = 0.875 * s + 0.125 * static_cast<double>(r);
            // The shifts round by at most a tick each time, and that decays.
            const double slack = 16 + s * 1e-12;
            ASSERT_NEAR(static_cast<double>(srtt) / 8, s, slack);
            ASSERT_NEAR(static_cast<double>(rttvar) / 4, v, slack);
        }
    }
}

TEST(Rto, NoSampleMakesTheAverageZero)
{
    lawn_time_t srtt;
    lawn_time_t rttvar;
    average_first(&srtt, &rttvar, 1);
    for (int i = 0; i < 1000; ++i) {
        average(&srtt, &rttvar, 0);
        ASSERT_GT(srtt, 0U);
    }
}

TEST(Rto, TheLongestSamplesDoNotOverflow)
{
    lawn_time_t srtt;
    lawn_time_t rttvar;
    average_first(&srtt, &rttvar, longest);
    for (int i = 0; i < 1000; ++i) {
        average(&srtt, &rttvar, i % 2 == 0 ? longest : 0);
        ASSERT_LE(srtt >> 3, longest);
        ASSERT_LE(rttvar >> 2, longest);
    }
}

TEST(Rto, CodesRoundUpByLessThanAThousandthAndKeepTheOrder)
{
    lawn_time_t before = 0;
    for (lawn_time_t span = 1; span < longest; span += 1 + span / 97) {
        const lawn_time_t coded = span_of(code_of(span));
        ASSERT_GE(coded, span);
        ASSERT_LT(coded - span, 1 + span / 1000);
        ASSERT_GT(code_of(span), code_of(before));
        ASSERT_EQ(code_of(coded), code_of(span));
        before = coded;
    }
    EXPECT_EQ(code_of(0), 0);
    EXPECT_EQ(span_of(code_of(longest)), longest);
    EXPECT_LT(code_of(longest - 1), code_of(longest) + 1);
}

class Errors : public testing::Test
{
protected:
    // A message that was sent just before, and each in its own episode.
    void add(lawn_time_t error)
    {
        now_ += 100;
        add_error(errors_, &until_, error, now_, now_);
    }

    uint16_t errors_[4] = {};
    lawn_time_t until_ = 0;
    lawn_time_t now_ = 0;
};

TEST_F(Errors, TheTwoGreatestAreKept)
{
    for (const lawn_time_t error : {5, 9, 7, 3, 8}) {
        add(error);
    }
    EXPECT_EQ(errors_[greatest], 9);
    EXPECT_EQ(errors_[second], 8);
}

TEST_F(Errors, AnEpisodeCountsOnce)
{
    add(9);
    // Sent before the first great one had arrived: the same pause.
    add_error(errors_, &until_, 20, until_ - 1, until_ + 5);
    add_error(errors_, &until_, 15, until_ - 1, until_ + 6);
    EXPECT_EQ(errors_[greatest], 20);
    EXPECT_EQ(errors_[second], 0);
    add_error(errors_, &until_, 15, until_, until_ + 15);
    EXPECT_EQ(errors_[second], 15);
}

TEST_F(Errors, AFullWindowGivesItsSecondAndAnEighth)
{
    add(1600);
    add(1200);
    begin_window(errors_);
    add(400);
    add(1000);
    EXPECT_EQ(tail_of(errors_, true, 1), 1200U + 1200 / 8);
    add(1500); // greater than the old second, less than the old greatest
    EXPECT_EQ(tail_of(errors_, true, 1), 1500U + 1500 / 8);
    begin_window(errors_);
    EXPECT_EQ(tail_of(errors_, true, 1), 1000U + 1000 / 8);
}

TEST_F(Errors, BeforeAWindowIsFullALoneErrorCountsUpToFourSrtt)
{
    EXPECT_EQ(tail_of(errors_, false, 8 * 100), 0U);
    add(200);
    EXPECT_EQ(tail_of(errors_, false, 8 * 100), 250U);
    add(1000);
    EXPECT_EQ(tail_of(errors_, false, 8 * 100), 400U);
    add(800);
    EXPECT_EQ(tail_of(errors_, false, 8 * 100), 1000U);
}

TEST(Rto, ClampsToTheBounds)
{
    EXPECT_EQ(rto_clamp(5, 10, 20), 10U);
    EXPECT_EQ(rto_clamp(15, 10, 20), 15U);
    EXPECT_EQ(rto_clamp(25, 10, 20), 20U);
}

TEST(Rto, BacksOffUpToTheLimit)
{
    EXPECT_EQ(rto_back_off(100, 2, 1000), 200U);
    EXPECT_EQ(rto_back_off(600, 2, 1000), 1000U);
    EXPECT_EQ(rto_back_off(1000, 2, 1000), 1000U);
    EXPECT_EQ(rto_back_off(100, 1, 1000), 100U);
    // What is added is rounded up, or this would stay 1 for ever.
    EXPECT_EQ(rto_back_off(1, 1.5, 1000), 2U);
    // The limit may have become less meanwhile.
    EXPECT_EQ(rto_back_off(100, 2, 50), 50U);
}

TEST(Rto, BackOffSaturates)
{
    EXPECT_EQ(rto_back_off(LAWN_TIME_INFINITY / 2 + 1, 2, LAWN_TIME_INFINITY),
              LAWN_TIME_INFINITY);
    EXPECT_EQ(rto_back_off(1, 1e300, LAWN_TIME_INFINITY), LAWN_TIME_INFINITY);
    EXPECT_EQ(rto_back_off(LAWN_TIME_INFINITY - 1, 1.5, LAWN_TIME_INFINITY),
              LAWN_TIME_INFINITY);
    // 2^53 and more: a double is not exact, but the sum stays below the limit.
    EXPECT_LE(
        rto_back_off((lawn_time_t{1} << 60) + 1, 1.25, LAWN_TIME_INFINITY - 1),
        LAWN_TIME_INFINITY - 1);
}

} // namespace
