// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a run came to, in words.

#ifndef LAWN_TEST_SIM_SUMMARY_H
#define LAWN_TEST_SIM_SUMMARY_H

#include "shared.h"

namespace sim
{

void print_summary(const Shared &shared, Nsec lived);

// The same in one line.
void print_line(const Shared &shared);

} // namespace sim

#endif
