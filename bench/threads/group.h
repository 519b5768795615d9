// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What groups, sleepers and the service cost.

#ifndef LAWN_BENCH_THREADS_GROUP_H
#define LAWN_BENCH_THREADS_GROUP_H

namespace bench
{

void print_groups(bool is_quick);

} // namespace bench

#endif
