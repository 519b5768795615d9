// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads; see workloads.h.

#include "workloads.h"

#include <chrono>
#include <random>
#include <stdexcept>
#include <string>

namespace bench
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr Time usec = 1000;
constexpr Time msec = 1000 * usec;
constexpr Time far_jump = Time{1} << 60;
constexpr size_t draws = 1 << 16; // random numbers made before measuring

double seconds_since(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Long enough that a timer that is restarted now and then never expires.
Time base_ttl(size_t timers)
{
    return 200 * msec + 100 * usec * timers;
}

class Arena
{
public:
    Arena(const Contender &contender, const Load &load, size_t nodes)
        : contender_(contender), load_(load), random_(load.seed)
    {
        Config config;
        config.tick = 1024;
        config.capacity = nodes;
        config.longest_ttl = 2 * base_ttl(load.timers);
        scheme_ = contender.create(config);
        nodes_ = static_cast<char *>(contender.make_nodes(nodes));
        for (size_t i = 0; i < draws; ++i) {
            draws_.push_back(random_());
        }
        expired.clear();
        expired.reserve(nodes);
    }

    ~Arena()
    {
        contender_.destroy(scheme_);
        contender_.free_nodes(nodes_);
    }

    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;

    void *node(size_t index)
    {
        return nodes_ + index * contender_.node_size;
    }

    void start(size_t index, Time ttl)
    {
        contender_.start(scheme_, node(index), now, ttl);
    }

    bool stop(size_t index)
    {
        return contender_.stop(scheme_, node(index));
    }

    unsigned advance(unsigned budget = 0)
    {
        const unsigned fired = contender_.advance(scheme_, now, budget);
        if (fired != expired.size()) {
            throw std::runtime_error(std::string(contender_.traits.name) +
                                     ": wrong number of expired timers");
        }
        return fired;
    }

    size_t index_of(const void *node) const
    {
        return static_cast<size_t>(static_cast<const char *>(node) - nodes_) /
               contender_.node_size;
    }

    uint64_t draw()
    {
        return draws_[draw_++ % draws];
    }

    // False when it takes too long.
    template <class Ttl> bool start_all(size_t count, Ttl &&ttl)
    {
        const auto begin = Clock::now();
        for (size_t i = 0; i < count; ++i) {
            start(i, ttl(i));
            if (i % 256 == 0 && seconds_since(begin) > load_.limit_sec * 4) {
                return false;
            }
        }
        return true;
    }

    // Runs `operation` until the time is up: ns for one.
    template <class Operation> double measure(Operation &&operation)
    {
        const size_t batch = 64;
        size_t count = 0;
        double seconds = 0;
        const auto begin = Clock::now();
        do {
            for (size_t i = 0; i < batch; ++i) {
                operation();
            }
            count += batch;
            seconds = seconds_since(begin);
        } while (seconds < load_.limit_sec);
        return seconds * 1e9 / static_cast<double>(count);
    }

    Time now = 1'000'000'000;

private:
    const Contender &contender_;
    const Load load_;
    std::mt19937_64 random_;
    void *scheme_;
    char *nodes_;
    std::vector<uint64_t> draws_;
    size_t draw_ = 0;
};

// Stop and start of a random timer, a poll with every tenth.
Result stop_start(const Contender &contender, const Load &load, size_t ttls)
{
    Arena arena(contender, load, load.timers);
    const Time base = base_ttl(load.timers);
    // Spread over an octave around the base; `ttls` 0 is one for each start.
    const auto ttl = [&](uint64_t draw) {
        const uint64_t share = ttls == 0 ? draw % 1'000'003 : draw % ttls;
        return base - base / 4 + base / 2 / (ttls ? ttls : 1'000'003) * share;
    };
    if (!arena.start_all(load.timers,
                         [&](size_t i) { return ttl(i * 7919); })) {
        return {};
    }
    unsigned turn = 0;
    return arena.measure([&] {
        const uint64_t draw = arena.draw();
        const size_t index = draw % load.timers;
        arena.now += 100;
        arena.stop(index);
        arena.start(index, ttl(draw >> 32));
        if (++turn % 10 == 0) {
            arena.advance();
            expired.clear();
        }
    });
}

// A retransmit and a keepalive timer for each connection, both re-armed on
// every ACK, one poll per ACK and microsecond. One connection in a thousand is
// silent, and its timers expire.
Result transport(const Contender &contender, const Load &load)
{
    const size_t connections = load.timers / 2;
    Arena arena(contender, load, 2 * connections);
    const Time rto = base_ttl(load.timers);
    const Time keepalive = rto + rto / 2;
    if (!arena.start_all(2 * connections, [&](size_t i) {
            return i % 2 == 0 ? rto : keepalive;
        })) {
        return {};
    }
    return arena.measure([&] {
        const size_t connection = arena.draw() % connections;
        arena.now += usec;
        if (connection % 1000 != 999) {
            arena.start(2 * connection, rto);
            arena.start(2 * connection + 1, keepalive);
        }
        arena.advance(64);
        expired.clear();
    });
}

Result idle(const Contender &contender, const Load &load)
{
    Arena arena(contender, load, load.timers);
    const Time base = base_ttl(load.timers);
    if (!arena.start_all(load.timers,
                         [&](size_t i) { return base + i % 10; })) {
        return {};
    }
    arena.advance();
    return arena.measure([&] {
        ++arena.now;
        arena.advance(64);
    });
}

// Everything expires in one advance after a jump: ns per timer.
Result expire_all(const Contender &contender, const Load &load, size_t ttls)
{
    Arena arena(contender, load, load.timers);
    const Time base = base_ttl(load.timers);
    if (!arena.start_all(load.timers, [&](size_t i) {
            const uint64_t draw = arena.draw() >> 16;
            arena.now += i % 4 == 0;
            return ttls == 0 ? 1 + draw % base
                             : base / 2 + base / 2 / ttls * (draw % ttls);
        })) {
        return {};
    }
    arena.now += far_jump;
    const auto begin = Clock::now();
    const unsigned fired = arena.advance();
    const double seconds = seconds_since(begin);
    if (fired != load.timers) {
        throw std::runtime_error(std::string(contender.traits.name) +
                                 ": not every timer has expired");
    }
    return seconds * 1e9 / static_cast<double>(load.timers);
}

// The longest of the advances, with a budget of 64, that work off a jump over
// everything: us.
Result worst_advance(const Contender &contender, const Load &load)
{
    Arena arena(contender, load, load.timers);
    const Time base = base_ttl(load.timers);
    if (!arena.start_all(load.timers,
                         [&](size_t) { return 1 + arena.draw() % base; })) {
        return {};
    }
    arena.now += far_jump;
    double worst = 0;
    size_t fired = 0;
    while (fired < load.timers) {
        const auto begin = Clock::now();
        fired += arena.advance(64);
        worst = std::max(worst, seconds_since(begin));
        if (expired.empty()) {
            throw std::runtime_error(std::string(contender.traits.name) +
                                     ": some timers never expire");
        }
        expired.clear();
    }
    return worst * 1e6;
}

} // namespace

Result life_cycle(const Contender &contender, const Load &load)
{
    Arena arena(contender, load, load.timers);
    const Time base = base_ttl(load.timers);
    const auto ttl = [&] {
        return base / 2 + base / load.ttls * ((arena.draw() >> 20) % load.ttls);
    };
    if (!arena.start_all(load.timers, [&](size_t) {
            arena.now += base / load.timers;
            return ttl();
        })) {
        return {};
    }
    return arena.measure([&] {
        const uint64_t draw = arena.draw();
        arena.now += base / load.timers;
        if (draw % 2 == 0) {
            const size_t index = (draw >> 8) % load.timers;
            arena.stop(index);
            arena.start(index, ttl());
        }
        arena.advance();
        for (void *node : expired) {
            arena.start(arena.index_of(node), ttl());
        }
        expired.clear();
    });
}

const std::vector<Workload> &workloads()
{
    static const std::vector<Workload> all = {
        {"fixed", "ns", "stop + start, one TTL",
         [](const Contender &c, const Load &l) { return stop_start(c, l, 1); }},
        {"mixed-10", "ns", "stop + start, 10 TTLs",
         [](const Contender &c, const Load &l) {
             return stop_start(c, l, 10);
         }},
        {"mixed-1000", "ns", "stop + start, 1000 TTLs",
         [](const Contender &c, const Load &l) {
             return stop_start(c, l, 1000);
         }},
        {"continuous", "ns", "stop + start, a TTL of its own each time",
         [](const Contender &c, const Load &l) { return stop_start(c, l, 0); }},
        {"transport", "ns", "two re-arms and a poll per ACK", transport},
        {"idle", "ns", "a poll when nothing is due", idle},
        {"expiry-16", "ns", "expiry of everything, 16 TTLs, per timer",
         [](const Contender &c, const Load &l) {
             return expire_all(c, l, 16);
         }},
        {"expiry-continuous", "ns", "the same, a TTL of its own each",
         [](const Contender &c, const Load &l) { return expire_all(c, l, 0); }},
        {"worst-advance", "us", "longest advance, budget 64, after a jump",
         worst_advance},
    };
    return all;
}

} // namespace bench
