// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads in which timers expire, and the one of the grid; see
// workloads.h.

#ifndef LAWN_BENCH_EXPIRY_H
#define LAWN_BENCH_EXPIRY_H

#include "workloads.h"

namespace bench
{

// Distinct TTLs from load.ttls, here and below; 0: each start one of its own.
Result tick(const Contender &contender, const Load &load);

Result expire_all(const Contender &contender, const Load &load);

// The same, of timers that were re-armed after their start.
Result expire_rearmed(const Contender &contender, const Load &load);

Result worst_advance(const Contender &contender, const Load &load);

} // namespace bench

#endif
