// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What one contender costs on one path: without loss, and with it.

#ifndef LAWN_BENCH_RTO_MEASURE_H
#define LAWN_BENCH_RTO_MEASURE_H

#include "rto/flow.h"

namespace bench::rto
{

// What all cells have in common.
struct Plan {
    std::vector<const Kind *> kinds;
    Setting setting; // with the loss; the seed is the first one
    unsigned seeds = 10;
    bool needs_oracle = true; // finding it takes longer than any contender
};

// Means over the seeds, if not said otherwise.
struct Figures {
    // Per 10,000 messages.
    double spurious = 0;       // without loss
    double spurious_lossy = 0; // with it, as all that follows
    double asks = 0;
    double p50 = 0; // stall of a lost message, in round trips
    double p99 = 0;
    double took = 0;    // the run, in round trips
    double packets = 0; // per message
    double rto = 0;     // of the oracle, in round trips
    // Of all seeds, with loss or without it.
    double attempts = 0; // the most retransmissions with nothing heard
    bool is_stuck = false;
};

// A path, a round trip and a window.
struct Cell {
    const Variant *variant;
    Tick round_trip;
    uint32_t window;
    std::vector<Figures> figures; // of each contender of the plan
    double oracle_p50 = 0;        // if the plan needs it
};

// Runs all contenders on a path. `flow` is memory that is used again.
void measure(const Plan &plan, Flow &flow, Cell &cell);

// The stall of the first loss, in round trips.
struct FirstStall {
    double p50 = 0;
    double p99 = 0;
};

// New connections of lawn/conn.h on a path.
struct FirstCell {
    const Variant *variant;
    Tick round_trip;
    uint32_t window;
    FirstStall alone;     // of those that know nothing
    FirstStall inherited; // of those that know what another one has measured
    FirstStall asking;    // of those that may also ask the peer
};

// Runs one connection by the setting of the plan, and then so many new ones,
// each of which loses its first message. They begin within 2,000 round trips
// after it, for the path is still the one that was measured.
void measure_first(const Plan &plan, unsigned connections, Flow &flow,
                   FirstCell &cell);

} // namespace bench::rto

#endif
