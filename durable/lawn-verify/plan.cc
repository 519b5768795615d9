// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See plan.h.

#include "plan.h"

#include <algorithm>
#include <random>

namespace lawn_verify
{

namespace
{

constexpr int64_t ms = 1000;
constexpr int64_t least_gap_us = 100 * ms;
constexpr int64_t most_gap_us = 900 * ms;
constexpr int64_t longest_us = 3000 * ms;
constexpr int64_t longest_delay_us = 150 * ms;
constexpr int64_t longest_step_us = 6000 * ms; // longer than a request may be

// The distributions of the standard library differ between libraries; this does
// not.
int64_t between(std::mt19937_64 &random, int64_t least, int64_t most)
{
    const auto span = static_cast<uint64_t>(most - least + 1);
    return least + static_cast<int64_t>(random() % span);
}

} // namespace

const char *to_string(FaultKind kind)
{
    switch (kind) {
    case FaultKind::kill:
        return "kill";
    case FaultKind::pause:
        return "pause";
    case FaultKind::cut:
        return "cut";
    case FaultKind::hold:
        return "hold";
    case FaultKind::delay:
        return "delay";
    case FaultKind::step:
        return "step";
    }
    return "?";
}

std::vector<Fault> make_plan(uint64_t seed,
                             const std::vector<FaultKinds> &victims,
                             int64_t length_us)
{
    std::mt19937_64 random(seed);
    std::vector<Fault> plan;
    std::vector<int64_t> free_us(victims.size(), 0);
    const auto last_of = [](const auto &list) {
        return static_cast<int64_t>(list.size()) - 1;
    };
    int64_t at_us = 0;
    for (;;) {
        at_us += between(random, least_gap_us, most_gap_us);
        if (at_us >= length_us) {
            return plan;
        }
        Fault fault;
        fault.at_us = at_us;
        fault.victim =
            static_cast<unsigned>(between(random, 0, last_of(victims)));
        const FaultKinds &kinds = victims[fault.victim];
        if (kinds.empty()) {
            continue;
        }
        fault.kind =
            kinds[static_cast<size_t>(between(random, 0, last_of(kinds)))];
        // Many short ones, and some that outlast a lease.
        fault.for_us = fault.kind == FaultKind::cut
                           ? 0
                           : longest_us / between(random, 1, 30);
        fault.delay_us = between(random, ms, longest_delay_us);
        if (fault.kind == FaultKind::step) {
            fault.step_us = between(random, -longest_step_us, longest_step_us);
        }
        if (free_us[fault.victim] <= at_us) {
            free_us[fault.victim] = at_us + fault.for_us + least_gap_us;
            plan.push_back(fault);
        }
    }
}

} // namespace lawn_verify
