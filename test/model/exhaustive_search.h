// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// All sequences of a scenario's operations up to its depth, breadth first, so
// that a failure is found by one of the shortest sequences that lead to it.
//
// A state is every byte of the lawn, its timers and the model, which includes
// the clock. What an operation does depends on nothing else, so two sequences
// that lead to equal states go on alike, and only the first is gone on with.
// Nothing else is left out: timers and TTLs that could change places are not
// taken for the same, nor are states that differ in bytes that no longer
// matter; except that what a timer that is idle, an advance that has ended and
// a queue that is gone leave behind is cleared, and that advances are not
// counted. States are told apart by 64-bit hashes.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_SEARCH_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_SEARCH_H

#include "exhaustive_world.h"

#include <string>
#include <unordered_set>
#include <vector>

namespace exhaustive
{

struct Totals {
    unsigned scenarios = 0;
    double sequences = 0; // of the full depth: all others begin one
    uint64_t operations = 0;
    uint64_t states = 0;
};

class Search
{
public:
    // False if something is wrong; it is then told on stderr, with the calls
    // that lead there.
    bool run(const Scenario &scenario);

    const Totals &totals() const
    {
        return totals_;
    }

    Reached &reached()
    {
        return world_.reached();
    }

private:
    struct Node {
        uint64_t hash;
        uint32_t parent;
        uint8_t op; // that leads here from the parent
    };

    bool expand(const Scenario &scenario, uint32_t node, bool is_last);
    bool go_to(const Scenario &scenario, uint32_t node);
    bool replay(const Scenario &scenario, const std::vector<uint8_t> &path);
    bool fail(const Scenario &scenario, const char *what);

    World world_;
    Totals totals_;
    std::vector<Node> nodes_;
    std::unordered_set<uint64_t> seen_;
    std::vector<uint8_t> path_; // that is being tried
    Changes from_root_;
    Changes changes_;
};

} // namespace exhaustive

#endif
