// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What all hosts share: the network, the chance, and what the world knows of
// hosts and connections that their ends cannot know.

#ifndef LAWN_TEST_SIM_SHARED_H
#define LAWN_TEST_SIM_SHARED_H

#include "checker.h"
#include "events.h"
#include "network.h"
#include "random.h"
#include "scenario.h"

#include <array>
#include <vector>

namespace sim
{

struct End;

// End 2c is the first of connection c, end 2c + 1 the second.
constexpr uint32_t peer_of(uint32_t end)
{
    return end ^ 1;
}

enum class EndState : uint8_t {
    closed,
    opening, // as soon as its host makes a pass
    open
};

// A connection, as the world sees it.
struct Link {
    std::array<uint32_t, 2> host;
    std::array<EndState, 2> state = {EndState::closed, EndState::closed};
    std::array<Nsec, 2> opened_at = {};
    uint32_t timing = 0;
    uint32_t incarnation = 0;
    Nsec faulted_at = 0; // a packet was lost
    bool is_reopening = false;
};

// A host, likewise. Times are of the latest that happened; 0: never.
struct Standing {
    bool is_up = false;
    bool is_stalled = false;
    bool is_frozen = false; // its clock
    Nsec stalled_until = 0;
    Nsec jumped_at = 0;
};

struct Counters {
    uint64_t messages;
    uint64_t delivered;
    uint64_t retransmissions;      // calls of the op; one may send several
    uint64_t spurious;             // of them, nothing had been lost
    uint64_t most_retransmissions; // of one message, in a row
    uint64_t excused;              // stalls of the own host
    uint64_t probes;
    uint64_t passes;
    uint64_t idle_passes; // that found nothing to do
    uint64_t stalled_passes;
    uint64_t full_passes;
    uint64_t fired;
    uint64_t moved;        // timers that were looked at and did not fire
    uint64_t most_touched; // in one pass
    uint64_t overflows;    // packets for which a stalled host had no room
    uint64_t stale;        // packets for an incarnation that is gone
    uint64_t received;     // all others
    uint64_t opened;
    // Ends whose peer is gone: all of them, those that found it out, and those
    // that went themselves before. The worst share of the bound, in percent.
    uint64_t orphans;
    uint64_t found;
    uint64_t moot;
    uint64_t worst_share;
    // Deaths while the peer lived, by what explains them.
    uint64_t unlucky; // packets were lost, or the peer was stalled
    uint64_t jumped;  // the clock jumped
    std::array<uint64_t, 4> deaths; // by reason
    std::array<uint64_t, fault_count> faults;
};

struct Shared {
    explicit Shared(const Scenario &drawn)
        : scenario(drawn), checker(drawn.seed), random(lawn::mix64(drawn.seed)),
          network(scenario, random.split(), events),
          horizon(sim::horizon(drawn)), standing(drawn.hosts),
          wakes(drawn.hosts, never)
    {
    }

    Link &link_of(uint32_t end)
    {
        return links[end / 2];
    }

    EndState state_of(uint32_t end)
    {
        return link_of(end).state[end % 2];
    }

    // An end is gone, by a death that it found itself or otherwise.
    void set_closed(uint32_t end, bool by_death)
    {
        Link &link = link_of(end);
        link.state[end % 2] = EndState::closed;
        if (link.state[peer_of(end) % 2] != EndState::closed) {
            ++counters.orphans;
        } else if (by_death) {
            ++counters.found;
        } else {
            ++counters.moot;
        }
        closed.push_back(end);
    }

    const Scenario scenario;
    Checker checker;
    Random random;
    EventQueue events;
    Network network;
    const Nsec horizon;
    std::vector<Link> links;
    std::vector<Standing> standing;
    std::vector<Nsec> wakes; // of hosts, see there
    std::vector<End> *ends = nullptr;
    std::vector<uint32_t> closed; // ends, since the world last looked
    Counters counters = {};
    bool is_quiet = false; // no new messages
    bool is_verbose = false;
};

} // namespace sim

#endif
