// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The box: what the owner and the other threads share. lawn/shared.h tells the
// idea; shared_ops.h has the steps, and why their order matters.

#ifndef LAWN_SRC_SHARED_BOX_H
#define LAWN_SRC_SHARED_BOX_H

#include "timer/lawn_impl.h"

#include <lawn/shared.h>

#include <sys/types.h>

namespace lawn
{

// In `flags` of a timer.
constexpr uintptr_t posted = 1;  // in the box, or on its way there
constexpr uintptr_t retired = 2; // to be released when it comes out

// In `head` of a box, beside the pointer.
constexpr uintptr_t asleep = 1;
constexpr uintptr_t closed = 2; // nothing more comes in
constexpr uintptr_t tags = asleep | closed;

} // namespace lawn

struct lawn_box {
    // Atomic.
    uintptr_t head;         // the messages, latest first, and tags
    lawn_time_t wake_at;    // until when the owner sleeps
    uintptr_t ringing;      // threads that may be waking the owner
    uintptr_t users;        // who may free the box: the last of them
    lawn_shared_t *running; // whose callback runs
    uintptr_t runs;         // callbacks that have begun
    uintptr_t runner;       // the thread of the latest

    // Set before others know of the box.
    lawn::Lawn *lawn;
    void (*wake)(void *arg);
    void *wake_arg;
    lawn_allocator_t allocator;
    pid_t process; // where it was made

    // The owner's.
    lawn_shared_t *taken; // messages that the budget has left
    unsigned busy;        // callbacks and drains that it is in
};

#endif
