// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The store's half of the durable tier, store/*.lua, as FUNCTION LOAD takes it.

#ifndef LAWN_SRC_DURABLE_SCRIPT_H
#define LAWN_SRC_DURABLE_SCRIPT_H

#include <string>

namespace lawn::durable
{

// The version of the library's protocol; lawn_version returns it.
constexpr int script_version = 5;

std::string script();

} // namespace lawn::durable

#endif
