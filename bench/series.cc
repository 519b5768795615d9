// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of series; see series.h.

#include "series.h"

#include <algorithm>

namespace bench
{

namespace
{

// Less is better.
std::pair<int, double> rank(const Curve &curve)
{
    int count = 0;
    double sum = 0;
    for (const double value : curve.values) {
        if (!std::isnan(value)) {
            ++count;
            sum += std::log(value);
        }
    }
    return {-count, sum / count};
}

bool is_best_of_family(const Curve &curve, const std::vector<Curve> &all)
{
    return is_rival(*curve.contender) &&
           std::none_of(all.begin(), all.end(), [&](const Curve &other) {
               return is_rival(*other.contender) &&
                      other.contender->family == curve.contender->family &&
                      rank(other) < rank(curve);
           });
}

} // namespace

Series choose_series(const Table &table, Statistic statistic)
{
    Series series;
    std::vector<Curve> all;
    for (size_t row = 0; row < table.rows.size(); ++row) {
        Curve curve = {table.rows[row], &table.cells[row], {}};
        bool is_empty = true;
        for (const Cell &cell : table.cells[row]) {
            const double value = cell.median(statistic);
            // There is no logarithm of 0.
            curve.values.push_back(value > 0 ? value : NAN);
            is_empty = is_empty && !(value > 0);
        }
        if (is_empty) {
            series.empty.emplace_back(curve.contender->traits.name);
        } else {
            all.push_back(curve);
        }
    }
    if (all.size() <= most_series) {
        series.shown = all;
        return series;
    }
    for (const Curve &curve : all) {
        if (curve.contender->family == Family::lawn ||
            is_best_of_family(curve, all)) {
            series.shown.push_back(curve);
        } else {
            series.left_out.emplace_back(curve.contender->traits.name);
        }
    }
    return series;
}

} // namespace bench
