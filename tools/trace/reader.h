// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a trace that LAWN_TRACE has recorded, as doc/trace.md describes it, for
// lawn_trace and lawn_bench.

#ifndef LAWN_TOOLS_TRACE_READER_H
#define LAWN_TOOLS_TRACE_READER_H

#include <cstdint>

namespace trace_file
{

// Times are ns since the beginning of the trace, and spans ns.
using Time = uint64_t;
constexpr Time never = UINT64_MAX;

enum class Kind : uint8_t {
    start,
    stop,
    pause,
    fire,
    poll,
    // Of version 2:
    conn,
    keepalive,
    resend,
    evidence,
    ask,
    probe,
    needless,
    undo,
    excuse,
    dead,
    stall
};

// What `value` of Kind::conn has. Of the times, `never`: none, and 0: before
// the trace.
enum { heard_at, oldest, newest, rto, srtt, rttvar, value_count };

struct Event {
    Time now; // of a poll: of the last of them
    uint64_t now_ticks;
    Kind kind;
    uint64_t name; // of the timer or connection; but for a poll and a stall
    // start: the TTL or `never`; poll: how many; keepalive: the other name;
    // dead: the reason; stall: how long.
    uint64_t value[value_count];
    // The times in `value` of Kind::conn in ticks, as programs give each of the
    // messages that they send at once a time of its own, a tick after another,
    // of which several may be one nanosecond.
    uint64_t ticks[newest + 1];
};

class Listener
{
public:
    virtual ~Listener() = default;

    virtual void begin(unsigned budget) = 0; // of each poll; 0: no limit
    virtual void hear(const Event &event) = 0;
};

// Throws std::runtime_error, "FILE:LINE: what is wrong" or "FILE: why not".
// What is not described in doc/trace.md is refused: a damaged file must become
// neither a measurement nor a picture.
void read(const char *path, Listener &listener);

} // namespace trace_file

#endif
