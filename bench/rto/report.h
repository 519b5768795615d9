// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is printed and written.

#ifndef LAWN_BENCH_RTO_REPORT_H
#define LAWN_BENCH_RTO_REPORT_H

#include "rto/options.h"

#include <cstdio>

namespace bench::rto
{

// "10us".
std::string text_of(Tick round_trip);

// Above the rows of one round trip and one window.
void print_head(const Options &options, Tick round_trip, uint32_t window);
void print_row(const Cell &cell);

// The same for new connections.
void print_first_head(const Options &options, Tick round_trip, uint32_t window);
void print_row(const FirstCell &cell);

// All figures in a file, which is opened before a long run and not after it.
// Without a path, nothing is written. Throws std::runtime_error.
class Csv
{
public:
    explicit Csv(const char *path);
    ~Csv();
    Csv(const Csv &) = delete;
    Csv &operator=(const Csv &) = delete;
    void write(const Plan &plan, const std::vector<Cell> &cells);

private:
    [[noreturn]] void fail() const;

    const char *path;
    FILE *file;
};

// Where "lawn" misses the targets, a line each. Returns how many.
unsigned print_misses(const Plan &plan, const std::vector<Cell> &cells);

} // namespace bench::rto

#endif
