// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong's sessions against each other: over good and bad networks all
// is delivered exactly once and in order, and a peer that dies is found.

#include "session_world.h"

namespace
{

using namespace session_world;

TEST_F(Session, DeliversWithoutARetransmissionOnAGoodNetwork)
{
    start(100, 20);
    run(world.now + 60 * sec);
    expect_delivered(*client, 2000);
    expect_delivered(*server, 2000);
    EXPECT_EQ(client->stats().retransmissions, 0U);
    EXPECT_EQ(server->stats().retransmissions, 0U);
    EXPECT_EQ(lawn_histogram_count(&client->stats().rtt), 2000U);
    EXPECT_GE(client->rig().rtt.min, 100 * usec);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(client->engine)), 0U);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(server->engine)), 0U);
}

// A window of one message, and of more.
class BadWeather : public Session, public testing::WithParamInterface<int>
{
};

TEST_P(BadWeather, IsRepairedExactlyOnceAndInOrder)
{
    world.random = static_cast<uint64_t>(GetParam());
    world.weather = {0.2, 0.1, 0.1, 10 * usec, 3 * msec};
    start(40, 30, false, [](session_config_t &config) {
        config.window = GetParam() % 2 ? 1 : 8;
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
        EXPECT_GT(end->rig().lateness.count, 0U);
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BadWeather, testing::Range(1, 9));

// Both ends start from a retransmission that nothing would have needed.
TEST_F(Session, KnowsASpuriousRetransmission)
{
    world.weather.delay_min = world.weather.delay_max = 3 * msec;
    start(1, 2);
    run(world.now + 5 * sec);
    expect_delivered(*client, 2);
    expect_delivered(*server, 2);
    // RTO 2 ms, round trip 6 ms: sent again at 2 and 6 ms, answered at 6.
    EXPECT_GE(client->stats().spurious, 1U);
    EXPECT_EQ(client->rig().rtt.min, 6 * msec);
    EXPECT_EQ(client->stats().rtt.max, 6 * msec);
}

// While the time stands still, several messages are sent and acknowledged. Each
// has a time of its own, later than the present, but its RTO counts from the
// present: a timer that expires then is not early.
TEST_F(Session, CountsTheRtoFromThePass)
{
    uint64_t again = 0;
    for (int most = 1; most <= 60; ++most) {
        const uint32_t window = most % 2 ? 1 : 4;
        int left = most;
        world.weather = {0, 0, 0, 0, 0};
        world.loses = [&](const Datagram &) { return left-- <= 0; };
        start(1, 20, false,
              [&](session_config_t &config) { config.window = window; });
        for (int pass = 0; pass < 10; ++pass) {
            lawn_engine_progress(client->engine);
            lawn_engine_progress(server->engine);
        }
        run(world.now + sec);
        for (const End *end : {client.get(), server.get()}) {
            EXPECT_EQ(end->stats().early, 0U) << most;
            again += end->stats().retransmissions;
        }
    }
    EXPECT_GT(again, 60U);
}

// With a window, what was sent later and is acknowledged shows a loss long
// before an RTO is over.
TEST_F(Session, AWindowFindsALossByEvidence)
{
    bool is_lost = false;
    world.loses = [&](const Datagram &datagram) {
        const wire_header_t header = header_of(datagram);
        const bool loses = !is_lost && header.type == WIRE_DATA &&
                           header.flags == WIRE_FLAG_CLIENT &&
                           header.seq == 500;
        is_lost = is_lost || loses;
        return loses;
    };
    world.weather.delay_max = 60 * usec; // else the window is sent at once
    start(1, 1000, false, [](session_config_t &config) { config.window = 16; });
    run(world.now + 60 * sec);
    expect_delivered(*client, 1000);
    expect_delivered(*server, 1000);
    EXPECT_TRUE(is_lost);
    EXPECT_EQ(client->stats().retransmissions, 1U);
    EXPECT_EQ(client->stats().by_evidence, 1U);
    EXPECT_EQ(client->stats().spurious, 0U);
    EXPECT_EQ(server->stats().retransmissions, 0U);
}

// The connection that ends the session is new, but others have measured the
// path: when its FIN is lost, it does not wait for rto_initial.
TEST_F(Session, ANewConnectionInheritsWhatAnotherHasMeasured)
{
    int fins = 0;
    world.loses = [&](const Datagram &datagram) {
        return header_of(datagram).type == WIRE_FIN && ++fins == 1;
    };
    start(5, 20, false, [](session_config_t &config) {
        config.timers.rto_initial = 100 * msec;
    });
    run(world.now + 10 * msec);
    EXPECT_EQ(fins, 2);
    EXPECT_TRUE(session_is_over(client->session));
    EXPECT_EQ(client->stats().retransmissions, 1U);
}

// In a silence, the RTOs of all connections expire. The peer is asked once for
// all of them, with a round trip and then twice as long between two questions,
// up to the first RTO. If few messages are under way, one of them is sent again
// for all instead.
TEST_F(Session, ASilenceCostsAFewQuestions)
{
    for (const uint32_t connections : {50U, 10U}) {
        world.weather.delay_min = world.weather.delay_max = 10 * msec;
        start(connections, 100, false, [](session_config_t &config) {
            config.total_window = 0;
            config.timers.rto_initial = 50 * msec;
            config.timers.keepalive_idle = 5 * sec;
        });
        run(world.now + 200 * msec);
        EXPECT_EQ(client->stats().retransmissions, 0U);
        run(world.now + 400 * msec, server.get());
        const session_stats_t &stats = client->stats();
        const bool are_few = connections == 10;
        EXPECT_EQ(are_few ? stats.asked : stats.retransmissions, 0U);
        EXPECT_GE(are_few ? stats.retransmissions : stats.asked, 5U);
        EXPECT_LE(are_few ? stats.retransmissions : stats.asked, 10U);
        run(world.now + 600 * sec);
        expect_delivered(*client, connections * 100U);
        expect_delivered(*server, connections * 100U);
        EXPECT_LE(stats.retransmissions, are_few ? 10U : 0U);
        client.reset();
        server.reset();
    }
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
        EXPECT_NE(header_of(datagram).type, WIRE_DATA);
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
    EXPECT_EQ(lawn_histogram_count(&client->stats().rtt), 500U);
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

class PacedSession : public Session
{
protected:
    static constexpr double bytes_per_sec = 1e6;
    static constexpr uint64_t message = WIRE_HEADER_SIZE + 61;
    static constexpr uint64_t burst = 2 * message;

    void start_paced(uint32_t connections, uint32_t iters)
    {
        start(connections, iters, false, [](session_config_t &config) {
            config.window = 32;
            config.total_window = 0;
            config.pacing.rate = bytes_per_sec;
            config.pacing.burst = burst;
            config.pacing.ticks_per_sec = 1e9;
        });
        begin_ = world.now;
    }

    // What `end` has sent of messages, also again, is what the rate allows.
    void expect_paced(const End &end) const
    {
        uint64_t sum = 0;
        for (const Datagram &datagram : end.sent) {
            const wire_header_t header = header_of(datagram);
            sum += header.type == WIRE_DATA ? datagram.size() : 0;
        }
        const double sec = static_cast<double>(world.now - begin_) * 1e-9;
        EXPECT_LE(static_cast<double>(sum), burst + bytes_per_sec * sec);
        EXPECT_GE(static_cast<double>(sum), 0.99 * bytes_per_sec * sec);
    }

private:
    lawn_time_t begin_ = 0;
};

// They sleep until the next event, and the pacer's timer is one.
TEST_F(PacedSession, SendsAtItsRate)
{
    start_paced(50, 1'000'000);
    run(world.now + 2 * sec);
    expect_paced(*client);
    expect_paced(*server);
    EXPECT_EQ(client->stats().retransmissions, 0U);
}

TEST_F(PacedSession, SendsAgainAtItsRate)
{
    world.weather.loss = 0.2;
    start_paced(50, 1'000'000);
    run(world.now + 2 * sec);
    expect_paced(*client);
    EXPECT_GT(client->stats().retransmissions, 100U);
}

TEST_F(PacedSession, DeliversAll)
{
    world.weather.loss = 0.05;
    start_paced(20, 200);
    run(world.now + 60 * sec);
    expect_delivered(*client, 20 * 200);
    expect_delivered(*server, 20 * 200);
}

TEST_F(PacedSession, RefusesARateThatNoneHas)
{
    session_config_t config = make_config(true, 1, 1);
    config.pacing.rate = -1;
    End end(world, config);
    EXPECT_EQ(session_start(end.session, end.engine), LAWN_ERR_INVALID_PARAM);
}

// Every connection finds the death, within the bound and never before.
TEST_F(Session, DeadPeerIsFoundByEveryConnection)
{
    start(50, 1000000);
    run(world.now + 30 * msec);
    EXPECT_GT(client->stats().delivered, 0U);
    server->peer = nullptr;
    client->peer = nullptr;
    run(world.now + 10 * sec, server.get());
    EXPECT_TRUE(session_is_over(client->session));
    EXPECT_FALSE(session_is_complete(client->session));
    EXPECT_FALSE(session_is_violated(client->session));
    EXPECT_EQ(client->stats().dead, 50U);
    EXPECT_EQ(client->stats().dead_by[LAWN_CONN_KEEPALIVE], 50U);
    EXPECT_GE(client->rig().silence.min, 350 * msec);
    EXPECT_LE(client->rig().silence.max, 370 * msec + 4 * msec);
    EXPECT_EQ(client->stats().silence_max, client->rig().silence.max);
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
        // RTO 2, 4 and 8 ms. A message that is late is sent again by a later
        // pass, and its RTO counts from then.
        {2, 0, LAWN_CONN_RETRY_EXCEEDED, 14 * msec + 3 * usec},
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
        EXPECT_EQ(client->rig().silence.min, c.found);
        EXPECT_FALSE(session_is_violated(client->session));
        client.reset();
        server.reset();
    }
}

// A server that slept finds the datagrams that came meanwhile before any of
// its timers may conclude that they did not.
TEST_F(Session, AStallIsSurvivedOnBothSides)
{
    start(50, 500, false, [](session_config_t &config) {
        config.timers.keepalive_idle = 5 * sec;
    });
    run(world.now + 20 * msec);
    EXPECT_FALSE(session_is_over(client->session));
    run(world.now + 2 * sec, server.get());
    run(world.now + 600 * sec);
    expect_delivered(*client, 25000);
    expect_delivered(*server, 25000);
    EXPECT_LE(server->rig().resume_max, 1U);
    lawn_engine_stats_t engine;
    lawn_engine_query(server->engine, &engine);
    EXPECT_EQ(engine.stalls, 1U);
}

// What counts after a stall is the RTO that ran then, not how long the message
// has waited for room in the send queue.
TEST_F(Session, AFullSendQueueBeforeAStallIsNoBurst)
{
    world.weather.loss = 1;
    start(1, 1, false, [](session_config_t &config) {
        config.timers.rto_max = 20 * msec;
        config.timers.keepalive_idle = 5 * sec;
    });
    run(world.now + msec);
    client->send_depth = client->room = 0;
    run(world.now + 200 * msec);
    run(world.now + 100 * msec, client.get());
    run(world.now + 200 * msec);
    EXPECT_EQ(client->rig().resume_max, 1U);
    client->send_depth = 64;
    world.weather.loss = 0;
    run(world.now + 60 * sec);
    expect_delivered(*client, 1);
    expect_delivered(*server, 1);
}

TEST_F(Session, LostFinAndFinAckAreRepaired)
{
    int fins = 0;
    int fin_acks = 0;
    world.loses = [&](const Datagram &datagram) {
        const wire_type_t type = header_of(datagram).type;
        fins += type == WIRE_FIN;
        fin_acks += type == WIRE_FIN_ACK;
        return (type == WIRE_FIN && fins <= 3) ||
               (type == WIRE_FIN_ACK && fin_acks <= 2);
    };
    start(1, 1);
    run(world.now + 60 * sec);
    expect_delivered(*client, 1);
    expect_delivered(*server, 1);
    EXPECT_EQ(fins, 6);
    EXPECT_EQ(fin_acks, 3);
}

TEST_F(Session, ADeadConnectionLeavesTheWindowToOthers)
{
    world.loses = [](const Datagram &datagram) {
        return header_of(datagram).connection == 0;
    };
    start(2, 10, false,
          [](session_config_t &config) { config.total_window = 1; });
    run(world.now + sec);
    EXPECT_TRUE(session_is_over(client->session));
    EXPECT_FALSE(session_is_complete(client->session));
    EXPECT_EQ(client->stats().dead, 1U);
    EXPECT_EQ(client->stats().delivered, 10U);
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
    session_sender_t sender = {};
    session_t *session = nullptr;
    EXPECT_EQ(session_create(&good, &sender, &session), LAWN_ERR_INVALID_PARAM);
    sender.buffer = [](void *) -> void * { return nullptr; };
    sender.send = [](void *, size_t) {};
    const std::function<void(session_config_t &)> mistakes[] = {
        [](session_config_t &config) { config.connections = 0; },
        [](session_config_t &config) { config.connections = 1000001; },
        [](session_config_t &config) { config.iters = 0; },
        [](session_config_t &config) { config.window = 0; },
        [](session_config_t &config) { config.window = 257; },
        [](session_config_t &config) { config.drop = 1; },
        [](session_config_t &config) { config.drop = -0.1; },
    };
    for (const auto &mistake : mistakes) {
        session_config_t config = good;
        mistake(config);
        EXPECT_EQ(session_create(&config, &sender, &session),
                  LAWN_ERR_INVALID_PARAM);
    }
    EXPECT_EQ(session, nullptr);
}

} // namespace
