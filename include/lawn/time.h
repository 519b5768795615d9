/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/time.h - the clock: ticks of the processor's counter.
 *
 * A tick is whatever the hardware counts: the TSC on x86-64, the virtual
 * counter on aarch64, `time` on riscv64, nanoseconds of CLOCK_MONOTONIC_RAW
 * where no counter can be trusted. Reading it costs about 20 ns and no system
 * call; a progress loop reads it once per pass and hands the value down.
 *
 * The source is chosen at the first use and stays for the life of the process:
 * a clock that switches sources jumps, and a jump is a false timeout.
 * LAWN_CLOCK=clock_gettime in the environment forces the fallback.
 *
 * What the counter does when the machine does not run:
 *   - Suspended to memory, it stands still, goes on, or on some machines begins
 *     at 0 again.
 *   - A guest that is stopped, migrated or restored from a snapshot sees what
 *     its hypervisor makes of it: a counter that stood still, that jumped
 *     forward by the time away or to that of another host, or that went back,
 *     after a restore to where the snapshot was taken. If the new host counts
 *     at another rate and the hypervisor does not scale it, the ticks per
 *     second here are wrong for the rest of the process's life.
 *   - CLOCK_MONOTONIC_RAW, the fallback, does not count the time in suspend,
 *     and does not go back.
 *
 * What that does to timers: where the counter stood still, they wait for what
 * remained of them. Where it jumped forward, the time has passed for them: what
 * is due expires in the next advance, and an engine polls what its peers have
 * sent meanwhile first (lawn/engine.h, stalls). Where it went back, a bare lawn
 * waits until the counter is where it was: by so much are all timers late. An
 * engine notices a counter that went behind its latest pass, and goes on from
 * there: its timers keep what remained.
 *
 * Threads: any may call all functions here at any time, and none fails. The
 * first use in a process may take some 20 ms, for calibration, and opens files;
 * call lawn_clock_query() at start-up to have it behind you. A
 * signal handler may call them once it is: one that interrupts the first use
 * would wait for ever for the thread that it has interrupted.
 */
#ifndef LAWN_TIME_H
#define LAWN_TIME_H

#include <lawn/base.h>

#include <stdbool.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

LAWN_BEGIN_DECLS

/* A point in time or a span of it, in ticks. */
typedef uint64_t lawn_time_t;

/* Never; no timer with this deadline fires. */
#define LAWN_TIME_INFINITY UINT64_MAX

typedef enum {
    LAWN_CLOCK_TSC,          /* x86-64 rdtsc */
    LAWN_CLOCK_CNTVCT,       /* aarch64 cntvct_el0 */
    LAWN_CLOCK_RDTIME,       /* riscv64 time */
    LAWN_CLOCK_CLOCK_GETTIME /* CLOCK_MONOTONIC_RAW, 1 tick = 1 ns */
} lawn_clock_source_t;

/* How the ticks per second were found, in the order of preference. */
typedef enum {
    LAWN_CLOCK_BY_DEFINITION, /* clock_gettime: a nanosecond is 1e-9 s */
    LAWN_CLOCK_BY_CPUID,      /* leaf 0x15, crystal x ratio */
    LAWN_CLOCK_BY_HYPERVISOR, /* CPUID leaf 0x40000010, kHz */
    LAWN_CLOCK_BY_PERF,       /* mult and shift of a perf_event mmap page */
    LAWN_CLOCK_BY_FIRMWARE,   /* cntfrq_el0, checked against the kernel */
    LAWN_CLOCK_BY_CALIBRATION /* bracketed reads of CLOCK_MONOTONIC_RAW */
} lawn_clock_method_t;

typedef struct {
    lawn_clock_source_t source;
    lawn_clock_method_t method;
    bool invariant;       /* same rate in every power state, says the CPU */
    double ticks_per_sec; /* not rounded to any nice number */
    double error_ppm;     /* estimated bound of the error of ticks_per_sec */
} lawn_clock_info_t;

/* Tells which clock this process runs on. INVALID_PARAM if `info` is NULL. */
static inline lawn_status_t lawn_clock_query(lawn_clock_info_t *info);
LAWN_API lawn_status_t lawn_clock_query_sized(lawn_clock_info_t *info,
                                              size_t size);

/* Names of them: "tsc", "cntvct", ... and "cpuid-0x15", "calibration", ...;
 * never NULL. */
LAWN_API const char *lawn_clock_source_name(lawn_clock_source_t source);
LAWN_API const char *lawn_clock_method_name(lawn_clock_method_t method);

/* Not for programs: true once the counter is known to be the clock, so that
 * lawn_get_time() is a load, a branch and the counter's instruction. */
LAWN_API extern bool lawn_clock_is_counter;
LAWN_API lawn_time_t lawn_clock_read(void);

static inline bool lawn_clock_is_chosen_counter(void)
{
    return __builtin_expect(
        __atomic_load_n(&lawn_clock_is_counter, __ATOMIC_RELAXED), 1);
}

/* The time now, of the counter itself: a program that has an engine takes
 * lawn_engine_now() or lawn_engine_time(). Not ordered against other
 * instructions (no fence): a reading may be some tens of cycles off program
 * order, never more. */
static inline lawn_time_t lawn_get_time(void)
{
#if defined(__x86_64__)
    if (lawn_clock_is_chosen_counter()) {
        return __rdtsc();
    }
#elif defined(__aarch64__)
    if (lawn_clock_is_chosen_counter()) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#elif defined(__riscv) && __riscv_xlen == 64
    if (lawn_clock_is_chosen_counter()) {
        uint64_t ticks;
        __asm__ volatile("rdtime %0" : "=r"(ticks));
        return ticks;
    }
#endif
    return lawn_clock_read();
}

/* Ticks per second. */
LAWN_API double lawn_time_sec_value(void);

/* A span in ticks. Rounds up, since a timeout is never shortened; saturates at
 * LAWN_TIME_INFINITY; negative values and NaN give 0. */
LAWN_API lawn_time_t lawn_time_from_sec(double sec);
LAWN_API lawn_time_t lawn_time_from_msec(double msec);
LAWN_API lawn_time_t lawn_time_from_usec(double usec);
LAWN_API lawn_time_t lawn_time_from_nsec(double nsec);

/* The span of `ticks` in other units; never overflows. LAWN_TIME_INFINITY is
 * a number like any other here: some centuries. */
LAWN_API double lawn_time_to_sec(lawn_time_t ticks);
LAWN_API double lawn_time_to_msec(lawn_time_t ticks);
LAWN_API double lawn_time_to_usec(lawn_time_t ticks);
LAWN_API double lawn_time_to_nsec(lawn_time_t ticks);

static inline lawn_status_t lawn_clock_query(lawn_clock_info_t *info)
{
    return lawn_clock_query_sized(info, sizeof(*info));
}

LAWN_END_DECLS

#endif
