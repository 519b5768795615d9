// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a contender takes from the heap.

#ifndef LAWN_BENCH_MEMORY_H
#define LAWN_BENCH_MEMORY_H

#include "workloads.h"

namespace bench
{

// With all timers running, with load.ttls distinct TTLs (0: continuous), their
// nodes included, for each of them.
Result memory_per_timer(const Contender &contender, const Load &load);

// The same as the system counts it: in pages that were touched, without what
// makes a node an object of its own cache lines.
Result resident_per_timer(const Contender &contender, const Load &load);

// Of this process now, in bytes; 0: cannot be told.
double heap_in_use();
double resident();

// What processes may still take of this machine, in bytes; infinite: cannot be
// told.
double available_memory();

// Before the first start.
Result memory_empty(const Contender &contender, const Load &load);

} // namespace bench

#endif
