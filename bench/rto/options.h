// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line of lawn_rto.

#ifndef LAWN_BENCH_RTO_OPTIONS_H
#define LAWN_BENCH_RTO_OPTIONS_H

#include "rto/measure.h"

namespace bench::rto
{

struct Options {
    Plan plan;
    std::vector<const Variant *> variants;
    std::vector<Tick> round_trips = {10 * microsecond};
    std::vector<size_t> windows = {1, 8};
    unsigned jobs = 1;
    bool is_check = false;
    unsigned first_losses = 0; // of so many new connections, and nothing else
    const char *csv = nullptr;
};

// Leaves the program for --help and --list (status 0) and for what it does not
// understand (one line, status 2).
Options parse_options(int argc, char **argv);

} // namespace bench::rto

#endif
