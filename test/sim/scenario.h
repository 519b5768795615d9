// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a seed decides before a run begins. Not only the dice differ from seed
// to seed but the game: how bad the network is, which faults there are at
// all, and what the connections were configured to.

#ifndef LAWN_TEST_SIM_SCENARIO_H
#define LAWN_TEST_SIM_SCENARIO_H

#include "random.h"
#include "units.h"

#include <array>
#include <cstddef>

namespace sim
{

// What a class of connections was configured to; lawn/conn.h explains.
struct Timing {
    Nsec rto_initial;
    Nsec rto_min;
    Nsec rto_max;
    Nsec rto_fixed;
    unsigned backoff_percent;
    unsigned max_retries;
    Nsec peer_timeout;
    Nsec idle; // of each end, longer by up to the spread
    Nsec idle_spread;
    Nsec interval;
    unsigned probes;

    // Of the protocol: the mean time from one message of an end to its next,
    // how many it then sends, and how many may be unacknowledged.
    Nsec think;
    unsigned burst;
    unsigned window;
    bool one_sided; // the second end only listens
};

struct Weather {
    uint32_t loss_ppm;
    uint32_t duplicate_ppm;
    uint32_t reorder_ppm;
    Nsec delay_min; // of paths; a packet takes up to twice its path's
    Nsec delay_max;
    Nsec reorder_max; // and a reordered one so much more
};

enum class Fault : uint8_t {
    stall,     // a host makes no passes
    suspend,   // nor does its clock count
    jump,      // of a clock, forward
    step_back, // of a clock
    freeze,    // of a clock
    drift,     // of a clock's rate
    burst,     // of losses in one direction
    partition, // of two hosts, one way or both
    kill,      // of one end, without a word
    crash,     // of a host
    count
};

constexpr size_t fault_count = static_cast<size_t>(Fault::count);
constexpr size_t timing_count = 4;

constexpr unsigned max_window = 4;
constexpr int max_ppm = 200; // of a clock's rate
constexpr Nsec longest_stall = 20 * sec;

struct Scenario {
    uint64_t seed;
    uint32_t connections;
    uint32_t hosts;
    Nsec duration; // of the faults; calm follows
    Weather weather;
    std::array<Timing, timing_count> timing;
    // The mean time between two of a kind, for each thing that may have it;
    // never: there are none.
    std::array<Nsec, fault_count> gaps;
    unsigned budget;
    Nsec stall_threshold;
};

Scenario draw_scenario(uint64_t seed, uint32_t connections, uint32_t hosts,
                       Nsec duration);

// Time in which an end whose network and peer do nothing wrong must have heard
// from it, whatever it has been through before.
Nsec horizon(const Scenario &scenario);

// The longest time from one message of an end to its next.
Nsec longest_think(const Scenario &scenario);

const char *fault_name(size_t kind);

} // namespace sim

#endif
