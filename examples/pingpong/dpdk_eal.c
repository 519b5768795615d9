/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * Starting EAL. If the command line has no arguments for EAL, it gets defaults
 * that work on any machine: no huge pages, no devices, two lcores and little
 * output.
 */
#include "dpdk_eal.h"

#include "options.h"

#include <rte_alarm.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How much EAL's ticks per second and Lawn's may differ, as a share. EAL rounds
 * its own measurement to 10 MHz, which is half a percent of a slow TSC. */
#define CLOCK_TOLERANCE 0.01

eal_arguments_t eal_split(int *argc, char ***argv)
{
    eal_arguments_t eal = {0, *argv + 1, false};
    for (int i = 1; i < *argc; ++i) {
        if (strcmp((*argv)[i], "--") == 0) {
            eal.count = i - 1;
            eal.are_given = true;
            *argc -= i;
            *argv += i; /* "--" takes the place of the program's name */
            break;
        }
    }
    return eal;
}

/* Writes the argument that puts lcores 0 and 1 on the first two processors that
 * we may use. If there is only one processor, both lcores are on it. */
static void print_lcores(char *text, size_t size)
{
    cpu_set_t allowed;
    size_t cpus[2] = {0, 0};
    unsigned found = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
        for (size_t cpu = 0; cpu < CPU_SETSIZE && found < 2; ++cpu) {
            if (CPU_ISSET(cpu, &allowed)) {
                cpus[found++] = cpu;
            }
        }
    }
    snprintf(text, size, "--lcores=0@%zu,1@%zu", cpus[0],
             found == 2 ? cpus[1] : cpus[0]);
}

/* EAL's rte_rdtsc() and lawn_get_time() read the same counter, unless Lawn does
 * not trust it. If they do, times of the one are times of the other, and a
 * program may give either to Lawn. This program takes the time only from Lawn,
 * so it only prints a note if the clocks differ. */
static void check_clocks(void)
{
    lawn_clock_info_t clock;
    double eal = (double)rte_get_tsc_hz();
    lawn_clock_query(&clock);
    if (fabs(clock.ticks_per_sec / eal - 1) > CLOCK_TOLERANCE) {
        complain("note: EAL counts %.0f ticks a second, Lawn %.0f (%s): do "
                 "not mix them",
                 eal, clock.ticks_per_sec,
                 lawn_clock_source_name(clock.source));
    }
}

static bool initialise(int argc, char **argv)
{
    int used = rte_eal_init(argc, argv);
    if (used < 0) {
        complain("cannot start EAL: %s (--log-level=debug before -- tells "
                 "more)",
                 rte_strerror(rte_errno));
        return false;
    }
    if (used < argc - 1) {
        complain("not an argument of EAL's: %s", argv[used + 1]);
        rte_eal_cleanup();
        return false;
    }
    return true;
}

bool eal_start(const eal_arguments_t *given)
{
    char lcores[48];
    char *defaults[] = {"--no-huge", "--no-pci", "--no-shconf",
                        "--no-telemetry", lcores};
    const size_t default_count = sizeof(defaults) / sizeof(defaults[0]);
    print_lcores(lcores, sizeof(lcores));
    const size_t count =
        given->are_given ? (size_t)given->count : default_count;
    char **const values = given->are_given ? given->values : defaults;
    char **argv = calloc(count + 3, sizeof(*argv));
    if (!argv) {
        complain("no memory");
        return false;
    }
    argv[0] = (char *)(uintptr_t)program_name;
    argv[1] = "--log-level=critical"; /* the user's comes later */
    memcpy(argv + 2, values, count * sizeof(*argv));
    bool is_up = initialise((int)count + 2, argv);
    free(argv);
    if (is_up) {
        check_clocks();
    }
    return is_up;
}

static atomic_bool is_parked;

static void park(void *arg)
{
    (void)arg;
    atomic_store(&is_parked, true);
    while (true) {
        pause();
    }
}

void eal_park_interrupts(void)
{
    if (!atomic_load(&is_parked) && rte_eal_alarm_set(1, park, NULL) == 0) {
        while (!atomic_load(&is_parked)) {
            rte_delay_us_sleep(100);
        }
    }
}

/* rte_eal_cleanup() would wait for a parked interrupt thread. If there is one,
 * the end of the process cleans up instead. */
void eal_stop(void)
{
    if (!atomic_load(&is_parked)) {
        rte_eal_cleanup();
    }
}

bool eal_names_device(const eal_arguments_t *arguments)
{
    static const char *const beginnings[] = {"--vdev", "--allow", "-a"};
    for (int i = 0; i < arguments->count; ++i) {
        for (size_t n = 0; n < sizeof(beginnings) / sizeof(beginnings[0]);
             ++n) {
            if (strncmp(arguments->values[i], beginnings[n],
                        strlen(beginnings[n])) == 0) {
                return true;
            }
        }
    }
    return false;
}

void eal_print_help(void)
{
    printf(
        "\nArguments of DPDK's EAL come first, and -- behind them; the first "
        "port that they\nbring is used:\n\n"
        "  %s --no-huge --no-pci --no-shconf --lcores=0@0 \\\n"
        "      --vdev=net_memif0,role=server -- --iters 1000\n"
        "  %s --no-huge --no-pci --no-shconf --lcores=0@1 \\\n"
        "      --vdev=net_memif0,role=client -- --iters 1000 localhost\n\n"
        "Without a device among them and without HOST, client and server are "
        "two lcores\nof this process, with a ring each way between them. "
        "Without -- EAL is given what\nit needs for that.\n",
        program_name, program_name);
}
