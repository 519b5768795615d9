// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A path as one run takes it; see route.h.

#include "rto/route.h"

#include <algorithm>

namespace bench::rto
{

namespace
{

// How long a burst of losses lasts in the mean, in round trips.
constexpr double burst_length = 2;

Tick next_multiple(Tick at, Tick interval)
{
    return interval == 0 ? at : (at + interval - 1) / interval * interval;
}

} // namespace

Route::Route(const Variant &variant, Tick round_trip_, double loss_,
             uint64_t seed)
    : path(*variant.path), keeps_order(variant.order == Order::kept),
      round_trip(static_cast<double>(round_trip_)), loss(loss_),
      own_poll(ticks(path.own_poll)), peer_poll(ticks(path.peer_poll)),
      random(seed)
{
}

Tick Route::ticks(double round_trips) const
{
    return static_cast<Tick>(round_trips * round_trip);
}

void Route::begin_event(Tick now)
{
    event = now;
}

Moment Route::moment(Tick now, uint32_t serial) const
{
    const double since = event == never || now < event
                             ? -1
                             : static_cast<double>(now - event) / round_trip;
    return {static_cast<double>(now) / round_trip, since, serial};
}

bool Route::is_out(Tick now) const
{
    return path.outage > 0 && event != never && now >= event &&
           now - event < ticks(path.outage);
}

// A Markov chain of two states (Gilbert and Elliott), by time: the bursts hit
// what is sent then, whether that is a window or one retransmission. The share
// of the time within bursts is `loss`.
bool Route::is_in_burst(Tick now)
{
    const double elapsed = static_cast<double>(now - burst_known_at) /
                           round_trip / (burst_length * (1 - loss));
    const double stays = std::exp(-elapsed);
    in_burst = random.happens(loss + ((in_burst ? 1 : 0) - loss) * stays);
    burst_known_at = now;
    return in_burst;
}

bool Route::loses_data(Tick now)
{
    if (loss <= 0) {
        return false;
    }
    switch (path.loss) {
    case Loss::single:
    case Loss::both:
        return random.happens(loss);
    case Loss::bursts:
        return is_in_burst(now);
    case Loss::first:
        break;
    }
    return false;
}

Tick Route::forward(Tick now, uint32_t serial)
{
    if (loses_data(now) || is_out(now)) {
        return never;
    }
    const double delay = path.delay(random, moment(now, serial));
    const double there = path.back ? delay : delay - .5;
    Tick arrival = next_multiple(now + ticks(there), peer_poll);
    if (keeps_order) {
        arrival = last_forward = std::max(arrival, last_forward);
    }
    return arrival;
}

Tick Route::copy(Tick arrival)
{
    if (path.duplicates <= 0 || !random.happens(path.duplicates)) {
        return never;
    }
    arrival = next_multiple(arrival + ticks(random.uniform() / 10), peer_poll);
    if (keeps_order) {
        arrival = last_forward = std::max(arrival, last_forward);
    }
    return arrival;
}

Tick Route::back(Tick now)
{
    if (is_out(now) ||
        (path.loss == Loss::both && loss > 0 && random.happens(loss))) {
        return never;
    }
    const double delay = path.back ? path.back(random, moment(now, 0)) : .5;
    Tick arrival = now + ticks(delay);
    if (keeps_order) {
        arrival = last_back = std::max(arrival, last_back);
    }
    return arrival;
}

Tick Route::awake(Tick at) const
{
    at = next_multiple(at, own_poll);
    if (path.own_pause > 0 && event != never && at > event) {
        at = std::max(at, event + ticks(path.own_pause));
    }
    return at;
}

} // namespace bench::rto
