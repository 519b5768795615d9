// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A load for which the work of a polling program is predicted (prediction.h)
// and measured (measurement.h): when timers start, with what TTLs, what becomes
// of them, and what a pass costs. 1 tick = 1 ns.

#ifndef LAWN_BENCH_EVALUATION_LOAD_H
#define LAWN_BENCH_EVALUATION_LOAD_H

#include <cstdint>

namespace evaluation
{

using Time = uint64_t;

enum class Arrivals {
    poisson,
    bursty,   // Poisson for burst_on of every burst_period, else none
    periodic, // one after the other at equal distances
};

constexpr Time burst_period = 4'000'000;
constexpr Time burst_on = 1'000'000;

enum class Ttls {
    fixed,   // 1 ms
    ten,     // 0.1, 0.2, ... 1 ms, equally often
    uniform, // 0.1 to 1.9 ms
    pareto,  // from 0.2 ms, with exponent 1.5, cut off at 20 ms
    rto,     // from round trips of 0.1 ms and more, at times backed off
};

constexpr Time longest_ttl = 20'000'000;

// How timers are filed.
enum class Filing { slots, queues };

// What becomes of a timer that was armed; the rest expires. What does not
// expire happens at a time that is uniform within the TTL. A timer that is
// re-armed gets the same TTL again, and a new fate.
struct Fates {
    double stop = 0;
    double pause = 0; // and never started again
    double rearm = 0;

    double expire() const
    {
        return 1 - stop - pause - rearm;
    }
};

struct Load {
    Arrivals arrivals = Arrivals::poisson;
    Ttls ttls = Ttls::fixed;
    Filing filing = Filing::slots;
    Fates fates;
    double rate = 0;       // timers begun per ns, in the mean
    Time pass_cost = 1000; // of a pass that touches nothing
    Time touch_cost = 50;  // in addition, for each timer touched
    unsigned budget = 0;   // 0: none
};

// Groups of timers whose population is compared: each TTL where there are few
// of them, else the quarters of the distribution.
constexpr unsigned most_groups = 10;
unsigned groups(Ttls ttls);

struct Ttl {
    Time ttl;
    unsigned group;
};

// The TTL that is longer than the share `at` of all, 0 <= at < 1.
Ttl ttl_at(Ttls ttls, double at);

Time longest(Ttls ttls);

// How many values the TTL can have.
Time possible_ttls(Ttls ttls);

const char *name_of(Arrivals arrivals);
const char *name_of(Ttls ttls);
const char *name_of(Filing filing);

// The same sequence on every machine for one seed.
class Random
{
public:
    explicit Random(uint64_t seed);

    uint64_t next();
    double uniform(); // 0 <= x < 1
    double exponential(double mean);

private:
    uint64_t state_;
};

enum class Fate { expire, stop, pause, rearm };

Fate draw(const Fates &fates, Random &random);

} // namespace evaluation

#endif
