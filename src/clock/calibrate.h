// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How many ticks are a second: measured, or announced by the machine and
// checked. The clocks are parameters, so that tests run all of it on virtual
// ones.

#ifndef LAWN_SRC_CLOCK_CALIBRATE_H
#define LAWN_SRC_CLOCK_CALIBRATE_H

#include <lawn/time.h>

namespace lawn
{

// The counter, and the clock in nanoseconds that it is measured against.
// Readings are ordered: `counter` neither before what precedes it in the
// program nor after what follows.
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

// Measures the counter over at least `span_ns` of busy waiting. False when it
// does not run evenly with the reference: it, or the reference, stands still,
// goes back or steps.
bool calibrate(const Clocks &clocks, uint64_t span_ns, Rate *rate);

// The first of `count` announced rates that a short calibration does not
// contradict, else the result of a long one. False as calibrate().
bool choose_rate(const Rate *announced, unsigned count, const Clocks &clocks,
                 Rate *rate);

} // namespace lawn

#endif
