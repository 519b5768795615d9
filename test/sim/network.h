// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The network: a path in each direction between any two hosts, which loses,
// duplicates, delays and reorders packets, in bursts worse than usual, and at
// times lets nothing through.

#ifndef LAWN_TEST_SIM_NETWORK_H
#define LAWN_TEST_SIM_NETWORK_H

#include "events.h"
#include "random.h"
#include "scenario.h"

#include <lawn/time.h>

#include <vector>

namespace sim
{

enum class Kind : uint8_t { data, ack, probe, answer };

struct Packet {
    uint32_t to; // which end
    uint32_t incarnation;
    uint32_t number; // data: of the message; ack: the next that is expected
    Kind kind;
    uint64_t content;  // data
    lawn_time_t stamp; // data: when sent; ack: that of what it answers, or 0
};

struct NetworkStats {
    uint64_t sent;
    uint64_t lost;
    uint64_t cut; // by a partition
    uint64_t duplicated;
    uint64_t reordered;
};

class Network
{
public:
    Network(const Scenario &scenario, Random random, EventQueue &events);

    // False when no copy will arrive.
    bool send(const Packet &packet, uint32_t from, uint32_t to, Nsec now);

    Packet take(uint32_t slot);

    void begin_burst(uint32_t from, uint32_t to, Nsec until, uint32_t loss_ppm);
    void cut(uint32_t from, uint32_t to, Nsec until);

    // No more losses, nor anything else that is bad.
    void calm();

    const NetworkStats &stats() const
    {
        return stats_;
    }

private:
    struct Path {
        Nsec delay;
        Nsec bad_until;
        Nsec cut_until;
        uint32_t bad_ppm;
    };

    Path &path(uint32_t from, uint32_t to)
    {
        return paths_[size_t{from} * hosts_ + to];
    }

    void deliver(const Packet &packet, const Path &path, Nsec now);

    uint32_t hosts_;
    Weather weather_;
    Random random_;
    EventQueue &events_;
    std::vector<Path> paths_;
    std::vector<Packet> in_flight_;
    std::vector<uint32_t> free_;
    NetworkStats stats_ = {};
};

} // namespace sim

#endif
