/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Random calls of the functions of lwip/timeouts.h. Prints what a caller can
 * see, which ci/lwip compares: what fires in each check. The clock wraps, jumps
 * and goes back; many timeouts have the same handler and argument. A timeout
 * that fires early, late or twice is seen in the sums, and so is a sleep that
 * is too long. A sleep may be too short.
 */
#include "lwip/init.h"
#include "lwip/timeouts.h"

#include <stdio.h>
#include <stdlib.h>

enum { IDS = 64, MOST = 1000, STEPS = 50000 };

static u32_t now;
static uint64_t state;
static unsigned counts[2][IDS]; /* that run */
static unsigned total;
static unsigned fired;
static uint64_t sum;

u32_t sys_now(void)
{
    return now;
}

static u32_t random_below(u32_t limit)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (u32_t)((state >> 32) * limit >> 32);
}

static void on_first(void *arg);
static void on_second(void *arg);
static const sys_timeout_handler handlers[2] = {on_first, on_second};

static void start(unsigned which, size_t id, u32_t msecs)
{
    if (total < MOST) {
        counts[which][id]++;
        total++;
        sys_timeout(msecs, handlers[which], (void *)id);
    }
}

static void stop(unsigned which, size_t id)
{
    const unsigned is_running = counts[which][id] > 0;
    counts[which][id] -= is_running;
    total -= is_running;
    sys_untimeout(handlers[which], (void *)id);
}

/* A quarter of the timeouts start themselves again. */
static void on_fired(unsigned which, size_t id)
{
    if (counts[which][id] == 0) {
        printf("%u/%zu fired and does not run\n", which, id);
        exit(1);
    }
    counts[which][id]--;
    total--;
    fired++;
    sum += (id + 1) * (id + 1) * (id + 1) + which * 1000003;
    if (id % 4 == 0) {
        start(which, id, 1 + (u32_t)id * 11);
    }
}

static void on_first(void *arg)
{
    on_fired(0, (size_t)arg);
}

static void on_second(void *arg)
{
    on_fired(1, (size_t)arg);
}

/* Until nothing is due: what handlers start for now fires in the same check or
 * in the next. */
static u32_t check(void)
{
    u32_t sleep;
    fired = 0;
    sum = 0;
    do {
        sys_check_timeouts();
        sleep = sys_timeouts_sleeptime();
    } while (sleep == 0);
    if (fired > 0) {
        printf("%u %u %llu\n", now, fired, (unsigned long long)sum);
    }
    return sleep;
}

/* Wakes when lwIP says so. */
static void sleep_for(u32_t passed)
{
    const u32_t end = now + passed;
    u32_t sleep = check();
    while (sleep < end - now) {
        now += sleep;
        sleep = check();
    }
    now = end;
    check();
}

static u32_t random_delay(void)
{
    static const u32_t ranges[] = {3, 50, 5000, 1000000, LWIP_UINT32_MAX / 4};
    return random_below(ranges[random_below(5)]);
}

static u32_t random_passed(void)
{
    const u32_t kind = random_below(1000);
    if (kind == 0) {
        return random_below(1 << 28);
    }
    return random_below(kind < 100 ? 5000 : 20);
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    now = (u32_t)-1000;
    lwip_init();
    for (unsigned step = 0; step < STEPS; ++step) {
        const u32_t kind = random_below(1000);
        const unsigned which = random_below(2);
        const size_t id = random_below(IDS);
        if (kind < 450) {
            start(which, id, random_delay());
        } else if (kind < 700) {
            stop(which, id);
        } else if (kind < 900) {
            now += random_passed();
            check();
        } else if (kind < 990) {
            sleep_for(random_below(100));
        } else if (kind < 998) {
            now -= random_below(1000);
        } else {
            sys_restart_timeouts();
            check();
        }
    }
    printf("%u run\n", total);
    return 0;
}
