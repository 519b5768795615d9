// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a trace says about its engine, its connections and its other timers. A
// trace has what a connection knew at each start and pause of its timer; what
// it was told in between, a send or an ACK, is found out here.

#ifndef LAWN_TOOLS_TRACE_MODEL_H
#define LAWN_TOOLS_TRACE_MODEL_H

#include "reader.h"

#include <string>
#include <vector>

namespace trace_file
{

enum class Mark : uint8_t {
    send,
    ack,         // with the round trip, or 0: not known
    by_evidence, // a resending
    by_silence,
    unneeded, // a resending, with how much later it proved to be needless
    ask,
    probe,
    excuse,
    undo,
    dead,
    count
};

// The name that the page and --help use.
const char *name_of(Mark mark);

struct Point {
    Time time;
    uint64_t value;
};

struct Marked {
    Time time;
    uint64_t ticks; // the same: no two sends of a connection have one
    Mark mark;
    uint64_t value;   // 0, but for those above and for Mark::dead, its reason
    uint64_t sent_at; // in ticks: what was acknowledged or is sent again;
                      // `never`: unknown
    bool by_evidence; // of a resending, needless or not
};

// What a connection had measured, in the order of time.
struct Metrics {
    Time time;
    uint64_t rto;
    uint64_t srtt; // 0: nothing measured
    uint64_t rttvar;
    uint64_t rtt; // the latest round trip; 0: this is no sample
};

struct Connection {
    uint64_t name;
    uint64_t keepalive = 0;    // the name of that timer, or 0
    std::vector<Marked> marks; // in the order of time
    std::vector<Metrics> metrics;
    std::vector<Point> timer; // retransmit timer: its deadlines; 0: it stopped,
                              // `never`: it fired
};

// Not one of a connection.
struct Timer {
    uint64_t name;
    struct Run {
        Time start;
        Time deadline; // or `never`
        Time end;      // or `never`: it still runs
        bool fired;
    };
    std::vector<Run> runs;
};

struct Model {
    Time end = 0;
    unsigned budget = 0;
    size_t events = 0;
    std::vector<Point> gaps;    // for each line of polls: the mean gap of these
    std::vector<Point> late;    // for each expiry
    std::vector<Point> backlog; // what was due and waited after a pass, changes
    std::vector<Point> stalls;  // how long
    std::vector<Connection> connections;
    std::vector<Timer> timers;
};

// Throws as read() does.
Model read_model(const char *path);

} // namespace trace_file

#endif
