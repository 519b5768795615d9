// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line of lawn_bench.

#ifndef LAWN_BENCH_OPTIONS_H
#define LAWN_BENCH_OPTIONS_H

#include "arguments.h"
#include "workloads.h"

#include <string>

namespace bench
{

struct Options {
    std::vector<size_t> sizes;
    std::vector<const Workload *> workloads; // none with --grid alone
    std::vector<size_t> grid_sizes;          // none without --grid
    std::vector<size_t> ttls;                // of the grid
    std::vector<const Contender *> contenders;
    unsigned repetitions = 5;
    double limit_sec = 0.05;
    const char *csv = nullptr;
    const char *plot = nullptr; // directory
    const char *replay = nullptr;
};

// Leaves the program for --help (status 0) and for what it does not understand
// (one line, status 2).
Options parse_options(int argc, char **argv);

} // namespace bench

#endif
