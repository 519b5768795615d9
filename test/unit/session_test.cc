// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong's session between two ends in virtual time: a network that
// loses, duplicates, delays out of order and flips bits by a seed, engines
// whose clock is a variable, and no waiting. The same seed runs the same way.

#include "pattern.h"
#include "session.h"
#include "wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr lawn_time_t usec = 1000; // a tick is a nanosecond
constexpr lawn_time_t msec = 1000 * usec;
constexpr lawn_time_t sec = 1000 * msec;

using Datagram = std::vector<uint8_t>;

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
        session_transport_t transport = {};
        transport.buffer = [](void *arg) -> void * {
            End *end = static_cast<End *>(arg);
            return end->room ? end->buffer_.data() : nullptr;
        };
        transport.send = [](void *arg, size_t length) {
            End *end = static_cast<End *>(arg);
            end->send(Datagram(end->buffer_.begin(),
                               end->buffer_.begin() +
                                   static_cast<ptrdiff_t>(length)));
        };
        transport.arg = this;
        transport.reliable = reliable;
        EXPECT_EQ(session_create(&config, &transport, &session), LAWN_OK);
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
        if (!peer || world_.draw() < weather.loss) {
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

session_config_t make_config(bool is_client, uint32_t connections,
                             uint32_t iters)
{
    session_config_t config = {};
    config.is_client = is_client;
    config.connections = connections;
    config.iters = iters;
    config.size = 61;
    config.window = 16;
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
                const lawn_time_t due = lawn_engine_next(end->engine);
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

TEST_F(Session, DeliversWithoutARetransmissionOnAGoodNetwork)
{
    start(100, 20);
    run(world.now + 60 * sec);
    expect_delivered(*client, 2000);
    expect_delivered(*server, 2000);
    EXPECT_EQ(client->stats().retransmissions, 0U);
    EXPECT_EQ(server->stats().retransmissions, 0U);
    EXPECT_EQ(client->stats().rtt.count, 2000U);
    EXPECT_GE(client->stats().rtt.min, 100 * usec);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(client->engine)), 0U);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(server->engine)), 0U);
}

class BadWeather : public Session, public testing::WithParamInterface<int>
{
};

TEST_P(BadWeather, IsRepairedExactlyOnceAndInOrder)
{
    world.random = static_cast<uint64_t>(GetParam());
    world.weather = {0.2, 0.1, 0.1, 10 * usec, 3 * msec};
    start(40, 30, false, [](session_config_t &config) {
        config.drop = 0.05;
        // Half of all probes go unanswered in this weather.
        config.timers.keepalive_probes = 20;
    });
    run(world.now + 600 * sec);
    for (const End *end : {client.get(), server.get()}) {
        expect_delivered(*end, 1200);
        EXPECT_GT(end->stats().retransmissions, 0U);
        EXPECT_GT(end->stats().duplicates, 0U);
        EXPECT_GT(end->stats().malformed, 0U);
        EXPECT_GT(end->stats().dropped, 0U);
        EXPECT_GT(end->stats().lateness.count, 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadWeather, testing::Range(1, 9));

// Both ends start from a retransmission that nothing would have needed.
TEST_F(Session, KnowsASpuriousRetransmission)
{
    world.weather.delay_min = world.weather.delay_max = 3 * msec;
    start(1, 1);
    run(world.now + 5 * sec);
    expect_delivered(*client, 1);
    expect_delivered(*server, 1);
    // RTO 2 ms, round trip 6 ms: sent again at 2 and 6 ms, answered at 6.
    EXPECT_GE(client->stats().spurious, 1U);
    EXPECT_EQ(client->stats().rtt.min, 6 * msec);
    EXPECT_EQ(client->stats().rtt.max, 6 * msec);
}

TEST_F(Session, OnewayDeliversToTheServerOnly)
{
    world.weather.loss = 0.1;
    start(10, 50, false,
          [](session_config_t &config) { config.oneway = true; });
    run(world.now + 60 * sec);
    expect_delivered(*client, 0);
    expect_delivered(*server, 500);
    for (const Datagram &datagram : server->sent) {
        wire_header_t header = {};
        ASSERT_TRUE(wire_decode(datagram.data(), datagram.size(), &header));
        EXPECT_NE(header.type, WIRE_DATA);
    }
}

TEST_F(Session, ReliableTransportNeedsNoAckAndNoRetransmission)
{
    start(10, 50, true);
    run(world.now + 60 * sec);
    expect_delivered(*client, 500);
    expect_delivered(*server, 500);
    // 500 messages and a FIN, or its ACK.
    EXPECT_EQ(client->sent.size(), 501U);
    EXPECT_EQ(server->sent.size(), 501U);
    EXPECT_EQ(client->stats().rtt.count, 500U);
}

TEST_F(Session, ReliableOnewayReceiverIsSilent)
{
    start(10, 50, true, [](session_config_t &config) { config.oneway = true; });
    run(world.now + 60 * sec);
    expect_delivered(*client, 0);
    expect_delivered(*server, 500);
    EXPECT_EQ(client->sent.size(), 501U);
    EXPECT_EQ(server->sent.size(), 1U);
}

TEST_F(Session, AFullSendQueueDelaysAndLosesNothing)
{
    start(100, 10);
    client->send_depth = client->room = 1;
    server->send_depth = server->room = 2;
    run(world.now + 60 * sec);
    expect_delivered(*client, 1000);
    expect_delivered(*server, 1000);
}

TEST_F(Session, TheWindowBoundsWhatIsOutstanding)
{
    start(100, 1);
    run(world.now + 10 * usec);
    EXPECT_EQ(client->sent.size(), 16U);
    run(world.now + 60 * sec);
    expect_delivered(*client, 100);
}

// Every connection finds the death, within the bound and never before.
TEST_F(Session, DeadPeerIsFoundByEveryConnection)
{
    start(50, 1000000);
    run(world.now + 300 * msec);
    EXPECT_GT(client->stats().delivered, 0U);
    server->peer = nullptr;
    client->peer = nullptr;
    run(world.now + 10 * sec, server.get());
    EXPECT_TRUE(session_is_over(client->session));
    EXPECT_FALSE(session_is_complete(client->session));
    EXPECT_FALSE(session_is_violated(client->session));
    EXPECT_EQ(client->stats().dead, 50U);
    EXPECT_EQ(client->stats().dead_by[LAWN_CONN_KEEPALIVE], 50U);
    EXPECT_GE(client->stats().silence.min, 350 * msec);
    EXPECT_LE(client->stats().silence.max, 370 * msec + 4 * msec);
}

TEST_F(Session, DeathByPeerTimeoutAndByRetries)
{
    struct {
        unsigned max_retries;
        lawn_time_t peer_timeout;
        lawn_conn_reason_t reason;
        lawn_time_t found; // after the first send
    } const cases[] = {
        {0, 90 * msec, LAWN_CONN_PEER_TIMEOUT, 90 * msec},
        // RTO 2, 4 and 8 ms.
        {2, 0, LAWN_CONN_RETRY_EXCEEDED, 14 * msec},
    };
    for (const auto &c : cases) {
        world.weather.loss = 1;
        start(3, 5, false, [&](session_config_t &config) {
            config.timers.max_retries = c.max_retries;
            config.timers.peer_timeout = c.peer_timeout;
        });
        run(world.now + sec, server.get());
        EXPECT_TRUE(session_is_over(client->session));
        EXPECT_EQ(client->stats().dead, 3U);
        EXPECT_EQ(client->stats().dead_by[c.reason], 3U);
        EXPECT_EQ(client->stats().silence.min, c.found);
        EXPECT_FALSE(session_is_violated(client->session));
        client.reset();
        server.reset();
    }
}

// A server that slept finds the datagrams that came meanwhile before any of
// its timers may conclude that they did not.
TEST_F(Session, AStallIsSurvivedOnBothSides)
{
    start(50, 2000, false, [](session_config_t &config) {
        config.timers.keepalive_idle = 5 * sec;
    });
    run(world.now + 20 * msec);
    EXPECT_FALSE(session_is_over(client->session));
    run(world.now + 2 * sec, server.get());
    run(world.now + 600 * sec);
    expect_delivered(*client, 100000);
    expect_delivered(*server, 100000);
    EXPECT_LE(server->stats().resume_max, 1U);
    lawn_engine_stats_t engine;
    lawn_engine_query(server->engine, &engine);
    EXPECT_EQ(engine.stalls, 1U);
}

TEST_F(Session, LostFinAndFinAckAreRepaired)
{
    start(1, 1);
    // Everything but the very end goes through.
    while (client->sent.size() < 2) {
        run(world.now + 50 * usec);
    }
    world.weather.loss = 0.7;
    run(world.now + 60 * sec);
    expect_delivered(*client, 1);
    expect_delivered(*server, 1);
}

TEST_F(Session, APeerThatIsGoneAfterTheLastMessageIsNoError)
{
    start(5, 1);
    run(world.now + 110 * usec); // all acknowledged at the client
    EXPECT_TRUE(session_is_complete(client->session));
    client->peer = server->peer = nullptr;
    run(world.now + 60 * sec);
    expect_delivered(*client, 5);
    EXPECT_EQ(server->stats().delivered, 5U);
}

TEST_F(Session, AFailedTransportLeavesEveryConnectionDead)
{
    start(5, 1000);
    run(world.now + 5 * msec);
    session_fail(client->session);
    EXPECT_TRUE(session_is_over(client->session));
    EXPECT_FALSE(session_is_complete(client->session));
    EXPECT_EQ(client->stats().dead_by[0], 5U);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(client->engine)), 0U);
}

TEST_F(Session, RefusesAConfigurationThatMakesNoSense)
{
    const session_config_t good = make_config(true, 1, 1);
    session_transport_t transport = {};
    session_t *session = nullptr;
    EXPECT_EQ(session_create(&good, &transport, &session),
              LAWN_ERR_INVALID_PARAM);
    transport.buffer = [](void *) -> void * { return nullptr; };
    transport.send = [](void *, size_t) {};
    const std::function<void(session_config_t &)> mistakes[] = {
        [](session_config_t &config) { config.connections = 0; },
        [](session_config_t &config) { config.connections = 1000001; },
        [](session_config_t &config) { config.iters = 0; },
        [](session_config_t &config) { config.drop = 1; },
        [](session_config_t &config) { config.drop = -0.1; },
    };
    for (const auto &mistake : mistakes) {
        session_config_t config = good;
        mistake(config);
        EXPECT_EQ(session_create(&config, &transport, &session),
                  LAWN_ERR_INVALID_PARAM);
    }
    EXPECT_EQ(session, nullptr);
}

// What follows feeds a server that has not heard anything yet.
class Datagrams : public Session
{
protected:
    void SetUp() override
    {
        start(4, 10);
        server->peer = nullptr;
    }

    static Datagram encode(wire_header_t header, uint64_t seed)
    {
        Datagram datagram(WIRE_HEADER_SIZE + header.length);
        pattern_fill(datagram.data() + WIRE_HEADER_SIZE, header.length, seed);
        wire_encode(&header, datagram.data());
        return datagram;
    }

    static wire_header_t first_message()
    {
        wire_header_t header = {};
        header.type = WIRE_DATA;
        header.flags = WIRE_FLAG_CLIENT;
        header.run = 0x123456789abcdef;
        header.connection = 3;
        header.seq = 1;
        header.length = 61;
        return header;
    }

    static Datagram good()
    {
        return encode(first_message(), pattern_seed(3, 1, true));
    }

    uint64_t refused() const
    {
        return server->stats().malformed + server->stats().foreign;
    }
};

TEST_F(Datagrams, AGoodOneIsDelivered)
{
    server->receive(good());
    EXPECT_EQ(server->stats().delivered, 1U);
    EXPECT_EQ(refused(), 0U);
    EXPECT_FALSE(session_is_violated(server->session));
}

TEST_F(Datagrams, EveryFlippedBitIsMalformed)
{
    for (size_t bit = 0; bit < 8 * good().size(); ++bit) {
        Datagram datagram = good();
        datagram[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
        server->receive(datagram);
        EXPECT_EQ(server->stats().malformed, bit + 1);
    }
    EXPECT_EQ(server->stats().delivered, 0U);
}

TEST_F(Datagrams, EveryOtherLengthIsMalformed)
{
    for (size_t length = 0; length < 300; ++length) {
        Datagram datagram = good();
        if (length != datagram.size()) {
            datagram.resize(length);
            server->receive(datagram);
        }
    }
    EXPECT_EQ(server->stats().malformed, 299U);
    EXPECT_EQ(server->stats().delivered, 0U);
}

TEST_F(Datagrams, RandomOnesAreIgnored)
{
    uint64_t random = 7;
    for (int i = 0; i < 20000; ++i) {
        Datagram datagram(pattern_next(&random) % 200);
        pattern_fill(datagram.data(), datagram.size(), pattern_next(&random));
        server->receive(datagram);
    }
    EXPECT_EQ(server->stats().malformed, 20000U);
    EXPECT_EQ(server->stats().delivered, 0U);
    EXPECT_TRUE(server->sent.empty());
}

// Fields at random behind a checksum that is right: nothing that comes may
// crash a session, or be delivered that does not fit.
TEST_F(Datagrams, NonsenseWithAGoodChecksumIsHarmless)
{
    uint64_t random = 11;
    for (int i = 0; i < 20000; ++i) {
        wire_header_t header = first_message();
        const uint64_t bits = pattern_next(&random);
        header.type = static_cast<wire_type_t>(WIRE_DATA + bits % 6);
        header.connection = static_cast<uint32_t>(bits >> 8) % 8;
        header.seq = header.type == WIRE_DATA
                         ? static_cast<uint32_t>(bits >> 16) % 16 + 2
                         : 0;
        header.ack = static_cast<uint32_t>(bits >> 24) % 4;
        header.echo = static_cast<uint16_t>(bits >> 32) % 2;
        header.length = header.type == WIRE_DATA ? 61 : 0;
        // A FIN is the one that a session would rightly believe.
        if (header.type != WIRE_FIN) {
            server->receive(encode(header, bits));
        }
    }
    EXPECT_EQ(server->stats().delivered, 0U);
    EXPECT_GT(server->stats().malformed, 0U);
    EXPECT_GT(server->stats().gaps, 0U);
    EXPECT_TRUE(session_is_violated(server->session));
    EXPECT_FALSE(session_is_over(server->session));
}

TEST_F(Datagrams, OfAnotherRunOrOfOurOwnSideAreForeign)
{
    wire_header_t header = first_message();
    header.run ^= 1;
    server->receive(encode(header, 1));
    header = first_message();
    header.flags = 0;
    server->receive(encode(header, 1));
    session_count_foreign(server->session);
    EXPECT_EQ(server->stats().foreign, 3U);
    EXPECT_EQ(server->stats().delivered, 0U);
}

// The delivery check is not vacuous: each violation is seen.
TEST_F(Datagrams, ViolationsAreSeen)
{
    server->receive(encode(first_message(), 99));
    EXPECT_EQ(server->stats().corrupt, 1U);

    wire_header_t header = first_message();
    header.seq = 2;
    header.ack = 1;
    server->receive(encode(header, pattern_seed(3, 1, true)));
    EXPECT_EQ(server->stats().repeats, 1U);

    header.seq = 4;
    server->receive(encode(header, pattern_seed(3, 4, true)));
    EXPECT_EQ(server->stats().gaps, 1U);
    EXPECT_TRUE(session_is_violated(server->session));
}

TEST_F(Datagrams, ADuplicateIsCountedAndAcknowledgedAgain)
{
    server->receive(good());
    EXPECT_EQ(server->sent.size(), 1U);
    server->receive(good());
    ASSERT_EQ(server->sent.size(), 2U);
    EXPECT_EQ(server->stats().delivered, 1U);
    EXPECT_EQ(server->stats().duplicates, 1U);
    wire_header_t header = {};
    ASSERT_TRUE(
        wire_decode(server->sent[1].data(), server->sent[1].size(), &header));
    EXPECT_EQ(header.type, WIRE_ACK);
    EXPECT_EQ(header.ack, 1U);
    EXPECT_EQ(header.connection, 3U);
}

TEST(Wire, ChecksumIsCrc32c)
{
    // The check value of CRC-32C (Castagnoli), and RFC 3720, B.4.
    const uint8_t digits[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
    EXPECT_EQ(wire_crc32c(0, digits, sizeof(digits)), 0xe3069283U);
    const uint8_t zeros[32] = {};
    EXPECT_EQ(wire_crc32c(0, zeros, sizeof(zeros)), 0x8a9136aaU);
}

TEST(Histogram, QuantilesAreWithinABucketOfTheTruth)
{
    auto histogram = std::make_unique<histogram_t>();
    for (uint64_t value = 1; value <= 100000; ++value) {
        histogram_record(histogram.get(), value);
    }
    for (const double share : {0.1, 0.5, 0.9, 0.99}) {
        const double found =
            static_cast<double>(histogram_quantile(histogram.get(), share));
        EXPECT_GE(found, share * 100000);
        EXPECT_LE(found, share * 100000 * 1.016 + 1);
    }
    histogram_record(histogram.get(), UINT64_MAX);
    EXPECT_EQ(histogram_quantile(histogram.get(), 1), UINT64_MAX);
    EXPECT_EQ(histogram->min, 1U);
}

} // namespace
