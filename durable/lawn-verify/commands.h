// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a process of lawn-verify does, by its first word. Each takes its
// arguments and returns the exit status.

#ifndef LAWN_VERIFY_COMMANDS_H
#define LAWN_VERIFY_COMMANDS_H

#include "common.h"

namespace lawn_verify
{

// The one that its user calls, which starts all others.
int run_verify(const Settings &settings, Arguments &arguments);

int run_client(const Settings &settings, Arguments &arguments);
int run_consumer(const Settings &settings, Arguments &arguments);
int run_proxy(const Settings &settings, Arguments &arguments);

} // namespace lawn_verify

#endif
