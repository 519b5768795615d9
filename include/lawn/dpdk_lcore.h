/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/dpdk_lcore.h - the loop of an lcore that has an engine.
 *
 *     lawn_dpdk_run_t params = {.goes_on = goes_on, .idle_passes = 1000};
 *     lawn_dpdk_run(engine, &params);                  // until told to end
 *
 * A loop that finds nothing for a while may let its processor rest until the
 * next packet or the next deadline, whichever comes first: with one receive
 * queue and UMWAIT by rte_power_monitor(), else with TPAUSE by
 * rte_power_pause(), which ends at its time, or with rte_pause(). None of these
 * is a system call, and none sleeps past a deadline. DPDK lets only an lcore
 * wait for a packet: for other threads it is as if the processor could not.
 *
 * liblawn does not link DPDK: your program does. Processors that can wait for a
 * packet or a time are asked for it if your program is built with
 * ALLOW_EXPERIMENTAL_API, as DPDK demands for these functions.
 */
#ifndef LAWN_DPDK_LCORE_H
#define LAWN_DPDK_LCORE_H

#include <lawn/dpdk.h>
#include <lawn/time.h>

#include <rte_cycles.h>
#include <rte_pause.h>
#include <rte_power_intrinsics.h>

#include <string.h>

LAWN_BEGIN_DECLS

typedef struct {
    /* Returns false to end the loop. Called before each pass. */
    bool (*goes_on)(void *arg);
    void *arg;
    unsigned idle_passes; /* until the processor rests; 0: it never does */
    /* The queue whose next packet ends a rest, if it is all that the lcore
     * polls; else NULL: a rest then is as long as `longest_rest`. */
    const lawn_dpdk_rx_t *rx;
    lawn_time_t longest_rest; /* ticks; 0: 10 us */
} lawn_dpdk_run_t;

/* Runs passes until told to end. */
static inline void lawn_dpdk_run(lawn_engine_t *engine,
                                 const lawn_dpdk_run_t *params);

/* How the processor of this thread can rest. The fields are the library's. */
typedef struct {
    const lawn_dpdk_rx_t *rx;
    struct rte_cpu_intrinsics has;
    double tsc_per_tick;
} lawn_dpdk_rest_t;

/* Asks the processor, which takes microseconds. `rx` is as in lawn_dpdk_run_t,
 * and must stay open. */
static inline void lawn_dpdk_rest_init(lawn_dpdk_rest_t *rest,
                                       const lawn_dpdk_rx_t *rx);

/* One rest, for loops of your own: after a pass that has done nothing. Returns
 * at the next deadline, at `until` ticks of the engine, or before. */
static inline void lawn_dpdk_rest(lawn_engine_t *engine,
                                  const lawn_dpdk_rest_t *rest,
                                  lawn_time_t until);

/* ---- Implementation ---- */

/* DPDK waits until a value of the TSC. The engine's clock is the same counter,
 * or, where Lawn does not trust that, the system's. */
static inline void lawn_dpdk_rest_init(lawn_dpdk_rest_t *rest,
                                       const lawn_dpdk_rx_t *rx)
{
    lawn_clock_info_t clock;
    lawn_clock_query(&clock);
    rest->rx = rx;
    rest->tsc_per_tick = clock.source != LAWN_CLOCK_CLOCK_GETTIME
                             ? 1
                             : (double)rte_get_tsc_hz() / clock.ticks_per_sec;
    memset(&rest->has, 0, sizeof(rest->has));
#ifdef ALLOW_EXPERIMENTAL_API
    rte_cpu_get_intrinsics_support(&rest->has);
#endif
}

static inline void lawn_dpdk_rest(lawn_engine_t *engine,
                                  const lawn_dpdk_rest_t *rest,
                                  lawn_time_t until)
{
    const lawn_time_t next = lawn_engine_next(engine);
    const lawn_time_t end = next < until ? next : until;
    const lawn_time_t now = lawn_engine_time(engine);
    if (end <= now) {
        return;
    }
#ifdef ALLOW_EXPERIMENTAL_API
    /* Half a minute at most, so that no product is too large. */
    const lawn_time_t most = lawn_time_from_sec(30);
    const lawn_time_t ticks = end - now < most ? end - now : most;
    const uint64_t tsc =
        rte_rdtsc() + (uint64_t)((double)ticks * rest->tsc_per_tick);
    struct rte_power_monitor_cond packet;
    if (rest->rx && rest->has.power_monitor &&
        rte_eth_get_monitor_addr(rest->rx->port, rest->rx->queue, &packet) ==
            0 &&
        rte_power_monitor(&packet, tsc) == 0) {
        return;
    }
    if (rest->has.power_pause && rte_power_pause(tsc) == 0) {
        return;
    }
#endif
    rte_pause();
}

static inline void lawn_dpdk_run(lawn_engine_t *engine,
                                 const lawn_dpdk_run_t *params)
{
    const lawn_time_t longest =
        params->longest_rest ? params->longest_rest : lawn_time_from_usec(10);
    lawn_dpdk_rest_t rest;
    unsigned idle = 0;
    lawn_dpdk_rest_init(&rest, params->rx);
    while (params->goes_on(params->arg)) {
        idle = lawn_engine_progress(engine) == 0 ? idle + 1 : 0;
        if (params->idle_passes != 0 && idle >= params->idle_passes) {
            lawn_dpdk_rest(engine, &rest, lawn_engine_now(engine) + longest);
        }
    }
}

LAWN_END_DECLS

#endif
