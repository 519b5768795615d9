// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What this program has of lawnctl: its words, its output, and its client.

#ifndef LAWN_VERIFY_COMMON_H
#define LAWN_VERIFY_COMMON_H

#include "lawnctl/arguments.h"
#include "lawnctl/beside.h"
#include "lawnctl/client.h"
#include "lawnctl/output.h"

namespace lawn_verify
{

using lawnctl::Arguments;
using lawnctl::catch_signals;
using lawnctl::Client;
using lawnctl::complain;
using lawnctl::fail;
using lawnctl::Json;
using lawnctl::monotonic_now;
using lawnctl::own_program;
using lawnctl::print_line;
using lawnctl::program_beside;
using lawnctl::Progress;
using lawnctl::reason_of;
using lawnctl::require_success;
using lawnctl::Settings;
using lawnctl::Table;
using lawnctl::take_settings;
using lawnctl::was_signalled;

} // namespace lawn_verify

#endif
