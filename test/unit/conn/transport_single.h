// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Transports whose peer acknowledges single messages, with and without an echo
// of the time of sending: with a flight, and by hand.

#ifndef LAWN_TEST_UNIT_TRANSPORT_SINGLE_H
#define LAWN_TEST_UNIT_TRANSPORT_SINGLE_H

#include "transport_fixture.h"

#include <lawn/flight.h>

#include <list>
#include <map>

namespace lawn_transport
{

// Its peer acknowledges each message as it comes.
class Single : public Transport
{
    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        reply(now, {Packet::ack, packet.id, packet.time});
    }
};

// A flight. A message is freed when it is acknowledged, so a second ACK finds
// nothing. Then the echo alone tells what it answers.
class SingleFlight : public Single
{
public:
    SingleFlight(bool asks, bool gives_up) : asks_(asks), gives_up_(gives_up)
    {
        lawn_flight_init(&flight_, &conn_, &flight_ops);
    }

    bool may_send(uint32_t) const override
    {
        return flight_.count < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        Message &message = messages_[id];
        message.transport = this;
        message.id = id;
        lawn_flight_send(&flight_, &message.flight, now);
        emit_data(now, id, message.flight.sent_at);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        const auto found = messages_.find(packet.id);
        if (found == messages_.end()) {
            lawn_flight_ack_covered(&flight_, now, packet.time);
            return;
        }
        EXPECT_TRUE(
            lawn_flight_ack(&flight_, &found->second.flight, now, packet.time));
        messages_.erase(found);
        complete(packet.id);
    }

private:
    struct Message {
        lawn_flight_message_t flight;
        SingleFlight *transport;
        uint32_t id;
    };

    void retransmit(lawn_time_t now, unsigned attempt) override
    {
        lawn_flight_retransmit(&flight_, now, attempt);
    }

    bool can_ask() const override
    {
        return asks_;
    }

    static bool resend(lawn_flight_t *, lawn_flight_message_t *lost,
                       lawn_time_t now)
    {
        Message *const message = reinterpret_cast<Message *>(lost);
        message->transport->emit_data(now, message->id);
        return true;
    }

    static bool black_hole(lawn_flight_t *flight, lawn_flight_message_t *lost,
                           lawn_time_t now)
    {
        Message *const message = reinterpret_cast<Message *>(lost);
        SingleFlight *const self = message->transport;
        if (self->gives_up_) {
            self->abandon();
            lawn_flight_give_up(flight, lost, now);
            self->messages_.erase(message->id);
        }
        return true;
    }

    static constexpr lawn_flight_ops_t flight_ops = {resend, black_hole, false};

    bool asks_;
    bool gives_up_;
    lawn_flight_t flight_ = {};
    std::map<uint32_t, Message> messages_;
};

// The ACKs echo nothing. So a message is kept for a while, to see that it was
// acknowledged twice.
class SingleFlightBare : public Single
{
public:
    SingleFlightBare()
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
        auto at = messages_.begin();
        while (at != messages_.end() && at->id != packet.id) {
            ++at;
        }
        if (at == messages_.end()) {
            lawn_flight_ack_covered(&flight_, now, never);
        } else if (lawn_flight_ack(&flight_, &at->flight, now, never)) {
            complete(packet.id);
            forget();
        }
    }

private:
    struct Message {
        lawn_flight_message_t flight;
        SingleFlightBare *transport;
        uint32_t id;
    };

    // Frees what is acknowledged but the latest hundred messages.
    void forget()
    {
        while (messages_.size() > 100 && !messages_.front().flight.link.next) {
            messages_.pop_front();
        }
    }

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

    static constexpr lawn_flight_ops_t flight_ops = {resend, nullptr, false};

    lawn_flight_t flight_ = {};
    std::list<Message> messages_;
};

// By hand, as lawn/conn.h says, for a list in the order of the latest sending.
// The echo is the time in the ACK, or there is none.
class SingleByHand : public Single
{
public:
    explicit SingleByHand(bool has_echo) : has_echo_(has_echo)
    {
    }

    bool may_send(uint32_t) const override
    {
        return messages_.size() < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        messages_.push_back({id, now, false});
        emit_data(now, id);
        lawn_conn_on_send(&conn_, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        const auto at = std::find_if(
            messages_.begin(), messages_.end(),
            [&packet](const Message &m) { return m.id == packet.id; });
        if (at == messages_.end()) {
            if (has_echo_) {
                lawn_conn_on_echo(&conn_, now, packet.time);
            } else {
                lawn_conn_on_receive(&conn_, now);
            }
            return;
        }
        const lawn_time_t known = at->was_sent_again ? never : at->sent_at;
        messages_.erase(at);
        lawn_conn_on_ack_oldest(&conn_, now, has_echo_ ? packet.time : known,
                                oldest());
        complete(packet.id);
    }

private:
    struct Message {
        uint32_t id;
        lawn_time_t sent_at;
        bool was_sent_again;
    };

    lawn_time_t oldest() const
    {
        return messages_.empty() ? never : messages_.front().sent_at;
    }

    void retransmit(lawn_time_t now, unsigned) override
    {
        const lawn_time_t before = lawn_conn_lost_before(&conn_, now);
        do {
            const uint32_t id = messages_.front().id;
            messages_.pop_front();
            messages_.push_back({id, now, true});
            emit_data(now, id);
        } while (oldest() < before);
        lawn_conn_on_resend(&conn_, now, oldest());
    }

    bool has_echo_;
    std::list<Message> messages_;
};

} // namespace lawn_transport

#endif
