// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The long run; see experiments.h.

#include "evaluation/experiments.h"
#include "evaluation/lives.h"

#include "memory.h"

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace bench
{

namespace
{

constexpr size_t distinct_ttls = 10;

// One contender in the long run.
struct Runner {
    const Contender *contender;
    std::unique_ptr<Lives> lives;
    Latency all;
    std::vector<Result> windows;
    double heap = 0; // by how much it grew in this contender's turns
    double pages = 0;
};

std::vector<Runner> begin(const LongRun &run,
                          const std::vector<const Contender *> &contenders)
{
    std::vector<Runner> runners;
    const Load load = {run.timers, distinct_ttls, run.seed, 1};
    for (const Contender *contender : contenders) {
        Runner runner;
        runner.contender = contender;
        runner.lives = std::make_unique<Lives>(*contender, load, 1);
        if (runner.lives->begin()) {
            throw std::runtime_error(std::string(contender->traits.name) +
                                     " cannot begin the long run");
        }
        runners.push_back(std::move(runner));
    }
    return runners;
}

void run_window(const LongRun &run, Runner &runner)
{
    Latency latency;
    Stopwatch watch(run.window_sec);
    const double heap = heap_in_use();
    const double pages = resident();
    runner.lives->run(watch, latency);
    runner.heap += heap_in_use() - heap;
    runner.pages += resident() - pages;
    runner.all.add(latency);
    runner.windows.push_back(latency.result());
}

// Medians of the first and of the last quarter of the windows.
struct Drift {
    double first;
    double last;
};

Drift drift_of(const Runner &runner, Statistic statistic)
{
    const auto quarter = static_cast<std::ptrdiff_t>(
        std::max<size_t>(runner.windows.size() / 4, 1));
    Cell first;
    Cell last;
    first.results.assign(runner.windows.begin(),
                         runner.windows.begin() + quarter);
    last.results.assign(runner.windows.end() - quarter, runner.windows.end());
    return {first.median(statistic), last.median(statistic)};
}

void print(const LongRun &run, const std::vector<Runner> &runners)
{
    printf("\nstability: %zu timers, 10 TTLs, %u windows of %g s for each "
           "contender;\nof the operations of a window, in ns: the mean and "
           "p99.9, each as the median of the\nfirst and of the last quarter "
           "of the windows; growth in KiB, in the contender's own\n"
           "windows\n%-20s %11s %9s %9s %8s %9s %9s %8s %9s %9s\n",
           run.timers, run.windows, run.window_sec, "", "operations", "mean",
           "last", "drift, %", "p99.9", "last", "drift, %", "heap", "resident");
    for (const Runner &runner : runners) {
        printf("%-20s %11zu", runner.contender->traits.name,
               runner.all.count());
        for (const Statistic statistic : {Statistic::figure, Statistic::p999}) {
            const auto [first, last] = drift_of(runner, statistic);
            printf(" %9.1f %9.1f %8.1f", first, last, 100 * (last / first - 1));
        }
        printf(" %9.1f %9.1f\n", runner.heap / 1024, runner.pages / 1024);
    }
    print_distribution_head("stability: all operations of all windows; least "
                            "and greatest are means of windows",
                            "/ first");
    Cell base;
    base.results = runners.front().windows;
    const double first_mean = runners.front().all.result().figure;
    for (const Runner &runner : runners) {
        Cell means;
        means.results = runner.windows;
        const double least = means.least();
        const double greatest = means.greatest();
        Result all = runner.all.result();
        Cell cell;
        // The median of these three is the one in the middle.
        for (const double figure : {least, all.figure, greatest}) {
            Result result = all;
            result.figure = figure;
            cell.results.push_back(result);
        }
        print_distribution(runner.contender->traits.name, cell,
                           std::isnan(divisor(means, base)) ? NAN : first_mean);
    }
    fflush(stdout);
}

} // namespace

Table run_for_long(const LongRun &run,
                   const std::vector<const Contender *> &contenders)
{
    std::vector<Runner> runners = begin(run, contenders);
    for (unsigned window = 0; window < run.windows; ++window) {
        for (size_t turn = 0; turn < runners.size(); ++turn) {
            run_window(run, runners[(turn + window) % runners.size()]);
        }
    }
    print(run, runners);
    Table table;
    table.name = "stability";
    table.unit = "ns";
    for (unsigned window = 0; window < run.windows; ++window) {
        char head[32];
        snprintf(head, sizeof(head), "%g", run.window_sec * (window + 1));
        table.columns.push_back(
            {head, {run.timers, distinct_ttls, run.seed, run.window_sec}});
    }
    for (const Runner &runner : runners) {
        table.rows.push_back(runner.contender);
        std::vector<Cell> cells(run.windows);
        for (unsigned window = 0; window < run.windows; ++window) {
            cells[window].results.push_back(runner.windows[window]);
        }
        table.cells.push_back(std::move(cells));
    }
    return table;
}

} // namespace bench
