// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers under the explorer: a box on a lawn, its owner, and threads
// that start, stop, retire and wait for the timers.
//
// Each store of a deadline has an operation as its author, which is a start, or
// ends the start whose deadline it takes away. A start ends once: it is called,
// superseded by another, or stopped by a stop that says so, by a retire, a
// destroy or a lawn_drain().
//
// Runs in which a user would break a rule are given up: those in which a timer
// is released while another thread is in a call for it, or is called for later.

#ifndef LAWN_TEST_EXPLORE_SHARED_PROGRAM_H
#define LAWN_TEST_EXPLORE_SHARED_PROGRAM_H

#include "scenarios.h"

#include <memory>
#include <string>
#include <vector>

namespace explore::shared
{

struct Op {
    enum What {
        // For a timer.
        start,
        local, // by the owner: lawn_shared_start_local()
        stop,
        sync,
        retire,
        // By the owner: its time, or until when it sleeps.
        pass, // a drain and an advance
        drain,
        advance,
        sleep,
        doze,  // and wake by itself
        empty, // the lawn
        destroy
    } what;
    unsigned timer;
    lawn_time_t time;
    unsigned budget;
    unsigned id; // from 1 on, for starts
};

using Ops = std::vector<Op>;

struct SharedScenario {
    std::string name;
    unsigned timers;
    Ops before;               // by the owner, alone
    std::vector<Ops> threads; // the owner first
    Ops on_call;              // in timer 0's first callback
};

std::unique_ptr<Program> make_program(const SharedScenario &scenario);

} // namespace explore::shared

#endif
