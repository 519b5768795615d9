// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The processor's time of this thread, which an interruption does not lengthen.

#ifndef LAWN_BENCH_CPU_TIME_H
#define LAWN_BENCH_CPU_TIME_H

#include <time.h>

namespace bench
{

inline double cpu_nsec()
{
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) * 1e9 + double(time.tv_nsec);
}

} // namespace bench

#endif
