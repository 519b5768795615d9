// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads. Each runs one contender on virtual time, 1 tick = 1 ns, and
// measures the processor's time for it. A contender with a clock of its own
// takes part in those whose timers need not expire before the measuring ends,
// and in those where all expire after one wait.

#ifndef LAWN_BENCH_WORKLOADS_H
#define LAWN_BENCH_WORKLOADS_H

#include "contender.h"

#include <cmath>

namespace bench
{

// Of the schemes that have one: 1.024 us, where microseconds are wanted and a
// power of two is fastest.
constexpr Time contender_tick = 1024;

struct Load {
    size_t timers;
    size_t ttls; // distinct ones, where the workload has a choice
    uint64_t seed;
    double limit_sec; // of measuring; see also patience()
};

// What one run has measured, in the workload's unit. Nothing (NaN) when setting
// up took too long.
class Result
{
public:
    Result() = default;

    Result(double all) : figure(all), mean(all)
    {
    }

    // With more to say than one figure.
    Result(double which, double mean_of_it, double p99_of_it)
        : figure(which), mean(mean_of_it), p99(p99_of_it)
    {
    }

    // Where the contender, or this machine, cannot tell.
    static Result unavailable()
    {
        Result result;
        result.is_available = false;
        return result;
    }

    explicit operator bool() const
    {
        return !std::isnan(figure);
    }

    double operator*() const
    {
        return figure;
    }

    double figure = NAN;
    double mean = NAN;
    double p50 = NAN;
    double p99 = NAN;
    double p999 = NAN;
    double most = NAN; // timers in one advance
    // Of single operations, where the figure is their mean.
    double deviation = NAN; // standard
    double longest = NAN;
    double left_out = NAN; // operations, see evaluation/latency.h
    bool is_available = true;
};

struct Workload {
    const char *name;
    const char *unit;
    const char *what;
    Result (*run)(const Contender &contender, const Load &load);
    bool needs_virtual_time; // its timers expire one after the other
};

const std::vector<Workload> &workloads();

// The lives of load.timers with load.ttls distinct TTLs, begun and ended one by
// one, as many by a stop as by expiry; see expiry.cc.
Result life_cycle(const Contender &contender, const Load &load);

} // namespace bench

#endif
