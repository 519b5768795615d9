/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/time.h - the clock: ticks of the processor's counter.
 *
 *     lawn_clock_query(&info);                       // at start-up: calibrates
 *     lawn_time_t now = lawn_get_time();
 *     lawn_time_t deadline = now + lawn_time_from_usec(500);
 *     double usec = lawn_time_to_usec(lawn_get_time() - now);
 *
 * A tick is one count of the hardware counter: the TSC on x86-64, the virtual
 * counter on aarch64, `time` on riscv64. Where no counter can be trusted, a
 * tick is a nanosecond of CLOCK_MONOTONIC_RAW. Reading the counter costs about
 * 20 ns and no system call. A progress loop reads the clock once per pass and
 * passes the value on.
 *
 * The source is chosen at the first use and stays for the life of the process:
 * a clock that switches sources jumps, and a jump is a false timeout.
 * LAWN_CLOCK=clock_gettime in the environment forces CLOCK_MONOTONIC_RAW.
 *
 * The counter may stand still, jump forward or go back when the machine is
 * suspended, and when a guest is stopped, migrated or restored from a snapshot
 * (doc/design.md, "The clock"). The effect on timers:
 *   - If the counter stood still, each timer waits for the time that remained.
 *   - If the counter jumped forward, the time has passed for the timers. Due
 *     timers expire in the next advance. An engine first polls what its peers
 *     have sent meanwhile (lawn/engine.h, stalls).
 *   - If the counter went back, a bare lawn waits until the counter is where it
 *     was, so all timers are late by that much. An engine notices a counter
 *     that is behind its latest pass and continues from that pass: its timers
 *     keep the time that remained (lawn/engine.h).
 *
 * Threads: any thread may call all functions here at any time. No function
 * fails if its arguments are valid. The first use in a process opens files and
 * may take about 20 ms, for calibration. Call lawn_clock_query() at start-up to
 * have this done. A signal handler may call the functions only after the first
 * use has ended. A handler that interrupts the first use waits for ever,
 * because it waits for the thread that it has interrupted.
 */
#ifndef LAWN_TIME_H
#define LAWN_TIME_H

#include <lawn/base.h>

#include <stdbool.h>

LAWN_BEGIN_DECLS

/* A point in time, or a span of time, in ticks. */
typedef uint64_t lawn_time_t;

/* Never. A timer with this deadline does not fire. */
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
    bool invariant;       /* the CPU claims one rate in all power states */
    double ticks_per_sec; /* as found, not rounded */
    double error_ppm;     /* estimated bound on the error of ticks_per_sec */
} lawn_clock_info_t;

/* Tells which clock this process uses. Returns INVALID_PARAM if `info` is
 * NULL. */
static inline lawn_status_t lawn_clock_query(lawn_clock_info_t *info);
LAWN_API lawn_status_t lawn_clock_query_sized(lawn_clock_info_t *info,
                                              size_t size);

/* Returns the name of a source or of a method: "tsc", "cntvct", ... and
 * "cpuid-0x15", "calibration", and so on. An unknown value gives "unknown",
 * never NULL. */
LAWN_API const char *lawn_clock_source_name(lawn_clock_source_t source);
LAWN_API const char *lawn_clock_method_name(lawn_clock_method_t method);

/* Not for programs. True once the counter is known to be the clock.
 * lawn_get_time() is then a load, a branch and the counter's instruction. */
LAWN_API extern bool lawn_clock_is_counter;
LAWN_API lawn_time_t lawn_clock_read(void);

static inline bool lawn_clock_is_chosen_counter(void)
{
    return __builtin_expect(
        __atomic_load_n(&lawn_clock_is_counter, __ATOMIC_RELAXED), 1);
}

/* Returns the current time of the counter. A program that has an engine uses
 * lawn_engine_now() or lawn_engine_time() instead. The reading is not ordered
 * against other instructions (no fence). It may be some tens of cycles off
 * program order, never more. */
static inline lawn_time_t lawn_get_time(void)
{
#if defined(__x86_64__)
    if (lawn_clock_is_chosen_counter()) {
        return __builtin_ia32_rdtsc();
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

/* Returns the number of ticks per second. */
LAWN_API double lawn_time_sec_value(void);

/* Converts a span to ticks. The result is rounded up, because a timeout must
 * not be shortened. It saturates at LAWN_TIME_INFINITY. Negative values and NaN
 * give 0. */
LAWN_API lawn_time_t lawn_time_from_sec(double sec);
LAWN_API lawn_time_t lawn_time_from_msec(double msec);
LAWN_API lawn_time_t lawn_time_from_usec(double usec);
LAWN_API lawn_time_t lawn_time_from_nsec(double nsec);

/* Converts a span of `ticks` to other units. It never overflows.
 * LAWN_TIME_INFINITY is an ordinary number here: some centuries. */
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
