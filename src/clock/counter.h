// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the hardware counter of each architecture in program order. Programs
// read the counter without these fences (lawn/time.h). Calibration needs the
// fences, to be sure that the reference is read between two readings of the
// counter.

#ifndef LAWN_SRC_CLOCK_COUNTER_H
#define LAWN_SRC_CLOCK_COUNTER_H

#include <lawn/time.h>

namespace lawn
{

#if defined(__x86_64__)

constexpr lawn_clock_source_t counter_source = LAWN_CLOCK_TSC;

inline uint64_t read_counter(void *)
{
    __builtin_ia32_lfence();
    const uint64_t ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
}

#elif defined(__aarch64__)

constexpr lawn_clock_source_t counter_source = LAWN_CLOCK_CNTVCT;

inline uint64_t read_counter(void *)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb"
                     : "=r"(ticks)
                     :
                     : "memory");
    return ticks;
}

inline uint64_t read_counter_frequency()
{
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

#elif defined(__riscv) && __riscv_xlen == 64

constexpr lawn_clock_source_t counter_source = LAWN_CLOCK_RDTIME;

inline uint64_t read_counter(void *)
{
    uint64_t ticks;
    __asm__ volatile("fence\n\trdtime %0\n\tfence" : "=r"(ticks) : : "memory");
    return ticks;
}

#else

#define LAWN_NO_COUNTER 1

#endif

} // namespace lawn

#endif
