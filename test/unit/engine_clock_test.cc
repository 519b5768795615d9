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

// What is due by the lawn's time, which may be ahead of the clock, is work.
TEST_F(Engine, ArmSeesWhatIsDueBeforeTheClockDoes)
{
    start_timer(10);
    lawn_timer_t ahead = {};
    lawn_timer_start(lawn_engine_lawn(engine_), &ahead, now_ + 20, 100);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_EQ(pass(), "t");
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_next(engine_), start + 120);
    lawn_engine_stop(engine_, &ahead);
}

} // namespace
