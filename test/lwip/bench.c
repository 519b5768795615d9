/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What lwIP's timers cost while COUNT timeouts run, each of up to ten seconds.
 * Prints nanoseconds per call of one kind; or, with REPEATS, makes that many
 * calls, which ci/lwip counts by callgrind in measured().
 *
 *     bench KIND COUNT [REPEATS]
 */
#include "lwip/def.h"
#include "lwip/init.h"
#include "lwip/timeouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LONGEST = 10000, CHOICES = 4096, BATCH = 64, CYCLIC = 1000 };

static u32_t now;
static uint64_t state = 1;
static size_t count;
static unsigned long fired;
static size_t ids[CHOICES];
static u32_t delays[CHOICES];
static unsigned turn;

u32_t sys_now(void)
{
    return now;
}

static uint64_t random_below(uint64_t limit)
{
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 32) * limit >> 32;
}

static u32_t next_delay(void)
{
    return delays[turn++ % CHOICES];
}

static void on_timeout(void *arg)
{
    fired++;
    sys_timeout(next_delay(), on_timeout, arg);
}

/* A timeout that is stopped again: a request that is answered. */
static void do_request(void)
{
    sys_timeout(next_delay(), on_timeout, (void *)count);
    sys_untimeout(on_timeout, (void *)count);
}

/* One of those that run is put off: a connection that receives. */
static void do_rearm(void)
{
    void *const arg = (void *)ids[turn % CHOICES];
    sys_untimeout(on_timeout, arg);
    sys_timeout(next_delay(), on_timeout, arg);
}

static void do_idle(void)
{
    sys_check_timeouts();
}

static void do_sleep(void)
{
    (void)sys_timeouts_sleeptime();
}

/* What is due next fires, and starts again. */
static void do_expire(void)
{
    now += sys_timeouts_sleeptime();
    sys_check_timeouts();
}

static const struct {
    const char *name;
    void (*call)(void);
} kinds[] = {{"request", do_request},
             {"rearm", do_rearm},
             {"idle", do_idle},
             {"sleep", do_sleep},
             {"expire", do_expire}};

void measured(void (*call)(void), unsigned long repeats);

__attribute__((noinline)) void measured(void (*call)(void),
                                        unsigned long repeats)
{
    for (unsigned long i = 0; i < repeats; ++i) {
        call();
    }
}

static int compare(const void *a, const void *b)
{
    const u32_t left = *(const u32_t *)a;
    const u32_t right = *(const u32_t *)b;
    return left < right ? 1 : -(left > right);
}

/* Starts the latest first, which costs lwIP's list least. */
static void fill(void)
{
    u32_t *const sorted = malloc(count * sizeof *sorted);
    size_t *const order = malloc(count * sizeof *order);
    for (size_t i = 0; i < count; ++i) {
        const size_t other = random_below(i + 1);
        sorted[i] = 1 + (u32_t)random_below(LONGEST);
        order[i] = order[other];
        order[other] = i;
    }
    qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count; ++i) {
        sys_timeout(sorted[i], on_timeout, (void *)order[i]);
    }
    for (size_t i = 0; i < CHOICES; ++i) {
        ids[i] = random_below(count);
        delays[i] = 1 + (u32_t)random_below(LONGEST);
    }
    free(sorted);
    free(order);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    void (*call)(void) = NULL;
    unsigned long repeats = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    unsigned long calls = 0;
    double begin;
    double spent;
    u32_t since;

    for (size_t i = 0; argc > 2 && i < LWIP_ARRAYSIZE(kinds); ++i) {
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            call = kinds[i].call;
        }
    }
    if (!call) {
        fputs("usage: bench KIND COUNT [REPEATS]\n", stderr);
        return 2;
    }
    count = strtoul(argv[2], NULL, 10);
    lwip_init();
    fill();
    since = now;
    begin = seconds();
    if (repeats) {
        measured(call, repeats);
        calls = repeats;
    }
    do {
        if (!repeats) {
            measured(call, BATCH);
            calls += BATCH;
        }
        spent = seconds() - begin;
    } while (!repeats && spent < 0.2);
    if (call == do_expire) { /* with those of lwIP's cyclic timer */
        calls = fired + (now - since) / CYCLIC;
    }
    printf("%.1f %lu\n", spent * 1e9 / (double)calls, calls);
    return 0;
}
