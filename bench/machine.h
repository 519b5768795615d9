// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The machine that figures are from.

#ifndef LAWN_BENCH_MACHINE_H
#define LAWN_BENCH_MACHINE_H

#include <string>

namespace bench
{

// Its processor, how many of them it has, and the compiler of this program, in
// a short line.
std::string machine();

} // namespace bench

#endif
