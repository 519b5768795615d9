/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer.h - the calls of DPDK's rte_timer, on top of a lawn per lcore.
 *
 * The calls are named lawn_rte_timer_...; this text uses DPDK's names, which
 * lawn/rte_compat.h defines. If DPDK's headers are found, lcores and ticks are
 * EAL's. Otherwise ticks are lawn_get_time()'s, and there is one lcore, for one
 * thread. For more lcores, define LAWN_RTE_MAX_LCORE, and LAWN_RTE_LCORE_ID()
 * to tell the caller's lcore.
 *
 * As in DPDK, any thread may reset and stop any timer, for any lcore. That
 * lcore runs the timer's function when it calls rte_timer_manage(), never
 * early, and holds no lock meanwhile. Such a call is a pass. From the pass that
 * finds a timer due until its function returns, the timer is not pending. Other
 * lcores' calls for it return -1 then. The _sync calls wait instead, so a
 * timer's function must not use them. The function may reset or stop its own
 * timer, here or for another lcore, and free it after the stop. A timer reset
 * to 0 ticks runs in the next pass. PERIODICAL timers keep their phase; with 0
 * ticks they are SINGLE.
 *
 * Not as in DPDK 22.11:
 *   - A reset or expiry costs O(1). In DPDK, O(log n) for n pending timers.
 *   - Timers due in one pass run in any order. DPDK orders them by time.
 *   - A function may also reset, stop and free other timers that are due in the
 *     same pass, and they then do not run. In DPDK these calls return -1, and
 *     the _sync calls never return.
 *   - After missed periods a function runs once for all. In DPDK it runs once
 *     for each, one per pass: after a stall of 50 periods, 50 times in a row.
 *   - Ticks that end beyond 2^64 never expire. In DPDK they wrap: due at once.
 *   - LCORE_ID_ANY is the caller's lcore; a thread without an lcore gets
 *     -EINVAL. In DPDK it is another lcore each time.
 *   - The lcores are those of rte_timer_subsystem_init(). Others, such as those
 *     of threads registered later, give -EINVAL. So does an lcore that does not
 *     exist, and any call before rte_timer_subsystem_init().
 *   - rte_timer_next_ticks() may return less than the time left, never more.
 *     rte_timer_manage() inside a function does nothing.
 *   - Each process has its own timers. Timers of several processes use
 *     rte_timer_alt_...() of lawn/rte_timer_alt.h. A shared library uses the
 *     timers of the program if the program exports lawn_rte_timers.
 *   - rte_timer_dump_stats() tells how many timers are pending, in any build.
 *     With RTE_LIBRTE_TIMER_DEBUG it tells what DPDK's tells: the resets, stops
 *     and passes of the files compiled with that macro.
 *   - No rte_timer_stop_all() for these timers, but for those of
 *     lawn/rte_timer_alt.h. No fields except `period`, `f` and `arg`.
 *
 * An lcore takes a lawn of 22 KiB, a timer 88 bytes. Only the subsystem's init
 * allocates, and only its finalize frees.
 */
#ifndef LAWN_RTE_TIMER_H
#define LAWN_RTE_TIMER_H

#include <lawn/timer.h>

#include <stdio.h>

#if defined(__has_include) && !defined(LAWN_RTE_LCORE_ID)
#if __has_include(<rte_lcore.h>) && __has_include(<rte_cycles.h>)
#include <rte_config.h>
#include <rte_cycles.h>
#include <rte_lcore.h>
#define LAWN_RTE_LCORE_ID() rte_lcore_id()
#define LAWN_RTE_MAX_LCORE RTE_MAX_LCORE
#define LAWN_RTE_HAS_LCORE(id) (rte_eal_lcore_role(id) != ROLE_OFF)
#define LAWN_RTE_CYCLES() rte_get_timer_cycles()
#endif
#endif
#ifndef LAWN_RTE_LCORE_ID
#define LAWN_RTE_LCORE_ID() 0u
#endif
#ifndef LAWN_RTE_MAX_LCORE
#define LAWN_RTE_MAX_LCORE 1u
#endif
#ifndef LAWN_RTE_HAS_LCORE
#define LAWN_RTE_HAS_LCORE(id) true
#endif
#ifndef LAWN_RTE_CYCLES
#define LAWN_RTE_CYCLES() lawn_get_time()
#endif

LAWN_BEGIN_DECLS

#define LAWN_RTE_LCORE_ID_ANY UINT32_MAX

enum lawn_rte_timer_type { LAWN_RTE_TIMER_SINGLE, LAWN_RTE_TIMER_PERIODICAL };

typedef struct lawn_rte_timer lawn_rte_timer_t;
typedef void (*lawn_rte_timer_cb_t)(struct lawn_rte_timer *tim, void *arg);

/* Zero-filled is a valid stopped timer. */
struct lawn_rte_timer {
    __extension__ union {
        lawn_timer_t timer; /* first: its address is the whole's */
        uint32_t slot;      /* for lawn/rte_timer_alt.h */
    };
    struct lawn_rte_timer *next; /* in the list of due timers */
    struct lawn_rte_timer *prev;
    uint64_t period; /* 0: single */
    lawn_rte_timer_cb_t f;
    void *arg;
    uint64_t status; /* lawn_rte_status() */
};

/*
 * All times are in ticks of LAWN_RTE_CYCLES(). Nothing but init allocates.
 */

/* Makes a lawn for each lcore that there is. Returns 0, -ENOMEM, or -EALREADY
 * if that was done before (no error). Not for two threads at once. */
static inline int lawn_rte_timer_subsystem_init(void);

/* Frees the lawns. Pending timers never run; their memory may be gone. They may
 * be reset after the next init. No other call may be in progress. */
static inline void lawn_rte_timer_subsystem_finalize(void);

/* Makes a stopped timer. The memory is the caller's. Not for a timer that is
 * pending. */
static inline void lawn_rte_timer_init(lawn_rte_timer_t *tim);

/* Starts a timer, or starts it anew: `fct` runs with `arg` on `tim_lcore`, in
 * the first pass at least `ticks` from now. A PERIODICAL timer then starts
 * again. Any thread may call it. Returns 0, -1 if another lcore has the timer
 * at the moment (try again), or -EINVAL for no such lcore; the timer is then
 * unchanged. */
static inline int lawn_rte_timer_reset(lawn_rte_timer_t *tim, uint64_t ticks,
                                       enum lawn_rte_timer_type type,
                                       unsigned tim_lcore,
                                       lawn_rte_timer_cb_t fct, void *arg);

/* rte_timer_reset() with `ticks` counted from `now`. DPDK has no such call. */
static inline int lawn_rte_timer_reset_at(lawn_rte_timer_t *tim, uint64_t now,
                                          uint64_t ticks,
                                          enum lawn_rte_timer_type type,
                                          unsigned tim_lcore,
                                          lawn_rte_timer_cb_t fct, void *arg);

/* rte_timer_reset(), again and again while another lcore has the timer. Does
 * nothing if there is no such lcore. Not for the function of a timer. */
static inline void
lawn_rte_timer_reset_sync(lawn_rte_timer_t *tim, uint64_t ticks,
                          enum lawn_rte_timer_type type, unsigned tim_lcore,
                          lawn_rte_timer_cb_t fct, void *arg);

/* Stops a timer: it will not run, and its memory may be freed. Any thread may
 * call it. Returns 0, also for a stopped timer, -1 if another lcore has the
 * timer at the moment (try again), or -EINVAL before init. */
static inline int lawn_rte_timer_stop(lawn_rte_timer_t *tim);

/* rte_timer_stop(), again and again while another lcore has the timer: its
 * function has returned. Not for the function of a timer. */
static inline void lawn_rte_timer_stop_sync(lawn_rte_timer_t *tim);

/* Returns 1 from the reset until a pass finds the timer due or a stop, else 0.
 * Any thread may call it. Another thread may have changed it since. */
static inline int lawn_rte_timer_pending(lawn_rte_timer_t *tim);

/* A pass: runs the due timers of the caller's lcore. Returns 0, or -EINVAL if
 * the caller has no lcore. In the function of a timer it does nothing. */
static inline int lawn_rte_timer_manage(void);

/* rte_timer_manage() at `now`. If `now` goes back, the latest time seen counts.
 * DPDK has no such call. */
static inline int lawn_rte_timer_manage_at(uint64_t now);

/* Returns the ticks until a pass of the caller's lcore may have something to
 * do, -ENOENT if no timer is pending there, or -EINVAL if it has no lcore. */
static inline int64_t lawn_rte_timer_next_ticks(void);

/* rte_timer_next_ticks() counted from `now`. DPDK has no such call. */
static inline int64_t lawn_rte_timer_next_ticks_at(uint64_t now);

/* Writes the statistics of all lcores together to `f`. Any thread may call it.
 * Returns 0, or -EINVAL before init. */
static inline int lawn_rte_timer_dump_stats(FILE *f);

LAWN_END_DECLS

#include <lawn/rte_timer_inline.h>

#endif
