// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads, and those in which timers are mostly started and stopped: what
// a connection does while all is well. Their TTLs grow with the number of
// timers, as if the rate of packets were given: a timer that is restarted at
// random, once in a while, is not to expire.

#include "workloads.h"

#include "arena.h"
#include "expiry.h"
#include "memory.h"

#include <algorithm>

namespace bench
{

namespace
{

Time base_ttl(size_t timers)
{
    return 200 * msec + 100 * usec * timers;
}

// An octave less a bit, around the base.
Ttls octave(Time base, size_t distinct)
{
    return Ttls(base - base / 4, base / 2, distinct);
}

// Started one after the other, as time goes on, and polled: timers that all
// have one deadline would be a case of its own. Then each has been through what
// is to be measured once, for that goes on for hours, and the first time may
// not be like the others. False when it takes too long.
template <class Ttl, class Operation>
bool set_up(Arena &arena, Time stagger, Ttl &&ttl, Operation &&operation)
{
    const bool is_running =
        arena.start_all(stagger, ttl) && arena.for_all(stagger, operation);
    arena.advance();
    arena.forget();
    return is_running;
}

// Stop and start of a random timer, a poll with every tenth.
Result stop_start(const Contender &contender, const Load &load)
{
    const Time base = base_ttl(load.timers);
    Ttls ttls = octave(base, load.ttls);
    Arena arena(contender, load, load.timers, 2 * base);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const auto ttl = [&](size_t) { return ttls.at(arena.random()); };
    const auto restart = [&](size_t index) {
        arena.stop(index);
        arena.start(index, ttl(index));
    };
    if (!set_up(arena, 100, ttl, restart)) {
        return {};
    }
    unsigned turn = 0;
    return arena.measure([&] {
        arena.now += 100;
        restart(arena.random.below(load.timers));
        if (++turn % 10 == 0) {
            arena.advance();
            arena.forget();
        }
    });
}

// Start of a random timer that runs, with the TTL that it always has, one of a
// thousand; a poll with every tenth.
Result re_arm(const Contender &contender, const Load &load)
{
    const Time base = base_ttl(load.timers);
    Ttls ttls = octave(base, 1000);
    Arena arena(contender, load, load.timers, 2 * base);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const auto ttl = [&](size_t index) { return ttls.at(mix(index)); };
    const auto restart = [&](size_t index) { arena.start(index, ttl(index)); };
    if (!set_up(arena, 100, ttl, restart)) {
        return {};
    }
    unsigned turn = 0;
    return arena.measure([&] {
        arena.now += 100;
        restart(arena.random.below(load.timers));
        if (++turn % 10 == 0) {
            arena.advance();
            arena.forget();
        }
    });
}

// All timers are started and then stopped, each in a random order, over and
// over; one half is measured. In between a long time passes, so that nothing
// that a contender puts off is left for the next round.
Result fill_and_empty(const Contender &contender, const Load &load,
                      bool measures_filling)
{
    const Time base = base_ttl(load.timers);
    Ttls ttls = octave(base, 0);
    Arena arena(contender, load, load.timers, 2 * base);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const std::vector<uint32_t> &order = shuffled(load.timers, load.seed + 1);
    const auto begin = Clock::now();
    double filling = 0;
    double emptying = 0;
    double count = 0;
    double &measured = measures_filling ? filling : emptying;
    do {
        const auto empty = Clock::now();
        if (!arena.start_all(100,
                             [&](size_t) { return ttls.at(arena.random()); })) {
            return {};
        }
        filling += seconds_since(empty);
        const auto full = Clock::now();
        size_t done = 0;
        for (const uint32_t index : order) {
            if (!arena.stop(index)) {
                arena.broken("a timer was not running");
            }
            if (++done % 256 == 0 && seconds_since(full) > patience(load)) {
                return {};
            }
        }
        emptying += seconds_since(full);
        count += static_cast<double>(load.timers);
        arena.now += 2 * base;
        if (arena.advance() != 0) {
            arena.broken("a stopped timer has expired");
        }
    } while (arena.may_continue(measured) &&
             seconds_since(begin) < 4 * load.limit_sec);
    return measured * 1e9 / count;
}

Result insertion(const Contender &contender, const Load &load)
{
    return fill_and_empty(contender, load, true);
}

Result deletion(const Contender &contender, const Load &load)
{
    return fill_and_empty(contender, load, false);
}

// A retransmit and a keepalive timer for each connection, both re-armed on
// every ACK, one poll per ACK and microsecond. One connection in a thousand is
// silent, and its timers expire.
Result transport(const Contender &contender, const Load &load)
{
    const size_t connections = std::max<size_t>(load.timers / 2, 1);
    Time rto = base_ttl(load.timers);
    Time keepalive = rto + rto / 2;
    Arena arena(contender, load, 2 * connections, 2 * rto);
    arena.declare(rto);
    arena.declare(keepalive);
    const auto ttl = [&](size_t i) { return i % 2 == 0 ? rto : keepalive; };
    if (!set_up(arena, usec / 2, ttl,
                [&](size_t i) { arena.start(i, ttl(i)); })) {
        return {};
    }
    return arena.measure([&] {
        const size_t connection = arena.random.below(connections);
        arena.now += usec;
        if (connection % 1000 != 999) {
            arena.start(2 * connection, rto);
            arena.start(2 * connection + 1, keepalive);
        }
        arena.advance(64);
        arena.forget();
    });
}

// A storm of connections: 64 packets come in one poll, each opens a connection
// and starts its handshake timer, with one of four TTLs. After three quarters
// of a lap over all timers the handshakes are done and the timers are stopped,
// but for each sixteenth, which expires. One connection per microsecond, one
// poll per burst.
Result burst(const Contender &contender, const Load &load)
{
    const size_t size = std::clamp<size_t>(load.timers / 8, 1, 64);
    const size_t bursts = load.timers / size;
    const Time lap = bursts * size * usec;
    Ttls ttls(lap * 78 / 100, lap / 10, 4);
    Arena arena(contender, load, load.timers, lap);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    const std::vector<uint32_t> &order = shuffled(load.timers, load.seed);
    size_t turn = 0;
    const auto operate = [&] {
        const uint32_t *const opened = &order[turn % bursts * size];
        const uint32_t *const done =
            &order[(turn + (bursts + 3) / 4) % bursts * size];
        for (size_t i = 0; i < size; ++i) {
            arena.start(opened[i], ttls.at(arena.random()));
        }
        for (size_t i = 0; i < size; ++i) {
            if (i % 16 != 0) {
                arena.stop(done[i]);
            }
        }
        arena.now += size * usec;
        arena.advance();
        arena.forget();
        ++turn;
    };
    const auto begin = Clock::now();
    while (turn < bursts) {
        operate();
        if (turn % 4 == 0 && seconds_since(begin) > patience(load)) {
            return {};
        }
    }
    return arena.measure(operate) / static_cast<double>(size);
}

Result idle(const Contender &contender, const Load &load)
{
    // Out of reach of the polls that will be measured.
    const Time base = base_ttl(load.timers) + 10 * sec;
    Ttls ttls = octave(base, 10);
    Arena arena(contender, load, load.timers, 2 * base);
    if (!arena.declare(ttls)) {
        return Result::unavailable();
    }
    if (!set_up(
            arena, 100, [&](size_t) { return ttls.at(arena.random()); },
            [](size_t) {})) {
        return {};
    }
    return arena.measure([&] {
        arena.now += 100;
        if (arena.advance(64) != 0) {
            arena.broken("a timer has expired early");
        }
    });
}

// The workload with as many distinct TTLs; 0: each start one of its own.
template <Result (*Run)(const Contender &, const Load &), size_t Distinct>
Result with_ttls(const Contender &contender, const Load &load)
{
    Load exact = load;
    exact.ttls = Distinct;
    return Run(contender, exact);
}

} // namespace

const std::vector<Workload> &workloads()
{
    static const std::vector<Workload> all = {
        {"fixed", "ns", "stop + start, one TTL", with_ttls<stop_start, 1>,
         false},
        {"mixed-10", "ns", "stop + start, 10 TTLs", with_ttls<stop_start, 10>,
         false},
        {"mixed-1000", "ns", "stop + start, 1000 TTLs",
         with_ttls<stop_start, 1000>, false},
        {"continuous", "ns", "stop + start, uniform continuous TTLs",
         with_ttls<stop_start, 0>, false},
        {"insertion", "ns", "start of an idle timer, from none to all",
         insertion, false},
        {"deletion", "ns", "stop of a running timer, from all to none",
         deletion, false},
        {"re-arm", "ns", "start of a running timer, later deadline", re_arm,
         false},
        {"transport", "ns", "two re-arms and a poll per ACK", transport, false},
        {"burst", "ns", "64 starts at once, 60 stops, 4 expiries; per timer",
         burst, true},
        {"idle", "ns", "a poll when nothing is due", idle, false},
        {"tick", "ns", "a poll each us, one expiry and restart in it",
         with_ttls<tick, 0>, true},
        {"expiry-16", "ns", "expiry of all after a stall, 16 TTLs; per timer",
         with_ttls<expire_all, 16>, false},
        {"expiry-continuous", "ns", "the same, uniform continuous TTLs",
         with_ttls<expire_all, 0>, false},
        {"expiry-rearmed", "ns", "the same, all re-armed once before the stall",
         with_ttls<expire_rearmed, 0>, false},
        {"worst-advance", "us",
         "an advance of those, budget 64, that work off a stall", worst_advance,
         false},
        {"memory", "bytes", "nodes and heap for all running; per timer",
         memory_per_timer, false},
        {"memory-empty", "bytes", "heap of an empty scheme for as many",
         memory_empty, false},
    };
    return all;
}

} // namespace bench
