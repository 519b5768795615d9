// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads in which timers expire: in a steady flow (see flow.h), or all
// after a jump.

#include "expiry.h"

#include "arena.h"
#include "flow.h"

#include <lawn/time.h>

#include <algorithm>

namespace bench
{

namespace
{

// Reading the clock takes as long as an operation does, so the percentile is
// one of batches of 16: in the slowest hundredth of them, an operation took p99
// or more on average. A single one that took long shows as a sixteenth of it.
template <class Operation>
Result measure_batches(Arena &arena, const Load &load, Operation &&operation)
{
    constexpr unsigned batch = 16;
    constexpr size_t most_batches = 1 << 18;
    std::vector<uint32_t> ticks;
    ticks.reserve(most_batches);
    const lawn_time_t end =
        lawn_get_time() + lawn_time_from_sec(load.limit_sec);
    lawn_time_t last = 0;
    double sum = 0;
    do {
        const lawn_time_t first = lawn_get_time();
        for (unsigned i = 0; i < batch; ++i) {
            operation();
        }
        last = lawn_get_time();
        sum += static_cast<double>(last - first);
        ticks.push_back(
            static_cast<uint32_t>(std::min<Time>(last - first, UINT32_MAX)));
    } while (last < end && ticks.size() < most_batches &&
             arena.may_continue(0));
    const auto count = static_cast<double>(ticks.size());
    const auto p99 =
        ticks.begin() + static_cast<std::ptrdiff_t>(0.99 * (count - 1));
    std::nth_element(ticks.begin(), p99, ticks.end());
    const double ns = lawn_time_to_nsec(1'000'000) / 1e6 / batch;
    const double mean = sum / count * ns;
    return {mean, mean, *p99 * ns};
}

} // namespace

Result tick(const Contender &contender, const Load &load)
{
    Steady steady(contender, load, expiring(load.timers));
    if (const auto failure = steady.begin()) {
        return *failure;
    }
    Arena &arena = steady.arena;
    return measure_batches(arena, load, [&] {
        arena.now += usec;
        arena.advance_and_restart(steady.ttls);
    });
}

Result life_cycle(const Contender &contender, const Load &load)
{
    Steady steady(contender, load, living(load.timers));
    if (const auto failure = steady.begin()) {
        return *failure;
    }
    Arena &arena = steady.arena;
    return measure_batches(arena, load, [&] {
        arena.now += usec;
        const size_t index = arena.random.below(load.timers);
        arena.stop(index);
        arena.start(index, steady.ttls.at(arena.random()));
        arena.advance_and_restart(steady.ttls);
    });
}

namespace
{

// As retransmission timeouts are, and short enough to wait for in real time.
constexpr Time shortest_ttl = 250 * msec;
constexpr Time longest_ttl = 2 * shortest_ttl;

// All timers, and then a stall until the last of them is due. As often as
// `rounds` says they are started anew, in another order each time: a timer that
// was re-armed is where contenders that are lazy have to pay.
bool start_and_stall(Arena &arena, const Ttls &ttls, unsigned rounds)
{
    size_t count = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        if (!arena.start_all(0, [&](size_t) {
                arena.now += ++count % 4 == 0;
                return ttls.at(arena.random());
            })) {
            return false;
        }
    }
    // With time for roundings: to ticks, or to a seventh of the TTL.
    arena.pass(longest_ttl + longest_ttl / 4);
    return true;
}

Result expire_started(const Contender &contender, const Load &load,
                      unsigned rounds)
{
    Arena arena(contender, load, load.timers, longest_ttl);
    Ttls ttls(shortest_ttl, longest_ttl - shortest_ttl, load.ttls);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const auto begin = Clock::now();
    double seconds = 0;
    double count = 0;
    do {
        if (!start_and_stall(arena, ttls, rounds)) {
            return {};
        }
        const auto advance = Clock::now();
        const unsigned fired = arena.advance();
        seconds += seconds_since(advance);
        if (fired != load.timers) {
            arena.broken("not every timer has expired");
        }
        count += fired;
        arena.forget();
    } while (arena.may_continue(seconds) && !contender.wait &&
             seconds_since(begin) < 4 * load.limit_sec);
    return seconds * 1e9 / count;
}

} // namespace

Result expire_all(const Contender &contender, const Load &load)
{
    return expire_started(contender, load, 1);
}

Result expire_rearmed(const Contender &contender, const Load &load)
{
    return expire_started(contender, load, 2);
}

namespace
{

// What is left by a share of them, sorted.
double at_share(const std::vector<double> &sorted, double share)
{
    return sorted[static_cast<size_t>(share *
                                      static_cast<double>(sorted.size() - 1))];
}

} // namespace

// The advances, with a budget of 64, that work off a stall. All timers are due,
// so that none is touched without being fired: what fires in one advance is
// what it touches. What advances touch that only move timers is counted by
// test/unit/timer/bounded_test.cc.
Result worst_advance(const Contender &contender, const Load &load)
{
    Arena arena(contender, load, load.timers, longest_ttl);
    Ttls ttls(shortest_ttl, longest_ttl - shortest_ttl, 0);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const auto first = Clock::now();
    std::vector<double> usecs;
    double sum = 0;
    unsigned most = 0;
    do {
        if (!start_and_stall(arena, ttls, 1)) {
            return {};
        }
        usecs.reserve(usecs.size() + load.timers);
        size_t fired = 0;
        while (fired < load.timers && sum < patience(load) * 1e6) {
            const auto begin = Clock::now();
            const unsigned count = arena.advance(64);
            usecs.push_back(seconds_since(begin) * 1e6);
            sum += usecs.back();
            fired += count;
            most = std::max(most, count);
            if (count == 0 && !arena.has_more()) {
                arena.broken("some timers never expire");
            }
            arena.forget();
        }
    } while (arena.may_continue(sum * 1e-6) && !contender.wait &&
             seconds_since(first) < 4 * load.limit_sec);
    std::sort(usecs.begin(), usecs.end());
    Result result;
    result.figure = usecs.back();
    result.mean = sum / static_cast<double>(usecs.size());
    result.p50 = at_share(usecs, 0.5);
    result.p99 = at_share(usecs, 0.99);
    result.p999 = at_share(usecs, 0.999);
    result.most = most;
    return result;
}

} // namespace bench
