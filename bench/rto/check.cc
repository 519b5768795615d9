// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Whether "lawn" meets the targets. Of 10,000 messages without loss, 5 may be
// sent needlessly, 10 where the tail is heavy, 12 with pauses. A median stall
// is compared with that of the oracle, which knows the path:
//   - With a window of 1, and on paths that do not keep their order, silence
//     says most: at most 1.25 times the oracle's, or twice where the tail is
//     heavy.
//   - Else something that was sent later is evidence: at most 1.15 times, and
//     where such a path has a long tail 0.75 times.
// No other timer has both a median stall that is shorter by 5 % and 2 fewer
// that are sent needlessly. Paths with one outage or a few pauses of 1,000
// round trips or more have no target: what was says nothing about what comes.

#include "rto/report.h"

#include <cstdio>
#include <cstring>
#include <string>

namespace bench::rto
{

namespace
{

// A path has a long tail where even the oracle waits for more round trips.
constexpr double long_tail = 4;

// How many times the oracle's the median stall may be.
double most_of_oracle(const Cell &cell)
{
    const Path &path = *cell.variant->path;
    if (cell.window == 1 || cell.variant->order == Order::any) {
        return path.rules.has_tail ? 2 : 1.25;
    }
    const bool is_long = cell.oracle_p50 > long_tail * path.rules.round_trip;
    return is_long && !path.rules.changes ? .75 : 1.15;
}

bool is_better(const Figures &figures, const Figures &lawn)
{
    return figures.p50 < .95 * lawn.p50 && figures.spurious < lawn.spurious - 2;
}

bool is_other_timer(const Kind &kind)
{
    return kind.make && strncmp(kind.name, "lawn", 4) != 0;
}

} // namespace

unsigned print_misses(const Plan &plan, const std::vector<Cell> &cells)
{
    size_t lawn = 0; // which of the contenders it is
    while (strcmp(plan.kinds[lawn]->name, "lawn") != 0) {
        ++lawn;
    }
    unsigned misses = 0;
    const auto miss = [&](const Cell &cell, const char *what, double value,
                          double most) {
        printf("%s, round trip %s, window %u: %s %.2f, at most %.2f\n",
               cell.variant->name.c_str(), text_of(cell.round_trip).c_str(),
               cell.window, what, value, most);
        ++misses;
    };
    printf("\n");
    for (const Cell &cell : cells) {
        const Rules &rules = cell.variant->path->rules;
        const Figures &of = cell.figures[lawn];
        if (of.is_stuck) {
            miss(cell, "stuck", 1, 0);
        }
        if (rules.is_aside) {
            continue;
        }
        if (of.spurious > rules.spurious) {
            miss(cell, "spurious", of.spurious, rules.spurious);
        }
        if (of.p50 > most_of_oracle(cell) * cell.oracle_p50) {
            miss(cell, "stall / the oracle's", of.p50 / cell.oracle_p50,
                 most_of_oracle(cell));
        }
        for (size_t i = 0; i < plan.kinds.size(); ++i) {
            if (is_other_timer(*plan.kinds[i]) &&
                is_better(cell.figures[i], of)) {
                const std::string what =
                    std::string("stall / that of ") + plan.kinds[i]->name;
                miss(cell, what.c_str(), of.p50 / cell.figures[i].p50, 1 / .95);
            }
        }
    }
    printf("%u targets missed in %zu cells\n", misses, cells.size());
    return misses;
}

} // namespace bench::rto
