/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Included before test_event_timer_adapter.c, whose threads poll, and want six
 * processors. With fewer, a thread that polls in vain sleeps for a moment, and
 * lets the others run. Otherwise they stand still for milliseconds, and the
 * test waits for no more than two. nap.c does the same for the threads of
 * services.
 */
#ifndef LAWN_CONTRIB_DPDK_NAP_H
#define LAWN_CONTRIB_DPDK_NAP_H

#include <rte_eventdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_ring.h>

#include <sched.h>
#include <stdbool.h>
#include <time.h>

/* Of each thread: how often in a row it has had nothing to do. It sleeps only
 * then, as events pass from thread to thread in small numbers. */
static inline void nap(bool is_idle)
{
    static __thread unsigned idle;
    const struct timespec moment = {0, 10000};
    idle = is_idle ? idle + 1 : 0;
    if (idle > 100) {
        nanosleep(&moment, NULL);
    } else if (idle > 0) {
        sched_yield();
    }
}

static inline uint16_t nap_or_events(uint8_t device, uint8_t port,
                                     struct rte_event *events, uint16_t count,
                                     uint64_t timeout)
{
    const uint16_t found =
        rte_event_dequeue_burst(device, port, events, count, timeout);
    nap(found == 0);
    return found;
}

static inline unsigned nap_or_elements(struct rte_ring *ring, void **elements,
                                       unsigned count, unsigned *left_p)
{
    const unsigned found =
        rte_ring_dequeue_burst(ring, elements, count, left_p);
    nap(found == 0);
    return found;
}

static inline int nap_or_element(struct rte_ring *ring, void **element_p)
{
    return nap_or_elements(ring, element_p, 1, NULL) == 1 ? 0 : -ENOENT;
}

static inline int nap_until_done(unsigned lcore)
{
    while (rte_eal_get_lcore_state(lcore) == RUNNING) {
        nap(true);
    }
    return rte_eal_wait_lcore(lcore);
}

static inline void nap_until_all_done(void)
{
    unsigned lcore;
    RTE_LCORE_FOREACH_WORKER(lcore)
    {
        nap_until_done(lcore);
    }
}

#define rte_event_dequeue_burst nap_or_events
#define rte_ring_dequeue_burst nap_or_elements
#define rte_ring_dequeue nap_or_element
#define rte_eal_wait_lcore nap_until_done
#define rte_eal_mp_wait_lcore nap_until_all_done

#endif
