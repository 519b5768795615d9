// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Threads of a few steps, whose outcomes under C11 are known. They are compiled
// as the library is for the explorer.

#ifndef LAWN_TEST_EXPLORE_LITMUS_H
#define LAWN_TEST_EXPLORE_LITMUS_H

namespace litmus
{

// What a thread loads is in `seen`, -1: nothing.
struct State {
    int x;
    int y;
    int plain;
    int seen[4];
};

struct Test {
    const char *name;
    void (*threads[4])(State *state); // nullptr: none
};

extern const Test store_buffers_seq_cst;
extern const Test store_buffers_acq_rel;
extern const Test message_release;
extern const Test message_relaxed;
extern const Test message_acquired_late; // the load of the flag is relaxed
extern const Test message_through_add;   // a relaxed add in between
extern const Test message_through_store; // a relaxed store of another thread
extern const Test independent_seq_cst;
extern const Test independent_acquire;
extern const Test two_loads_of_one;
extern const Test weak_swap;
extern const Test plain_without_order;
extern const Test spins_for_ever;

} // namespace litmus

#endif
