// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared memory under the explorer: an owner, and clients that start, stop,
// wait and release, each a process that may be killed before any of its steps.
// A start that nobody stops or replaces comes back once, at its deadline. What
// a client had that was killed is free again.

#ifndef LAWN_TEST_EXPLORE_SHM_PROGRAM_H
#define LAWN_TEST_EXPLORE_SHM_PROGRAM_H

#include "scenarios.h"

#include <lawn/time.h>

#include <memory>
#include <vector>

namespace explore::shm
{

struct Op {
    enum What {
        alloc,
        alloc_again, // when one is free
        start,
        stop,
        wait,
        release,
        release_in_start, // when another thread has begun one
        open,
        close,
        read,      // the time
        step_back, // the owner's and all clients' counter, by `ttl`
        pass       // the time, by `ttl`
    } what;
    unsigned timer;
    lawn_time_t ttl; // seconds
};

// What is special about a scenario.
enum How : unsigned {
    is_killed = 1,   // the first client may be
    opens = 2,       // in steps of their own
    are_threads = 4, // of one client, which start one timer
    owner_closes = 8,
    pid_is_used_again = 16, // of the client that is killed
    one_place = 32,
    four_places = 64,
    one_timer = 128,
    goes_on = 256, // the first expiry of a timer is the owner's
    owner_drains = 512
};

struct ShmScenario {
    const char *name;
    std::vector<std::vector<Op>> clients;
    unsigned how = 0;

    bool has(How what) const
    {
        return (how & what) != 0;
    }
};

std::unique_ptr<Program> make_program(const ShmScenario &scenario);

} // namespace explore::shm

#endif
