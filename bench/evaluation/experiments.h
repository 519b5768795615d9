// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The experiments of the Lawn paper's section VII; see evaluate.cc. Those that
// are declared with a load run one contender on virtual time and measure each
// operation by itself (latency.h). They throw std::runtime_error when the
// contender does not do what it should.

#ifndef LAWN_BENCH_EVALUATION_EXPERIMENTS_H
#define LAWN_BENCH_EVALUATION_EXPERIMENTS_H

#include "table.h"

namespace bench
{

// This library's shared timers, as one thread uses them.
Contender lawn_shared();

// All timers are started, and then all are stopped, in a random order: one half
// of it is measured.
Result start_each(const Contender &contender, const Load &load);
Result stop_each(const Contender &contender, const Load &load);

// A tick each microsecond, in which one timer expires on average. Only the tick
// is measured, and not the restart of what has expired.
Result tick_each(const Contender &contender, const Load &load);

// The lives of timers: per microsecond a stop, two starts, an expiry and a
// tick, each measured by itself, and all in one distribution. With `burst`, the
// operations of 64 us come at once, and then one tick.
Result live(const Contender &contender, const Load &load, bool burst);

// What the long run consists of.
struct LongRun {
    size_t timers;
    unsigned windows;
    double window_sec; // for each contender
    uint64_t seed;
};

// All contenders live side by side and take turns in each window. Prints how
// latency and memory change from the first windows to the last, and returns the
// latency by window.
Table run_for_long(const LongRun &run,
                   const std::vector<const Contender *> &contenders);

// What ratios of `cell` divide by: the median of `base`. NaN if one of them has
// too few repetitions for a ratio.
constexpr size_t least_repetitions = 5;
double divisor(const Cell &cell, const Cell &base);

// For each column of a table of latencies, the contenders with their
// distributions.
void print_distributions(const Table &table);

// A row of it, and what stands above; all in nanoseconds.
void print_distribution_head(const char *what, const char *baseline);
void print_distribution(const char *name, const Cell &cell, double baseline);

} // namespace bench

#endif
