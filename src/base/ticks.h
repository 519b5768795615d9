// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of times. None is LAWN_TIME_INFINITY, and sums end there.

#ifndef LAWN_SRC_BASE_TICKS_H
#define LAWN_SRC_BASE_TICKS_H

#include <lawn/time.h>

namespace lawn
{

inline lawn_time_t add_saturating(lawn_time_t a, lawn_time_t b)
{
    return b > LAWN_TIME_INFINITY - a ? LAWN_TIME_INFINITY : a + b;
}

inline lawn_time_t earlier_of(lawn_time_t a, lawn_time_t b)
{
    return a < b ? a : b;
}

inline lawn_time_t later_of(lawn_time_t a, lawn_time_t b)
{
    return a > b ? a : b;
}

} // namespace lawn

#endif
