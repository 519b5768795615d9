// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Calibration by bracketed readings. The reference is read between two readings
// of the counter. Of several such brackets the tightest is kept, because the
// wider ones were interrupted. Two brackets far apart give the rate. Half the
// sum of their widths bounds its error, whatever happened in between: a process
// that is descheduled there only measures for longer. Other loops often read
// once at each end. Their error is as long as whatever interrupts a reading.
//
// A third bracket half-way shows whether the counter runs evenly. If the
// counter has stepped, or was read on two processors that disagree, the two
// halves have different rates.

#include "clock/calibrate.h"

namespace lawn
{
namespace
{

constexpr unsigned brackets_per_reading = 16;
constexpr unsigned attempts = 4;

// Brackets this tight need no second attempt. If clock_gettime() is a system
// call, a bracket takes a few hundred nanoseconds.
constexpr double good_brackets_ns = 500;

// If the rates of the two halves differ by more than this, the counter is no
// clock (a step of a microsecond in 10 ms is 100 ppm). A smaller difference may
// come from a reference that is being slewed.
constexpr double uneven_limit_ppm = 100;

// A wrong announced rate is wrong by per cents (the crystal is not the one in
// the manual). A correct crystal is within 100 ppm.
constexpr double announced_tolerance_ppm = 1000;

constexpr uint64_t check_span_ns = 2000000;
constexpr uint64_t full_span_ns = 20000000;

struct Reading {
    uint64_t counter;
    uint64_t width; // `reference` was read within this much after `counter`
    uint64_t reference;
    uint64_t grain; // the counter goes in steps of this many ticks
};

struct Slope {
    double ticks_per_sec;
    double brackets_ns; // the span's uncertainty by the brackets' widths
    double uneven_ppm;  // the halves' difference beyond their own errors
    double error_ppm;   // from all of these and the clocks' resolution
};

double distance_ppm(double a, double b)
{
    return (a < b ? b - a : a - b) / b * 1e6;
}

bool read_clocks(const Clocks &clocks, Reading *best)
{
    bool found = false;
    uint64_t least_step = UINT64_MAX;
    for (unsigned i = 0; i < brackets_per_reading; ++i) {
        const uint64_t before = clocks.counter(clocks.arg);
        const uint64_t reference = clocks.reference(clocks.arg);
        const uint64_t after = clocks.counter(clocks.arg);
        if (after < before) {
            continue;
        }
        const uint64_t width = after - before;
        if (width > 0 && width < least_step) {
            least_step = width;
        }
        if (!found || width < best->width) {
            *best = {before, width, reference, 1};
            found = true;
        }
    }
    // If two readings are equal, the counter goes in steps. A step may be more
    // than one tick: the rate that an architecture prescribes may be higher
    // than the rate at which the hardware advances.
    if (found && best->width == 0 && least_step != UINT64_MAX) {
        best->grain = least_step;
    }
    return found;
}

bool wait_until(const Clocks &clocks, uint64_t from, uint64_t ns)
{
    // The number of readings is limited, so that a reference that stands still
    // does not hang the caller. No clock is read in less than a nanosecond.
    for (uint64_t i = 0; i < ns; ++i) {
        const uint64_t now = clocks.reference(clocks.arg);
        if (now < from) {
            return false;
        }
        if (now - from >= ns) {
            return true;
        }
    }
    return false;
}

bool slope_between(const Reading &from, const Reading &to, Slope *slope)
{
    if (to.counter <= from.counter || to.reference <= from.reference) {
        return false;
    }
    // From the middle of one bracket to the middle of the other.
    const double ticks =
        static_cast<double>(to.counter - from.counter) +
        (static_cast<double>(to.width) - static_cast<double>(from.width)) / 2;
    if (ticks <= 0) {
        return false;
    }
    const double ns = static_cast<double>(to.reference - from.reference);
    const double half_widths =
        (static_cast<double>(to.width) + static_cast<double>(from.width)) / 2;
    slope->ticks_per_sec = ticks / ns * 1e9;
    slope->brackets_ns = half_widths / ticks * ns;
    slope->uneven_ppm = 0;
    const auto grain =
        static_cast<double>(from.grain < to.grain ? to.grain : from.grain);
    slope->error_ppm = (half_widths + grain) / ticks * 1e6 + 1e6 / ns;
    return true;
}

bool measure(const Clocks &clocks, uint64_t span_ns, Slope *slope)
{
    const uint64_t half = (span_ns + 1) / 2;
    Reading begin, middle, end;
    Slope first, second;
    if (!read_clocks(clocks, &begin) ||
        !wait_until(clocks, begin.reference, half) ||
        !read_clocks(clocks, &middle) ||
        !wait_until(clocks, middle.reference, half) ||
        !read_clocks(clocks, &end) || !slope_between(begin, middle, &first) ||
        !slope_between(middle, end, &second) ||
        !slope_between(begin, end, slope)) {
        return false;
    }
    const double apart =
        distance_ppm(first.ticks_per_sec, second.ticks_per_sec);
    const double may_err = first.error_ppm + second.error_ppm;
    if (apart > may_err) {
        slope->uneven_ppm = apart - may_err;
        slope->error_ppm += apart;
    }
    return slope->uneven_ppm <= uneven_limit_ppm;
}

} // namespace

bool calibrate(const Clocks &clocks, uint64_t span_ns, Rate *rate)
{
    bool found = false;
    for (unsigned i = 0; i < attempts; ++i) {
        Slope slope;
        if (!measure(clocks, span_ns, &slope)) {
            continue;
        }
        if (!found || slope.error_ppm < rate->error_ppm) {
            *rate = {LAWN_CLOCK_BY_CALIBRATION, slope.ticks_per_sec,
                     slope.error_ppm};
            found = true;
        }
        if (slope.brackets_ns <= good_brackets_ns && slope.uneven_ppm == 0) {
            break;
        }
    }
    return found;
}

bool choose_rate(const Rate *announced, unsigned count, const Clocks &clocks,
                 Rate *rate)
{
    Rate check = {LAWN_CLOCK_BY_CALIBRATION, 0, 0};
    for (unsigned i = 0; i < count; ++i) {
        if (!(announced[i].ticks_per_sec > 0)) {
            continue;
        }
        if (check.ticks_per_sec == 0 &&
            !calibrate(clocks, check_span_ns, &check)) {
            break;
        }
        const double distance =
            distance_ppm(announced[i].ticks_per_sec, check.ticks_per_sec);
        if (distance > announced_tolerance_ppm + check.error_ppm) {
            continue;
        }
        *rate = announced[i];
        // If the two differ by more than their errors allow, it is unknown
        // which of them is right.
        if (distance > check.error_ppm + rate->error_ppm) {
            rate->error_ppm = distance + check.error_ppm;
        }
        return true;
    }
    return calibrate(clocks, full_span_ns, rate);
}

} // namespace lawn
