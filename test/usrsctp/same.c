/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Random calls of usrsctp's callouts, without threads. Prints what a caller can
 * see, which ci/usrsctp compares: what starts and stops return, and what fires
 * in each tick. A timer that fires early, late or twice is seen in the sums.
 */
#include <usrsctp.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <netinet/sctp_callout.h> /* wants sys/queue.h */

enum { TIMERS = 300, STEPS = 100000 };

static sctp_os_timer_t timers[TIMERS];
static uint64_t state;
static unsigned fired;
static unsigned starts[TIMERS];
static uint64_t sum;

static uint32_t random_below(uint32_t limit)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)((state >> 32) * limit >> 32);
}

static void start(size_t i, uint32_t ticks);

static int stop(size_t i)
{
    const int was_pending = sctp_os_timer_stop(&timers[i]);
    if (SCTP_OS_TIMER_PENDING(&timers[i]) || SCTP_OS_TIMER_ACTIVE(&timers[i])) {
        printf("%zu is stopped, and pending or active\n", i);
        exit(1);
    }
    sum += (uint64_t)was_pending * (i + 3);
    return was_pending;
}

/* A quarter of the timers start themselves again, a quarter stop themselves. */
static void on_timer(void *arg)
{
    const size_t i = (size_t)arg;
    if (SCTP_OS_TIMER_PENDING(&timers[i]) ||
        !SCTP_OS_TIMER_ACTIVE(&timers[i])) {
        printf("%zu is pending or not active\n", i);
        exit(1);
    }
    if (i % 3 != 0) {
        SCTP_OS_TIMER_DEACTIVATE(&timers[i]);
    }
    fired++;
    sum += (i + 1) * (i + 1) * (i + 1) + starts[i] * 1000003u;
    if (i % 4 == 0) {
        start(i, 1 + (uint32_t)i * 7);
    } else if (i % 4 == 1) {
        stop(i);
    }
}

static void start(size_t i, uint32_t ticks)
{
    starts[i]++;
    sum +=
        (uint64_t)sctp_os_timer_start(&timers[i], ticks, on_timer, (void *)i) *
        (i + 7);
}

static uint32_t random_ticks(void)
{
    static const uint32_t ranges[] = {3, 50, 5000, 1000000, INT32_MAX};
    return random_below(ranges[random_below(5)]);
}

static void pass(uint32_t ticks)
{
    const uint32_t before = sctp_get_tick_count();
    usrsctp_handle_timers(ticks);
    if (sctp_get_tick_count() - before != ticks) {
        printf("%u ticks are not %u\n", ticks, sctp_get_tick_count() - before);
        exit(1);
    }
    if (fired > 0) {
        printf("%u %u %llu\n", sctp_get_tick_count(), fired,
               (unsigned long long)sum);
        fired = 0;
        sum = 0;
    }
}

int main(int argc, char **argv)
{
    unsigned left = 0;
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    usrsctp_init_nothreads(0, NULL, NULL);
    for (size_t i = 0; i < TIMERS; ++i) {
        sctp_os_timer_init(&timers[i]);
    }
    for (unsigned step = 0; step < STEPS; ++step) {
        const uint32_t kind = random_below(1000);
        const size_t i = random_below(TIMERS);
        if (kind < 500) {
            start(i, random_ticks());
        } else if (kind < 700) {
            stop(i);
        } else if (kind < 995) {
            pass(random_below(20));
        } else {
            pass(random_below(kind == 999 ? 1 << 28 : 5000));
        }
    }
    for (size_t i = 0; i < TIMERS; ++i) {
        left += stop(i) != 0;
    }
    printf("%u were pending\n", left);
    while (usrsctp_finish() != 0) {
    }
    return 0;
}
