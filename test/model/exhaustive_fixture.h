// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the tests of the exhaustive check share: how deep to go, the usual
// operations, and the proof that what they are there for was met.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_FIXTURE_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_FIXTURE_H

#include "exhaustive_alphabet.h"
#include "exhaustive_search.h"

#include <gtest/gtest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

namespace exhaustive
{

inline bool is_replay()
{
    return getenv("LAWN_TEST_SEQUENCE") != nullptr;
}

inline bool is_full()
{
    return getenv("LAWN_TEST_FULL") != nullptr;
}

inline bool is_instrumented()
{
    const char *const scale = getenv("LAWN_TEST_SCALE");
    return scale && atoi(scale) < 100;
}

constexpr lawn_time_t power(unsigned bits)
{
    return lawn_time_t{1} << bits;
}

constexpr lawn_time_t off_border = power(16) + 37; // of any slot

constexpr std::initializer_list<Target> by_deadline = {
    Target::before, Target::at, Target::after, Target::last};
constexpr std::initializer_list<Target> ends = {Target::at, Target::last};

class Exhaustive : public testing::Test
{
protected:
    ~Exhaustive() override
    {
        const Totals &totals = search_.totals();
        printf("%u scenarios, %.3g sequences: %" PRIu64 " states, %" PRIu64
               " operations, %" PRIu64 " expiries\n",
               totals.scenarios, totals.sequences, totals.states,
               totals.operations, reached().fired);
        if (!is_replay() && !HasFailure()) {
            EXPECT_NE(reached().fired, 0U);
        }
    }

    // Under an instrument no less deep than `least`.
    void run(Scenario scenario, unsigned least = 2)
    {
        scenario.depth += is_full();
        scenario.depth -= is_instrumented() && scenario.depth > least;
        if (!HasFailure()) {
            EXPECT_TRUE(search_.run(scenario));
        }
    }

    // What is usual, on `actors` timers with `ttls`.
    static Scenario usual(const char *name, unsigned actors,
                          const std::vector<lawn_time_t> &ttls, unsigned depth)
    {
        Scenario scenario = {};
        scenario.name = name;
        scenario.actors = actors;
        scenario.ttls = ttls;
        scenario.depth = depth;
        scenario.alphabet = Alphabet()
                                .starts(actors, ttls.size())
                                .on_each(Kind::stop, actors)
                                .on_each(Kind::pause, actors)
                                .moves(Kind::advance, {Target::next})
                                .moves(Kind::advance, by_deadline)
                                .moves(Kind::advance, ends, {1})
                                .moves(Kind::skip, ends)
                                .settles({0});
        return scenario;
    }

    Reached &reached()
    {
        return search_.reached();
    }

    // Each of the operations start, stop and pause was on a timer in each of
    // these places; with queues, enqueue too.
    void expect_ops(std::initializer_list<Place> places, bool queues = false)
    {
        for (unsigned op = 0; op < (queues ? 4U : 3U) && !is_replay(); ++op) {
            for (const Place place : places) {
                EXPECT_NE(reached().ops[op][place], 0U) << op << ' ' << place;
            }
        }
    }

    static void expect_some(uint64_t count)
    {
        if (!is_replay()) {
            EXPECT_NE(count, 0U);
        }
    }

private:
    Search search_;
};

// What takes too long under valgrind, or emulated.
using ExhaustiveLong = Exhaustive;

} // namespace exhaustive

#endif
