/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn_info - what this machine and this build of Lawn offer: the clock, the
 * optional parts, the RDMA devices. Look at its report first, and send it, if
 * timers behave oddly on another machine.
 */
#include <lawn/lawn.h>

#include "finish.h"

#include <getopt.h>
#include <stdio.h>

#if LAWN_HAVE_VERBS
#include <infiniband/verbs.h>
#endif

static const char *yes_no(bool value)
{
    return value ? "yes" : "no";
}

/* Returns the cost of one reading in ns. It is the least of some batches,
 * because an interruption only adds to a batch. */
static double reading_cost(void)
{
    const int batches = 8;
    const int readings = 10000;
    lawn_time_t least = LAWN_TIME_INFINITY;
    for (int i = 0; i < batches; ++i) {
        lawn_time_t begin = lawn_get_time();
        lawn_time_t now = begin;
        for (int j = 0; j < readings; ++j) {
            now = lawn_get_time();
        }
        least = now - begin < least ? now - begin : least;
    }
    return lawn_time_to_nsec(least) / readings;
}

static void print_clock(void)
{
    lawn_clock_info_t info;
    (void)lawn_clock_query(&info);
    printf("clock\n");
    printf("  source:     %s\n", lawn_clock_source_name(info.source));
    printf("  invariant:  %s\n", yes_no(info.invariant));
    printf("  frequency:  %.6f MHz\n", info.ticks_per_sec / 1e6);
    printf("  found by:   %s\n", lawn_clock_method_name(info.method));
    printf("  error:      %.2f ppm at most\n", info.error_ppm);
    printf("  reading:    %.1f ns\n", reading_cost());
}

static void print_build(void)
{
    printf("build\n");
    printf("  verbs:      %s\n", yes_no(LAWN_HAVE_VERBS));
    printf("  ucx:        %s\n", yes_no(LAWN_HAVE_UCX));
    printf("  dpdk:       %s\n", yes_no(LAWN_HAVE_DPDK));
    printf("  timer size: %zu bytes\n", sizeof(lawn_timer_t));
}

#if LAWN_HAVE_VERBS

static const char *transport_name(enum ibv_transport_type transport)
{
    switch (transport) {
    case IBV_TRANSPORT_IB:
        return "InfiniBand or RoCE";
    case IBV_TRANSPORT_IWARP:
        return "iWARP";
    default:
        return "other transport";
    }
}

static void print_device(struct ibv_device *device)
{
    printf("  %s: %s", ibv_get_device_name(device),
           transport_name(device->transport_type));
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        printf(", cannot be opened\n");
        return;
    }
    struct ibv_device_attr attr;
    if (ibv_query_device(context, &attr) == 0) {
        for (uint8_t i = 1; i <= attr.phys_port_cnt; ++i) {
            struct ibv_port_attr port;
            if (ibv_query_port(context, i, &port) == 0) {
                printf(", port %u %s", i, ibv_port_state_str(port.state));
            }
        }
    }
    printf("\n");
    ibv_close_device(context);
}

static void print_devices(void)
{
    /* NULL if the kernel has no RDMA at all. It must not be freed then. */
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    printf("devices\n");
    for (int i = 0; devices && i < count; ++i) {
        print_device(devices[i]);
    }
    if (!devices || count == 0) {
        printf("  none\n");
    }
    if (devices) {
        ibv_free_device_list(devices);
    }
}

#else

static void print_devices(void)
{
    printf("devices\n  unknown: built without verbs\n");
}

#endif

static void print_help(void)
{
    printf("usage: lawn_info [options]\n"
           "Shows what Lawn finds on this machine; without options, all.\n"
           "  -c, --clock    the clock and what a reading costs\n"
           "  -b, --build    what this build contains\n"
           "  -d, --devices  RDMA devices\n"
           "  -v, --version  the version of the library\n"
           "  -h, --help     this text\n"
           "LAWN_CLOCK=clock_gettime in the environment keeps Lawn off the\n"
           "hardware counter.\n");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"clock", no_argument, NULL, 'c'},
                                            {"build", no_argument, NULL, 'b'},
                                            {"devices", no_argument, NULL, 'd'},
                                            {"version", no_argument, NULL, 'v'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool clock = false;
    bool build = false;
    bool devices = false;
    bool version = false;
    bool help = false;

    int option;
    while ((option = getopt_long(argc, argv, "cbdvh", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            clock = true;
            break;
        case 'b':
            build = true;
            break;
        case 'd':
            devices = true;
            break;
        case 'v':
            version = true;
            break;
        case 'h':
            help = true;
            break;
        default:
            return 2; /* getopt_long has said what is wrong */
        }
    }
    if (optind < argc) {
        fprintf(stderr, "lawn_info: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }

    if (help) {
        print_help();
        return finish_output("lawn_info");
    }
    const bool all = !clock && !build && !devices && !version;
    if (version) {
        printf("lawn_info %s\n", lawn_version());
    }
    if (all) {
        printf("Lawn %s\n", lawn_version());
    }
    if (all || clock) {
        print_clock();
    }
    if (all || build) {
        print_build();
    }
    if (all || devices) {
        print_devices();
    }
    return finish_output("lawn_info");
}
