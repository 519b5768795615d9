// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The chain is solved by going from state to state until nothing changes; see
// lateness.h.

#include "evaluation/lateness.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace evaluation
{

namespace
{

constexpr double step = 10; // ns
constexpr size_t steps = 100'000;
constexpr double highest_use = 0.97;
constexpr double negligible = 1e-9;

using Distribution = std::vector<double>; // of a number 0, 1, ...

// Adds `weight` times the distribution of how many come, of `mean` in the mean.
void add_count(Distribution *to, double mean, bool is_regular, double weight)
{
    const double last = static_cast<double>(to->size() - 1);
    if (is_regular) {
        const double least = std::floor(std::min(mean, last - 1));
        const double more = std::min(mean - least, 1.0);
        (*to)[static_cast<size_t>(least)] += weight * (1 - more);
        (*to)[static_cast<size_t>(least) + 1] += weight * more;
        return;
    }
    // Beyond eight standard deviations there is nothing.
    const double spread = 8 * std::sqrt(mean) + 8;
    const double first =
        std::min(std::max(0.0, std::floor(mean - spread)), last);
    const double end = std::min(mean + spread, last);
    double p = std::exp(first * std::log(std::max(mean, 1e-300)) - mean -
                        std::lgamma(first + 1));
    for (size_t n = static_cast<size_t>(first); n <= static_cast<size_t>(end);
         ++n) {
        (*to)[n] += weight * p;
        p *= mean / static_cast<double>(n + 1);
    }
}

// What the pass after one of `length` touches.
Distribution touched_after(const Flow &flow, double length, size_t size)
{
    const Touches touches = flow.touches(length);
    const std::vector<Batch> &batches = touches.batches;
    Distribution all(size);
    for (size_t subset = 0; subset < size_t{1} << batches.size(); ++subset) {
        double mean = touches.rate * length;
        double weight = 1;
        for (size_t i = 0; i < batches.size(); ++i) {
            const double comes = length / batches[i].every;
            const bool is_in = subset >> i & 1;
            mean += is_in ? batches[i].size : 0;
            weight *= is_in ? comes : 1 - comes;
        }
        if (weight > 0) {
            add_count(&all, mean, flow.is_regular, weight);
        }
    }
    return all;
}

double length_of(const Flow &flow, double touched)
{
    return flow.pass_cost + touched * flow.touch_cost;
}

// How long passes are in the mean: after one of that length, another follows.
double mean_length(const Flow &flow)
{
    double length = flow.pass_cost;
    for (unsigned i = 0; i < 200; ++i) {
        const Touches touches = flow.touches(length);
        double rate = touches.rate;
        for (const Batch &batch : touches.batches) {
            rate += batch.size / batch.every;
        }
        length = flow.pass_cost /
                 (1 - std::min(rate * flow.touch_cost, highest_use + 0.01));
    }
    return length;
}

// A number that passes hardly ever touch.
size_t most_touched(const Flow &flow, double mean)
{
    const Touches touches = flow.touches(mean);
    double most = touches.rate * mean;
    for (const Batch &batch : touches.batches) {
        most += 2 * batch.size;
    }
    return static_cast<size_t>(3 * most + 12 * std::sqrt(most)) + 24;
}

// How many timers passes touch, in the stationary state.
Distribution stationary(const Flow &flow, size_t size)
{
    std::vector<Distribution> rows;
    for (size_t n = 0; n < size; ++n) {
        rows.push_back(
            touched_after(flow, length_of(flow, static_cast<double>(n)), size));
    }
    Distribution state(size);
    state[0] = 1;
    for (unsigned i = 0; i < 400; ++i) {
        Distribution next(size);
        for (size_t n = 0; n < size; ++n) {
            for (size_t m = 0; state[n] > negligible && m < size; ++m) {
                next[m] += state[n] * rows[n][m];
            }
        }
        double sum = 0;
        for (const double p : next) {
            sum += p;
        }
        double change = 0;
        for (size_t n = 0; n < size; ++n) {
            next[n] /= sum;
            change += std::fabs(next[n] - state[n]);
        }
        state.swap(next);
        if (change < 1e-6) {
            break;
        }
    }
    return state;
}

} // namespace

Lateness::Lateness() : differences_(steps + 1)
{
}

bool Lateness::add(const Flow &flow, double weight)
{
    const double length = mean_length(flow);
    if (flow.pass_cost / length < 1 - highest_use) {
        return false;
    }
    const Distribution touched = stationary(flow, most_touched(flow, length));
    double mean = 0;
    for (size_t n = 0; n < touched.size(); ++n) {
        mean += touched[n] * length_of(flow, static_cast<double>(n));
    }
    // A deadline lies in a pass as often as the pass is long.
    for (size_t n = 0; n < touched.size(); ++n) {
        const double pass = length_of(flow, static_cast<double>(n));
        if (touched[n] > negligible) {
            add_pass(flow, pass, weight * touched[n] * pass / mean);
        }
    }
    return true;
}

// Lateness of a deadline that lies in a pass of this length: the rest of the
// pass, the timers touched before, and its own touch. The timers of a wide slot
// are taken in turn with those of narrow ones, and there are few in these, so
// only the latter are before it.
void Lateness::add_pass(const Flow &flow, double length, double weight)
{
    constexpr unsigned parts = 32;
    const double rate = flow.touches(length).rate;
    const double others = rate * length;
    const size_t size =
        static_cast<size_t>(others + 8 * std::sqrt(others)) + 12;
    if (flow.is_fifo) {
        for (unsigned i = 0; i < parts; ++i) {
            const double from = length * i / parts;
            const double to = length * (i + 1) / parts;
            Distribution before(size);
            add_count(&before, rate * (length - (from + to) / 2),
                      flow.is_regular, weight / parts);
            for (size_t k = 0; k < size; ++k) {
                const double work =
                    static_cast<double>(k + 1) * flow.touch_cost;
                add_uniform(from + work, to + work, before[k]);
            }
        }
        return;
    }
    Distribution count(size);
    add_count(&count, others, flow.is_regular, weight);
    // Any place among them is as likely as any other.
    double at_least = 0;
    for (size_t k = size; k-- > 0;) {
        at_least += count[k] / static_cast<double>(k + 1);
        const double work = static_cast<double>(k + 1) * flow.touch_cost;
        add_uniform(work, work + length, at_least);
    }
}

void Lateness::add_uniform(double from, double to, double weight)
{
    const auto place = [](double time) {
        return std::min(static_cast<size_t>(std::lround(time / step)), steps);
    };
    const size_t first = place(from);
    const size_t last = std::max(place(to), first + 1);
    if (last <= steps) {
        const double density = weight / static_cast<double>(last - first);
        differences_[first] += density;
        differences_[last] -= density;
    }
}

double Lateness::mean() const
{
    double density = 0;
    double sum = 0;
    double all = 0;
    for (size_t i = 0; i < steps; ++i) {
        density += differences_[i];
        all += density;
        sum += density * (static_cast<double>(i) + 0.5) * step;
    }
    return sum / all;
}

double Lateness::quantile(double share) const
{
    double density = 0;
    double all = 0;
    for (size_t i = 0; i < steps; ++i) {
        density += differences_[i];
        all += density;
    }
    double sum = 0;
    density = 0;
    for (size_t i = 0; i < steps; ++i) {
        density += differences_[i];
        sum += density;
        if (sum >= share * all) {
            return (static_cast<double>(i) + 0.5) * step;
        }
    }
    return NAN;
}

} // namespace evaluation
