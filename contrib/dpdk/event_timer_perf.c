/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What DPDK's event timer adapter costs, in the software driver: TSC cycles for
 * one timer, by the number of timers. Prints a line for each:
 *
 *     event timer: OPERATION, COUNT timers: CYCLES cycles
 *
 * One thread arms, cancels, and runs the services of the adapter and of the
 * event device, so that nothing waits. The adapter's next pass, which takes
 * what was armed or cancelled, belongs to the cost of that.
 */
#include "test.h"

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_event_timer_adapter.h>
#include <rte_eventdev.h>
#include <rte_random.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include <stdio.h>

/* So few are due in a tick because the adapter has room for 4096 events that
 * the event device has not taken. A thread with a real-time priority may stand
 * still for 50 ticks. Of a million timers, only some expire, or it would take
 * long. */
enum { MOST = 1000000, MOST_DUE = 50000, DUE_IN_A_TICK = 75, BURST = 32 };
enum { MSEC = 1000000, FAR = 300000 }; /* in nanoseconds, and in ticks */

static struct rte_event_timer_adapter *adapter;
static uint32_t adapter_service, device_service;
static struct rte_event_timer *timers;
static struct rte_event_timer **order;

static int start_service(uint32_t service)
{
    return rte_service_component_runstate_set(service, 1) |
           rte_service_runstate_set(service, 1) |
           rte_service_set_runstate_mapped_check(service, 0);
}

static int set_up(void)
{
    const struct rte_event_timer_adapter_conf conf = {
        .timer_tick_ns = MSEC,
        .max_tmo_ns = UINT64_C(600000) * MSEC,
        .nb_timers = MOST,
    };
    struct rte_event_dev_config device = {0};
    struct rte_event_dev_info info;
    TEST_ASSERT_SUCCESS(rte_vdev_init("event_sw0", NULL), "no device");
    TEST_ASSERT_SUCCESS(rte_event_dev_info_get(0, &info), "no information");
    device.nb_event_ports = device.nb_event_queues = 1;
    device.nb_event_queue_flows = info.max_event_queue_flows;
    device.nb_event_port_dequeue_depth = info.max_event_port_dequeue_depth;
    device.nb_event_port_enqueue_depth = info.max_event_port_enqueue_depth;
    device.nb_events_limit = info.max_num_events;
    TEST_ASSERT_SUCCESS(rte_event_dev_configure(0, &device), "not configured");
    TEST_ASSERT_SUCCESS(rte_event_queue_setup(0, 0, NULL), "no queue");
    TEST_ASSERT_SUCCESS(rte_event_port_setup(0, 0, NULL), "no port");
    adapter = rte_event_timer_adapter_create(&conf);
    TEST_ASSERT_NOT_NULL(adapter, "no adapter");
    TEST_ASSERT(rte_event_port_link(0, 0, NULL, NULL, 0) == 1, "no link");
    TEST_ASSERT_SUCCESS(
        rte_event_timer_adapter_service_id_get(adapter, &adapter_service) |
            rte_event_dev_service_id_get(0, &device_service),
        "no services");
    TEST_ASSERT_SUCCESS(start_service(adapter_service) |
                            start_service(device_service),
                        "the services do not start");
    TEST_ASSERT_SUCCESS(rte_event_dev_start(0), "the device does not start");
    timers = calloc(MOST, sizeof(*timers));
    order = calloc(MOST, sizeof(struct rte_event_timer *));
    TEST_ASSERT(timers && order, "no memory");
    return TEST_SUCCESS;
}

static void shuffle(unsigned count)
{
    unsigned i;
    for (i = count - 1; i > 0; --i) {
        const unsigned other = rte_rand_max(i + 1);
        struct rte_event_timer *const timer = order[i];
        order[i] = order[other];
        order[other] = timer;
    }
}

static void make_timers(unsigned count)
{
    unsigned i;
    for (i = 0; i < count; ++i) {
        timers[i] = (struct rte_event_timer){
            .ev.op = RTE_EVENT_OP_NEW,
            .ev.sched_type = RTE_SCHED_TYPE_ATOMIC,
            .ev.event_type = RTE_EVENT_TYPE_TIMER,
        };
        order[i] = &timers[i];
    }
    shuffle(count);
}

/* Returns the cycles of a pass. The adapter looks at its timers once a tick. */
static uint64_t pass(void)
{
    const uint64_t begin = rte_rdtsc();
    rte_service_run_iter_on_app_lcore(adapter_service, 1);
    return rte_rdtsc() - begin;
}

static uint64_t pass_after_a_tick(void)
{
    rte_delay_us_block(1100);
    return pass();
}

static void set_random_times(unsigned count)
{
    unsigned i;
    for (i = 0; i < count; ++i) {
        timers[i].timeout_ticks = FAR + rte_rand_max(FAR);
    }
}

/* In the order in which they are armed, so that this does not take long. */
static void set_times_from(unsigned count, unsigned due, uint64_t least)
{
    unsigned i;
    for (i = 0; i < count; ++i) {
        order[i]->timeout_ticks = i < due ? least + i / DUE_IN_A_TICK : FAR;
    }
}

/* Arms all timers: for `ticks`, or, if that is 0, for the times that were
 * set. */
static int arm(unsigned count, uint64_t ticks, uint64_t *cycles_p)
{
    uint64_t begin;
    unsigned i;
    begin = rte_rdtsc();
    for (i = 0; i < count; i += BURST) {
        const uint16_t burst = RTE_MIN(count - i, (unsigned)BURST);
        const uint16_t armed =
            ticks != 0 ? rte_event_timer_arm_tmo_tick_burst(adapter, &order[i],
                                                            ticks, burst)
                       : rte_event_timer_arm_burst(adapter, &order[i], burst);
        TEST_ASSERT_EQUAL(armed, burst, "not armed: %s",
                          rte_strerror(rte_errno));
    }
    *cycles_p += rte_rdtsc() - begin;
    *cycles_p += pass_after_a_tick();
    return TEST_SUCCESS;
}

/* Cancels all timers from `first` on. */
static int cancel(unsigned first, unsigned count, uint64_t *cycles_p)
{
    uint64_t begin;
    unsigned i;
    begin = rte_rdtsc();
    for (i = first; i < count; i += BURST) {
        const uint16_t burst = RTE_MIN(count - i, (unsigned)BURST);
        TEST_ASSERT_EQUAL(
            rte_event_timer_cancel_burst(adapter, &order[i], burst), burst,
            "not cancelled: %s", rte_strerror(rte_errno));
    }
    *cycles_p += rte_rdtsc() - begin;
    *cycles_p += pass_after_a_tick();
    return TEST_SUCCESS;
}

/* Takes what the device has, which hands out a few events at a time. */
static unsigned take_events(void)
{
    struct rte_event events[BURST];
    unsigned taken = 0, idle = 0;
    while (idle < 3) {
        uint16_t now;
        rte_service_run_iter_on_app_lcore(device_service, 1);
        now = rte_event_dequeue_burst(0, 0, events, BURST, 0);
        taken += now;
        idle = now == 0 ? idle + 1 : 0;
    }
    return taken;
}

/* Counts only passes in which timers expired or events were sent. In between,
 * the adapter waits for its next tick. This thread sleeps then, since one with
 * a real-time priority that does not is stopped for long now and then. */
static int expire(unsigned count, uint64_t *cycles_p)
{
    const uint64_t begin = rte_rdtsc();
    struct rte_event_timer_adapter_stats stats;
    uint64_t done = 0;
    unsigned taken = 0;
    rte_event_timer_adapter_stats_reset(adapter);
    while (taken < count) {
        const uint64_t cycles = pass();
        rte_event_timer_adapter_stats_get(adapter, &stats);
        if (stats.evtim_exp_count + stats.ev_enq_count != done) {
            done = stats.evtim_exp_count + stats.ev_enq_count;
            *cycles_p += cycles;
        } else {
            rte_delay_us_sleep(100);
        }
        taken += take_events();
        TEST_ASSERT_EQUAL(stats.evtim_retry_count, 0, "the buffer was full");
        TEST_ASSERT(rte_rdtsc() - begin < 60 * rte_get_tsc_hz(),
                    "%u of %u timers have expired", taken, count);
    }
    return TEST_SUCCESS;
}

static void print(const char *operation, unsigned count, uint64_t cycles,
                  unsigned rounds)
{
    printf("event timer: %s, %u timers: %.1f cycles\n", operation, count,
           (double)cycles / count / rounds);
}

static int measure(unsigned count, unsigned rounds)
{
    const unsigned due = RTE_MIN(count, (unsigned)MOST_DUE);
    uint64_t same = 0, each = 0, cancelled = 0, expired = 0, unused = 0;
    unsigned i;
    for (i = 0; i < rounds; ++i) {
        const uint64_t before = same;
        uint64_t least;
        make_timers(count);
        if (arm(count, FAR, &same) || cancel(0, count, &unused)) {
            return TEST_FAILED;
        }
        /* None is due before the last is armed, with time to spare. */
        least = 60 + 4 * (same - before) * 1000 / rte_get_tsc_hz();
        set_random_times(count);
        if (arm(count, 0, &each)) {
            return TEST_FAILED;
        }
        shuffle(count);
        if (cancel(0, count, &cancelled)) {
            return TEST_FAILED;
        }
        set_times_from(count, due, least);
        if (arm(count, 0, &unused) || expire(due, &expired) ||
            cancel(due, count, &unused)) {
            return TEST_FAILED;
        }
    }
    print("arm, one time for all", count, same, rounds);
    print("arm, a random time each", count, each, rounds);
    print("cancel", count, cancelled, rounds);
    print("expiry", count, expired * (count / due), rounds);
    return TEST_SUCCESS;
}

static int test_event_timer_perf(void)
{
    unsigned count;
    if (set_up() != TEST_SUCCESS) {
        return TEST_FAILED;
    }
    for (count = 1000; count <= MOST; count *= 10) {
        const unsigned rounds = RTE_MIN(MOST / count, 10U);
        if (measure(count, count < 100000 ? rounds : 1) != TEST_SUCCESS) {
            return TEST_FAILED;
        }
    }
    rte_event_timer_adapter_free(adapter);
    rte_event_dev_stop(0);
    rte_event_dev_close(0);
    free(timers);
    free(order);
    return TEST_SUCCESS;
}

REGISTER_TEST_COMMAND(event_timer_perf_autotest, test_event_timer_perf);
