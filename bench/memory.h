// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a contender takes from the heap.

#ifndef LAWN_BENCH_MEMORY_H
#define LAWN_BENCH_MEMORY_H

#include "workloads.h"

namespace bench
{

// With all timers running, their nodes included, for each of them.
Result memory_per_timer(const Contender &contender, const Load &load);

// Before the first start.
Result memory_empty(const Contender &contender, const Load &load);

} // namespace bench

#endif
