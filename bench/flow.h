// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A steady flow is begun as if it had lasted for ever: the timers that run at
// time 0 were started in the order of time before it, with polls in between,
// so that none is younger, older or less worked on than in the long run. TTLs
// are within half of their mean, either way. The mean goes with the number of
// timers, such that one expires in each microsecond of virtual time: a wheel
// turns about one slot for each timer that it fires.

#ifndef LAWN_BENCH_FLOW_H
#define LAWN_BENCH_FLOW_H

#include "arena.h"

#include <optional>

namespace bench
{

struct Flow {
    Time mean_ttl;
    double starts_per_usec;
    double stops_per_usec; // of all timers together
};

// In each microsecond one timer expires, and is started anew.
Flow expiring(size_t timers);

// A stop in every microsecond ends half of the lives when the TTL is 0.7 times
// the number of timers: exp(-0.7) is one half.
Flow living(size_t timers);

// A contender in the flow, with load.ttls distinct TTLs; 0: each start one of
// its own.
class Steady
{
public:
    Steady(const Contender &contender, const Load &load, const Flow &flow);

    // First. Nothing when all timers run; else what a workload returns that
    // cannot be measured.
    std::optional<Result> begin();

    Ttls ttls;
    Arena arena;

private:
    const Load load_;
    const Flow flow_;
};

} // namespace bench

#endif
