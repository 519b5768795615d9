// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The paths between a program and its peer: how long round trips take, what is
// lost, and when either side looks. Everything is in round trips, so that each
// path can have any round trip.

#ifndef LAWN_BENCH_RTO_PATH_H
#define LAWN_BENCH_RTO_PATH_H

#include "rto/random.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bench::rto
{

// When something is sent, in round trips.
struct Moment {
    double at;
    double since;    // the event of the path; below 0: it has not come yet
    uint32_t serial; // of the transmission
};

// How long something takes that is sent then. It is a plain function: what a
// delay depends on is in the moment.
using Delay = double (*)(Random &random, const Moment &moment);

enum class Loss {
    single, // of each packet to the peer by itself
    bursts, // of all packets to the peer for some time (Gilbert and Elliott)
    both,   // the same as single, also of each ACK
    first,  // of nothing but the first message after a silence
};

// In which order the ACKs come, besides what a delay does.
enum class Order {
    kept, // what is late holds up what was sent after it
    any,
};

// What the targets make of a path: see check.cc.
struct Rules {
    double spurious = 5;   // the most per 10,000 messages
    bool has_tail = false; // a heavy one
    bool is_aside = false; // no target at all
    bool changes = false;  // the oracle waits for its longest state
    double round_trip = 1; // the usual one, if either side looks late
};

struct Path {
    const char *name;
    const char *what;
    Delay delay; // of the round trip
    // Of the way back alone. The delay of the path is then that of the way to
    // the peer. NULL: half a round trip, which `delay` contains.
    Delay back = nullptr;
    bool in_order = true;     // there is a variant that keeps the order
    bool out_of_order = true; // and one that does not
    Loss loss = Loss::single;
    Rules rules = {};
    double duplicates = 0;  // share of packets that arrive twice
    double peer_poll = 0;   // the peer looks at multiples of this
    double own_poll = 0;    // the program does
    unsigned ack_every = 1; // packet; cumulative ACKs if not 1
    double ack_delay = 0;   // the most that an ACK waits for the next packet
    double outage = 0;      // for so long nothing arrives after the event
    double own_pause = 0;   // for so long the program does not run
    double silence = 0;     // for so long nothing is sent, each 500 messages
    bool at_once = false;   // a whole window is sent in one pass
    // Its changes come by time, so a greater window must not be faster.
    bool by_time = false;
};

const std::vector<Path> &paths();

// A path in one order.
struct Variant {
    const Path *path;
    Order order;
    std::string name;
};

const std::vector<Variant> &variants();

} // namespace bench::rto

#endif
