/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/rte_timer_alt.h - DPDK's timers that processes share, on lawn/shm.h.
 *
 *     uint32_t id;                             // the primary
 *     rte_timer_data_alloc(&id);
 *     for (;;)                                 // any of its lcores
 *         rte_timer_alt_manage(id, lcores, n, expired);
 *
 *     rte_timer_alt_reset(id, tim, ticks, SINGLE, lcore, NULL, arg);
 *     rte_timer_alt_stop(id, tim);             // any process
 *
 * `tim` must be in memory that all processes have at the same address, such as
 * that of rte_malloc() or a memzone. The names are as in lawn/rte_timer.h: with
 * lawn_ before them, or DPDK's own by lawn/rte_compat.h.
 *
 * As in DPDK, any process may start and stop timers, for any lcore of the
 * process that has allocated the data. That process runs them there, never
 * early, by a function of its own. The function may stop or reset its timer,
 * and free it after the stop. -1 means that another thread has the timer now.
 *
 * Not as in DPDK 22.11:
 *   - No process waits for another. DPDK's processes share locks: one that is
 *     killed while it has a lock stops all of them.
 *   - The pending timers of a process end with it, also if it is killed. The
 *     process that manages notices that in a pass, at most a millisecond later.
 *     Then any process may reset these timers; before that, it gets -EACCES. In
 *     DPDK such timers go on, and one that was being reset can never be used
 *     again.
 *   - The pending timers of an lcore end with the process that manages it. The
 *     next process that calls rte_timer_data_alloc() gets the same number,
 *     unless it has used that number itself. Other processes notice within a
 *     millisecond. What they start before that does not run.
 *   - Only the process that has started a pending timer may stop or reset it.
 *     Others get -EACCES. The function that runs the timer may do both.
 *   - Only the process that has allocated the data manages it, and calls
 *     rte_timer_stop_all(). In DPDK any may.
 *   - The child of a fork is another process: its timers are its own, and those
 *     of its parent are not. A child that is forked in the function that runs a
 *     timer must not return from it.
 *   - An lcore has places for LAWN_RTE_ALT_TIMERS timers of all processes
 *     together. Without a place, a reset gives -ENOSPC. A process keeps the
 *     places of its timers that have fired, and up to 64 of those that it has
 *     stopped, for the timers that it starts next. So it has as many places as
 *     it had timers pending at once.
 *   - The lcores are those of rte_timer_data_alloc(), and the highest number,
 *     RTE_MAX_LCORE - 1, which DPDK's event timer adapter uses for threads that
 *     have no lcore. DPDK takes any number below RTE_MAX_LCORE.
 *   - The numbers begin at 0. No number stands for the timers of
 *     lawn/rte_timer.h, as 0 does in DPDK.
 *   - Ticks that end beyond 2^64 never expire.
 *   - A pass over several lcores runs the timers of one after the other, in any
 *     order. DPDK runs all by their times.
 *   - A PERIODICAL timer stays on its lcore. In DPDK it goes to that of the
 *     caller of rte_timer_alt_manage().
 *   - A start that fails with -ENOSPC or -EINVAL leaves the timer stopped.
 *   - What lawn/rte_timer.h says of missed periods and of LCORE_ID_ANY.
 *   - No rte_timer_alt_dump_stats().
 *
 * A process allocates at its first call for an lcore, and opens files in
 * LAWN_RTE_ALT_DIR(), which is EAL's runtime directory.
 */
#ifndef LAWN_RTE_TIMER_ALT_H
#define LAWN_RTE_TIMER_ALT_H

#include <lawn/rte_timer.h>

#if defined(__has_include) && !defined(LAWN_RTE_ALT_DIR)
#if __has_include(<rte_eal.h>)
#include <rte_eal.h>
#define LAWN_RTE_ALT_DIR() rte_eal_get_runtime_dir()
#endif
#endif
#ifndef LAWN_RTE_ALT_DIR
#define LAWN_RTE_ALT_DIR() "/dev/shm"
#endif

/* Per lcore, in the process that allocates the data: 112 bytes each. */
#ifndef LAWN_RTE_ALT_TIMERS
#define LAWN_RTE_ALT_TIMERS 65536u
#endif

LAWN_BEGIN_DECLS

typedef void (*lawn_rte_timer_alt_manage_cb_t)(struct lawn_rte_timer *tim);
typedef void (*lawn_rte_timer_stop_all_cb_t)(struct lawn_rte_timer *tim,
                                             void *arg);

/* Makes timers for the lcores that there are. Stores the number by which all
 * processes know them, unless `id_ptr` is NULL. Returns 0, -ENOSPC if there are
 * 64 instances, -ENOMEM, or -EIO if the files cannot be made. Not for two
 * threads at once. */
static inline int lawn_rte_timer_data_alloc(uint32_t *id_ptr);

/* Ends the data in the process that has allocated it, or its use in another.
 * Pending timers are stopped, but rte_timer_pending() is still true. No other
 * call for it may be in progress. Returns 0, or -EINVAL for no such data. */
static inline int lawn_rte_timer_data_dealloc(uint32_t id);

/* Runs the due timers of the given lcores, or of the caller's if `poll_lcores`
 * is NULL. Skips lcores that another thread is managing. Returns 0, -EINVAL for
 * no such data or lcore, or -EACCES in a process that did not allocate it. */
static inline int lawn_rte_timer_alt_manage(uint32_t id,
                                            const unsigned *poll_lcores,
                                            int n_poll_lcores,
                                            lawn_rte_timer_alt_manage_cb_t f);

/* Starts a timer, or starts it anew, on `tim_lcore` of the process that manages
 * the data. Any thread of any process may call it. Returns 0, -1 if another
 * thread has the timer at the moment, -EACCES if another process has started
 * it, -ENOSPC, or -EINVAL for no such data or lcore, or one that this process
 * cannot open. The function of rte_timer_alt_manage() runs; it may read `f` and
 * `arg`. */
static inline int lawn_rte_timer_alt_reset(uint32_t id, lawn_rte_timer_t *tim,
                                           uint64_t ticks,
                                           enum lawn_rte_timer_type type,
                                           unsigned tim_lcore,
                                           lawn_rte_timer_cb_t fct, void *arg);

/* Stops a timer. Any thread of any process may call it. Returns 0, also if the
 * timer was stopped, whether there is such data or not: it will not run, and
 * its memory may be freed. -1, -EACCES and -EINVAL as rte_timer_alt_reset(). */
static inline int lawn_rte_timer_alt_stop(uint32_t id, lawn_rte_timer_t *tim);

/* Stops all pending timers of the given lcores, whichever process has started
 * them, and calls `f` with `f_arg` for each, unless it is NULL. The timer is
 * stopped by then: `f` may free it, or start it anew, which is then stopped
 * once more or not. Waits while another thread manages one of these lcores. So
 * it is not for the function of rte_timer_alt_manage(), nor for `f`. Returns 0,
 * -EINVAL for no such data or lcore, or -EACCES in a process that did not
 * allocate it. */
static inline int lawn_rte_timer_stop_all(uint32_t id,
                                          const unsigned *walk_lcores,
                                          int n_walk_lcores,
                                          lawn_rte_timer_stop_all_cb_t f,
                                          void *f_arg);

LAWN_END_DECLS

#include <lawn/rte_timer_alt_inline.h>

#endif
