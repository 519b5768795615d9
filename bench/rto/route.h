// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A path as one run takes it: when what is sent arrives, if at all.

#ifndef LAWN_BENCH_RTO_ROUTE_H
#define LAWN_BENCH_RTO_ROUTE_H

#include "rto/contender.h"
#include "rto/path.h"

namespace bench::rto
{

class Route
{
public:
    Route(const Variant &variant, Tick round_trip, double loss, uint64_t seed);

    // The event of the path, which comes once.
    void begin_event(Tick now);

    // When a packet that the program sends now is at the peer, and has been
    // seen there; or never.
    Tick forward(Tick now, uint32_t serial);

    // When the peer's packet is at the program; or never.
    Tick back(Tick now);

    // When the copy of a packet arrives that was forwarded last; never if there
    // is none.
    Tick copy(Tick arrival);

    // The first time from `at` on at which the program runs.
    Tick awake(Tick at) const;

    Tick ticks(double round_trips) const;

private:
    Moment moment(Tick now, uint32_t serial) const;
    bool loses_data(Tick now);
    bool is_in_burst(Tick now);
    bool is_out(Tick now) const;

    const Path &path;
    const bool keeps_order;
    const double round_trip;
    const double loss;
    const Tick own_poll;
    const Tick peer_poll;
    Random random;
    Tick event = never;
    Tick last_forward = 0;
    Tick last_back = 0;
    bool in_burst = false;
    Tick burst_known_at = 0;
};

} // namespace bench::rto

#endif
