// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What threads did to one timer, and whether it can have been: is there an
// order of all calls and callbacks, none before it began or after it had
// returned, in which each is right? A start makes the timer run; a stop that
// says true ends a run, one that says false finds none; a callback ends a run
// whose deadline is not after its `now`. (M. Herlihy and J. Wing,
// "Linearizability", 1990; each timer alone, which is enough by their locality
// theorem.)

#ifndef LAWN_TEST_MODEL_LINEARIZABILITY_H
#define LAWN_TEST_MODEL_LINEARIZABILITY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace history
{

enum class What : uint8_t { start, stopped, not_stopped, fired };

struct Event {
    uint64_t begin; // on a clock that all threads share
    uint64_t end;
    uint64_t time; // a start's deadline, a callback's `now`
    What what;
};

constexpr size_t most_threads = 4;

// Of each thread, in its order; the callbacks are one.
using History = std::vector<std::vector<Event>>;

// Empty when there is such an order, from a timer that was stopped to one that
// is. Else how far the best order comes, and what comes next.
std::string check(const History &history);

} // namespace history

#endif
