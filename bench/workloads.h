// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads. Each runs one contender on virtual time, 1 tick = 1 ns, and
// measures the processor's time for it.

#ifndef LAWN_BENCH_WORKLOADS_H
#define LAWN_BENCH_WORKLOADS_H

#include "contender.h"

#include <optional>

namespace bench
{

struct Load {
    size_t timers;
    size_t ttls; // distinct ones, where the workload has a choice
    uint64_t seed;
    double limit_sec; // of measuring, and of setting up
};

// The figure, in the workload's unit; nothing if setting up took too long.
using Result = std::optional<double>;

struct Workload {
    const char *name;
    const char *unit;
    const char *what;
    Result (*run)(const Contender &contender, const Load &load);
};

const std::vector<Workload> &workloads();

// One timer's life among load.timers, with load.ttls distinct TTLs and starts
// spread over time: started, in half of the cases stopped, else expired.
Result life_cycle(const Contender &contender, const Load &load);

} // namespace bench

#endif
