// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The beginning of a steady flow; see flow.h.

#include "flow.h"

#include <cmath>

namespace bench
{

namespace
{

Time longest_of(const Flow &flow)
{
    return flow.mean_ttl / 2 + flow.mean_ttl;
}

// False when it takes too long.
bool populate(Arena &arena, const Load &load, const Flow &flow,
              const Ttls &ttls)
{
    const std::vector<uint32_t> &order = shuffled(load.timers, load.seed);
    const auto begin = Clock::now();
    const Time zero = arena.now + longest_of(flow);
    const double stop_rate = flow.stops_per_usec / usec /
                             static_cast<double>(load.timers); // of one, per ns
    const double spacing = usec / flow.starts_per_usec;
    size_t running = 0;
    size_t turn = 0;
    for (double age = static_cast<double>(longest_of(flow));
         age > 0 && running < order.size(); age -= spacing) {
        arena.now = zero - static_cast<Time>(age);
        const Time ttl = ttls.at(arena.random());
        const bool is_stopped =
            arena.random.share() > std::exp(-stop_rate * age);
        if (static_cast<double>(ttl) > age && !is_stopped) {
            arena.start(order[running++], ttl);
        }
        arena.advance_and_restart(ttls);
        if (++turn % 256 == 0 && seconds_since(begin) > patience(load)) {
            return false;
        }
    }
    arena.now = zero;
    while (running < order.size()) {
        arena.start(order[running++], ttls.at(arena.random()));
    }
    arena.advance_and_restart(ttls);
    return true;
}

} // namespace

Flow expiring(size_t timers)
{
    return {timers * usec, 1, 0};
}

Flow living(size_t timers)
{
    return {timers * 7 * usec / 10, 2, 1};
}

Steady::Steady(const Contender &contender, const Load &load, const Flow &flow)
    : ttls(flow.mean_ttl / 2, flow.mean_ttl, load.ttls),
      arena(contender, load, load.timers, longest_of(flow)), load_(load),
      flow_(flow)
{
}

std::optional<Result> Steady::begin()
{
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    if (!populate(arena, load_, flow_, ttls)) {
        return Result();
    }
    return {};
}

} // namespace bench
