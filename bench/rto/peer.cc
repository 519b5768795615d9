// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The network and the peer; see flow.h. Where the packets keep their order, the
// peer can act when a packet is sent to it: what it answers does not depend on
// anything that happens until then. That saves an event for each packet.

#include "rto/flow.h"

#include <algorithm>

namespace bench::rto
{

// Sends a packet to the peer. Returns whether it gets there; or, where messages
// are acknowledged singly, whether it is answered.
bool Flow::send_packet(Tick now, Arrival::Kind kind, uint32_t id,
                       Sending sending)
{
    const Tick arrival = route->forward(now, sending.serial);
    if (arrival == never) {
        return false;
    }
    bool arrives = true;
    Tick at = arrival;
    for (int copies = 0; copies < 2 && at != never; ++copies) {
        const Arrival packet = {at, sending, id, kind};
        if (is_eager) {
            const bool is_answered = at_peer(packet) || is_cumulative();
            arrives = copies == 0 ? is_answered : arrives;
        } else {
            messages[id].coming += kind == Arrival::data;
            to_peer.push(packet);
        }
        at = copies == 0 ? route->copy(arrival) : never;
    }
    return arrives;
}

// Something arrives at the peer, or its timer runs out. Returns whether an
// answer gets through.
bool Flow::at_peer(const Arrival &arrival)
{
    if (!is_cumulative()) {
        return send_ack(arrival.at, arrival.sending, arrival.id,
                        arrival.kind == Arrival::asking ? Arrival::answer
                                                        : Arrival::ack);
    }
    if (arrival.kind == Arrival::asking) {
        pending = 0;
        return send_ack(arrival.at, arrival.sending, expected, Arrival::answer);
    }
    if (arrival.kind == Arrival::timer) {
        const bool is_due = pending != 0 && arrival.at == ack_due;
        pending = is_due ? 0 : pending;
        return is_due &&
               send_ack(arrival.at, pending_sending, expected, Arrival::ack);
    }
    if (!is_eager) {
        messages[arrival.id].coming--;
    }
    if (!take_in(arrival)) {
        return true; // the ACK is delayed
    }
    // Of several, the first one that waits for an ACK is echoed (RFC
    // 7323, 4.3), so that the delay is measured.
    const Sending echo = pending > 1 ? pending_sending : arrival.sending;
    pending = 0;
    return send_ack(arrival.at, echo, expected, Arrival::ack);
}

// A message arrives. Returns whether it is acknowledged at once: it is the last
// of so many, or it is out of order or not new (RFC 5681, 4.2).
bool Flow::take_in(const Arrival &arrival)
{
    Message &message = messages[arrival.id];
    const bool is_next = arrival.id == expected;
    message.is_received = true;
    const uint32_t before = expected;
    while (expected < next_id && messages[expected].is_received) {
        ++expected;
    }
    if (!is_next || expected != before + 1 || ++pending >= path->ack_every) {
        return true;
    }
    if (pending == 1) {
        pending_sending = arrival.sending;
        ack_due = arrival.at + route->ticks(path->ack_delay);
        to_peer.push({ack_due, {}, 0, Arrival::timer});
    }
    return false;
}

bool Flow::send_ack(Tick now, Sending sending, uint32_t id, Arrival::Kind kind)
{
    const Tick arrival = route->back(now);
    if (arrival == never) {
        return false;
    }
    if (is_cumulative()) {
        announced = std::max(announced, expected);
    } else if (kind == Arrival::ack) {
        messages[id].coming++;
    }
    to_program.push({arrival, sending, id, kind});
    return true;
}

// Whether the retransmission of a message is not needed.
bool Flow::is_answer_coming(const Message &message, uint32_t id) const
{
    return message.coming > 0 || (is_cumulative() && announced > id);
}

} // namespace bench::rto
