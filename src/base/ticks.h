// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of times. LAWN_TIME_INFINITY is never, and sums saturate there.

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

// For assertions: returns whether a caller may have meant this span. The last
// 2^32 ticks below INFINITY are negative differences, such as (lawn_time_t)-5:
// two times were subtracted the wrong way round.
inline bool is_span(lawn_time_t span)
{
    return span < LAWN_TIME_INFINITY - (lawn_time_t{1} << 32) ||
           span == LAWN_TIME_INFINITY;
}

} // namespace lawn

#endif
