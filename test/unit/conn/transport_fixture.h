// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What all transports of these tests have, and the world in which one runs: an
// engine, a network, and a program that has messages to send.

#ifndef LAWN_TEST_UNIT_TRANSPORT_FIXTURE_H
#define LAWN_TEST_UNIT_TRANSPORT_FIXTURE_H

#include "transport_net.h"

#include <gtest/gtest.h>

#include <set>

namespace lawn_transport
{

// What became of a run.
struct Outcome {
    uint32_t done = 0;    // messages that were acknowledged or given up
    uint32_t data = 0;    // packets with a message
    uint32_t others = 0;  // packets of the program without one
    uint32_t most = 0;    // packets of one message, except the hole
    uint32_t of_hole = 0; // packets of the hole
    unsigned deaths = 0;
    lawn_conn_reason_t reason = LAWN_CONN_PEER_TIMEOUT;
    lawn_time_t took = 0;        // from the first send to the last ACK
    lawn_time_t half_at = 0;     // when half of the messages were sent,
    lawn_time_t rto_at_half = 0; // and the RTO at that time
    lawn_time_t died_at = 0;
    bool is_flood = false; // so many packets that the run was ended
};

// A transport: the program's side, with its connection, and the peer's side,
// which shares nothing with it but the network.
class Transport
{
public:
    virtual ~Transport()
    {
        close();
    }

    void open(lawn_engine_t *engine, const lawn_conn_params_t &params, Net *net,
              uint32_t messages)
    {
        net_ = net;
        sendings_.assign(messages, 0);
        arrived_.assign(messages, false);
        lawn_conn_ops_t ops = {};
        ops.retransmit = [](lawn_conn_t *conn, lawn_time_t now, unsigned n) {
            of(conn)->retransmit(now, n);
        };
        ops.probe = [](lawn_conn_t *conn, lawn_time_t now, unsigned) {
            of(conn)->emit(now, {Packet::probe, 0, now});
        };
        ops.dead = [](lawn_conn_t *conn, lawn_time_t now,
                      lawn_conn_reason_t reason) {
            Outcome &outcome = of(conn)->outcome_;
            outcome.deaths++;
            outcome.died_at = now;
            outcome.reason = reason;
        };
        if (can_ask()) {
            ops.ask = [](lawn_conn_t *conn, lawn_time_t now) {
                of(conn)->emit(now, {Packet::asking, 0, now});
            };
        }
        conn_.context = this;
        ASSERT_EQ(lawn_conn_open(engine, &params, &ops, &conn_), LAWN_OK);
    }

    void close()
    {
        lawn_conn_close(&conn_);
    }

    // The window has room. Then a message is sent for the first time.
    virtual bool may_send(uint32_t id) const = 0;
    virtual void send(uint32_t id, lawn_time_t now) = 0;

    // A packet with an answer to a message has come.
    virtual void receive(const Packet &packet, lawn_time_t now) = 0;

    // A packet with a message has come to the peer.
    virtual void receive_at_peer(const Packet &packet, lawn_time_t now) = 0;

    void take(const Packet &packet, lawn_time_t now)
    {
        if (packet.kind == Packet::answer) {
            lawn_conn_on_echo(&conn_, now, packet.time);
        } else if (packet.kind == Packet::alive) {
            lawn_conn_on_receive(&conn_, now);
        } else {
            receive(packet, now);
        }
    }

    void take_at_peer(const Packet &packet, lawn_time_t now)
    {
        if (packet.kind == Packet::asking) {
            reply(now, {Packet::answer, 0, packet.time});
        } else if (packet.kind == Packet::probe) {
            reply(now, {Packet::alive, 0, packet.time});
        } else {
            arrived_[packet.id] = true;
            receive_at_peer(packet, now);
        }
    }

    const lawn_conn_t &conn() const
    {
        return conn_;
    }

    Outcome &outcome()
    {
        return outcome_;
    }

    uint32_t done() const
    {
        return done_;
    }

    uint32_t sendings(uint32_t id) const
    {
        return sendings_[id];
    }

protected:
    virtual void retransmit(lawn_time_t now, unsigned attempt) = 0;

    virtual bool can_ask() const
    {
        return false;
    }

    void emit(lawn_time_t now, const Packet &packet)
    {
        EXPECT_TRUE(lawn_conn_is_open(&conn_));
        if (packet.kind == Packet::data) {
            outcome_.data++;
            sendings_[packet.id]++;
        } else {
            outcome_.others++;
        }
        net_->to_peer(now, packet);
    }

    void emit_data(lawn_time_t now, uint32_t id)
    {
        emit_data(now, id, now);
    }

    // With a time of its own, for its echo.
    void emit_data(lawn_time_t now, uint32_t id, lawn_time_t time)
    {
        emit(now, {Packet::data, id, time});
    }

    void reply(lawn_time_t now, const Packet &packet)
    {
        net_->to_program(now, packet);
    }

    // The program knows that the peer has this message.
    void complete(uint32_t id)
    {
        EXPECT_TRUE(arrived_[id]) << id;
        done_++;
    }

    // The program has given a message up. It may have arrived.
    void abandon()
    {
        done_++;
    }

    lawn_conn_t conn_ = {};

private:
    static Transport *of(lawn_conn_t *conn)
    {
        return static_cast<Transport *>(conn->context);
    }

    Net *net_ = nullptr;
    Outcome outcome_;
    std::vector<uint32_t> sendings_; // of each message
    std::vector<bool> arrived_;      // at the peer
    uint32_t done_ = 0;
};

// A peer that remembers what it has received, to tell what is missing.
class Received
{
public:
    void add(uint32_t id)
    {
        if (id >= next_) {
            later_.insert(id);
        }
        while (!later_.empty() && *later_.begin() == next_) {
            later_.erase(later_.begin());
            next_++;
        }
    }

    // All before it have come.
    uint32_t next() const
    {
        return next_;
    }

    bool has(uint32_t id) const
    {
        return id < next_ || later_.count(id) != 0;
    }

private:
    uint32_t next_ = 0;
    std::set<uint32_t> later_;
};

// When the program sends, and what happens when half of the messages were sent.
struct Plan {
    uint32_t messages = 1000;
    bool is_at_once = false; // a whole window in one pass, when all is acked
    lawn_time_t outage = 0;  // its length; `never`: the peer is dead from then
    lawn_time_t most_time = 0;
    lawn_time_t idle = 0; // it waits so long before the second half
};

class World
{
public:
    World(Transport *transport, const Weather &weather,
          const lawn_conn_params_t &params, const Plan &plan)
        : transport_(transport), net_(weather), plan_(plan),
          round_trip_(weather.round_trip), hole_(weather.hole)
    {
        lawn_engine_params_t engine_params = {};
        engine_params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        engine_params.clock_arg = &now_;
        engine_params.ticks_per_sec = 1e9;
        engine_params.stall_threshold = never; // the clock jumps, by design
        EXPECT_EQ(lawn_engine_create(&engine_params, &engine_), LAWN_OK);
        const auto poll = [](void *arg) {
            return static_cast<World *>(arg)->poll();
        };
        EXPECT_EQ(lawn_engine_add(engine_, poll, this, -1, nullptr), LAWN_OK);
        transport->open(engine_, params, &net_, plan.messages);
    }

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    ~World()
    {
        EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), open_timers());
        transport_->close(); // it outlives this world
        lawn_engine_destroy(engine_);
    }

    Outcome run()
    {
        const lawn_time_t begin = now_;
        Outcome &outcome = transport_->outcome();
        send();
        while (!is_over() && step(begin + plan_.most_time)) {
        }
        outcome.done = transport_->done();
        outcome.took = now_ - begin;
        for (uint32_t id = 0; id < plan_.messages; ++id) {
            if (id != hole_) {
                outcome.most = std::max(outcome.most, transport_->sendings(id));
            }
        }
        outcome.of_hole =
            hole_ < plan_.messages ? transport_->sendings(hole_) : 0;
        if (outcome.deaths != 0) {
            drain();
        }
        return outcome;
    }

private:
    size_t open_timers() const
    {
        const lawn_conn_t &conn = transport_->conn();
        return size_t{lawn_timer_is_active(&conn.retransmit)} +
               size_t{lawn_timer_is_active(&conn.keepalive)};
    }

    bool is_over()
    {
        Outcome &outcome = transport_->outcome();
        outcome.is_flood = outcome.data + outcome.others > 100 * plan_.messages;
        return outcome.deaths != 0 || outcome.is_flood ||
               transport_->done() == plan_.messages;
    }

    // Goes on to the next time at which something happens.
    bool step(lawn_time_t end)
    {
        const lawn_time_t next =
            std::min({lawn_engine_next(engine_), net_.at_program(),
                      net_.at_peer(), next_send()});
        if (next > end) {
            now_ = end;
            return false;
        }
        now_ = std::max(now_, next);
        if (net_.at_peer() <= now_) {
            transport_->take_at_peer(net_.take_at_peer(), now_);
            return true;
        }
        lawn_engine_progress(engine_);
        send();
        return true;
    }

    unsigned poll()
    {
        unsigned count = 0;
        while (net_.at_program() <= now_) {
            transport_->take(net_.take_at_program(), lawn_engine_now(engine_));
            ++count;
        }
        return count;
    }

    lawn_time_t next_send() const
    {
        const bool may = next_id_ < plan_.messages &&
                         transport_->may_send(next_id_) && may_begin();
        return may ? send_at_ : never;
    }

    // Where windows go out at once, the one before has been acknowledged.
    bool may_begin() const
    {
        return !plan_.is_at_once || transport_->done() == next_id_;
    }

    // A window is not filled faster than in half a round trip.
    void send()
    {
        if (!lawn_conn_is_open(&transport_->conn()) || !may_begin()) {
            return;
        }
        while (now_ >= send_at_ && next_id_ < plan_.messages &&
               transport_->may_send(next_id_)) {
            if (next_id_ == plan_.messages / 2 && !begin_second_half()) {
                return;
            }
            transport_->send(next_id_++, now_);
            send_at_ = plan_.is_at_once ? now_ : now_ + round_trip_ / 32;
        }
    }

    // Returns false if the program is idle first.
    bool begin_second_half()
    {
        Outcome &outcome = transport_->outcome();
        if (outcome.half_at == 0) {
            outcome.half_at = now_;
            outcome.rto_at_half = lawn_conn_rto(&transport_->conn());
            if (plan_.outage != 0) {
                const bool is_dead = plan_.outage == never;
                net_.fail(now_, is_dead ? never : now_ + plan_.outage);
            }
            send_at_ = now_ + plan_.idle;
        }
        return now_ >= send_at_;
    }

    // What arrives after the death does nothing.
    void drain()
    {
        while (net_.at_program() != never) {
            now_ = std::max(now_, net_.at_program());
            lawn_engine_progress(engine_);
        }
        EXPECT_EQ(open_timers(), 0U);
        EXPECT_EQ(transport_->outcome().deaths, 1U);
    }

    Transport *transport_;
    Net net_;
    Plan plan_;
    lawn_time_t round_trip_;
    uint32_t hole_;
    lawn_engine_t *engine_ = nullptr;
    lawn_time_t now_ = 5 * sec;
    lawn_time_t send_at_ = 0;
    uint32_t next_id_ = 0;
};

} // namespace lawn_transport

#endif
