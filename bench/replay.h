// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A program's timers as a workload: reads a trace that LAWN_TRACE has recorded
// (doc/trace.md) and replays it through a contender.

#ifndef LAWN_BENCH_REPLAY_H
#define LAWN_BENCH_REPLAY_H

#include "workloads.h"

#include <vector>

namespace bench
{

// Times are ns, those of events since the beginning of the trace.
struct Trace {
    enum class Call : uint8_t { start, stop, pause, fire, poll };

    struct Event {
        Time now;       // of a poll: of the last of them
        Time value;     // start: the TTL or `never`; poll: how many
        uint32_t timer; // below `timers`; but for a poll
        Call call;
    };

    std::vector<Event> events;
    size_t timers = 0;
    unsigned budget = 0;  // of each poll; 0: no limit
    Time longest_ttl = 0; // but for `never`
};

// Throws std::runtime_error, "FILE:LINE: what is wrong" or "FILE: why not".
Trace read_trace(const char *path);

// ns for an event of the trace: a start, stop, pause or single poll. The trace
// is replayed from its beginning until load.limit_sec is used, each time with
// a fresh scheme and new nodes, which are not measured. What callbacks did
// comes after the poll that called them. Nothing for a contender that takes
// more than a microsecond for each event; unavailable for one with a clock of
// its own, or that cannot run here, and when there are no events. `load` has no
// other part in it.
Result replay(const Trace &trace, const Contender &contender, const Load &load);

} // namespace bench

#endif
