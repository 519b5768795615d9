// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The tables; see table.h.

#include "table.h"

#include "arena.h"
#include "floor.h"

#include <algorithm>
#include <stdexcept>

#include <unistd.h>

namespace bench
{

namespace
{

double value_of(const Result &result, Statistic statistic)
{
    switch (statistic) {
    case Statistic::mean:
        return result.mean;
    case Statistic::p50:
        return result.p50;
    case Statistic::p99:
        return result.p99;
    case Statistic::p999:
        return result.p999;
    case Statistic::most:
        return result.most;
    case Statistic::deviation:
        return result.deviation;
    case Statistic::longest:
        return result.longest;
    case Statistic::left_out:
        return result.left_out;
    default:
        return result.figure;
    }
}

// `least` is where the contender is known to be hopeless, if at all.
void run_cell(const Table &table, const Contender &contender, const Load &load,
              Cell &cell, size_t &least)
{
    if (table.needs_virtual_time && contender.wait) {
        cell.is_unavailable = true;
        return;
    }
    if (load.timers >= least) {
        cell.is_too_slow = cell.results.empty();
        return;
    }
    if (cell.is_long) {
        return;
    }
    const auto begin = Clock::now();
    const Result result = contender.is_floor ? run_on_floor(table.run, load)
                                             : table.run(contender, load);
    if (result) {
        cell.results.push_back(result);
    } else if (result.is_available) {
        cell.is_too_slow = true;
    } else {
        cell.is_unavailable = true;
    }
    const double seconds = seconds_since(begin);
    cell.is_long = seconds > table.long_sec;
    if (cell.is_too_slow || seconds > 1 + 3 * patience(load)) {
        least = load.timers;
    }
}

// NaN if the column is empty of them.
template <class Take>
double best(const Table &table, size_t column, Statistic statistic, Take &&take)
{
    double least = NAN;
    for (size_t row = 0; row < table.rows.size(); ++row) {
        if (take(*table.rows[row])) {
            least =
                std::fmin(least, table.cells[row][column].median(statistic));
        }
    }
    return least;
}

bool is_floor(const Contender &contender)
{
    return contender.is_floor;
}

bool is_scheme(const Contender &contender)
{
    return !contender.is_floor;
}

void print_cell(const Cell &cell, Statistic statistic, double best_of_column)
{
    const double value = cell.median(statistic);
    if (std::isnan(value)) {
        printf(" %10s ", cell.is_unavailable ? "n/a" : "too slow");
    } else {
        printf(" %10.*f%c", value < 100 ? 1 : 0, value,
               value <= best_of_column ? '*' : ' ');
    }
}

// Lawn's figures divided by the best of some others, if there are any.
void print_ratios(const Table &table, Statistic statistic, const char *name,
                  bool (*take)(const Contender &))
{
    for (size_t row = 0; row < table.rows.size(); ++row) {
        if (!is_lawn(*table.rows[row])) {
            continue;
        }
        bool is_empty = true;
        std::string line;
        for (size_t column = 0; column < table.columns.size(); ++column) {
            const double ratio = table.cells[row][column].median(statistic) /
                                 best(table, column, statistic, take);
            char text[32] = "         - ";
            if (std::isfinite(ratio)) {
                snprintf(text, sizeof(text), "%10.2f ", ratio);
                is_empty = false;
            }
            line += std::string(" ") + text;
        }
        if (!is_empty) {
            printf("%-20s%s\n",
                   (std::string(table.rows[row]->traits.name) + " / " + name)
                       .c_str(),
                   line.c_str());
        }
    }
}

const char *suffix_of(const Table &table, Statistic statistic)
{
    switch (statistic) {
    case Statistic::figure:
        return table.has(Statistic::p50) ? ", max" : "";
    case Statistic::p50:
        return ", p50";
    case Statistic::p99:
        return ", p99";
    case Statistic::p999:
        return ", p99.9";
    case Statistic::most:
        return ", most timers";
    default:
        return "";
    }
}

void print_statistic(const Table &table, Statistic statistic)
{
    printf("\n%s%s: %s (%s)\n%-20s", table.name.c_str(),
           suffix_of(table, statistic), table.what.c_str(),
           statistic == Statistic::most ? "timers" : table.unit.c_str(),
           table.axis.c_str());
    for (const Column &column : table.columns) {
        printf(" %10s ", column.head.c_str());
    }
    printf("\n");
    for (size_t row = 0; row < table.rows.size(); ++row) {
        printf("%-20s", table.rows[row]->traits.name);
        for (size_t column = 0; column < table.columns.size(); ++column) {
            print_cell(table.cells[row][column], statistic,
                       is_floor(*table.rows[row]) ||
                               statistic == Statistic::most
                           ? NAN
                           : best(table, column, statistic, is_scheme));
        }
        printf("\n");
    }
    if (statistic != Statistic::most) {
        print_ratios(table, statistic, "best", is_rival);
        print_ratios(table, statistic, "floor", is_floor);
    }
    fflush(stdout);
}

void write_number(FILE *file, double value)
{
    if (std::isnan(value)) {
        fprintf(file, ",");
    } else {
        fprintf(file, ",%.3f", value);
    }
}

void write_csv(FILE *file, const Table &table)
{
    for (size_t row = 0; row < table.rows.size(); ++row) {
        for (size_t column = 0; column < table.columns.size(); ++column) {
            const Cell &cell = table.cells[row][column];
            if (cell.results.empty()) {
                continue;
            }
            const Load &load = table.columns[column].load;
            fprintf(file, "%s,%s,%zu,%zu,%s", table.name.c_str(),
                    table.rows[row]->traits.name, load.timers, load.ttls,
                    table.unit.c_str());
            write_number(file, cell.median(Statistic::figure));
            write_number(file, cell.least());
            write_number(file, cell.greatest());
            write_number(file, cell.median(Statistic::mean));
            write_number(file, cell.median(Statistic::p99));
            write_number(file, cell.median(Statistic::p50));
            write_number(file, cell.median(Statistic::p999));
            write_number(file, cell.median(Statistic::most));
            write_number(file, cell.median(Statistic::deviation));
            write_number(file, cell.median(Statistic::longest));
            fprintf(file, "\n");
        }
    }
    fflush(file);
}

} // namespace

double Cell::median(Statistic statistic) const
{
    std::vector<double> values;
    for (const Result &result : results) {
        values.push_back(value_of(result, statistic));
    }
    if (values.empty()) {
        return NAN;
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double Cell::least() const
{
    double value = NAN;
    for (const Result &result : results) {
        value = std::fmin(value, result.figure);
    }
    return value;
}

double Cell::greatest() const
{
    double value = NAN;
    for (const Result &result : results) {
        value = std::fmax(value, result.figure);
    }
    return value;
}

bool Table::has(Statistic statistic) const
{
    for (const std::vector<Cell> &row : cells) {
        for (const Cell &cell : row) {
            if (!std::isnan(cell.median(statistic))) {
                return true;
            }
        }
    }
    return false;
}

size_t Table::repetitions(size_t column) const
{
    size_t most = 0;
    for (const std::vector<Cell> &row : cells) {
        most = std::max(most, row[column].results.size());
    }
    return most;
}

size_t Table::repetitions() const
{
    size_t most = 0;
    for (size_t column = 0; column < columns.size(); ++column) {
        most = std::max(most, repetitions(column));
    }
    return most;
}

Progress::Progress(size_t steps)
    : steps_(steps), is_shown_(isatty(STDERR_FILENO) == 1)
{
}

Progress::~Progress()
{
    hide();
}

void Progress::hide()
{
    if (is_shown_) {
        fprintf(stderr, "\r%78s\r", "");
    }
}

void Progress::step(const std::string &what)
{
    ++done_;
    if (is_shown_) {
        const int width = static_cast<int>(20 * done_ / steps_);
        fprintf(stderr, "\r[%-20.*s] %3d%% %-50.50s", width,
                "####################", static_cast<int>(100 * done_ / steps_),
                what.c_str());
    }
}

size_t steps(const Table &table, unsigned repetitions)
{
    return table.columns.size() * table.rows.size() * repetitions;
}

std::vector<unsigned> affordable(const std::vector<double> &seconds,
                                 unsigned most, double budget_sec)
{
    std::vector<unsigned> counts;
    for (const double taken : seconds) {
        unsigned count = 0;
        for (; count < most && taken <= budget_sec; ++count) {
            budget_sec -= taken;
        }
        counts.push_back(count);
    }
    return counts;
}

namespace
{

// All contenders, once.
void run_column(Table &table, size_t column, unsigned repetition,
                Hopeless &hopeless, Progress &progress)
{
    Load load = table.columns[column].load;
    load.seed += repetition + 1;
    const size_t rows = table.rows.size();
    for (size_t turn = 0; turn < rows; ++turn) {
        const size_t row = (turn + repetition) % rows;
        const Contender *const contender = table.rows[row];
        progress.step(table.name + " " + table.columns[column].head + " " +
                      contender->traits.name);
        size_t &least =
            hopeless.emplace(std::make_pair(contender, load.ttls), never)
                .first->second;
        run_cell(table, *contender, load, table.cells[row][column], least);
    }
}

} // namespace

void fill(Table &table, unsigned repetitions, Hopeless &hopeless,
          Progress &progress)
{
    const size_t columns = table.columns.size();
    table.cells.assign(table.rows.size(), std::vector<Cell>(columns));
    std::vector<unsigned> left(columns, repetitions);
    std::vector<double> seconds(columns);
    const auto begin = Clock::now();
    for (unsigned repetition = 0; repetition < repetitions; ++repetition) {
        for (size_t column = 0; column < columns; ++column) {
            if (left[column] > 0) {
                const auto turn = Clock::now();
                run_column(table, column, repetition, hopeless, progress);
                seconds[column] = seconds_since(turn);
            }
        }
        left = affordable(seconds, repetitions - repetition - 1,
                          table.budget_sec - seconds_since(begin));
    }
}

void print(const Table &table)
{
    print_statistic(table, Statistic::figure);
    for (const Statistic statistic :
         {Statistic::p50, Statistic::p99, Statistic::p999, Statistic::most}) {
        if (table.has(statistic)) {
            print_statistic(table, statistic);
        }
    }
}

CsvFile::CsvFile(const char *name) : name_(name)
{
    if (name) {
        file_ = fopen(name, "w");
        if (!file_) {
            fail();
        }
        fprintf(file_, "workload,contender,timers,ttls,unit,median,least,"
                       "greatest,mean,p99,p50,p999,most,deviation,longest\n");
    }
}

CsvFile::~CsvFile()
{
    if (file_) {
        fclose(file_);
    }
}

void CsvFile::write(const Table &table)
{
    if (file_) {
        write_csv(file_, table);
        if (ferror(file_)) {
            fail();
        }
    }
}

void CsvFile::fail() const
{
    throw std::runtime_error(std::string("cannot write ") + name_);
}

} // namespace bench
