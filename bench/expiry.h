// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads in which timers expire, and the one of the grid; see
// workloads.h.

#ifndef LAWN_BENCH_EXPIRY_H
#define LAWN_BENCH_EXPIRY_H

#include "workloads.h"

namespace bench
{

Result tick(const Contender &contender, const Load &load);

// Distinct TTLs from load.ttls, 0: each timer one of its own.
Result expire_all(const Contender &contender, const Load &load);

// The same, of timers that were re-armed after their start.
Result expire_rearmed(const Contender &contender, const Load &load);

Result worst_advance(const Contender &contender, const Load &load);

} // namespace bench

#endif
