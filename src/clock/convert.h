// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Converts ticks from and to other units, for any rate. lawn_time_from_*() and
// lawn_time_to_*() do this with the rate of this process's clock.

#ifndef LAWN_SRC_CLOCK_CONVERT_H
#define LAWN_SRC_CLOCK_CONVERT_H

#include <lawn/time.h>

namespace lawn
{

// Returns the least number of ticks that is not below `value` / `units_per_sec`
// seconds at `ticks_per_sec` (positive and finite). Returns LAWN_TIME_INFINITY
// if no smaller number is enough, and 0 for negative values and NaN.
// `units_per_sec` is at most 1e9.
lawn_time_t ticks_from(double value, uint64_t units_per_sec,
                       double ticks_per_sec);

// Returns the span of `ticks` in units. ticks_to(ticks_from(x)) is never below
// x, unless ticks_from() saturates.
double ticks_to(lawn_time_t ticks, uint64_t units_per_sec,
                double ticks_per_sec);

} // namespace lawn

#endif
