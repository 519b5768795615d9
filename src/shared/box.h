// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The box: what the owner and the other threads share. lawn/shared.h explains
// the idea. shared_ops.h has the steps, and says why their order matters.

#ifndef LAWN_SRC_SHARED_BOX_H
#define LAWN_SRC_SHARED_BOX_H

#include "base/forks.h"
#include "timer/inside.h"

#include <lawn/shared.h>

namespace lawn
{

// Bits in `flags` of a timer.
constexpr uintptr_t posted = 1;  // in the box, or on its way there
constexpr uintptr_t retired = 2; // to be released when it comes out

// Bits in `head` of a box, beside the pointer.
constexpr uintptr_t asleep = 1;
constexpr uintptr_t closed = 2; // nothing more comes in
constexpr uintptr_t tags = asleep | closed;

} // namespace lawn

struct lawn_box {
    // Atomic.
    uintptr_t head;         // the messages, the latest first, and tags
    lawn_time_t wake_at;    // the time until which the owner sleeps
    uintptr_t ringing;      // threads that may be waking the owner
    uintptr_t users;        // holds; dropping the last one frees the box
    lawn_shared_t *running; // the timer whose callback runs
    uintptr_t runs;         // callbacks that have begun
    uintptr_t runner;       // the thread of the latest callback
    unsigned ringing_in;    // `forks` in the process that `ringing` is of
    unsigned running_in;    // `forks` when the latest callback began

    // Set before other threads know the box.
    lawn_t *lawn;
    void (*wake)(void *arg);
    void *wake_arg;
    lawn_allocator_t allocator;

    // Only for the owner.
    lawn_shared_t *taken; // messages that a budget has left over
    unsigned busy;        // callbacks and drains that are running
};

#endif
