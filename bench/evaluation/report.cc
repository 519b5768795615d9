// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How distributions are printed; see experiments.h.

#include "evaluation/experiments.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace bench
{

namespace
{

// The paper's "Timer Wheel".
constexpr const char *baseline = "hashed-wheel";

// Empty where there is none.
Cell baseline_of(const Table &table, size_t column)
{
    for (size_t row = 0; row < table.rows.size(); ++row) {
        if (strcmp(table.rows[row]->traits.name, baseline) == 0) {
            return table.cells[row][column];
        }
    }
    return {};
}

void print_value(double value)
{
    if (std::isnan(value)) {
        printf(" %9s", "-");
    } else {
        printf(" %9.*f", value < 1000 ? 1 : 0, value);
    }
}

} // namespace

double divisor(const Cell &cell, const Cell &base)
{
    return std::min(cell.results.size(), base.results.size()) <
                   least_repetitions
               ? NAN
               : base.median(Statistic::figure);
}

void print_distribution_head(const char *what, const char *compared)
{
    printf("\n%s; ns\n%-26s %9s %9s %9s %9s %9s %9s %9s %9s %8s  %s\n", what,
           "", "mean", "least", "greatest", "deviation", "p50", "p99", "p99.9",
           "max", "left out", compared);
}

void print_distribution(const char *name, const Cell &cell, double compared)
{
    printf("%-26s", name);
    const double mean = cell.median(Statistic::figure);
    if (std::isnan(mean)) {
        printf(" %9s\n", cell.is_unavailable ? "n/a" : "too slow");
        return;
    }
    print_value(mean);
    print_value(cell.least());
    print_value(cell.greatest());
    for (const Statistic statistic :
         {Statistic::deviation, Statistic::p50, Statistic::p99, Statistic::p999,
          Statistic::longest}) {
        print_value(cell.median(statistic));
    }
    printf(" %8.0f", cell.median(Statistic::left_out));
    if (std::isnan(compared)) {
        printf("  -\n");
    } else {
        printf("  %.2f\n", mean / compared);
    }
}

void print_distributions(const Table &table)
{
    for (size_t column = 0; column < table.columns.size(); ++column) {
        const std::string what = table.name + ": " + table.what + ", " +
                                 table.columns[column].head + " timers";
        print_distribution_head(what.c_str(), "/ hashed-wheel");
        const Cell base = baseline_of(table, column);
        for (size_t row = 0; row < table.rows.size(); ++row) {
            print_distribution(table.rows[row]->traits.name,
                               table.cells[row][column],
                               divisor(table.cells[row][column], base));
        }
    }
    fflush(stdout);
}

} // namespace bench
