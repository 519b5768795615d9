// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The mean life of one timer under a load: how long it runs, and how often it
// is touched in slots of each class. Passes begin at equal distances.

#ifndef LAWN_BENCH_EVALUATION_JOURNEY_H
#define LAWN_BENCH_EVALUATION_JOURNEY_H

#include "evaluation/load.h"

#include <array>
#include <vector>

namespace evaluation
{

constexpr unsigned classes = 21;

// The width of a slot of the class: 8 to the power of the class.
double slot_width(unsigned c);

struct Journey {
    double runs = 0;                               // ns
    std::array<double, most_groups> by_group = {}; // of it
    double expires = 0;                            // share of the lives
    double touched = 0;                            // times
    std::array<double, classes> touched_in = {};   // slots of each class
    // By group and by phase of burst_period: share of lives whose deadline
    // comes as much later than the start, modulo burst_period.
    std::vector<std::vector<double>> expires_after;
};

constexpr unsigned phases = 64;

// By phase, the rate of the deadlines that `after` gives (one of
// expires_after), with a mean of 1.
std::vector<double> deadline_rates(const Load &load,
                                   const std::vector<double> &after);

// Of a load, for any distance of passes.
class Journeys
{
public:
    explicit Journeys(const Load &load);

    // `distance` in ns, at least pass_cost.
    Journey at(double distance) const;

private:
    double pass_cost_;
    std::vector<Journey> at_; // by distance, each the root of 2 times the last
};

} // namespace evaluation

#endif
