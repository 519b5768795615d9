// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The tables as plots, drawn by gnuplot.

#ifndef LAWN_BENCH_PLOT_H
#define LAWN_BENCH_PLOT_H

#include "table.h"

namespace bench
{

// Makes the directory and looks for gnuplot, before a long run and not after
// it. Throws std::runtime_error.
void prepare_plots(const char *directory);

// Writes NAME.svg and NAME.png, and the same of NAME-p99 if there is one. A
// table of one column has no curves: a line on stderr says that there is no
// plot. Throws std::runtime_error.
void plot(const Table &table, const char *directory);

} // namespace bench

#endif
