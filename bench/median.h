// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is told of the figures of repetitions.

#ifndef LAWN_BENCH_MEDIAN_H
#define LAWN_BENCH_MEDIAN_H

#include <algorithm>
#include <vector>

namespace bench
{

// Of one figure or more.
inline double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

} // namespace bench

#endif
