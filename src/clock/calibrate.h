// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How many ticks a second has. The rate is measured, or announced by the
// machine (announced.h) and checked. The clocks are parameters, so that tests
// can run all of it on virtual clocks.

#ifndef LAWN_SRC_CLOCK_CALIBRATE_H
#define LAWN_SRC_CLOCK_CALIBRATE_H

#include <lawn/time.h>

namespace lawn
{

// The counter, and the clock in nanoseconds that it is measured against.
// Readings must be ordered: `counter` is read neither before what precedes it
// in the program nor after what follows it.
struct Clocks {
    uint64_t (*counter)(void *arg);
    uint64_t (*reference)(void *arg);
    void *arg;
};

struct Rate {
    lawn_clock_method_t method;
    double ticks_per_sec; // 0: unknown
    double error_ppm;
};

// Measures the counter over at least `span_ns` of busy waiting. Returns false
// if the counter does not run evenly with the reference: one of the two stands
// still, goes back or steps.
bool calibrate(const Clocks &clocks, uint64_t span_ns, Rate *rate);

// Gets the first of `count` announced rates that a short calibration does not
// contradict. If there is none, gets the result of a long calibration. Returns
// false if calibrate() does.
bool choose_rate(const Rate *announced, unsigned count, const Clocks &clocks,
                 Rate *rate);

} // namespace lawn

#endif
