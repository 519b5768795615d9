// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a run comes to: a line for each table, which says where Lawn is first
// and where another contender is, and by how much.

#ifndef LAWN_BENCH_SUMMARY_H
#define LAWN_BENCH_SUMMARY_H

#include "table.h"

namespace bench
{

class Summary
{
public:
    // Takes Lawn for the first of its rows. Does nothing if there is none.
    void add(const Table &table);

    // To stdout; nothing if nothing was added.
    void print() const;

private:
    std::string name_; // of Lawn's row
    size_t repetitions_ = 0;
    std::vector<std::string> lines_;
};

} // namespace bench

#endif
