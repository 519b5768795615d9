// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Two ends of a ping-pong in virtual time: a network that loses, duplicates,
// delays out of order and flips bits by a seed, engines whose clock is a
// variable, and no waiting. The same seed runs the same way.

#ifndef LAWN_TEST_UNIT_SESSION_WORLD_H
#define LAWN_TEST_UNIT_SESSION_WORLD_H

#include "pattern.h"
#include "rig.h"
#include "session.h"
#include "wire.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace session_world
{

constexpr lawn_time_t usec = 1000; // a tick is a nanosecond
constexpr lawn_time_t msec = 1000 * usec;
constexpr lawn_time_t sec = 1000 * msec;

using Datagram = std::vector<uint8_t>;

inline wire_header_t header_of(const Datagram &datagram)
{
    wire_header_t header = {};
    EXPECT_TRUE(wire_decode(datagram.data(), datagram.size(), &header));
    return header;
}

// Shares of datagrams, 0 to 1, and the longest delay.
struct Weather {
    double loss = 0;
    double duplicate = 0;
    double corrupt = 0;
    lawn_time_t delay_min = 50 * usec;
    lawn_time_t delay_max = 50 * usec;
};

struct World {
    lawn_time_t now = sec;
    uint64_t random = 1;
    Weather weather;
    // Loses what it says, besides; unset: nothing.
    std::function<bool(const Datagram &)> loses;

    double draw()
    {
        return static_cast<double>(pattern_next(&random) >> 11) * 0x1p-53;
    }
};

// One side: an engine with a source that hands over what has arrived by now.
class End
{
public:
    End(World &world, session_config_t config, bool reliable = false)
        : world_(world)
    {
        lawn_engine_params_t params = {};
        params.clock = read_clock;
        params.clock_arg = &world;
        params.ticks_per_sec = 1e9;
        EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_OK);
        session_sender_t sender = {};
        sender.buffer = [](void *arg) -> void * {
            End *end = static_cast<End *>(arg);
            return end->room ? end->buffer_.data() : nullptr;
        };
        sender.send = [](void *arg, size_t length) {
            End *end = static_cast<End *>(arg);
            end->send(Datagram(end->buffer_.begin(),
                               end->buffer_.begin() +
                                   static_cast<ptrdiff_t>(length)));
        };
        sender.arg = this;
        sender.reliable = reliable;
        EXPECT_EQ(session_create(&config, &sender, &session), LAWN_OK);
        EXPECT_EQ(lawn_engine_add(
                      engine,
                      [](void *arg) { return static_cast<End *>(arg)->poll(); },
                      this, -1, nullptr),
                  LAWN_OK);
    }

    ~End()
    {
        session_destroy(session);
        lawn_engine_destroy(engine);
    }

    End(const End &) = delete;
    End &operator=(const End &) = delete;

    void send(const Datagram &datagram)
    {
        --room;
        sent.push_back(datagram);
        const Weather &weather = world_.weather;
        if (!peer || world_.draw() < weather.loss ||
            (world_.loses && world_.loses(datagram))) {
            return;
        }
        const int copies = world_.draw() < weather.duplicate ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            const double span =
                static_cast<double>(weather.delay_max - weather.delay_min);
            Datagram copy = datagram;
            if (world_.draw() < weather.corrupt) {
                const size_t bit =
                    pattern_next(&world_.random) % (8 * copy.size());
                copy[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
            }
            peer->arriving.emplace(
                world_.now + weather.delay_min +
                    static_cast<lawn_time_t>(world_.draw() * span),
                copy);
        }
    }

    unsigned poll()
    {
        unsigned count = 0;
        room = send_depth;
        while (!arriving.empty() && arriving.begin()->first <= world_.now) {
            const Datagram datagram = arriving.begin()->second;
            arriving.erase(arriving.begin());
            session_receive(session, datagram.data(), datagram.size());
            ++count;
        }
        session_flush(session);
        return count;
    }

    void receive(const Datagram &datagram)
    {
        session_receive(session, datagram.data(), datagram.size());
        session_flush(session);
    }

    const session_stats_t &stats() const
    {
        return *session_stats(session);
    }

    const rig_t &rig() const
    {
        return *rig_of(session);
    }

    lawn_engine_t *engine = nullptr;
    session_t *session = nullptr;
    End *peer = nullptr;
    unsigned send_depth = 64;
    unsigned room = 64;
    std::multimap<lawn_time_t, Datagram> arriving;
    std::vector<Datagram> sent;

private:
    static lawn_time_t read_clock(void *arg)
    {
        return static_cast<World *>(arg)->now;
    }

    World &world_;
    std::array<uint8_t, 2048> buffer_ = {};
};

inline session_config_t make_config(bool is_client, uint32_t connections,
                                    uint32_t iters)
{
    session_config_t config = {};
    config.is_client = is_client;
    config.connections = connections;
    config.iters = iters;
    config.size = 61;
    config.window = 1;
    config.total_window = 16;
    config.run = 0x123456789abcdef;
    config.seed = is_client ? 1 : 2;
    config.linger = 500 * msec;
    config.timers.rto_initial = 2 * msec;
    config.timers.rto_min = usec;
    config.timers.rto_max = 100 * msec;
    config.timers.backoff = 2;
    config.timers.peer_timeout = 10 * sec;
    config.timers.keepalive_idle = 200 * msec;
    config.timers.keepalive_interval = 50 * msec;
    config.timers.keepalive_probes = 3;
    config.timers.keepalive_jitter = 20 * msec;
    return config;
}

class Session : public testing::Test
{
protected:
    void start(uint32_t connections, uint32_t iters, bool reliable = false,
               const std::function<void(session_config_t &)> &change = {})
    {
        session_config_t of_client = make_config(true, connections, iters);
        session_config_t of_server = make_config(false, connections, iters);
        if (change) {
            change(of_client);
            change(of_server);
        }
        client = std::make_unique<End>(world, of_client, reliable);
        server = std::make_unique<End>(world, of_server, reliable);
        client->peer = server.get();
        server->peer = client.get();
        EXPECT_EQ(session_start(server->session, server->engine), LAWN_OK);
        EXPECT_EQ(session_start(client->session, client->engine), LAWN_OK);
    }

    // Time goes from event to event, at most 1 ms at a time, as far as `until`
    // or until both are over. An end that is stopped makes no passes.
    void run(lawn_time_t until, const End *stopped = nullptr)
    {
        End *const ends[] = {client.get(), server.get()};
        while (world.now < until) {
            lawn_time_t next = world.now + msec;
            bool is_over = true;
            for (End *end : ends) {
                if (end == stopped || !end) {
                    continue;
                }
                lawn_engine_progress(end->engine);
                is_over = is_over && session_is_over(end->session);
                const lawn_time_t due = session_can_send(end->session)
                                            ? world.now
                                            : lawn_engine_next(end->engine);
                next = due < next ? due : next;
            }
            for (End *end : ends) {
                if (end && !end->arriving.empty()) {
                    const lawn_time_t due = end->arriving.begin()->first;
                    next = due < next ? due : next;
                }
            }
            if (is_over) {
                return;
            }
            world.now = next > world.now ? next : world.now + usec;
        }
    }

    void expect_delivered(const End &end, uint64_t count) const
    {
        EXPECT_TRUE(session_is_over(end.session));
        EXPECT_TRUE(session_is_complete(end.session));
        EXPECT_FALSE(session_is_violated(end.session));
        EXPECT_EQ(end.stats().delivered, count);
        EXPECT_EQ(end.stats().dead, 0U);
        EXPECT_EQ(end.stats().early, 0U);
    }

    World world;
    std::unique_ptr<End> client;
    std::unique_ptr<End> server;
};

} // namespace session_world

#endif
