// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The simulation: one flow of messages on virtual time, with a window, and the
// timers of one contender. A program sends a message a quarter of a round trip
// after it may. The peer acknowledges each message singly, or all in order up
// to one; an ACK echoes the time of the transmission that caused it.
//
// A retransmission is spurious if, when it is made, an answer to an earlier
// transmission of its message is still on its way.

#ifndef LAWN_BENCH_RTO_FLOW_H
#define LAWN_BENCH_RTO_FLOW_H

#include "rto/arrivals.h"
#include "rto/contender.h"
#include "rto/route.h"

namespace bench::rto
{

enum class Acks {
    single,     // of each message
    cumulative, // of all up to one, with an echo
    bare,       // the same without an echo: Karn's rule
};

// A run, apart from its path and its contender.
struct Setting {
    Tick round_trip = 10 * microsecond;
    uint32_t window = 8;
    uint32_t messages = 40'000;
    uint32_t warm_up = 1'000; // of them; spurious and stalls count from then
    double loss = 0;
    Acks acks = Acks::single;
    uint64_t seed = 0;
    // The run may end when more are spurious.
    uint64_t most_spurious = UINT64_MAX;
    Tick start = 0; // of the run; 0: 100 round trips
    // The first message is lost once, and the run ends with its ACK. The event
    // of the path was at time 0.
    bool loses_first = false;
};

struct Outcome {
    uint64_t spurious = 0;      // retransmissions, after the warm-up
    uint64_t transmissions = 0; // of messages
    uint64_t asks = 0;
    uint64_t attempts = 0; // the most retransmissions with nothing heard
    Tick took = 0;
    bool is_stuck = false; // nothing left to wait for, or passes without end
    // From the first transmission to the ACK, of messages of which the first
    // transmission was lost; after the warm-up.
    std::vector<double> stalls; // round trips
};

class Flow
{
public:
    Outcome run(const Variant &variant, const Setting &setting,
                Contender &contender);

    // For contenders, in their pass():

    // Receives what has arrived. Returns how much.
    unsigned poll(Tick now);
    // Sends the oldest message again, and what else is lost.
    void resend(Tick now, const Lost &lost = {});
    // Sends the message again that was sent last (a tail-loss probe).
    void resend_newest(Tick now);
    // Asks the peer for an answer.
    void ask(Tick now);
    // How many messages were acknowledged although an earlier one was not.
    uint32_t sacked() const;
    // How many are not acknowledged.
    uint32_t outstanding() const;
    bool is_cumulative() const;
    // The first time from `at` on at which the program runs.
    Tick awake(Tick at) const;

private:
    struct Message {
        Tick lost_at = never; // when its first transmission was lost
        Sending sending;      // the latest
        uint32_t before = 0;  // the links of the list
        uint32_t after = 0;
        uint16_t coming = 0; // answers, or packets to a peer that answers
        bool is_out = false; // sent and not acknowledged
        bool is_again = false;
        bool is_received = false; // by the peer
    };

    void begin(const Variant &variant, const Setting &setting);
    bool is_over() const;
    void plan_next(Tick now);
    void send_messages(Tick now);
    void send_next(Tick now);
    void wait_to_send(Tick now);
    void transmit(Tick now, uint32_t id, bool is_again);
    bool send_packet(Tick now, Arrival::Kind kind, uint32_t id,
                     Sending sending);
    bool at_peer(const Arrival &arrival);
    bool take_in(const Arrival &arrival);
    bool send_ack(Tick now, Sending sending, uint32_t id, Arrival::Kind kind);
    bool is_answer_coming(const Message &message, uint32_t id) const;
    void take(Tick now, const Arrival &arrival);
    void take_single(Tick now, const Arrival &arrival);
    void take_cumulative(Tick now, const Arrival &arrival);
    void acknowledge(Tick now, uint32_t id);
    Sending oldest() const;
    void link_last(uint32_t id);
    void unlink(uint32_t id);

    // The head of the list of messages that are out, by their latest sending,
    // or by number where ACKs are cumulative, is one message behind the last.
    std::vector<Message> messages;
    uint32_t head = 0;
    Arrivals to_program;
    Arrivals to_peer;
    std::vector<Tick> sends; // when messages may be sent, sorted
    size_t first_send = 0;

    const Path *path = nullptr;
    Setting setting;
    Route *route = nullptr;
    Contender *contender = nullptr;
    Outcome outcome;
    Tick think = 0;
    Tick pace = 0; // between two messages; 0: as many as the window allows
    bool is_eager = false; // the peer acts when something is sent to it
    uint32_t next_id = 0;
    uint32_t next_serial = 0;
    uint32_t out = 0;
    uint32_t acked = 0;
    uint32_t unacked = 0; // the first message that is not acknowledged
    uint64_t unheard = 0; // retransmissions since something was received
    Tick last_sent = 0;
    Tick last_first = 0; // time of the latest first transmission

    // Of the peer, where ACKs are cumulative.
    uint32_t expected = 0;
    uint32_t announced = 0; // by an ACK that arrives
    uint32_t pending = 0;   // packets without an ACK
    Sending pending_sending;
    Tick ack_due = never;
};

} // namespace bench::rto

#endif
