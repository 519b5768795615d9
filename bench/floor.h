// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The floor: what a workload costs without a timer scheme. It touches the same
// nodes in the same order as Lawn does, and keeps nothing, so that each figure
// stands beside what this machine's memory allows in the same run.
//
// What fires in which advance it has from a log: the workload is run with Lawn
// first, and is the same a second time, for the same seed. A start, a stop and
// an expiry are a load and two stores in the node's cache line, independent of
// each other, so that the processor overlaps as many cache misses as it can.
// What will fire is known, so it is asked for sixteen nodes ahead. An advance
// with nothing to fire counts one down.
//
// Included is what all contenders pay: the indirect call, the workload's random
// numbers, the list of what has expired, besides 4 bytes of the log for a timer
// that fires, read in sequence. Left out are the neighbours in lists, the lines
// of the structure itself, every decision by it, and what is touched again to
// be moved.
//
// It is no timer scheme and cannot be checked to be one; but where a workload
// checks what fires, it does so here too.

#ifndef LAWN_BENCH_FLOOR_H
#define LAWN_BENCH_FLOOR_H

#include "workloads.h"

#include <functional>

namespace bench
{

// For run_on_floor() alone.
Contender memory_floor();

// Runs a workload twice: with Lawn for the log, not measured, then without. The
// first takes several times as long, since the log must not end before it was
// measured for long enough; where it does, the measuring ends with it.
Result
run_on_floor(const std::function<Result(const Contender &, const Load &)> &run,
             const Load &load);

} // namespace bench

#endif
