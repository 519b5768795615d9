// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Conversions between ticks and seconds. Rounding up is exact, because a
// product that was rounded down would shorten a timeout. The product of two
// doubles has 106 significant bits, and no floating-point type holds these on
// every machine. So the conversion to ticks uses 128-bit integers. Nothing here
// calls the maths library.

#include "clock/convert.h"

#include "base/base.h"

#include <string.h>

namespace lawn
{
namespace
{

__extension__ typedef unsigned __int128 uint128;

// A finite positive double is exactly mantissa * 2^exponent.
struct Parts {
    uint64_t mantissa; // below 2^53
    int exponent;
};

Parts parts_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    const int exponent = static_cast<int>(bits >> 52);
    if (exponent == 0) {
        return {fraction, -1074};
    }
    return {fraction | uint64_t{1} << 52, exponent - 1075};
}

constexpr double two_to_65 = 36893488147419103232.0;

} // namespace

lawn_time_t ticks_from(double value, uint64_t units_per_sec,
                       double ticks_per_sec)
{
    if (!(value > 0)) {
        return 0;
    }
    // This is only a bound, so that the product below fits: 2^65 * 1e9 is below
    // 2^95. Two mantissas of 53 bits are above that, so its exponent is below
    // 0.
    const double scale = ticks_per_sec / static_cast<double>(units_per_sec);
    if (!(value * scale < two_to_65)) {
        return LAWN_TIME_INFINITY;
    }

    const Parts a = parts_of(value);
    const Parts b = parts_of(ticks_per_sec);
    uint128 product = uint128{a.mantissa} * b.mantissa;
    const int exponent = a.exponent + b.exponent;
    LAWN_ASSERT(exponent < 0);
    bool inexact = false;
    if (exponent > -128) {
        const uint128 whole = product >> -exponent;
        inexact = whole << -exponent != product;
        product = whole;
    } else {
        inexact = product != 0;
        product = 0;
    }

    const uint128 ticks = product / units_per_sec;
    inexact = inexact || ticks * units_per_sec != product;
    if (ticks >= LAWN_TIME_INFINITY) {
        return LAWN_TIME_INFINITY;
    }
    return static_cast<lawn_time_t>(ticks) + (inexact ? 1 : 0);
}

double ticks_to(lawn_time_t ticks, uint64_t units_per_sec, double ticks_per_sec)
{
    // A long double holds every tick count exactly. So a span that was rounded
    // up on its way to ticks does not come back smaller than it was.
    return static_cast<double>(static_cast<long double>(ticks) *
                               static_cast<long double>(units_per_sec) /
                               ticks_per_sec);
}

} // namespace lawn

using namespace lawn;

lawn_time_t lawn_time_from_sec(double sec)
{
    return ticks_from(sec, 1, lawn_time_sec_value());
}

lawn_time_t lawn_time_from_msec(double msec)
{
    return ticks_from(msec, 1000, lawn_time_sec_value());
}

lawn_time_t lawn_time_from_usec(double usec)
{
    return ticks_from(usec, 1000000, lawn_time_sec_value());
}

lawn_time_t lawn_time_from_nsec(double nsec)
{
    return ticks_from(nsec, 1000000000, lawn_time_sec_value());
}

double lawn_time_to_sec(lawn_time_t ticks)
{
    return ticks_to(ticks, 1, lawn_time_sec_value());
}

double lawn_time_to_msec(lawn_time_t ticks)
{
    return ticks_to(ticks, 1000, lawn_time_sec_value());
}

double lawn_time_to_usec(lawn_time_t ticks)
{
    return ticks_to(ticks, 1000000, lawn_time_sec_value());
}

double lawn_time_to_nsec(lawn_time_t ticks)
{
    return ticks_to(ticks, 1000000000, lawn_time_sec_value());
}
