// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line; see options.h.

#include "options.h"

#include "arguments.h"
#include "finish.h"

#include <lawn/base.h>

#include <cstdio>
#include <cstdlib>

#include <getopt.h>

namespace bench
{

namespace
{

const char *name_of(const Contender &contender)
{
    return contender.traits.name;
}

const char *name_of(const Workload &workload)
{
    return workload.name;
}

void print_contender(const Contender &contender)
{
    const Traits &traits = contender.traits;
    printf("  %-20s %s", traits.name, traits.source);
    if (traits.rounds_to_tick) {
        printf("; rounds to its tick");
    }
    if (traits.late_divisor != 0) {
        printf("; late by up to 1/%u of the TTL", traits.late_divisor);
    }
    if (traits.may_be_early) {
        printf("; may fire early");
    }
    if (traits.bounded_ttl) {
        printf("; must know the longest TTL");
    }
    if (contender.no_budget) {
        printf("; knows no budget");
    }
    if (contender.declare) {
        printf("; must know the TTLs");
    }
    if (contender.wait) {
        printf("; in real time");
    }
    printf("\n");
}

void print_help()
{
    printf(
        "usage: lawn_bench [OPTION]...\n"
        "       lawn_bench threads [--quick]   timers that threads share\n"
        "       lawn_bench conn [--quick]      timers of connections\n"
        "       lawn_bench pacing [--quick]    flows with a rate\n\n"
        "Compares timer schemes with Lawn: the processor's time for "
        "operations\n"
        "on virtual time, medians of repetitions in which all take turns.\n"
        "Everything that takes part is first checked to be a timer scheme.\n\n"
        "  --sizes N,...       running timers, up to 1e8 (1e3,1e4,1e5,1e6;\n"
        "                      1e3,...,1e7 of the grid)\n"
        "  --workloads W,...   all\n"
        "  --contenders C,...  all\n"
        "  --repetitions N     5, of the grid 3; but what takes 5 s is done "
        "once\n"
        "  --seconds S         of measuring for each figure (0.05)\n"
        "  --grid              instead of workloads, the life of timers by\n"
        "                      size and by number of distinct TTLs: in each\n"
        "                      microsecond a stop, two starts, an expiry and\n"
        "                      a poll; mean, and p99 of batches of 16\n"
        "  --ttls N,...        of the grid (1,10,...,1e7; up to the size)\n"
        "  --replay FILE       instead of workloads, a recorded trace\n"
        "  --csv FILE          the tables with the least and the greatest too\n"
        "  --plot DIR          a plot of each table, as SVG and PNG, by "
        "gnuplot:\n"
        "                      of more than eight contenders Lawn, the "
        "floor,\n"
        "                      and the best of each family\n"
        "  --quick             all of it, small and once, in less than a "
        "minute\n"
        "  --version\n"
        "  --help\n\n"
        "A figure is marked * when it is the best of its column. The last "
        "lines\n"
        "of a table divide Lawn's by the best of those that are never early, "
        "and\n"
        "by the floor: what the same run costs without any scheme. The "
        "summary\n"
        "at the end says for each table where Lawn is ahead or behind.\n"
        "'too slow': setting up takes longer than 4 us a timer; 'n/a': not "
        "for\n"
        "what lives in real time, not for queues where TTLs are continuous "
        "or\n"
        "more than a thousand, or no memory of the floor's.\n\n"
        "workloads:\n");
    for (const Workload &workload : workloads()) {
        printf("  %-20s %s; %s\n", workload.name, workload.what, workload.unit);
    }
    printf("\ncontenders:\n");
    for (const Contender &contender : contenders()) {
        print_contender(contender);
    }
    printf("\nExit status: 0; 1 when a contender is broken or an output cannot "
           "be written;\n2 for a wrong option or trace.\n");
}

// What was given; empty and NULL: not.
struct Given {
    std::vector<size_t> sizes;
    std::vector<size_t> ttls;
    unsigned repetitions = 0;
    double limit_sec = 0;
    bool has_workloads = false;
    bool grid = false;
    bool quick = false;
};

const std::vector<const char *> option_names = {
    "sizes", "workloads", "contenders", "repetitions", "seconds", "ttls", "csv",
    "plot",  "replay",    "grid",       "quick",       "version", "help"};

enum Option {
    sizes,
    chosen_workloads,
    chosen_contenders,
    repetitions,
    limit,
    ttls,
    csv,
    plot,
    replay,
    grid, // takes no argument, as all that follow
    quick,
    version,
    help
};

void apply(int choice, const char *argument, Options &options, Given &given)
{
    switch (choice) {
    case sizes:
        given.sizes = numbers(argument, "--sizes");
        break;
    case chosen_workloads:
        options.workloads =
            choose(workloads(), argument, "--workloads", name_of);
        given.has_workloads = true;
        break;
    case chosen_contenders:
        options.contenders =
            choose(contenders(), argument, "--contenders", name_of);
        break;
    case repetitions:
        given.repetitions =
            static_cast<unsigned>(number(argument, "--repetitions"));
        break;
    case limit:
        given.limit_sec = seconds(argument, "--seconds");
        break;
    case ttls:
        given.ttls = numbers(argument, "--ttls");
        break;
    case csv:
        options.csv = argument;
        break;
    case plot:
        options.plot = argument;
        break;
    case replay:
        options.replay = argument;
        break;
    case grid:
        given.grid = true;
        break;
    case quick:
        given.quick = true;
        break;
    case version:
        printf("lawn_bench %s\n", lawn_version());
        exit(finish_output(0));
    case help:
        print_help();
        exit(finish_output(0));
    default:
        break;
    }
}

// What goes with what, and the defaults.
void complete(Options &options, const Given &given)
{
    const bool is_quick = given.quick;
    if (options.replay &&
        (given.grid || given.has_workloads || !given.sizes.empty())) {
        refuse("--replay goes without --workloads, --grid and --sizes");
    }
    if (given.grid && given.has_workloads) {
        refuse("--grid goes without --workloads");
    }
    if (!given.ttls.empty() && !given.grid) {
        refuse("--ttls is for --grid");
    }
    if (is_quick) {
        options.repetitions = 1;
        options.limit_sec = 0.005;
    }
    if (given.grid && !is_quick) {
        options.repetitions = 3;
    }
    if (given.repetitions != 0) {
        options.repetitions = given.repetitions;
    }
    if (given.limit_sec > 0) {
        options.limit_sec = given.limit_sec;
    }
    if (!given.grid && !options.replay) {
        options.sizes = decades(1'000, is_quick ? 10'000 : 1'000'000);
        if (!given.has_workloads) {
            options.workloads = pointers(workloads());
        }
    }
    const bool is_quick_over_all =
        is_quick && !given.has_workloads && !options.replay;
    if (given.grid || is_quick_over_all) {
        options.grid_sizes = decades(1'000, is_quick ? 1'000 : 10'000'000);
        options.ttls = decades(1, is_quick ? 1'000 : 10'000'000);
    }
    if (!given.sizes.empty()) {
        (given.grid ? options.grid_sizes : options.sizes) = given.sizes;
    }
    if (!given.ttls.empty()) {
        options.ttls = given.ttls;
    }
    if (given.grid && options.ttls.front() > options.grid_sizes.front()) {
        refuse("--ttls has none up to the least size");
    }
    if (options.contenders.empty()) {
        options.contenders = pointers(contenders());
    }
}

} // namespace

Options parse_options(int argc, char **argv)
{
    Options options;
    Given given;
    for (const auto &[which, argument] :
         given_options(argc, argv, option_names, grid)) {
        apply(which, argument, options, given);
    }
    if (optind != argc) {
        refuse("unexpected argument '" + std::string(argv[optind]) + "'");
    }
    complete(options, given);
    return options;
}

} // namespace bench
