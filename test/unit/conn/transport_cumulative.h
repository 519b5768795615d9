// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Transports whose peer acknowledges all before a number, with and without an
// echo of the time of sending: with a flight, and by hand.

#ifndef LAWN_TEST_UNIT_TRANSPORT_CUMULATIVE_H
#define LAWN_TEST_UNIT_TRANSPORT_CUMULATIVE_H

#include "transport_fixture.h"

#include <lawn/flight.h>

#include <deque>

namespace lawn_transport
{

// Its peer keeps what comes early. Each packet has it acknowledge all before
// the first that is missing.
class Cumulative : public Transport
{
    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        received_.add(packet.id);
        reply(now, {Packet::ack, received_.next(), packet.time});
    }

    Received received_;
};

// A flight.
class CumulativeFlight : public Cumulative
{
public:
    explicit CumulativeFlight(bool has_echo) : has_echo_(has_echo)
    {
        lawn_flight_init(&flight_, &conn_, &flight_ops);
    }

    bool may_send(uint32_t) const override
    {
        return flight_.count < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        messages_.push_back({{}, this, id});
        emit_data(now, id);
        lawn_flight_send(&flight_, &messages_.back().flight, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        while (!messages_.empty() && messages_.front().id < packet.id) {
            lawn_flight_cover(&flight_, &messages_.front().flight);
            complete(messages_.front().id);
            messages_.pop_front();
        }
        lawn_flight_ack_covered(&flight_, now, has_echo_ ? packet.time : never);
    }

private:
    struct Message {
        lawn_flight_message_t flight;
        CumulativeFlight *transport;
        uint32_t id;
    };

    void retransmit(lawn_time_t now, unsigned attempt) override
    {
        lawn_flight_retransmit(&flight_, now, attempt);
    }

    static bool resend(lawn_flight_t *, lawn_flight_message_t *lost,
                       lawn_time_t now)
    {
        Message *const message = reinterpret_cast<Message *>(lost);
        message->transport->emit_data(now, message->id);
        return true;
    }

    static constexpr lawn_flight_ops_t flight_ops = {resend, nullptr, true};

    bool has_echo_;
    lawn_flight_t flight_ = {};
    std::deque<Message> messages_; // does not move them
};

// What a transport by hand keeps of a message.
struct Kept {
    uint32_t id;
    lawn_time_t sent_at; // the latest time
    bool was_sent_again;
};

// What takes cumulative ACKs by hand, as lawn/conn.h says, from either peer.
template <class Peer> class AcksByHand : public Peer
{
public:
    explicit AcksByHand(bool has_echo) : has_echo_(has_echo)
    {
    }

    bool may_send(uint32_t) const override
    {
        return messages_.size() < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        messages_.push_back({id, now, false});
        this->emit_data(now, id);
        lawn_conn_on_send(&this->conn_, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        lawn_time_t newest = 0;
        while (!messages_.empty() && messages_.front().id < packet.id) {
            const Kept &first = messages_.front();
            newest =
                std::max(newest, first.was_sent_again ? never : first.sent_at);
            this->complete(first.id);
            messages_.pop_front();
        }
        if (newest != 0) {
            const lawn_time_t oldest =
                messages_.empty() ? never : messages_.front().sent_at;
            lawn_conn_on_ack_oldest(&this->conn_, now,
                                    has_echo_ ? packet.time : newest, oldest);
        } else if (has_echo_) {
            lawn_conn_on_echo(&this->conn_, now, packet.time);
        } else {
            lawn_conn_on_receive(&this->conn_, now);
        }
    }

protected:
    void send_again(Kept *message, lawn_time_t now)
    {
        message->sent_at = now;
        message->was_sent_again = true;
        this->emit_data(now, message->id);
    }

    std::deque<Kept> messages_;

private:
    bool has_echo_;
};

class CumulativeByHand : public AcksByHand<Cumulative>
{
    using AcksByHand::AcksByHand;

    void retransmit(lawn_time_t now, unsigned) override
    {
        send_again(&messages_.front(), now);
        lawn_conn_on_resend(&conn_, now, now);
    }
};

// Go-back-N. Its peer drops what comes early, and the program sends all again.
class GoBackN : public Transport
{
    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        expected_ += packet.id == expected_;
        reply(now, {Packet::ack, expected_, packet.time});
    }

    uint32_t expected_ = 0;
};

// A flight, as lawn/flight.h says.
class GoBackNFlight : public GoBackN
{
public:
    GoBackNFlight()
    {
        lawn_flight_init(&flight_, &conn_, &flight_ops);
    }

    bool may_send(uint32_t) const override
    {
        return flight_.count < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        messages_.push_back({{}, this, id});
        emit_data(now, id);
        lawn_flight_send(&flight_, &messages_.back().flight, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        while (!messages_.empty() && messages_.front().id < packet.id) {
            lawn_flight_cover(&flight_, &messages_.front().flight);
            complete(messages_.front().id);
            messages_.pop_front();
        }
        lawn_flight_ack_covered(&flight_, now, packet.time);
    }

private:
    struct Message {
        lawn_flight_message_t flight;
        GoBackNFlight *transport;
        uint32_t id;
    };

    void retransmit(lawn_time_t now, unsigned attempt) override
    {
        lawn_flight_retransmit(&flight_, now, attempt);
    }

    static bool resend(lawn_flight_t *flight, lawn_flight_message_t *first,
                       lawn_time_t now)
    {
        GoBackNFlight *const self =
            reinterpret_cast<Message *>(first)->transport;
        for (Message &message : self->messages_) {
            self->emit_data(now, message.id);
            if (&message.flight != first) {
                lawn_flight_send(flight, &message.flight, now);
            }
        }
        return true;
    }

    static constexpr lawn_flight_ops_t flight_ops = {resend, nullptr, true};

    lawn_flight_t flight_ = {};
    std::deque<Message> messages_;
};

class GoBackNByHand : public AcksByHand<GoBackN>
{
    using AcksByHand::AcksByHand;

    void retransmit(lawn_time_t now, unsigned) override
    {
        for (Kept &message : messages_) {
            send_again(&message, now);
        }
        lawn_conn_on_resend(&conn_, now, now);
    }
};

} // namespace lawn_transport

#endif
