// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_bench - every contender under every workload, in one run. Machines are
// noisy and shared: contenders take turns within each repetition, starting
// with another one each time, and what is printed is the median, with the
// least and the greatest in the CSV. Only ratios within one run mean anything.

#include "workloads.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include <getopt.h>
#include <unistd.h>

namespace
{

using namespace bench;

constexpr int bad_usage = 2;

struct Options {
    std::vector<size_t> sizes = {1'000, 10'000, 100'000, 1'000'000};
    std::vector<size_t> ttls = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000};
    std::vector<const Workload *> workloads;
    std::vector<const Contender *> contenders;
    unsigned repetitions = 5;
    double limit_sec = 0.05;
    bool grid = false;
    const char *csv = nullptr;
};

using Figures = std::vector<double>; // of the repetitions

double median(Figures figures)
{
    if (figures.empty()) {
        return NAN;
    }
    std::sort(figures.begin(), figures.end());
    return figures[figures.size() / 2];
}

[[noreturn]] void refuse(const std::string &why)
{
    fprintf(stderr, "lawn_bench: %s; see --help\n", why.c_str());
    exit(bad_usage);
}

size_t number(const std::string &text, const char *option)
{
    char *end = nullptr;
    const double value = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 1 && value <= 1e8)) {
        refuse(std::string(option) + " takes numbers from 1 to 1e8, not '" +
               text + "'");
    }
    return static_cast<size_t>(value);
}

std::vector<std::string> split(const std::string &list)
{
    std::vector<std::string> parts;
    size_t from = 0;
    for (size_t comma = 0; comma != std::string::npos; from = comma + 1) {
        comma = list.find(',', from);
        parts.push_back(list.substr(from, comma - from));
    }
    return parts;
}

std::vector<size_t> numbers(const std::string &list, const char *option)
{
    std::vector<size_t> values;
    for (const std::string &part : split(list)) {
        values.push_back(number(part, option));
    }
    return values;
}

// Chosen by name; unknown names are refused.
template <class T, class Name>
std::vector<const T *> choose(const std::vector<T> &all,
                              const std::string &list, Name &&name)
{
    std::vector<const T *> chosen;
    for (const std::string &part : split(list)) {
        const auto found =
            std::find_if(all.begin(), all.end(),
                         [&](const T &t) { return part == name(t); });
        if (found == all.end()) {
            refuse("there is no '" + part + "'");
        }
        chosen.push_back(&*found);
    }
    return chosen;
}

const char *contender_name(const Contender &contender)
{
    return contender.traits.name;
}

const char *workload_name(const Workload &workload)
{
    return workload.name;
}

void print_help()
{
    printf("usage: lawn_bench [OPTION]...\n\n"
           "Compares timer schemes with Lawn; virtual time, medians.\n\n"
           "  --sizes N,...       running timers (1e3,1e4,1e5,1e6)\n"
           "  --workloads W,...   all\n"
           "  --contenders C,...  all\n"
           "  --repetitions N     5\n"
           "  --grid              the life of a timer, by size and by number\n"
           "                      of distinct TTLs, instead of workloads\n"
           "  --ttls N,...        of the grid (1,10,...,1e6)\n"
           "  --csv FILE          medians, least and greatest, too\n"
           "  --quick             small sizes, one repetition: for CI\n"
           "  --help\n\nworkloads:\n");
    for (const Workload &workload : workloads()) {
        printf("  %-18s %s, %s\n", workload.name, workload.what, workload.unit);
    }
    printf("\ncontenders:\n");
    for (const Contender &contender : contenders()) {
        printf("  %-18s %s%s%s\n", contender.traits.name,
               contender.traits.source,
               contender.traits.rounds_to_tick ? "; rounds to its tick" : "",
               contender.traits.may_be_early ? "; may fire early" : "");
    }
}

Options parse(int argc, char **argv)
{
    enum {
        sizes,
        workload,
        contender,
        repetitions,
        grid,
        ttls,
        csv,
        quick,
        help
    };
    const option names[] = {{"sizes", 1, nullptr, sizes},
                            {"workloads", 1, nullptr, workload},
                            {"contenders", 1, nullptr, contender},
                            {"repetitions", 1, nullptr, repetitions},
                            {"grid", 0, nullptr, grid},
                            {"ttls", 1, nullptr, ttls},
                            {"csv", 1, nullptr, csv},
                            {"quick", 0, nullptr, quick},
                            {"help", 0, nullptr, help},
                            {}};
    Options options;
    for (const Workload &w : workloads()) {
        options.workloads.push_back(&w);
    }
    for (const Contender &c : contenders()) {
        options.contenders.push_back(&c);
    }
    opterr = 0;
    for (int choice = 0;
         (choice = getopt_long(argc, argv, "", names, nullptr)) != -1;) {
        switch (choice) {
        case sizes:
            options.sizes = numbers(optarg, "--sizes");
            break;
        case workload:
            options.workloads = choose(workloads(), optarg, workload_name);
            break;
        case contender:
            options.contenders = choose(contenders(), optarg, contender_name);
            break;
        case repetitions:
            options.repetitions =
                static_cast<unsigned>(number(optarg, "--repetitions"));
            break;
        case grid:
            options.grid = true;
            break;
        case ttls:
            options.ttls = numbers(optarg, "--ttls");
            break;
        case csv:
            options.csv = optarg;
            break;
        case quick:
            options.sizes = {1'000, 10'000};
            options.repetitions = 1;
            options.limit_sec = 0.01;
            break;
        case help:
            print_help();
            exit(0);
        default:
            refuse("bad option " + std::string(argv[optind - 1]));
        }
    }
    if (optind != argc) {
        refuse("unexpected argument '" + std::string(argv[optind]) + "'");
    }
    return options;
}

// Shows how far the run has come, on a terminal.
class Progress
{
public:
    explicit Progress(size_t steps) : steps_(steps)
    {
    }

    ~Progress()
    {
        if (is_shown_) {
            fprintf(stderr, "\r%60s\r", "");
        }
    }

    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void step(const char *what)
    {
        ++done_;
        if (is_shown_) {
            const int width = static_cast<int>(20 * done_ / steps_);
            fprintf(stderr, "\r[%-20.*s] %-36s", width, "####################",
                    what);
        }
    }

private:
    const size_t steps_;
    size_t done_ = 0;
    const bool is_shown_ = isatty(STDERR_FILENO) == 1;
};

// One table: a row for each contender, a column for each load.
struct Table {
    std::string name;
    std::string unit;
    std::string what;
    Result (*run)(const Contender &, const Load &);
    std::vector<Load> loads;
    std::vector<std::string> heads;
    std::map<std::pair<size_t, size_t>, Figures> figures; // by row and column
};

void fill(Table &table, const Options &options, Progress &progress)
{
    const size_t rows = options.contenders.size();
    for (unsigned repetition = 0; repetition < options.repetitions;
         ++repetition) {
        for (size_t column = 0; column < table.loads.size(); ++column) {
            Load load = table.loads[column];
            load.seed = repetition + 1;
            load.limit_sec = options.limit_sec;
            for (size_t turn = 0; turn < rows; ++turn) {
                const size_t row = (turn + repetition) % rows;
                const Contender &contender = *options.contenders[row];
                progress.step(contender.traits.name);
                Figures &figures = table.figures[{row, column}];
                // Too slow to set up once is too slow.
                if (figures.size() < repetition) {
                    continue;
                }
                if (const Result result = table.run(contender, load)) {
                    figures.push_back(*result);
                }
            }
        }
    }
}

void print(const Table &table, const Options &options)
{
    printf("\n%s: %s (%s)\n%-18s", table.name.c_str(), table.what.c_str(),
           table.unit.c_str(), "");
    for (const std::string &head : table.heads) {
        printf(" %11s", head.c_str());
    }
    printf("\n");
    for (size_t row = 0; row < options.contenders.size(); ++row) {
        printf("%-18s", options.contenders[row]->traits.name);
        for (size_t column = 0; column < table.loads.size(); ++column) {
            const double value = median(table.figures.at({row, column}));
            if (std::isnan(value)) {
                printf(" %11s", "too slow");
            } else {
                printf(" %11.*f", value < 100 ? 1 : 0, value);
            }
        }
        printf("\n");
    }
}

void write_csv(FILE *file, const Table &table, const Options &options)
{
    for (const auto &[place, figures] : table.figures) {
        if (figures.empty()) {
            continue;
        }
        const auto [least, greatest] =
            std::minmax_element(figures.begin(), figures.end());
        const Load &load = table.loads[place.second];
        fprintf(file, "%s,%s,%zu,%zu,%s,%.3f,%.3f,%.3f\n", table.name.c_str(),
                options.contenders[place.first]->traits.name, load.timers,
                load.ttls, table.unit.c_str(), median(figures), *least,
                *greatest);
    }
}

std::vector<Table> plan(const Options &options)
{
    std::vector<Table> tables;
    const auto head = [](size_t value) {
        char text[16];
        snprintf(text, sizeof(text), "%g", static_cast<double>(value));
        return std::string(text);
    };
    if (!options.grid) {
        for (const Workload *workload : options.workloads) {
            Table table = {workload->name,
                           workload->unit,
                           workload->what,
                           workload->run,
                           {},
                           {},
                           {}};
            for (const size_t size : options.sizes) {
                table.loads.push_back({size, 0, 0, 0});
                table.heads.push_back(head(size));
            }
            tables.push_back(table);
        }
        return tables;
    }
    for (const size_t size : options.sizes) {
        Table table = {"life-" + head(size),
                       "ns",
                       "a timer's life among " + head(size) +
                           ", by distinct TTLs",
                       life_cycle,
                       {},
                       {},
                       {}};
        for (const size_t ttls : options.ttls) {
            if (ttls <= size) {
                table.loads.push_back({size, ttls, 0, 0});
                table.heads.push_back(head(ttls));
            }
        }
        tables.push_back(table);
    }
    return tables;
}

int run(const Options &options)
{
    FILE *csv = nullptr;
    if (options.csv) {
        csv = fopen(options.csv, "w");
        if (!csv) {
            fprintf(stderr, "lawn_bench: cannot write %s\n", options.csv);
            return 1;
        }
        fprintf(csv, "workload,contender,timers,ttls,unit,median,least,"
                     "greatest\n");
    }
    std::vector<Table> tables = plan(options);
    size_t steps = 0;
    for (const Table &table : tables) {
        steps += table.loads.size() * options.contenders.size() *
                 options.repetitions;
    }
    for (Table &table : tables) {
        {
            Progress progress(steps);
            fill(table, options, progress);
        }
        print(table, options);
        if (csv) {
            write_csv(csv, table, options);
        }
    }
    if (csv && fclose(csv) != 0) {
        fprintf(stderr, "lawn_bench: cannot write %s\n", options.csv);
        return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        return run(parse(argc, argv));
    } catch (const std::exception &error) {
        fprintf(stderr, "lawn_bench: %s\n", error.what());
        return 1;
    }
}
