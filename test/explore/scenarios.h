// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is explored of each room of the library: small programs of one or two
// threads and a few operations each, beside those that the library needs.

#ifndef LAWN_TEST_EXPLORE_SCENARIOS_H
#define LAWN_TEST_EXPLORE_SCENARIOS_H

#include "explorer.h"

#include <lawn/time.h>

#include <functional>
#include <memory>
#include <vector>

namespace explore
{

struct Scenario {
    const char *name;
    unsigned threads;
    std::function<std::unique_ptr<Program>()> make;
};

std::vector<Scenario> engine_scenarios();
std::vector<Scenario> group_scenarios();
std::vector<Scenario> service_scenarios();
std::vector<Scenario> shared_scenarios();
std::vector<Scenario> shm_scenarios();

Result explore(const Scenario &scenario, const Limits &limits);

// For set_up(): ends the program if it cannot be set up.
void require(bool holds);

// For callbacks: it is not before `due`, nor more than `most_late` after it.
void expect_in_time(lawn_time_t due, lawn_time_t most_late);

} // namespace explore

#endif
