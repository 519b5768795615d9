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

namespace bench
{

struct Flow {
    Time mean_ttl;
    double starts_per_usec;
    double stops_per_usec; // of all timers together
};

// `distinct` of them; 0: each start one of its own.
Ttls ttls_of(const Flow &flow, size_t distinct);

Time longest_of(const Flow &flow);

// False when it takes too long.
bool populate(Arena &arena, const Load &load, const Flow &flow,
              const Ttls &ttls);

} // namespace bench

#endif
