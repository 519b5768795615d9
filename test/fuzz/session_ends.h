// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// One end of a ping-pong on virtual time, and the network between two, which
// does to each datagram what the input says, and nothing once that has ended.

#ifndef LAWN_TEST_FUZZ_SESSION_ENDS_H
#define LAWN_TEST_FUZZ_SESSION_ENDS_H

#include "input.h"

#include "pattern.h"
#include "session_internal.h"

#include <algorithm>
#include <map>
#include <vector>

namespace fuzz
{

constexpr lawn_time_t usec = 1000; // a tick is a nanosecond
constexpr lawn_time_t msec = 1000 * usec;
constexpr lawn_time_t sec = 1000 * msec;

using Datagram = std::vector<uint8_t>;

// Both ends' time, and the input that decides what happens.
class World
{
public:
    explicit World(Input *input) : input_(input)
    {
    }

    lawn_time_t now() const
    {
        return now_;
    }

    // A day at most, which no timer here waits for.
    void pass_time(lawn_time_t time)
    {
        now_ += std::min(time, 24 * 3600 * sec);
    }

    uint8_t byte()
    {
        return input_->byte();
    }

    lawn_time_t number()
    {
        return input_->number();
    }

    static lawn_time_t read_clock(void *arg)
    {
        return static_cast<World *>(arg)->now_;
    }

private:
    Input *input_;
    lawn_time_t now_ = sec;
};

inline session_config_t make_config(Input *input)
{
    static constexpr uint32_t windows[] = {1, 2, 5, 256};
    const unsigned which = input->byte();
    const unsigned counts = input->byte();
    session_config_t config = {};
    config.is_client = which & 1;
    config.oneway = which & 2;
    config.connections = 1 + counts % 4;
    config.iters = 1 + counts / 4 % 8;
    config.size = counts / 32 * 5;
    config.window = windows[input->byte() % 4];
    config.total_window = which & 4 ? 1 + counts % 3 : 0;
    config.idle = which & 8 ? 20 * msec : 0;
    config.run = 0x123456789abcdef;
    config.linger = 500 * msec;
    config.timers.rto_initial = 2 * msec;
    config.timers.rto_min = usec;
    config.timers.rto_max = 100 * msec;
    config.timers.backoff = 2;
    config.timers.peer_timeout = which & 16 ? sec : 0;
    config.timers.max_retries = which & 32 ? 7 : 0;
    config.timers.rto_fixed = which & 64 ? 4 * msec : 0;
    config.timers.keepalive_idle = 200 * msec;
    config.timers.keepalive_interval = 50 * msec;
    config.timers.keepalive_probes = 3;
    config.timers.keepalive_jitter = which & 128 ? 20 * msec : 0;
    return config;
}

class End
{
public:
    End(World *world, const session_config_t &config) : world_(world)
    {
        lawn_engine_params_t params = {};
        params.clock = World::read_clock;
        params.clock_arg = world;
        params.ticks_per_sec = 1e9;
        FUZZ_CHECK(lawn_engine_create(&params, &engine_) == LAWN_OK);
        session_sender_t sender = {};
        sender.buffer = [](void *arg) -> void * {
            End *const end = static_cast<End *>(arg);
            return end->room_ != 0 ? end->buffer_ : nullptr;
        };
        sender.send = [](void *arg, size_t length) {
            static_cast<End *>(arg)->send(length);
        };
        sender.arg = this;
        FUZZ_CHECK(session_create(&config, &sender, &session_) == LAWN_OK);
        FUZZ_CHECK(lawn_engine_add(engine_, poll, this, -1, nullptr) ==
                   LAWN_OK);
    }

    ~End()
    {
        session_destroy(session_);
        FUZZ_CHECK(lawn_count(lawn_engine_lawn(engine_)) == 0);
        lawn_engine_destroy(engine_);
    }

    End(const End &) = delete;
    End &operator=(const End &) = delete;

    void set_peer(End *peer)
    {
        peer_ = peer;
    }

    // Datagrams that a pass may send; 0: as many as it likes.
    void set_room(unsigned most)
    {
        most_room_ = most ? most : 64;
    }

    void start()
    {
        FUZZ_CHECK(session_start(session_, engine_) == LAWN_OK);
        FUZZ_CHECK(session_start(session_, engine_) == LAWN_ERR_BUSY);
    }

    void pass()
    {
        lawn_engine_progress(engine_);
    }

    void receive(const Datagram &datagram)
    {
        session_receive(session_, datagram.data(), datagram.size());
    }

    // When something may happen next.
    lawn_time_t next() const
    {
        if (session_can_send(session_)) {
            return world_->now();
        }
        const lawn_time_t timer = lawn_engine_next(engine_);
        return arriving_.empty() ? timer
                                 : std::min(timer, arriving_.begin()->first);
    }

    bool is_client() const
    {
        return session_->config.is_client;
    }

    bool is_over() const
    {
        return session_is_over(session_);
    }

    bool listens() const
    {
        return session_->state != SESSION_IDLE && !is_over();
    }

    const session_t *session() const
    {
        return session_;
    }

    session_t *session()
    {
        return session_;
    }

    const session_stats_t &stats() const
    {
        return *session_stats(session_);
    }

    const std::vector<Datagram> &sent() const
    {
        return sent_;
    }

    // What holds at any time, whoever the peer is.
    void check() const
    {
        const session_t *const s = session_;
        const session_stats_t &stats = s->stats;
        uint64_t delivered = 0;
        uint32_t outstanding = 0;
        uint32_t open = 0;
        uint32_t dead = 0;
        for (uint32_t i = 0; i < s->config.connections; ++i) {
            const connection_t &c = s->connections[i];
            FUZZ_CHECK(c.acked <= c.sent && c.sent <= s->to_send);
            FUZZ_CHECK(c.sent - c.acked <= s->config.window);
            FUZZ_CHECK(c.flight.count <= c.sent - c.acked);
            FUZZ_CHECK((c.flight.count != 0) == (c.sent != c.acked));
            FUZZ_CHECK(c.delivered <= s->to_deliver);
            delivered += c.delivered;
            outstanding += c.state == CONNECTION_OPEN
                               ? static_cast<uint32_t>(c.flight.count)
                               : 0;
            open += c.state == CONNECTION_OPEN;
            dead += c.state == CONNECTION_DEAD;
        }
        FUZZ_CHECK(stats.delivered == delivered);
        FUZZ_CHECK(stats.delivered <= stats.expected);
        FUZZ_CHECK(stats.early == 0);
        FUZZ_CHECK(stats.dead == dead);
        if (s->state == SESSION_RUNNING) {
            FUZZ_CHECK(s->outstanding == outstanding);
            FUZZ_CHECK(s->unfinished == open);
            FUZZ_CHECK(s->finished + dead + open == s->config.connections);
        }
        if (is_over()) {
            FUZZ_CHECK(lawn_count(lawn_engine_lawn(engine_)) == 0);
        }
    }

private:
    static unsigned poll(void *arg)
    {
        End *const end = static_cast<End *>(arg);
        unsigned count = 0;
        end->room_ = end->most_room_;
        while (!end->arriving_.empty() &&
               end->arriving_.begin()->first <= end->world_->now()) {
            const Datagram datagram = end->arriving_.begin()->second;
            end->arriving_.erase(end->arriving_.begin());
            end->receive(datagram);
            ++count;
        }
        session_flush(end->session_);
        return count;
    }

    void send(size_t length)
    {
        FUZZ_CHECK(room_ != 0 && length <= sizeof(buffer_));
        --room_;
        const Datagram datagram(buffer_, buffer_ + length);
        wire_header_t header = {};
        FUZZ_CHECK(wire_decode(buffer_, length, &header));
        FUZZ_CHECK(header.run == session_->config.run);
        FUZZ_CHECK(!(header.flags & WIRE_FLAG_CLIENT) == !is_client());
        FUZZ_CHECK(header.type != WIRE_DATA || header.seq <= session_->to_send);
        FUZZ_CHECK(header.type != WIRE_ACK ||
                   header.seq <= session_->to_deliver);
        if (peer_) {
            carry(datagram);
        } else {
            sent_.assign(1, datagram);
        }
    }

    // The network. No more than five bits are flipped: CRC32C finds those.
    void carry(Datagram datagram)
    {
        const unsigned fate = world_->byte();
        unsigned copies = 1;
        lawn_time_t delay = 50 * usec;
        switch (fate % 8) {
        case 1:
            copies = 0;
            break;
        case 2:
            copies = 2;
            break;
        case 3:
            delay = std::min(world_->number(), 2 * sec);
            break;
        case 4:
            datagram.resize(world_->byte() % datagram.size());
            break;
        case 5:
            for (unsigned i = 0; i <= fate / 8 % 5; ++i) {
                const size_t bit =
                    size_t{world_->byte()} % 64 * datagram.size() / 8;
                datagram[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
            }
            break;
        case 6: // comes back
            arriving_.emplace(world_->now() + delay, datagram);
            break;
        default:
            break;
        }
        for (; copies > 0; --copies) {
            peer_->arriving_.emplace(world_->now() + delay, datagram);
            delay += std::min(fate / 8 * 100 * usec, 10 * msec);
        }
    }

    World *world_;
    End *peer_ = nullptr;
    lawn_engine_t *engine_ = nullptr;
    session_t *session_ = nullptr;
    unsigned room_ = 64;
    unsigned most_room_ = 64;
    std::multimap<lawn_time_t, Datagram> arriving_;
    std::vector<Datagram> sent_;
    uint8_t buffer_[256] = {};
};

} // namespace fuzz

#endif
