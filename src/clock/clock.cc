// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The clock of this process: which counter it reads, and how fast the counter
// runs (lawn/time.h). The first user chooses the clock, and other threads wait
// until it is chosen. There is no static constructor: a program that never asks
// for the time pays nothing.
//
// pthread_once() would not do. If a fork interrupts the choice, the choosing
// thread exists only in the parent. In the child, some C libraries and the
// thread sanitizer would wait for that thread for ever.

#include "base/base.h"
#include "clock/announced.h"
#include "clock/counter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool lawn_clock_is_counter = false;

namespace lawn
{
namespace
{

// 0 if the clock is not chosen. While a thread chooses it, the id of its
// process.
constexpr pid_t is_chosen = -1;
pid_t state;

lawn_clock_info_t chosen;

uint64_t read_reference(void *)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)

CpuidLeaf cpuid(void *, uint32_t leaf)
{
    CpuidLeaf regs;
    __cpuid_count(leaf, 0, regs.eax, regs.ebx, regs.ecx, regs.edx);
    return regs;
}

// Reads the kernel's clocksource into `name`. Returns NULL if sysfs is not
// mounted.
const char *read_clocksource(char *name, size_t size)
{
    const int fd = open("/sys/devices/system/clocksource/clocksource0/"
                        "current_clocksource",
                        O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return nullptr;
    }
    const ssize_t length = read(fd, name, size - 1);
    close(fd);
    if (length <= 0) {
        return nullptr;
    }
    name[length] = '\0';
    name[strcspn(name, "\n")] = '\0';
    return *name ? name : nullptr;
}

// Opens a software event that counts nothing. It needs no hardware and, within
// this process, no privilege. Containers often refuse it all the same.
Rate read_perf()
{
    Rate rate = {LAWN_CLOCK_BY_PERF, 0, 0};
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.type = PERF_TYPE_SOFTWARE;
    attr.size = sizeof(attr);
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    const long fd =
        syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        return rate;
    }
    const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void *page =
        mmap(nullptr, size, PROT_READ, MAP_SHARED, static_cast<int>(fd), 0);
    if (page != MAP_FAILED) {
        rate = rate_by_perf(static_cast<perf_event_mmap_page *>(page));
        munmap(page, size);
    }
    close(static_cast<int>(fd));
    return rate;
}

#endif

#if !defined(LAWN_NO_COUNTER)

bool counter_is_usable(const char *environment, bool *invariant)
{
#if defined(__x86_64__)
    char name[64];
    *invariant = tsc_is_invariant(cpuid, nullptr);
    return tsc_is_usable(*invariant, read_clocksource(name, sizeof(name)),
                         environment);
#else
    *invariant = true; // the architecture says so
    return !fallback_is_forced(environment);
#endif
}

bool find_rate(Rate *rate)
{
    const Clocks clocks = {read_counter, read_reference, nullptr};
#if defined(__x86_64__)
    const Rate announced[] = {rate_by_cpuid(cpuid, nullptr),
                              rate_by_hypervisor(cpuid, nullptr), read_perf()};
    return choose_rate(announced, 3, clocks, rate);
#elif defined(__aarch64__)
    const Rate announced = rate_by_firmware(read_counter_frequency());
    return choose_rate(&announced, 1, clocks, rate);
#else
    return choose_rate(nullptr, 0, clocks, rate);
#endif
}

#endif

void choose()
{
    lawn_clock_info_t info = {LAWN_CLOCK_CLOCK_GETTIME,
                              LAWN_CLOCK_BY_DEFINITION, true, 1e9, 0};
#if !defined(LAWN_NO_COUNTER)
    bool invariant;
    Rate rate;
    if (counter_is_usable(getenv("LAWN_CLOCK"), &invariant) &&
        find_rate(&rate)) {
        info = {counter_source, rate.method, invariant, rate.ticks_per_sec,
                rate.error_ppm};
    }
#endif
    chosen = info;
    // Relaxed is enough, because this store publishes nothing. A thread that
    // reads true reads the counter and no other data. A thread that still reads
    // false comes here through `state`, which orders `chosen`. The value
    // changes at most once.
    __atomic_store_n(&lawn_clock_is_counter,
                     info.source != LAWN_CLOCK_CLOCK_GETTIME, __ATOMIC_RELAXED);
}

void choose_once()
{
    const pid_t self = getpid();
    pid_t seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    while (seen != is_chosen) {
        if (seen == self) {
            // It sleeps instead of spinning, because a real-time thread that
            // spins could keep the choosing thread off its processor.
            const struct timespec pause = {0, 1000000};
            nanosleep(&pause, nullptr);
            seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&state, &seen, self, false,
                                               __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE)) {
            choose();
            seen = is_chosen;
            __atomic_store_n(&state, seen, __ATOMIC_RELEASE);
        }
    }
}

const lawn_clock_info_t &the_clock()
{
    if (LAWN_UNLIKELY(__atomic_load_n(&state, __ATOMIC_ACQUIRE) != is_chosen)) {
        choose_once();
    }
    return chosen;
}

} // namespace
} // namespace lawn

using namespace lawn;

lawn_status_t lawn_clock_query_sized(lawn_clock_info_t *info, size_t size)
{
    if (!info) {
        return LAWN_ERR_INVALID_PARAM;
    }
    copy_known(info, size, &the_clock(), sizeof(*info));
    return LAWN_OK;
}

lawn_time_t lawn_clock_read(void)
{
#if !defined(LAWN_NO_COUNTER)
    if (the_clock().source != LAWN_CLOCK_CLOCK_GETTIME) {
        return read_counter(nullptr);
    }
#endif
    return read_reference(nullptr);
}

double lawn_time_sec_value(void)
{
    return the_clock().ticks_per_sec;
}

const char *lawn_clock_source_name(lawn_clock_source_t source)
{
    switch (source) {
    case LAWN_CLOCK_TSC:
        return "tsc";
    case LAWN_CLOCK_CNTVCT:
        return "cntvct";
    case LAWN_CLOCK_RDTIME:
        return "rdtime";
    case LAWN_CLOCK_CLOCK_GETTIME:
        return "clock_gettime";
    }
    return "unknown";
}

const char *lawn_clock_method_name(lawn_clock_method_t method)
{
    switch (method) {
    case LAWN_CLOCK_BY_DEFINITION:
        return "definition";
    case LAWN_CLOCK_BY_CPUID:
        return "cpuid-0x15";
    case LAWN_CLOCK_BY_HYPERVISOR:
        return "hypervisor-0x40000010";
    case LAWN_CLOCK_BY_PERF:
        return "perf";
    case LAWN_CLOCK_BY_FIRMWARE:
        return "cntfrq";
    case LAWN_CLOCK_BY_CALIBRATION:
        return "calibration";
    }
    return "unknown";
}
