// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/conn.h on virtual time: RTO, peer timeout, keepalive.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

TEST_F(Conn, DefaultsAreTheDocumentedOnes)
{
    lawn_conn_params_t params;
    lawn_conn_params_init(&params);
    EXPECT_EQ(params.rto_initial, lawn_time_from_msec(100));
    EXPECT_EQ(params.rto_min, 0U);
    EXPECT_EQ(params.rto_max, lawn_time_from_sec(10));
    EXPECT_EQ(params.rto_fixed, 0U);
    EXPECT_EQ(params.backoff, 2);
    EXPECT_EQ(params.max_retries, 0U);
    EXPECT_EQ(params.peer_timeout, lawn_time_from_sec(30));
    EXPECT_EQ(params.keepalive_idle, lawn_time_from_sec(5));
    EXPECT_EQ(params.keepalive_interval, lawn_time_from_sec(1));
    EXPECT_EQ(params.keepalive_probes, 3U);
    EXPECT_EQ(params.keepalive_jitter, lawn_time_from_sec(1));

    // With NULL they are in ticks of the engine's clock.
    const lawn_conn_ops_t ops = {};
    ASSERT_EQ(lawn_conn_open(engine_, nullptr, &ops, &conn_), LAWN_OK);
    EXPECT_EQ(lawn_conn_rto(&conn_), 100 * msec);
    EXPECT_GE(lawn_timer_deadline(&conn_.keepalive), now_ + 5 * sec);
    EXPECT_LE(lawn_timer_deadline(&conn_.keepalive), now_ + 6 * sec);
}

TEST_F(Conn, RefusesInvalidParams)
{
    keep_alive(sec, sec, 1);
    const lawn_conn_params_t good = params_;
    const std::function<void(lawn_conn_params_t &)> faults[] = {
        [](auto &p) { p.backoff = 0.99; },
        [](auto &p) { p.backoff = -2; },
        [](auto &p) { p.backoff = std::numeric_limits<double>::infinity(); },
        [](auto &p) { p.backoff = std::numeric_limits<double>::quiet_NaN(); },
        [](auto &p) { p.rto_initial = 0; },
        [](auto &p) { p.rto_min = p.rto_max = 0; },
        [](auto &p) { p.rto_min = p.rto_max + 1; },
        [](auto &p) { p.keepalive_probes = 0; },
        [](auto &p) { p.keepalive_interval = 0; },
        [](auto &p) { p.rto_jitter = -0.01; },
        [](auto &p) { p.rto_jitter = 1.01; },
        [](auto &p) {
            p.rto_jitter = std::numeric_limits<double>::quiet_NaN();
        },
    };
    for (const auto &fault : faults) {
        params_ = good;
        fault(params_);
        EXPECT_EQ(open(&conn_), LAWN_ERR_INVALID_PARAM) << &fault - faults;
    }
    const lawn_conn_ops_t ops = {};
    EXPECT_EQ(lawn_conn_open(nullptr, &good, &ops, &conn_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_conn_open(engine_, &good, nullptr, &conn_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_conn_open(engine_, &good, &ops, nullptr),
              LAWN_ERR_INVALID_PARAM);

    // What is switched off need not be filled in.
    params_ = {};
    params_.backoff = 1;
    params_.rto_fixed = msec;
    EXPECT_EQ(open(&conn_), LAWN_OK);
}

TEST_F(Conn, RtoFollowsSamplesAndBacksOff)
{
    open();
    EXPECT_EQ(lawn_conn_rto(&conn_), 100 * msec);
    send();
    run_to(start + 8 * msec);
    ack(8 * msec, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec); // 8 + 4 * 4
    run_to(start + 16 * msec);
    ack(16 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 29 * msec); // 9 + 4 * 5

    run_to(start + 100 * msec);
    send();
    run_to(start + 303 * msec);
    EXPECT_EQ(take_log(), "r1@129 r2@187 r3@303");
    EXPECT_EQ(lawn_conn_rto(&conn_), 232 * msec);

    // Karn: no sample, and the backed-off RTO stays; the attempts begin anew.
    ack(0, false);
    run_to(now_ + 232 * msec);
    EXPECT_EQ(take_log(), "r1@535");
    ack(9 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec); // 9 + 4 * 3.75
}

TEST_F(Conn, RtoIsWithinItsBounds)
{
    params_.rto_initial = 20 * sec;
    open();
    EXPECT_EQ(lawn_conn_rto(&conn_), 10 * sec);
    run_to(start + 20 * sec);
    ack(1 * usec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 1 * msec);
    ack(20 * sec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 10 * sec);
    send();
    run_to(now_ + 10 * sec);
    EXPECT_EQ(take_log(), "r1@30000");
    EXPECT_EQ(lawn_conn_rto(&conn_), 10 * sec);
}

TEST_F(Conn, SpreadIsAtLeastAQuarterAndAMicrosecond)
{
    params_.rto_min = 0;
    for (const lawn_time_t rtt : {2 * usec, 8 * usec}) {
        open();
        run_to(now_ + rtt);
        for (int i = 0; i < 100; ++i) {
            ack(rtt, true);
        }
        EXPECT_EQ(lawn_conn_rto(&conn_), rtt + std::max(rtt / 4, usec));
        lawn_conn_close(&conn_);
    }
}

TEST_F(Conn, FixedRtoNeitherLearnsNorBacksOff)
{
    params_.rto_fixed = 67 * msec;
    params_.max_retries = 3;
    open();
    send();
    run_to(start + 8 * msec);
    ack(8 * msec, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 67 * msec);
    run_to(start + sec);
    EXPECT_EQ(take_log(), "r1@75 r2@142 r3@209 d1@276");
    EXPECT_EQ(lawn_conn_rto(&conn_), 67 * msec);
}

TEST_F(Conn, RetransmitTimerRunsWhileSomethingIsUnacknowledged)
{
    open();
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
    send();
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 100 * msec);
    // Another send does not restart it, a partial ACK does.
    pass_at(start + 60 * msec);
    send();
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 100 * msec);
    ack(0, false);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 160 * msec);
    ack(0, true);
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
    run_to(start + 100 * sec);
    EXPECT_EQ(take_log(), "");
    // And again from idle.
    send();
    run_to(now_ + 100 * msec);
    EXPECT_EQ(take_log(), "r1@100100");
}

TEST_F(Conn, SendsDoNotMaskADeadPeer)
{
    params_.peer_timeout = 1234567891;
    open();
    const lawn_time_t end = start + params_.peer_timeout;
    for (lawn_time_t t = start; t < end; t += msec) {
        run_to(t);
        send();
    }
    run_to(end - 1);
    // The third RTO is a quarter of the peer timeout.
    EXPECT_EQ(take_log(), "r1@100 r2@300 r3@608+641972 r4@917+283944 "
                          "r5@1225+925916");
    run_to(end);
    EXPECT_EQ(take_log(), "d2@1234+567891");
}

TEST_F(Conn, PeerTimeoutRestartsWithEveryAck)
{
    params_.rto_fixed = 100 * msec;
    params_.peer_timeout = 50 * msec;
    open();
    send();
    run_to(start + 49 * msec);
    ack(0, false);
    run_to(start + 99 * msec - 1);
    EXPECT_EQ(take_log(), "");
    run_to(start + sec);
    EXPECT_EQ(take_log(), "d2@99");
}

// Or a connection would die without one retransmission.
TEST_F(Conn, AnRtoIsAtMostAQuarterOfThePeerTimeoutOrTwoRoundTrips)
{
    params_.peer_timeout = 80 * msec;
    open();
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec);
    send();
    run_to(start + 16 * msec);
    ack(16 * msec, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 32 * msec);
    run_to(start + sec);
    EXPECT_EQ(take_log(), "r1@48 r2@80 d2@96");
    lawn_conn_close(&conn_);

    // Nor longer than it.
    params_.peer_timeout = 4 * msec;
    open();
    send();
    run_to(now_ + 16 * msec);
    take_log();
    open();
    send();
    now_ += 3 * msec;
    ack(3 * msec, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 4 * msec);
}

TEST_F(Conn, DiesOneRtoAfterTheLastRetry)
{
    params_.max_retries = 2;
    keep_alive(sec, sec, 1);
    open();
    send();
    run_to(start + 700 * msec);
    EXPECT_EQ(take_log(), "r1@100 r2@300 d1@700");
    // Dead is closed: everything may still be called, and does nothing.
    send();
    ack(msec, false);
    lawn_conn_on_receive(&conn_, now_);
    lawn_conn_close(&conn_);
    run_to(start + 100 * sec);
    EXPECT_EQ(take_log(), "");
}

TEST_F(Conn, KeepaliveFindsASilentPeerAtItsBound)
{
    keep_alive(5 * sec, sec, 3);
    open();
    run_to(start + 3 * sec);
    lawn_conn_on_receive(&conn_, now_);
    run_to(start + 100 * sec);
    EXPECT_EQ(take_log(), "p1@8000 p2@9000 p3@10000 d3@11000");
}

TEST_F(Conn, AnythingReceivedEndsTheProbing)
{
    keep_alive(5 * sec, sec, 2);
    open();
    run_to(start + 6 * sec);
    EXPECT_EQ(take_log(), "p1@5000 p2@6000");
    lawn_conn_on_receive(&conn_, now_);
    run_to(start + 11 * sec);
    EXPECT_EQ(take_log(), "p1@11000");
    ack(0, true); // counts as received
    run_to(start + 16 * sec);
    EXPECT_EQ(take_log(), "p1@16000");
    // A send does not: it says nothing about the peer.
    params_.rto_initial = 10 * sec;
    lawn_conn_close(&conn_);
    open();
    run_to(start + 20 * sec);
    send();
    run_to(start + 21 * sec);
    EXPECT_EQ(take_log(), "p1@21000");
}

// Also where a probe is waited for longer than silence is.
TEST_F(Conn, ASilenceAfterProbingIsNoticedInTime)
{
    keep_alive(100 * msec, sec, 2);
    open();
    run_to(start + 150 * msec);
    EXPECT_EQ(take_log(), "p1@100");
    lawn_conn_on_receive(&conn_, now_);
    run_to(start + 250 * msec);
    EXPECT_EQ(take_log(), "p1@250");
}

TEST_F(Conn, JitterSpreadsProbes)
{
    keep_alive(5 * sec, sec, 1);
    params_.keepalive_jitter = sec;
    open_many(1000);
    unsigned tenths[10] = {};
    for (lawn_conn_t &conn : conns_) {
        const lawn_time_t jitter =
            lawn_timer_deadline(&conn.keepalive) - start - 5 * sec;
        ASSERT_LE(jitter, sec);
        ++tenths[std::min(jitter / (sec / 10), lawn_time_t{9})];
    }
    // 100 expected in each tenth; these are six standard deviations.
    EXPECT_GT(*std::min_element(tenths, tenths + 10), 43U);
    EXPECT_LT(*std::max_element(tenths, tenths + 10), 157U);
    // A connection's share is the same after each receive.
    std::vector<lawn_time_t> deadlines;
    for (lawn_conn_t &conn : conns_) {
        deadlines.push_back(lawn_timer_deadline(&conn.keepalive));
        lawn_conn_on_receive(&conn, start + 7);
    }
    then_ = [&](lawn_conn_t *conn, char what) {
        const size_t i = static_cast<size_t>(conn - conns_.data());
        EXPECT_EQ(what, 'p');
        EXPECT_EQ(now_, deadlines[i] + 7);
    };
    run_to(start + 5 * sec + sec / 2);
    EXPECT_NE(take_log(), "");
    then_ = nullptr;
}

// A callback may have shown the lawn a later time than that of the pass, and
// the send may have been before the pass.
TEST_F(Conn, TheRtoAndThePeerTimeoutCountFromTheSend)
{
    lawn_engine_progress(engine_);
    params_.rto_fixed = 100 * msec;
    params_.peer_timeout = 30 * msec;
    open();
    lawn_conn_on_send(&conn_, start - 20 * msec);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 10 * msec);
    lawn_conn_close(&conn_);
    params_.rto_fixed = 0;
    params_.peer_timeout = 0;
    open();
    lawn_conn_on_send(&conn_, start - 20 * msec);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 80 * msec);
}

// One was read with the clock, and the next one has the time of the pass.
TEST_F(Conn, AnAckWithAnEarlierTimeSetsNothingBack)
{
    lawn_engine_progress(engine_);
    params_.rto_fixed = 100 * msec;
    params_.peer_timeout = 30 * msec;
    open();
    lawn_conn_on_send(&conn_, start);
    lawn_conn_on_ack(&conn_, start + 5 * msec, 0, false);
    lawn_conn_on_ack(&conn_, start, 0, false);
    EXPECT_EQ(conn_.heard_at, start + 5 * msec);
    EXPECT_EQ(stats().unacked_since, start + 5 * msec);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 35 * msec);
}

TEST_F(Conn, LongestTimesSaturate)
{
    params_.rto_initial = params_.rto_max = LAWN_TIME_INFINITY;
    params_.peer_timeout = LAWN_TIME_INFINITY;
    params_.keepalive_jitter = LAWN_TIME_INFINITY;
    keep_alive(LAWN_TIME_INFINITY, LAWN_TIME_INFINITY, 1);
    open();
    send();
    run_to(LAWN_TIME_INFINITY - 1);
    EXPECT_EQ(take_log(), "");
    ack(0, false);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), LAWN_TIME_INFINITY);
}

TEST_F(Conn, AttemptsAreCountedUpTo65535)
{
    params_.rto_fixed = msec;
    params_.max_retries = std::numeric_limits<unsigned>::max();
    open();
    send();
    run_to(start + 65'535 * msec);
    EXPECT_EQ(stats().retransmissions, 65'535U);
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    run_to(now_ + msec);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
}

TEST_F(Conn, AttemptsAreWithoutEndWhereThereIsNoLimit)
{
    params_.rto_fixed = msec;
    open();
    send();
    run_to(start + 65'540 * msec);
    const std::string log = take_log();
    EXPECT_EQ(log.substr(log.rfind(' ') + 1), "r65535@65540");
}

TEST_F(Conn, ProbesAreCountedUpTo65535)
{
    keep_alive(sec, msec, 100'000);
    open();
    run_to(start + sec + 65'534 * msec);
    EXPECT_EQ(stats().probes, 65'535U);
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    run_to(now_ + msec);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
}

} // namespace
