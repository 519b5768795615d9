// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Transports whose peer asks for what is missing or answers requests, and those
// that know only that something was acknowledged.

#ifndef LAWN_TEST_UNIT_TRANSPORT_OTHER_H
#define LAWN_TEST_UNIT_TRANSPORT_OTHER_H

#include "transport_fixture.h"

#include <deque>
#include <list>

namespace lawn_transport
{

// NACKs. The peer asks for each message that is missing, once, when something
// later comes, and acknowledges each that comes. The window is one of numbers,
// for the peer keeps what comes early.
class Nacks : public Transport
{
public:
    bool may_send(uint32_t id) const override
    {
        return id < first_ + 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        messages_.push_back({id, now});
        emit_data(now, id);
        lawn_conn_on_send(&conn_, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        const auto at = std::find_if(
            messages_.begin(), messages_.end(),
            [&packet](const Message &m) { return m.id == packet.id; });
        if (packet.kind == Packet::nack) {
            lawn_conn_on_receive(&conn_, now);
            if (at != messages_.end() && lawn_conn_is_open(&conn_)) {
                send_again(at, now);
                lawn_conn_on_resend(&conn_, now, oldest());
            }
        } else if (at == messages_.end()) {
            lawn_conn_on_echo(&conn_, now, packet.time);
        } else {
            messages_.erase(at);
            lawn_conn_on_ack_oldest(&conn_, now, packet.time, oldest());
            acked_.add(packet.id);
            first_ = acked_.next();
            complete(packet.id);
        }
    }

private:
    struct Message {
        uint32_t id;
        lawn_time_t sent_at; // the latest time, in whose order they are
    };

    using Iterator = std::list<Message>::iterator;

    void send_again(Iterator message, lawn_time_t now)
    {
        message->sent_at = now;
        emit_data(now, message->id);
        messages_.splice(messages_.end(), messages_, message);
    }

    lawn_time_t oldest() const
    {
        return messages_.empty() ? never : messages_.front().sent_at;
    }

    void retransmit(lawn_time_t now, unsigned) override
    {
        const lawn_time_t before = lawn_conn_lost_before(&conn_, now);
        do {
            send_again(messages_.begin(), now);
        } while (oldest() < before);
        lawn_conn_on_resend(&conn_, now, oldest());
    }

    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        for (; asked_ < packet.id; ++asked_) {
            reply(now, {Packet::nack, asked_, 0});
        }
        asked_ = std::max(asked_, packet.id + 1);
        reply(now, {Packet::ack, packet.id, packet.time});
    }

    std::list<Message> messages_;
    Received acked_;
    uint32_t first_ = 0; // that is not acknowledged
    uint32_t asked_ = 0; // at the peer: it expects this one
};

// Requests and responses. The time of sending travels with the request and back
// with the response. The peer can be asked, as for a pong.
class Requests : public Transport
{
public:
    explicit Requests(size_t window) : window_(window)
    {
    }

    bool may_send(uint32_t) const override
    {
        return requests_.size() < window_;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        requests_.push_back({id, now});
        emit_data(now, id);
        lawn_conn_on_send(&conn_, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        for (Request &request : requests_) {
            if (request.id == packet.id) {
                request = requests_.back(); // in no order
                requests_.pop_back();
                lawn_conn_on_ack_oldest(&conn_, now, packet.time, oldest());
                complete(packet.id);
                return;
            }
        }
        lawn_conn_on_echo(&conn_, now, packet.time);
    }

private:
    struct Request {
        uint32_t id;
        lawn_time_t sent_at; // the latest time
    };

    lawn_time_t oldest() const
    {
        lawn_time_t oldest = never;
        for (const Request &request : requests_) {
            oldest = std::min(oldest, request.sent_at);
        }
        return oldest;
    }

    bool can_ask() const override
    {
        return true;
    }

    void retransmit(lawn_time_t now, unsigned) override
    {
        const lawn_time_t first = oldest();
        const lawn_time_t before = lawn_conn_lost_before(&conn_, now);
        bool has_sent_first = false;
        for (Request &request : requests_) {
            const bool is_first = request.sent_at == first && !has_sent_first;
            if (is_first || request.sent_at < before) {
                has_sent_first |= is_first;
                request.sent_at = now;
                emit_data(now, request.id);
            }
        }
        lawn_conn_on_resend(&conn_, now, oldest());
    }

    // The response.
    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        reply(now, {Packet::ack, packet.id, packet.time});
    }

    size_t window_;
    std::vector<Request> requests_;
};

// It stores nothing with its messages but their number. The peer's ACKs are
// cumulative. They echo the time of sending (on_ack_of), or one message at a
// time is measured, unless something was sent again meanwhile (on_ack).
class Plain : public Transport
{
public:
    explicit Plain(bool has_echo) : has_echo_(has_echo)
    {
    }

    bool may_send(uint32_t) const override
    {
        return next_ - first_ < 16;
    }

    void send(uint32_t id, lawn_time_t now) override
    {
        if (timed_at_ == 0) {
            timed_ = id;
            timed_at_ = now;
        }
        next_ = id + 1;
        emit_data(now, id);
        lawn_conn_on_send(&conn_, now);
    }

    void receive(const Packet &packet, lawn_time_t now) override
    {
        if (packet.id <= first_) {
            lawn_conn_on_receive(&conn_, now);
            return;
        }
        for (; first_ < packet.id; ++first_) {
            complete(first_);
        }
        const bool is_all = first_ == next_;
        if (has_echo_) {
            lawn_conn_on_ack_of(&conn_, now, packet.time, is_all);
            return;
        }
        const bool is_timed = timed_at_ != 0 && timed_ < first_;
        lawn_conn_on_ack(&conn_, now, is_timed ? now - timed_at_ : 0, is_all);
        timed_at_ = is_timed ? 0 : timed_at_;
    }

private:
    void retransmit(lawn_time_t now, unsigned) override
    {
        timed_at_ = 0;
        emit_data(now, first_);
    }

    void receive_at_peer(const Packet &packet, lawn_time_t now) override
    {
        received_.add(packet.id);
        reply(now, {Packet::ack, received_.next(), packet.time});
    }

    bool has_echo_;
    uint32_t first_ = 0; // that is not acknowledged
    uint32_t next_ = 0;
    uint32_t timed_ = 0;
    lawn_time_t timed_at_ = 0; // 0: none is timed
    Received received_;        // at the peer
};

} // namespace lawn_transport

#endif
