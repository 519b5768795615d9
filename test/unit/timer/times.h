// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Spans and times that several of these tests calculate with, in ticks.

#ifndef LAWN_TEST_UNIT_TIMER_TIMES_H
#define LAWN_TEST_UNIT_TIMER_TIMES_H

#include <lawn/timer.h>

namespace lawn_test
{

constexpr lawn_time_t ttl = 1'000'000;
constexpr lawn_time_t second = 2'300'000'000; // of a 2.3 GHz counter
constexpr lawn_time_t end_of_time = LAWN_TIME_INFINITY;
constexpr lawn_time_t last_time = LAWN_TIME_INFINITY - 2; // that comes

} // namespace lawn_test

#endif // LAWN_TEST_UNIT_TIMER_TIMES_H
