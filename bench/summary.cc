// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The summary; see summary.h.

#include "summary.h"

#include <algorithm>
#include <cmath>

namespace bench
{

namespace
{

// Less than this is not told from noise.
constexpr double even = 1.05;

// The columns in which Lawn is on one side of the best of the others.
struct Side {
    unsigned count = 0;
    double most = 1; // the greatest ratio, never below 1
    std::string where;

    // Something is infinitely more than nothing: this counts, but is no ratio.
    void add(double ratio, const std::string &at)
    {
        ++count;
        if (std::isfinite(ratio) && ratio > most) {
            most = ratio;
            where = at;
        } else if (where.empty()) {
            where = at;
        }
    }

    std::string text(bool with_where) const
    {
        if (count == 0) {
            return "-";
        }
        char text[64] = "";
        if (most > 1) {
            snprintf(text, sizeof(text), ", %.2f x", most);
        }
        return std::to_string(count) + text + (with_where ? ": " + where : "");
    }
};

struct Best {
    double value = NAN;
    const char *name = nullptr;
};

Best best_rival(const Table &table, size_t column, Statistic statistic)
{
    Best best;
    for (size_t row = 0; row < table.rows.size(); ++row) {
        const double value = table.cells[row][column].median(statistic);
        if (is_rival(*table.rows[row]) && !std::isnan(value) &&
            !(value >= best.value)) {
            best = {value, table.rows[row]->traits.name};
        }
    }
    return best;
}

} // namespace

void Summary::add(const Table &table)
{
    size_t own = 0;
    while (own < table.rows.size() && !is_lawn(*table.rows[own])) {
        ++own;
    }
    if (own == table.rows.size()) {
        return;
    }
    name_ = table.rows[own]->traits.name;
    repetitions_ = std::max(repetitions_, table.repetitions());
    // The longest of many times is the machine's rather than the contender's.
    const bool is_longest = table.has(Statistic::p50);
    const Statistic statistic = is_longest ? Statistic::p99 : Statistic::figure;
    Side ahead;
    Side behind;
    unsigned level = 0;
    for (size_t column = 0; column < table.columns.size(); ++column) {
        const double lawn = table.cells[own][column].median(statistic);
        const Best rival = best_rival(table, column, statistic);
        const double ratio = lawn == rival.value ? 1 : lawn / rival.value;
        const std::string &at = table.columns[column].head;
        if (ratio > even) {
            behind.add(ratio, std::string(rival.name) + " at " + at);
        } else if (ratio < 1 / even) {
            ahead.add(1 / ratio, at);
        } else if (!std::isnan(ratio)) {
            ++level;
        }
    }
    const std::string name = table.name + (is_longest ? ", p99" : "");
    char line[256];
    if (ahead.count + behind.count + level == 0) {
        snprintf(line, sizeof(line), "%-19s nothing to compare", name.c_str());
    } else {
        snprintf(line, sizeof(line), "%-19s %-13s %5u  %s", name.c_str(),
                 ahead.text(false).c_str(), level, behind.text(true).c_str());
    }
    lines_.emplace_back(line);
}

void Summary::print() const
{
    if (lines_.empty()) {
        return;
    }
    printf("\nsummary: in how many columns %s is ahead of the best of the "
           "others that never\nfire early, even with it (within 5 %%) or "
           "behind it, and by how much at most\n%-19s %-13s %5s  %s\n",
           name_.c_str(), "", "ahead", "even", "behind");
    for (const std::string &line : lines_) {
        printf("%s\n", line.c_str());
    }
    if (repetitions_ == 1) {
        printf("Of one repetition: mostly noise, if the machine has other "
               "work.\n");
    }
}

} // namespace bench
