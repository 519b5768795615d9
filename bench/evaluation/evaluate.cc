// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_evaluate - the experiments of the Lawn paper, repeated;
// doc/evaluation.md says what came out. Contenders take turns within each
// repetition, and what is printed of a distribution is the median of the
// repetitions. Only ratios within one run mean anything.

#include "evaluation/experiments.h"
#include "evaluation/latency.h"

#include "arguments.h"
#include "conformance.h"
#include "finish.h"
#include "machine.h"
#include "memory.h"
#include "schemes/hashed_wheel.h"
#include "schemes/hierarchical_wheel.h"
#include "schemes/lawn_textbook.h"
#include "schemes/multimap.h"
#include "schemes/multipass_wheel.h"
#include "schemes/resizing_wheel.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

#include <getopt.h>

namespace
{

using namespace bench;

struct Experiment {
    const char *name;
    const char *what;
    size_t ttls; // distinct; 0: continuous
    // NULL for the long run, which is no table over sizes.
    Result (*run)(const Contender &contender, const Load &load);
    bool is_of_memory;
    size_t most; // timers, by default
};

Result live_singly(const Contender &contender, const Load &load)
{
    return live(contender, load, false);
}

Result live_in_bursts(const Contender &contender, const Load &load)
{
    return live(contender, load, true);
}

const std::vector<Experiment> experiments = {
    {"insertion", "start of an idle timer, 10 TTLs", 10, start_each, false,
     10'000'000},
    {"deletion", "stop of a running timer, 10 TTLs", 10, stop_each, false,
     10'000'000},
    {"tick", "a tick each us, one expiry in it, 10 TTLs", 10, tick_each, false,
     1'000'000},
    {"fixed", "stops, starts and ticks, one TTL", 1, live_singly, false,
     1'000'000},
    {"ten", "stops, starts and ticks, 10 TTLs", 10, live_singly, false,
     1'000'000},
    {"burst", "64 stops and starts at once, a tick, 10 TTLs", 10,
     live_in_bursts, false, 1'000'000},
    {"uniform", "stops, starts and ticks, uniform TTLs", 0, live_singly, false,
     1'000'000},
    {"allocated", "heap and nodes, 10 TTLs; per timer", 10, memory_per_timer,
     true, 10'000'000},
    {"resident", "touched pages, 10 TTLs; per timer", 10, resident_per_timer,
     true, 10'000'000},
    {"allocated-uniform", "heap and nodes, uniform TTLs; per timer", 0,
     memory_per_timer, true, 10'000'000},
    {"resident-uniform", "touched pages, uniform TTLs; per timer", 0,
     resident_per_timer, true, 10'000'000},
    {"stability", "how operations and memory change over time, 10 TTLs", 0,
     nullptr, false, 1'000'000},
};

const std::vector<Contender> &all_contenders()
{
    static const std::vector<Contender> all = [] {
        std::vector<Contender> list = {lawn(),
                                       lawn_queue(),
                                       lawn_shared(),
                                       contender_of<LawnTextbook>(),
                                       contender_of<HashedWheel>(),
                                       contender_of<ResizingWheel>(),
                                       contender_of<MultipassWheel>(),
                                       contender_of<HierarchicalWheel>(),
                                       contender_of<Multimap>()};
        const Family families[] = {
            Family::lawn,  Family::lawn,  Family::lawn,
            Family::fifos, Family::wheel, Family::wheel,
            Family::wheel, Family::wheel, Family::sorted,
        };
        for (size_t i = 0; i < list.size(); ++i) {
            list[i].family = families[i];
        }
        return list;
    }();
    return all;
}

const char *name_of(const Contender &contender)
{
    return contender.traits.name;
}

const char *name_of(const Experiment &experiment)
{
    return experiment.name;
}

struct Options {
    std::vector<const Contender *> contenders;
    std::vector<const Experiment *> experiments;
    std::vector<size_t> sizes; // empty: those of the experiment
    unsigned repetitions = 5;
    double limit_sec = 0.1;
    uint64_t seed = 0;
    bool is_full = false;
    LongRun long_run = {100'000, 20, 0.25, 0};
    const char *csv = nullptr;
};

void print_help()
{
    printf(
        "usage: lawn_evaluate [OPTION]... [EXPERIMENT]...\n\n"
        "Repeats the experiments of the Lawn paper; all of them, if none is "
        "named.\nEach operation is measured by itself. Everything that takes "
        "part is first\nchecked to be a timer scheme.\n\n"
        "  --contenders C,...  all\n"
        "  --sizes N,...       running timers, up to 1e8 (1e2,1e3,...,1e6; "
        "of\n                      insertion, deletion and memory up to "
        "1e7)\n"
        "  --repetitions N     5\n"
        "  --seconds S         of operations, for each figure (0.1)\n"
        "  --seed N            of the random numbers (0)\n"
        "  --full              all up to 1e7 timers, for as long as it takes; "
        "the long\n                      run takes ten minutes of each "
        "contender, instead of\n                      five seconds\n"
        "  --quick             small and once, in less than a minute\n"
        "  --csv FILE          the tables\n"
        "  --help\n\n"
        "Without --full, no experiment takes much more than ten minutes: "
        "where they are\nnot enough, the largest sizes are repeated less "
        "often. Ratios are stated from five\nrepetitions on. Sizes for which "
        "memory is missing are left out.\n\n"
        "experiments:\n");
    for (const Experiment &experiment : experiments) {
        printf("  %-20s %s\n", experiment.name, experiment.what);
    }
    printf("\ncontenders:\n");
    for (const Contender &contender : all_contenders()) {
        printf("  %-20s %s\n", contender.traits.name, contender.traits.source);
    }
    printf("\nExit status: 0; 1 when a contender is broken or an output cannot "
           "be written;\n2 for a wrong option.\n");
}

enum Option {
    chosen_contenders,
    sizes,
    repetitions,
    limit,
    seed,
    csv,
    full, // takes no argument, as all that follow
    quick,
    help
};

const std::vector<const char *> option_names = {
    "contenders", "sizes", "repetitions", "seconds", "seed",
    "csv",        "full",  "quick",       "help"};

uint64_t any_number(const char *text)
{
    char *end = nullptr;
    const uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0') {
        refuse(std::string("--seed takes a whole number, not '") + text + "'");
    }
    return value;
}

// What the other options start from.
void start_from(int choice, Options &options)
{
    if (choice == quick) {
        options.sizes = {100, 1000};
        options.repetitions = 1;
        options.limit_sec = 0.005;
        options.long_run = {1000, 4, 0.005, 0};
    } else if (choice == full) {
        options.is_full = true;
        options.long_run = {100'000, 60, 10, 0};
    }
}

void apply(int choice, const char *argument, Options &options)
{
    switch (choice) {
    case chosen_contenders:
        options.contenders =
            choose(all_contenders(), argument, "--contenders", name_of);
        break;
    case sizes:
        options.sizes = numbers(argument, "--sizes");
        break;
    case repetitions:
        options.repetitions =
            static_cast<unsigned>(number(argument, "--repetitions"));
        break;
    case limit:
        options.limit_sec = seconds(argument, "--seconds");
        break;
    case seed:
        options.seed = any_number(argument);
        break;
    case csv:
        options.csv = argument;
        break;
    case help:
        print_help();
        exit(finish_output(0));
    default:
        break;
    }
}

Options parse(int argc, char **argv)
{
    Options options;
    options.contenders = pointers(all_contenders());
    const std::vector<GivenOption> given =
        given_options(argc, argv, option_names, full);
    for (const auto &[choice, argument] : given) {
        start_from(choice, options);
    }
    for (const auto &[choice, argument] : given) {
        apply(choice, argument, options);
    }
    std::string named;
    for (int i = optind; i < argc; ++i) {
        named += (i == optind ? "" : ",") + std::string(argv[i]);
    }
    options.experiments =
        optind == argc ? pointers(experiments)
                       : choose(experiments, named, "experiments", name_of);
    options.long_run.seed = options.seed;
    return options;
}

// Of the experiment, without those that need more memory than there is.
std::vector<size_t> sizes_of(const Experiment &experiment,
                             const Options &options)
{
    // For each timer: its object, what a scheme allocates for it, its place in
    // two random orders, and in the list of what has expired.
    constexpr double bytes = 256;
    constexpr double gib = 1 << 30;
    constexpr size_t most_in_full = 10'000'000;
    std::vector<size_t> sizes = options.sizes;
    if (sizes.empty()) {
        sizes = decades(100, options.is_full ? most_in_full : experiment.most);
    }
    const double room = available_memory();
    while (!sizes.empty() && bytes * static_cast<double>(sizes.back()) > room) {
        printf("\n%s: %zu timers are left out: they may take %.1f GiB, and "
               "%.1f GiB are available\n",
               experiment.name, sizes.back(),
               bytes * static_cast<double>(sizes.back()) / gib, room / gib);
        sizes.pop_back();
    }
    return sizes;
}

Table table_of(const Experiment &experiment, const Options &options)
{
    Table table;
    table.name = experiment.name;
    table.unit = experiment.is_of_memory ? "bytes" : "ns";
    table.what = experiment.what;
    table.axis = "timers";
    // So that an experiment takes ten minutes at most, on a quiet machine: what
    // is expected of the next repetition may be wrong.
    constexpr double most_sec = 9 * 60;
    table.long_sec = options.is_full ? INFINITY : 60;
    table.budget_sec = options.is_full ? INFINITY : most_sec;
    table.run = experiment.run;
    table.rows = options.contenders;
    for (const size_t size : sizes_of(experiment, options)) {
        char head[32];
        snprintf(head, sizeof(head), "%zu", size);
        table.columns.push_back(
            {head, {size, experiment.ttls, options.seed, options.limit_sec}});
    }
    return table;
}

// Whoever is no timer scheme is told of.
bool conform(const std::vector<const Contender *> &contenders)
{
    bool all = true;
    for (const Contender *contender : contenders) {
        const std::string wrong = nonconformance(*contender);
        if (!wrong.empty()) {
            fprintf(stderr, "lawn_evaluate: %s is broken: %s\n",
                    name_of(*contender), wrong.c_str());
            all = false;
        }
    }
    return all;
}

void print_missing(const Table &table, unsigned repetitions)
{
    for (size_t column = 0; column < table.columns.size(); ++column) {
        const size_t count = table.repetitions(column);
        // If there is none, each row says that it was too slow.
        if (count != 0 && count < repetitions) {
            printf("%s: %s timers: %zu of %u repetitions, for want of time\n",
                   table.name.c_str(), table.columns[column].head.c_str(),
                   count, repetitions);
        }
    }
}

void run(const Experiment &experiment, const Options &options, CsvFile &csv)
{
    Table table = table_of(experiment, options);
    if (experiment.run) {
        Progress progress(steps(table, options.repetitions));
        Hopeless hopeless;
        fill(table, options.repetitions, hopeless, progress);
        progress.hide();
        if (experiment.is_of_memory) {
            print(table);
        } else {
            print_distributions(table);
        }
        print_missing(table, options.repetitions);
    } else {
        table = run_for_long(options.long_run, options.contenders);
    }
    csv.write(table);
}

int run(const Options &options)
{
    CsvFile csv(options.csv);
    if (!conform(options.contenders)) {
        return 1;
    }
    const double ns = 1e9 / lawn_time_sec_value();
    printf("%s\nmedians of repetitions: %u, seeds from %llu; each operation by "
           "itself, less the %.1f ns of\nreading the counter, of which two "
           "in a row differ by %.1f ns or more; left out: operations during "
           "which\nanother "
           "thread ran\n",
           machine().c_str(), options.repetitions,
           static_cast<unsigned long long>(options.seed + 1),
           resolution().overhead * ns, resolution().step * ns);
    for (const Experiment *experiment : options.experiments) {
        const lawn_time_t begin = lawn_get_time();
        run(*experiment, options, csv);
        printf("\n%s took %.1f s\n", experiment->name,
               lawn_time_to_sec(lawn_get_time() - begin));
        if (finish_output(0) != 0) {
            return 1;
        }
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    const Options options = parse(argc, argv);
    try {
        return run(options);
    } catch (const std::exception &error) {
        fprintf(stderr, "lawn_evaluate: %s\n", error.what());
        return 1;
    }
}
