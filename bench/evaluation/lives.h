// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers that live and die in a steady flow, with each operation measured.

#ifndef LAWN_BENCH_EVALUATION_LIVES_H
#define LAWN_BENCH_EVALUATION_LIVES_H

#include "evaluation/latency.h"
#include "flow.h"

namespace bench
{

// Per microsecond a stop, two starts, an expiry and a tick; those of `burst`
// microseconds at once, with one tick.
class Lives
{
public:
    Lives(const Contender &contender, const Load &load, unsigned burst);

    // First; false if the contender cannot be told these TTLs.
    bool can_declare();

    // Then; false when it takes too long.
    bool begin();

    // Until the watch is over.
    void run(Stopwatch &watch, Latency &latency);

private:
    const Flow flow_;
    Ttls ttls_;
    Arena arena_;
    const Load load_;
    const unsigned burst_;
};

} // namespace bench

#endif
