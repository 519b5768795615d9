// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The timers of other libraries, each in a file of its own, built where the
// library is found.

#ifndef LAWN_BENCH_PEERS_H
#define LAWN_BENCH_PEERS_H

#include "contender.h"

namespace bench
{

// Those of this build.
std::vector<Contender> peers();

} // namespace bench

#endif
