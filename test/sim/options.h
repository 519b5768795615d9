// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line of lawn_sim.

#ifndef LAWN_TEST_SIM_OPTIONS_H
#define LAWN_TEST_SIM_OPTIONS_H

#include "units.h"

namespace sim
{

struct Options {
    uint64_t first_seed = 1;
    uint64_t last_seed = 1;
    uint32_t connections = 2000;
    uint32_t hosts = 16;
    Nsec duration = hour;
    bool wants_all_kinds = false;
    bool is_quiet = false;
    bool is_verbose = false;
};

// Ends the program after --help, and with status 2 and one line when something
// is wrong.
Options parse_options(int argc, char **argv);

} // namespace sim

#endif
