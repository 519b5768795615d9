// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How late timers are under a constant rate of touches: the Markov chain of
// prediction.h.

#ifndef LAWN_BENCH_EVALUATION_LATENESS_H
#define LAWN_BENCH_EVALUATION_LATENESS_H

#include <functional>
#include <vector>

namespace evaluation
{

// Timers that one slot brings at once.
struct Batch {
    double every; // ns
    double size;  // mean
};

struct Touches {
    double rate; // per ns, but those that come in batches
    std::vector<Batch> batches;
};

struct Flow {
    // While passes are as long: in longer ones, timers move less often.
    std::function<Touches(double length)> touches;
    bool is_regular; // equal distances; else Poisson
    bool is_fifo;    // the timers of one advance fire by deadline
    double pass_cost;
    double touch_cost;
};

// A distribution of times.
class Lateness
{
public:
    Lateness();

    // Adds the lateness under `flow`, with this weight. Returns false if the
    // flow is more than a program can take.
    bool add(const Flow &flow, double weight);

    double mean() const;
    double quantile(double share) const;

private:
    void add_uniform(double from, double to, double weight);
    void add_pass(const Flow &flow, double length, double weight);

    // The density at multiples of `step`, as differences.
    std::vector<double> differences_;
};

} // namespace evaluation

#endif
