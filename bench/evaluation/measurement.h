// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a program that polls a real lawn measures under a load, on virtual time:
// nothing but the costs that the load names takes time. So a measurement
// repeats exactly, and no machine disturbs it.
//
// The program runs pass after pass. A pass reads the clock, does what came in
// since the pass before (starts, stops, pauses and re-arms, each with the time
// at which it came), and advances the lawn. It takes pass_cost, and touch_cost
// for each timer that the advance touches. A callback runs when the timers
// touched before it, and its own, are paid for.

#ifndef LAWN_BENCH_EVALUATION_MEASUREMENT_H
#define LAWN_BENCH_EVALUATION_MEASUREMENT_H

#include "evaluation/load.h"

#include <array>

namespace evaluation
{

struct Measurement {
    double population = 0; // running timers, lawn_count(), mean over time
    std::array<double, most_groups> by_group = {};
    double distinct_ttls = 0;   // of running timers
    double touched = 0;         // timers for each pass
    double fired = 0;           // of them
    double late_mean = 0;       // ns, of callbacks
    double late_p50 = 0;        // ns
    double late_p99 = 0;        // ns
    double overdue_growth = 0;  // by how much of the starts, of the second half
    bool is_consistent = false; // the groups add up to lawn_count(), and
                                // lawn_check() finds the lawn whole
};

// Measures for `length` ns, after the longest TTL and a burst have passed.
Measurement measure(const Load &load, Time length, uint64_t seed);

// The rate of highest_rate(), searched from half of what is expected to half as
// much again: due timers become more, by more than 1 % of the starts.
double measure_highest_rate(Load load, double expected, Time length,
                            uint64_t seed);

} // namespace evaluation

#endif
