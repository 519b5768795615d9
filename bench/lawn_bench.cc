// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_bench - every contender under every workload, in one run. Machines are
// noisy and shared: contenders take turns within each repetition, starting
// with another one each time, and what is printed is the median, with the
// least and the greatest in the CSV. Only ratios within one run mean anything.

#include "conformance.h"
#include "conns/conns.h"
#include "finish.h"
#include "machine.h"
#include "options.h"
#include "paces/paces.h"
#include "plot.h"
#include "replay.h"
#include "summary.h"
#include "table.h"
#include "threads/sharing.h"

#include <cstring>
#include <exception>
#include <stdexcept>

namespace
{

using namespace bench;

// 1000 as 1e3, 1234 as it is.
std::string head(size_t value)
{
    size_t digits = value;
    unsigned zeros = 0;
    while (digits >= 10 && digits % 10 == 0) {
        digits /= 10;
        ++zeros;
    }
    return digits < 10 && zeros >= 3
               ? std::to_string(digits) + "e" + std::to_string(zeros)
               : std::to_string(value);
}

std::vector<Table> workload_tables(const Options &options)
{
    std::vector<Table> tables;
    for (const Workload *workload : options.workloads) {
        Table table;
        table.name = workload->name;
        table.unit = workload->unit;
        table.what = workload->what;
        table.axis = "timers";
        table.needs_virtual_time = workload->needs_virtual_time;
        table.run = workload->run;
        for (const size_t size : options.sizes) {
            table.columns.push_back(
                {head(size), {size, 0, 0, options.limit_sec}});
        }
        tables.push_back(table);
    }
    return tables;
}

std::vector<Table> grid_tables(const Options &options)
{
    std::vector<Table> tables;
    for (const size_t size : options.grid_sizes) {
        Table table;
        table.name = "life-" + head(size);
        table.unit = "ns";
        table.what = "lives of " + head(size) +
                     " timers, per us: a stop, two "
                     "starts, an expiry, a poll";
        table.axis = "distinct TTLs";
        table.needs_virtual_time = true;
        table.run = life_cycle;
        for (const size_t ttls : options.ttls) {
            if (ttls <= size) {
                table.columns.push_back(
                    {head(ttls), {size, ttls, 0, options.limit_sec}});
            }
        }
        tables.push_back(table);
    }
    return tables;
}

Table replay_table(const Options &options, const Trace &trace)
{
    Table table;
    table.name = "replay";
    table.unit = "ns";
    table.what = std::string("an event of ") + options.replay;
    table.axis = "timers";
    table.run = [&trace](const Contender &contender, const Load &load) {
        return replay(trace, contender, load);
    };
    table.columns.push_back(
        {head(trace.timers), {trace.timers, 0, 0, options.limit_sec}});
    return table;
}

// Those that can run here; each tells itself why it cannot.
std::vector<const Contender *> able(const Options &options)
{
    std::vector<const Contender *> list;
    for (const Contender *contender : options.contenders) {
        Config config;
        config.capacity = 1;
        config.longest_ttl = 1'000'000;
        if (void *const scheme = contender->create(config)) {
            contender->destroy(scheme);
            list.push_back(contender);
        }
    }
    if (list.empty()) {
        throw std::runtime_error("no contender can run here");
    }
    return list;
}

// True if every contender is a timer scheme, but for the floor.
bool conform(const std::vector<const Contender *> &contenders,
             Progress &progress)
{
    bool all = true;
    for (const Contender *contender : contenders) {
        progress.step(std::string("checking ") + contender->traits.name);
        if (contender->is_floor) {
            continue;
        }
        const std::string wrong = nonconformance(*contender);
        if (!wrong.empty()) {
            progress.hide();
            fprintf(stderr, "lawn_bench: %s is broken: %s\n",
                    contender->traits.name, wrong.c_str());
            all = false;
        }
    }
    return all;
}

int run(const Options &options, const Trace &trace)
{
    if (options.plot) {
        prepare_plots(options.plot);
    }
    CsvFile csv(options.csv);
    const std::vector<const Contender *> contenders = able(options);
    std::vector<Table> tables = workload_tables(options);
    const size_t first_of_grid = tables.size();
    for (Table &table : grid_tables(options)) {
        tables.push_back(table);
    }
    if (options.replay) {
        tables.push_back(replay_table(options, trace));
    }
    size_t total = contenders.size();
    for (Table &table : tables) {
        table.rows = contenders;
        total += steps(table, options.repetitions);
    }
    Progress progress(total);
    if (!conform(contenders, progress)) {
        return 1;
    }
    progress.hide();
    printf("%s\n%zu contenders; medians of repetitions: %u\n",
           machine().c_str(), contenders.size(), options.repetitions);
    Hopeless hopeless;
    Summary summary;
    for (size_t i = 0; i < tables.size(); ++i) {
        if (i <= first_of_grid) {
            hopeless.clear(); // of one workload, or of the whole grid
        }
        fill(tables[i], options.repetitions, hopeless, progress);
        progress.hide();
        print(tables[i]);
        csv.write(tables[i]);
        if (options.plot) {
            plot(tables[i], options.plot);
        }
        summary.add(tables[i]);
        tables[i].cells.clear();
    }
    summary.print();
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        return finish_output(run_threads(argc - 1, argv + 1));
    }
    if (argc > 1 && strcmp(argv[1], "conn") == 0) {
        return finish_output(run_conns(argc - 1, argv + 1));
    }
    if (argc > 1 && strcmp(argv[1], "pacing") == 0) {
        return finish_output(run_paces(argc - 1, argv + 1));
    }
    const Options options = parse_options(argc, argv);
    int failure = bad_usage;
    try {
        const Trace trace =
            options.replay ? read_trace(options.replay) : Trace();
        failure = 1;
        return finish_output(run(options, trace));
    } catch (const std::exception &error) {
        fprintf(stderr, "lawn_bench: %s\n", error.what());
        return failure;
    }
}
