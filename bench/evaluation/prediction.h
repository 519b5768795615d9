// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a program that polls a lawn should measure under a load, from the load's
// parameters alone. No lawn runs, and no two timers meet here.
//
// Population. A timer waits in a TTL queue for its TTL, however many others
// wait: the queue has as many servers as timers, and no timer waits for a
// server. Little's law gives the mean for any arrivals: timers begun per ns,
// multiplied by the mean time that one runs.
//
// Work. A timer is touched when its slot begins, and perhaps again in narrower
// slots; see doc/design.md. One timer alone is followed from slot to slot, with
// its fates, while passes begin at equal distances. Its mean number of touches,
// multiplied by the rate, is the rate of touches. In one unit of time, passes
// take pass_cost each and touches touch_cost each. So the rate of touches gives
// the rate of passes, and this gives the distance again, until both agree.
//
// Lateness. A deadline waits for the pass in which it lies to end, and then for
// the timers that the next advance touches before it. This is a queue with
// vacations (an empty pass is the vacation) and gated service (what comes
// during an advance waits for the next one). Slots that are wider than a pass
// bring their timers in batches, one for each slot that begins. The number of
// timers touched in a pass depends on the length of the pass before, and on
// nothing else: a Markov chain, which is solved for its stationary state.
//
// Bursts. The deadlines of starts that come at a changing rate come at that
// rate, folded with the distribution of the time from start to deadline. The
// lateness is that of each rate, weighted by how many deadlines it has.

#ifndef LAWN_BENCH_EVALUATION_PREDICTION_H
#define LAWN_BENCH_EVALUATION_PREDICTION_H

#include "evaluation/load.h"

#include <array>

namespace evaluation
{

struct Prediction {
    double population = 0;
    std::array<double, most_groups> by_group = {};
    double distinct_ttls = 0; // of running timers, where starts are no bursts
    double touched = 0;       // for each pass
    double late_mean = 0;
    double late_p50 = 0; // NaN, as the other two: bursts are an overload
    double late_p99 = 0;
};

Prediction predict(const Load &load);

// The rate (timers begun per ns) above which due timers become more and more,
// for a load with a budget, whatever its own rate.
double highest_rate(const Load &load);

// The paper's formulas, with a rate of service of 1 / touch_cost. All are for
// one TTL of `ttls`, to each of which comes an equal part of the rate.
namespace paper
{
double population(const Load &load, double ttls);               // (2)
double wait(const Load &load, double ttls);                     // (3)
double batch_wait(const Load &load, double ttls, double batch); // (4)
double buckets(const Load &load);                               // (5)
double timers_per_bucket(double timers, double ttls);           // (6)
double highest_rate(const Load &load, double ttls); // (7), sum over all TTLs
} // namespace paper

} // namespace evaluation

#endif
