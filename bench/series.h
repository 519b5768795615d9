// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which rows of a table a plot shows, and which it leaves out.

#ifndef LAWN_BENCH_SERIES_H
#define LAWN_BENCH_SERIES_H

#include "table.h"

namespace bench
{

// More than this cannot be told apart in grey.
constexpr size_t most_series = 8;

struct Curve {
    const Contender *contender;
    const std::vector<Cell> *cells; // of the table
    std::vector<double> values;     // by column; NaN: none
};

struct Series {
    std::vector<Curve> shown; // in the order of the table
    std::vector<std::string> left_out;
    std::vector<std::string> empty; // that have no figure
};

// All, if they are not more than most_series. Else Lawn, the floor, and of each
// family the best of those that never fire early: the one that has a figure in
// the most columns, and of these the one of the least geometric mean.
Series choose_series(const Table &table, Statistic statistic);

} // namespace bench

#endif
