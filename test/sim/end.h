// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One end of a connection: a small reliable protocol over lawn/conn.h. A few
// messages may be unacknowledged; the receiver holds what comes before its
// turn, and acknowledges what it has in order at every one that comes; a
// retransmission sends all of them again. Round trips are measured by Karn's
// rule.

#ifndef LAWN_TEST_SIM_END_H
#define LAWN_TEST_SIM_END_H

#include "network.h"
#include "scenario.h"
#include "witness.h"

#include <lawn/conn.h>

namespace sim
{

class Host;

struct End {
    lawn_conn_t conn; // first: the library's callbacks get it
    lawn_timer_t think;
    Host *host;
    uint32_t index;
    uint32_t incarnation;
    bool is_open;

    uint32_t next;             // message to send
    uint32_t unacked;          // oldest
    uint32_t expected;         // message to receive
    uint64_t held[max_window]; // what came before its turn; 0: nothing
    lawn_time_t sent_at[max_window];
    unsigned char copies[max_window]; // sent of each; 2: more than one

    // What only the world knows.
    Nsec unacked_since;
    uint64_t delivered;
    lawn_time_t think_deadline;
    Witness witness;
};

void open_end(End &end, Host &host, uint32_t index);

// Forgets everything without a word to the peer.
void close_end(End &end);

void receive(End &end, const Packet &packet);

// Whether all that was sent is acknowledged.
inline bool is_settled(const End &end)
{
    return end.unacked == end.next;
}

} // namespace sim

#endif
