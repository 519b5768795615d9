// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The other programs of the durable tier.

#ifndef LAWN_LAWNCTL_BESIDE_H
#define LAWN_LAWNCTL_BESIDE_H

#include <string>

namespace lawnctl
{

// The path of this program. Ends it if it cannot be found.
std::string own_program();

// The path of a program beside this one, where both are installed, or where
// both are built; else its name, for execvp() to look for.
std::string program_beside(const std::string &name);

} // namespace lawnctl

#endif
