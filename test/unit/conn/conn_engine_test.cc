// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an engine counts of its connections (lawn/engine.h): the sum of what
// each of them tells.

#include "conn_fixture.h"

#include <cstddef>
#include <cstring>

using namespace lawn_test;

namespace
{

class ConnEngine : public Conn
{
protected:
    ConnEngine()
    {
        params_.rto_max = 40 * msec;
        open_many(3);
    }

    lawn_engine_stats_t counted() const
    {
        lawn_engine_stats_t stats;
        lawn_engine_query(engine_, &stats);
        return stats;
    }

    static lawn_conn_stats_t told_of(const lawn_conn_t &conn)
    {
        lawn_conn_stats_t stats;
        lawn_conn_query(&conn, &stats);
        return stats;
    }

    // Compares what the engine counts with the sum of what `conns_` tell, and
    // have told before they were opened again.
    void expect_sum() const
    {
        lawn_conn_stats_t sum = before_;
        for (const lawn_conn_t &conn : conns_) {
            add(&sum, told_of(conn));
        }
        const lawn_engine_stats_t all = counted();
        EXPECT_EQ(all.conn_retransmissions, sum.retransmissions);
        EXPECT_EQ(all.conn_spurious, sum.spurious);
        EXPECT_EQ(all.conn_probes, sum.probes);
        EXPECT_EQ(all.conn_by_evidence, sum.by_evidence);
        EXPECT_EQ(all.conn_asked, sum.asked);
        EXPECT_EQ(all.conn_undone, sum.undone);
        EXPECT_EQ(all.conn_excused, sum.excused);
    }

    // Measures round trips of 8 ms, after some great errors: the RTO is so long
    // that the peer may be asked before it is over.
    void measure(lawn_conn_t *conn)
    {
        for (int i = 0; i < 103; ++i) {
            const lawn_time_t rtt = i == 1 || i == 2 ? 36 + 4 * i : 8;
            lawn_conn_on_send(conn, now_);
            run_to(now_ + rtt * msec);
            lawn_conn_on_ack_oldest(conn, now_, now_ - rtt * msec, infinity);
        }
    }

    void reopen(lawn_conn_t *conn)
    {
        lawn_conn_close(conn);
        add(&before_, told_of(*conn));
        ASSERT_EQ(open(conn), LAWN_OK);
    }

    static void add(lawn_conn_stats_t *sum, const lawn_conn_stats_t &one)
    {
        sum->retransmissions += one.retransmissions;
        sum->spurious += one.spurious;
        sum->probes += one.probes;
        sum->by_evidence += one.by_evidence;
        sum->asked += one.asked;
        sum->undone += one.undone;
        sum->excused += one.excused;
    }

    lawn_conn_stats_t before_ = {};
};

TEST_F(ConnEngine, CountsRetransmissionsAndWhatTakesThemBack)
{
    for (lawn_conn_t &conn : conns_) {
        measure(&conn);
        const lawn_engine_stats_t before = counted();
        const lawn_time_t sent_at = now_;
        lawn_conn_on_send(&conn, now_);
        run_to(now_ + 45 * msec);
        lawn_conn_on_echo(&conn, now_, sent_at);
        lawn_conn_on_ack_oldest(&conn, now_, infinity, infinity);
        const lawn_engine_stats_t after = counted();
        EXPECT_EQ(after.conn_retransmissions, before.conn_retransmissions + 1);
        EXPECT_EQ(after.conn_spurious, before.conn_spurious + 1);
        EXPECT_EQ(after.conn_undone, before.conn_undone + 1);
        expect_sum();
    }
    EXPECT_EQ(counted().conn_by_evidence, 0U);
}

TEST_F(ConnEngine, CountsSignsWithoutAnEcho)
{
    const lawn_time_t sent_at = now_;
    lawn_conn_on_send(&conns_[0], now_);
    run_to(now_ + 50 * msec);
    lawn_conn_on_ack_of(&conns_[0], now_, sent_at, true);
    lawn_conn_on_spurious(&conns_[1]);
    EXPECT_EQ(counted().conn_spurious, 2U);
    expect_sum();
    lawn_conn_close(&conns_[1]);
    lawn_conn_on_spurious(&conns_[1]);
    EXPECT_EQ(counted().conn_spurious, 2U);
    expect_sum();
}

TEST_F(ConnEngine, CountsEvidenceAndAsks)
{
    asks_ = true;
    for (lawn_conn_t &conn : conns_) {
        reopen(&conn);
        measure(&conn);
        const lawn_engine_stats_t before = counted();
        lawn_conn_on_send(&conn, now_);
        run_to(now_ + 11 * msec);
        EXPECT_EQ(counted().conn_asked, before.conn_asked + 1);
        lawn_conn_on_echo(&conn, now_, conn.asked_at);
        run_to(now_ + 10 * msec);
        lawn_conn_on_ack_oldest(&conn, now_, infinity, infinity);
        const lawn_engine_stats_t after = counted();
        EXPECT_EQ(after.conn_by_evidence, before.conn_by_evidence + 1);
        EXPECT_EQ(after.conn_retransmissions, before.conn_retransmissions + 1);
        expect_sum();
    }
}

TEST_F(ConnEngine, CountsProbesAndDeadPeersForEachReason)
{
    keep_alive(sec, 100 * msec, 5);
    reopen(&conns_[0]);
    params_.peer_timeout = 300 * msec;
    reopen(&conns_[1]);
    params_.peer_timeout = 0;
    params_.max_retries = 2;
    reopen(&conns_[2]);
    lawn_conn_on_send(&conns_[1], now_);
    lawn_conn_on_send(&conns_[2], now_);
    run_to(now_ + 2 * sec);
    EXPECT_EQ(counted().conn_dead, 3U);
    EXPECT_EQ(counted().conn_probes, 5U);
    expect_sum();
}

// The op may close the connection and free it: it is counted before.
TEST_F(ConnEngine, HasCountedWhenAnOpIsCalled)
{
    params_.max_retries = 1;
    reopen(&conns_[0]);
    then_ = [this](lawn_conn_t *conn, char what) {
        EXPECT_EQ(counted().conn_retransmissions, 1U);
        EXPECT_EQ(counted().conn_dead, what == 'd' ? 1U : 0U);
        if (what == 'd') {
            *conn = {};
        }
    };
    lawn_conn_on_send(&conns_[0], now_);
    run_to(now_ + sec);
    EXPECT_EQ(counted().conn_dead, 1U);
}

TEST_F(ConnEngine, CountsExcusedStalls)
{
    for (lawn_conn_t &conn : conns_) {
        lawn_conn_close(&conn);
    }
    create_engine(0); // 10 ms
    params_.peer_timeout = sec;
    open_many(3);
    pass_at(now_);
    for (lawn_conn_t &conn : conns_) {
        lawn_conn_on_send(&conn, now_);
    }
    pass_at(now_ + 10 * sec);
    EXPECT_EQ(counted().conn_excused, 3U);
    EXPECT_EQ(counted().conn_dead, 0U);
    expect_sum();
}

TEST_F(ConnEngine, ForgetsAtAResetAndConnectionsDoNot)
{
    lawn_conn_on_send(&conns_[0], now_);
    run_to(now_ + 50 * msec);
    const uint64_t before = told_of(conns_[0]).retransmissions;
    EXPECT_GT(before, 0U);
    EXPECT_EQ(counted().conn_retransmissions, before);
    lawn_engine_reset_stats(engine_);
    EXPECT_EQ(counted().conn_retransmissions, 0U);
    EXPECT_EQ(told_of(conns_[0]).retransmissions, before);
    run_to(now_ + 50 * msec);
    EXPECT_GT(counted().conn_retransmissions, 0U);
    EXPECT_EQ(told_of(conns_[0]).retransmissions,
              before + counted().conn_retransmissions);
}

// The count of a connection ends at 2^32 - 1, that of its engine goes on.
TEST_F(ConnEngine, CountsBeyondWhatAConnectionCan)
{
    for (uint32_t &count : conns_[0].count) {
        count = std::numeric_limits<uint32_t>::max();
    }
    lawn_conn_on_spurious(&conns_[0]);
    EXPECT_EQ(told_of(conns_[0]).spurious,
              std::numeric_limits<uint32_t>::max());
    EXPECT_EQ(counted().conn_spurious, 1U);
}

// A program that was compiled when engines counted nothing of connections.
TEST_F(ConnEngine, TellsOlderProgramsWhatTheyKnow)
{
    lawn_conn_on_spurious(&conns_[0]);
    lawn_engine_stats_t known;
    memset(&known, 0xa5, sizeof(known));
    const lawn_engine_stats_t untouched = known;
    const size_t size = offsetof(lawn_engine_stats_t, conn_retransmissions);
    lawn_engine_query_sized(engine_, &known, size);
    EXPECT_EQ(known.worst_poll, 0U);
    EXPECT_EQ(memcmp(&known.conn_retransmissions,
                     &untouched.conn_retransmissions, sizeof(known) - size),
              0);
}

} // namespace
