// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The interface of every timer scheme in this folder, and the traits by which
// it describes itself. A scheme is a class with
//
//     struct Node;                       // intrusive, value-initialised: idle
//     explicit Scheme(const Config &);
//     void start(Node &, Time now, Time ttl);     // re-arms when it runs
//     bool stop(Node &);                          // true: it was running
//     template <class Fired>
//     unsigned advance(Time now, unsigned budget, Fired &&fired);
//     static constexpr Traits traits;
//
// advance() calls fired(node, now) for each expired timer. The timer is idle by
// then, and fired may start and stop any timer. Time never goes back. There is
// no virtual function here. The benchmark wraps each class in a table of calls
// (bench/contender.h), in the same way for all classes.

#ifndef LAWN_BENCH_SCHEMES_SCHEME_H
#define LAWN_BENCH_SCHEMES_SCHEME_H

#include <stddef.h>
#include <stdint.h>

namespace bench
{

using Time = uint64_t;

constexpr Time never = UINT64_MAX;

// What a program that uses a scheme has to know of its load beforehand. The
// schemes that need none of it are the better for it.
struct Config {
    Time tick = 1;        // resolution of the schemes that have one
    size_t capacity = 0;  // timers that will run at a time, at most
    Time longest_ttl = 0; // 0: not known
};

// How a scheme departs from "at the first advance at or after the deadline, in
// the order of starts among equal TTLs".
struct Traits {
    const char *name;    // as in tables: short, lower case
    const char *source;  // who described it, where
    bool rounds_to_tick; // may be late by up to one tick, never early
    bool may_be_early;
    bool any_order;   // among timers of one TTL
    bool bounded_ttl; // longest_ttl must be known, or is clamped
    // Besides the tick: late by up to the time from the last advance before
    // the start to the deadline, divided by this; 0: by none.
    unsigned late_divisor = 0;
};

} // namespace bench

#endif
