// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The tables of a run: a row for each contender, a column for each load; how
// they are filled, printed and written.

#ifndef LAWN_BENCH_TABLE_H
#define LAWN_BENCH_TABLE_H

#include "workloads.h"

#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace bench
{

enum class Statistic {
    figure,
    mean,
    p50,
    p99,
    p999,
    most,
    deviation,
    longest,
    left_out
};

struct Cell {
    std::vector<Result> results; // of the repetitions
    bool is_too_slow = false;
    bool is_long = false; // took long_sec: once is enough
    bool is_unavailable = false;

    // NaN if there is none.
    double median(Statistic statistic) const;
    double least() const;
    double greatest() const;
};

struct Column {
    std::string head;
    Load load;
};

struct Table {
    std::string name;
    std::string unit;
    std::string what;
    std::string axis; // what the columns' heads count; empty: nothing
    bool needs_virtual_time = false;
    double long_sec = 5;          // what takes as long is done once
    double budget_sec = INFINITY; // of all columns; see fill()
    std::function<Result(const Contender &, const Load &)> run;
    std::vector<Column> columns;
    std::vector<const Contender *> rows;
    std::vector<std::vector<Cell>> cells; // by row and column, once filled

    bool has(Statistic statistic) const;
    // Of the cell that has the most, in all columns or in one.
    size_t repetitions() const;
    size_t repetitions(size_t column) const;
};

// Shows how far the run has come, on a terminal.
class Progress
{
public:
    explicit Progress(size_t steps);
    ~Progress();

    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void step(const std::string &what);
    // Until the next step.
    void hide();

private:
    const size_t steps_;
    size_t done_ = 0;
    const bool is_shown_;
};

// From which number of timers on a contender is too slow, by contender and
// number of TTLs; nothing as large is tried again.
using Hopeless = std::map<std::pair<const Contender *, size_t>, size_t>;

// Steps of progress that fill() takes.
size_t steps(const Table &table, unsigned repetitions);

// How often more each column can be run, at most `most` times, if one time
// takes `seconds` of each, and all must not take more than `budget_sec`. The
// first columns come first.
std::vector<unsigned> affordable(const std::vector<double> &seconds,
                                 unsigned most, double budget_sec);

// Contenders take turns, beginning with another one in each repetition. The
// number of the repetition is added to the seed of the column. When the table's
// budget does not last for all repetitions, the last columns have fewer, but at
// least one.
void fill(Table &table, unsigned repetitions, Hopeless &hopeless,
          Progress &progress);

void print(const Table &table);

// A file of the name for tables, or nothing for no name. Throws
// std::runtime_error when it cannot be written.
class CsvFile
{
public:
    explicit CsvFile(const char *name);
    ~CsvFile();

    CsvFile(const CsvFile &) = delete;
    CsvFile &operator=(const CsvFile &) = delete;

    void write(const Table &table);

private:
    [[noreturn]] void fail() const;

    const char *name_;
    FILE *file_ = nullptr;
};

} // namespace bench

#endif
