// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The experiments on virtual time; see experiments.h.

#include "evaluation/experiments.h"
#include "evaluation/lives.h"

namespace bench
{

namespace
{

// In between a long time passes, so that nothing that a contender puts off is
// left for the next round. The last round ends when enough was measured, with
// timers that still run: to start and to stop ten million takes long.
Result start_and_stop(const Contender &contender, const Load &load,
                      bool measures_start)
{
    const Time base = sec + usec * load.timers;
    Ttls ttls(base, base, load.ttls);
    Arena arena(contender, load, load.timers, 2 * base);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const std::vector<uint32_t> &order = shuffled(load.timers, load.seed + 1);
    constexpr size_t enough = 1'000'000;
    Stopwatch watch(load.limit_sec);
    Latency starting;
    Latency stopping;
    const auto begin = Clock::now();
    for (;;) {
        if (!arena.for_all(100, [&](size_t index) {
                const Time ttl = ttls.at(arena.random());
                watch.time(starting, [&] { arena.start(index, ttl); });
            })) {
            return {};
        }
        if (measures_start && starting.count() >= enough) {
            return starting.result();
        }
        size_t done = 0;
        const auto full = Clock::now();
        for (const uint32_t index : order) {
            bool was_running = false;
            watch.time(stopping, [&] { was_running = arena.stop(index); });
            if (!was_running) {
                arena.broken("a timer was not running");
            }
            if (stopping.count() >= enough) {
                return stopping.result();
            }
            if (++done % 256 == 0 && seconds_since(full) > patience(load)) {
                return {};
            }
        }
        arena.now += 4 * base;
        if (arena.advance() != 0) {
            arena.broken("a stopped timer has expired");
        }
        if (watch.is_over() || seconds_since(begin) > 4 * load.limit_sec) {
            return (measures_start ? starting : stopping).result();
        }
    }
}

} // namespace

Result start_each(const Contender &contender, const Load &load)
{
    return start_and_stop(contender, load, true);
}

Result stop_each(const Contender &contender, const Load &load)
{
    return start_and_stop(contender, load, false);
}

Result tick_each(const Contender &contender, const Load &load)
{
    Steady steady(contender, load, expiring(load.timers));
    if (const auto failure = steady.begin()) {
        return *failure;
    }
    Arena &arena = steady.arena;
    Stopwatch watch(load.limit_sec);
    Latency ticks;
    size_t fired = 0;
    while (!watch.is_over() || ticks.count() < 1000) {
        arena.now += usec;
        watch.time(ticks, [&] { fired += arena.advance(); });
        arena.restart_expired(steady.ttls, [&](size_t index, Time ttl) {
            arena.start(index, ttl);
        });
    }
    if (fired == 0) {
        arena.broken("no timer has expired");
    }
    return ticks.result();
}

Lives::Lives(const Contender &contender, const Load &load, unsigned burst)
    : timers_(load.timers), burst_(burst),
      steady_(contender, load, living(load.timers))
{
}

std::optional<Result> Lives::begin()
{
    return steady_.begin();
}

void Lives::run(Stopwatch &watch, Latency &latency)
{
    Arena &arena = steady_.arena;
    const Ttls &ttls = steady_.ttls;
    const auto start = [&](size_t index, Time ttl) {
        watch.time(latency, [&] { arena.start(index, ttl); });
    };
    while (!watch.is_over()) {
        for (unsigned i = 0; i < burst_; ++i) {
            const size_t index = arena.random.below(timers_);
            watch.time(latency, [&] { arena.stop(index); });
            start(index, ttls.at(arena.random()));
        }
        arena.now += burst_ * usec;
        watch.time(latency, [&] { arena.advance(); });
        arena.restart_expired(ttls, start);
    }
}

Result live(const Contender &contender, const Load &load, bool burst)
{
    Lives lives(contender, load, burst ? 64 : 1);
    if (const auto failure = lives.begin()) {
        return *failure;
    }
    Stopwatch watch(load.limit_sec);
    Latency latency;
    lives.run(watch, latency);
    return latency.result();
}

} // namespace bench
