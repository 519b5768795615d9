// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Counts forks, to tell whether something was made in this process: the child
// of a fork has its parent's memory and descriptors, but not its threads.

#ifndef LAWN_SRC_BASE_FORKS_H
#define LAWN_SRC_BASE_FORKS_H

namespace lawn
{

// Forks from the process that first called count_forks() to this one.
extern unsigned forks;

// Has forks counted from now on. False, with errno, if there is no memory.
bool count_forks();

} // namespace lawn

#endif
