// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#ifndef LAWN_BENCH_PEERS_EAL_H
#define LAWN_BENCH_PEERS_EAL_H

#include <string>

namespace bench
{

// Starts DPDK and its timers, without huge pages and devices, once in a
// process, on these lcores. It pins the thread that calls; that is undone. What
// is wrong; null: it runs.
const char *start_eal(const std::string &lcores);

} // namespace bench

#endif
