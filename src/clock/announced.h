// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a machine announces about its counter: whether the TSC may be the clock,
// and how fast the counter runs. clock.cc asks the machine. The functions here
// decide only on the data that they are given, so that tests can describe
// machines that they do not run on.

#ifndef LAWN_SRC_CLOCK_ANNOUNCED_H
#define LAWN_SRC_CLOCK_ANNOUNCED_H

#include "clock/calibrate.h"

#include <linux/perf_event.h>
#include <string.h>

namespace lawn
{

struct CpuidLeaf {
    uint32_t eax, ebx, ecx, edx;
};

// Returns CPUID of leaf `leaf`, subleaf 0.
using CpuidFn = CpuidLeaf (*)(void *arg, uint32_t leaf);

inline bool fallback_is_forced(const char *environment)
{
    return environment && strcmp(environment, "clock_gettime") == 0;
}

inline bool tsc_is_invariant(CpuidFn cpuid, void *arg)
{
    constexpr uint32_t power = 0x80000007;
    return cpuid(arg, 0x80000000).eax >= power &&
           (cpuid(arg, power).edx >> 8 & 1) != 0;
}

// Returns whether the TSC may be the clock. `clocksource` is the kernel's
// current clocksource, or NULL if it is unknown. The kernel watches the TSC and
// knows more errata than Lawn does, so its choice comes first. If the kernel
// uses the TSC, the TSC is good, even if a hypervisor hides the invariant flag.
// If the kernel uses a slow device, it has found the TSC unstable. Paravirtual
// clocks are computed from the TSC: with these the flag decides.
inline bool tsc_is_usable(bool invariant, const char *clocksource,
                          const char *environment)
{
    if (fallback_is_forced(environment)) {
        return false;
    }
    if (!clocksource) {
        return invariant;
    }
    if (strcmp(clocksource, "tsc") == 0) {
        return true;
    }
    const char *const on_tsc[] = {"kvm-clock", "xen", "tsc-early",
                                  "hyperv_clocksource_tsc_page"};
    for (const char *name : on_tsc) {
        if (strcmp(clocksource, name) == 0) {
            return invariant;
        }
    }
    return false;
}

// Leaf 0x15: the rate is that of a crystal of ECX Hz, multiplied by EBX / EAX.
inline Rate rate_by_cpuid(CpuidFn cpuid, void *arg)
{
    Rate rate = {LAWN_CLOCK_BY_CPUID, 0, 0};
    if (cpuid(arg, 0).eax < 0x15) {
        return rate;
    }
    const CpuidLeaf leaf = cpuid(arg, 0x15);
    if (leaf.eax && leaf.ebx && leaf.ecx) {
        // The product comes first, because it is exact in 64 bits.
        rate.ticks_per_sec =
            static_cast<double>(uint64_t{leaf.ecx} * leaf.ebx) / leaf.eax;
        rate.error_ppm = 1e6 / leaf.ecx;
    }
    return rate;
}

// Leaf 0x40000010, a convention of hypervisors: EAX is the rate in kHz.
inline Rate rate_by_hypervisor(CpuidFn cpuid, void *arg)
{
    constexpr uint32_t timing = 0x40000010;
    Rate rate = {LAWN_CLOCK_BY_HYPERVISOR, 0, 0};
    const bool hypervisor = (cpuid(arg, 1).ecx >> 31 & 1) != 0;
    if (!hypervisor || cpuid(arg, 0x40000000).eax < timing) {
        return rate;
    }
    const uint32_t khz = cpuid(arg, timing).eax;
    if (khz) {
        rate.ticks_per_sec = khz * 1e3;
        rate.error_ppm = 1e6 / khz;
    }
    return rate;
}

// The kernel's own conversion, ns = ticks * mult >> shift, from the page that
// is mapped from any perf event. The kernel may change the page at any time:
// `lock` is odd during a change and different after it.
inline Rate rate_by_perf(const perf_event_mmap_page *page)
{
    Rate rate = {LAWN_CLOCK_BY_PERF, 0, 0};
    for (unsigned i = 0; i < 1000; ++i) {
        const uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
        if (lock & 1) {
            continue;
        }
        // Acquire keeps each load before the second load of the lock.
        perf_event_mmap_page copy;
        copy.capabilities =
            __atomic_load_n(&page->capabilities, __ATOMIC_ACQUIRE);
        const uint32_t mult =
            __atomic_load_n(&page->time_mult, __ATOMIC_ACQUIRE);
        const unsigned shift =
            __atomic_load_n(&page->time_shift, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != lock) {
            continue;
        }
        if (copy.cap_user_time && mult && shift < 64) {
            rate.ticks_per_sec =
                1e9 * static_cast<double>(uint64_t{1} << shift) / mult;
            rate.error_ppm = 1e6 / mult;
        }
        break;
    }
    return rate;
}

// aarch64: cntfrq_el0, as the firmware has written it, right or wrong.
inline Rate rate_by_firmware(uint64_t hz)
{
    Rate rate = {LAWN_CLOCK_BY_FIRMWARE, 0, 0};
    if (hz) {
        rate.ticks_per_sec = static_cast<double>(hz);
        rate.error_ppm = 1e6 / static_cast<double>(hz);
    }
    return rate;
}

} // namespace lawn

#endif
