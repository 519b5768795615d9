// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Faults in shared_ops.h, as if an access in it were weaker than it is, or at
// another place. The explorer must find what comes of each.

#ifndef LAWN_TEST_MODEL_SHARED_EXPLORE_FAULT_H
#define LAWN_TEST_MODEL_SHARED_EXPLORE_FAULT_H

#include "shared_explore.h"

#include <lawn/time.h>

namespace shared_explore
{

// What a thread does.
enum class Do : uint8_t {
    start,
    local, // the owner's start
    stop,
    sync,
    retire,
    pass, // drain and advance
    drain,
    advance,
    sleep, // and stay until woken
    doze,  // and go on at once, as one that wakes by itself
    empty, // lawn_drain()
    destroy
};

// An atomic of a timer or of the box.
enum class Field : uint8_t {
    other,
    deadline,
    cover,
    flags,
    head,
    wake_at,
    ringing,
    users,
    running,
    runs
};

enum class How : uint8_t {
    buffered, // a store that may be late
    split,    // a read-modify-write in two steps
    split_put,
    lost,     // what it was to write
    late,     // after the next `until` of `until_field`
    zero,     // what a load finds
    stale,    // what a load finds is from before the operation
    own,      // instead of the deadline that there is, that of the operation
    untagged, // what is written to the head
    alive,    // what it finds in the flags is not retired
};

// Of accesses of `kind` to `field` when a thread does `what`.
struct Fault {
    const char *name;
    Kind kind;
    Field field;
    Do what;
    How how;
    Kind until;
    Field until_field;
};

// Of the operation that accesses.
struct Context {
    Do what;
    Field field;
    lawn_time_t deadline; // of a start
    lawn_time_t cover;    // when it began
};

// Accesses by way of a fault.
class Weakness
{
public:
    Weakness(Explorer *explorer, const Fault *fault)
        : explorer_(explorer), fault_(fault)
    {
    }

    void reset()
    {
        for (Access &late : late_) {
            late.at = nullptr;
        }
    }

    // What was there, as the explorer's own access().
    uint64_t access(const Access &access, const Context &context);

private:
    uint64_t weak(Access access, const Context &context);
    uint64_t split(Access access, Kind kind);

    Explorer *explorer_;
    const Fault *fault_; // or nullptr
    Access late_[most_threads] = {};
};

} // namespace shared_explore

#endif
