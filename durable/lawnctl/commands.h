// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The commands of lawnctl. Each takes its arguments, does its work, prints what
// there is to print, and returns the exit status.

#ifndef LAWN_LAWNCTL_COMMANDS_H
#define LAWN_LAWNCTL_COMMANDS_H

#include "arguments.h"
#include "client.h"

namespace lawnctl
{

int command_start(const Settings &settings, Arguments &arguments);
int command_update(const Settings &settings, Arguments &arguments);
int command_stop(const Settings &settings, Arguments &arguments);
int command_get(const Settings &settings, Arguments &arguments);
int command_consume(const Settings &settings, Arguments &arguments);
int command_list(const Settings &settings, Arguments &arguments);
int command_dead(const Settings &settings, Arguments &arguments);
int command_stats(const Settings &settings, Arguments &arguments);
int command_drain(const Settings &settings, Arguments &arguments);
int command_acknowledge(const Settings &settings, Arguments &arguments);
int command_load(const Settings &settings, Arguments &arguments);

} // namespace lawnctl

#endif
