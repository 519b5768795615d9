// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Every atomic step is a fault: each store left out, or made after the next
// step, each load of an old value, each order weakened, line by line. Which of
// them do the scenarios notice?

#ifndef LAWN_TEST_EXPLORE_FAULTS_H
#define LAWN_TEST_EXPLORE_FAULTS_H

#include "scenarios.h"

#include <string>
#include <vector>

namespace explore
{

// One for all the places that a line of the source has been made into.
struct LineFault {
    std::string line; // file:number, in src/
    const char *kind; // "left out", "later", "stale", "weaker"
    Fault fault;
    std::vector<const Scenario *> scenarios; // that come to it
};

// Those of lines that begin with one of `files`, which may be a folder.
std::vector<LineFault> find_faults(const std::vector<std::string> &files);

// Returns what was noticed, or "".
std::string try_fault(const LineFault &fault);

} // namespace explore

#endif
