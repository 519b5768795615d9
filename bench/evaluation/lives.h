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

    // First; see Steady.
    std::optional<Result> begin();

    // Until the watch is over.
    void run(Stopwatch &watch, Latency &latency);

private:
    const size_t timers_;
    const unsigned burst_;
    Steady steady_;
};

} // namespace bench

#endif
