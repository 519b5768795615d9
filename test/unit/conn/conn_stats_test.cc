// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is told of a connection: lawn_conn_query().

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

using ConnStats = Conn;

TEST_F(ConnStats, CountRetransmissionsAndProbes)
{
    keep_alive(sec, 100 * msec, 5);
    open();
    EXPECT_EQ(stats().heard_at, start);
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
    pass_at(start + 5 * msec);
    send();
    EXPECT_EQ(stats().unacked_since, start + 5 * msec);
    run_to(start + 400 * msec); // after 100 ms, and 200 ms more
    EXPECT_EQ(stats().retransmissions, 2U);
    EXPECT_EQ(stats().rto, 400 * msec);
    EXPECT_EQ(stats().unacked_since, start + 5 * msec);
    ack(0, true);
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
    EXPECT_EQ(stats().heard_at, start + 400 * msec);
    EXPECT_EQ(stats().probes, 0U);
    run_to(start + 1650 * msec);
    EXPECT_EQ(stats().probes, 3U);
    lawn_conn_on_receive(&conn_, now_);
    EXPECT_EQ(stats().probes, 3U);
    EXPECT_EQ(stats().heard_at, start + 1650 * msec);
    EXPECT_EQ(stats().retransmissions, 2U);
}

TEST_F(ConnStats, TellWhatWasMeasured)
{
    open();
    send();
    EXPECT_EQ(stats().srtt, 0U);
    pass_at(start + 8 * msec);
    ack(8 * msec, true);
    EXPECT_EQ(stats().srtt, 8 * msec);
    EXPECT_EQ(stats().rttvar, 4 * msec);
    EXPECT_EQ(stats().rto, 24 * msec);
}

// RFC 3522: the ACK that comes after a retransmission answers what was sent
// before the first of them.
TEST_F(ConnStats, ARetransmissionWasNotNeededIfTheFirstSendIsAnswered)
{
    open();
    pass_at(start + msec);
    for (const lawn_time_t age : {0, 100, 300}) {
        const uint64_t before = stats().spurious;
        const lawn_time_t sent = now_;
        send();
        run_to(sent + 350 * msec); // two of them, at 100 and 300 ms
        EXPECT_EQ(stats().spurious, before);
        lawn_conn_on_ack_of(&conn_, now_, sent + age * msec, true);
        EXPECT_EQ(stats().spurious - before, age == 0 ? 1U : 0U) << age;
        lawn_conn_close(&conn_);
        open();
        pass_at(now_ + msec);
    }
}

TEST_F(ConnStats, WithoutARetransmissionNoneWasSpurious)
{
    open();
    pass_at(start + msec);
    send();
    pass_at(start + 8 * msec);
    lawn_conn_on_ack_of(&conn_, now_, start + msec, true);
    EXPECT_EQ(stats().spurious, 0U);
    lawn_conn_on_spurious(&conn_);
    EXPECT_EQ(stats().spurious, 1U);
}

TEST_F(ConnStats, StayWithAConnectionThatIsClosedOrDead)
{
    params_.max_retries = 1;
    open();
    pass_at(start + 5 * msec);
    send();
    lawn_time_t told = 0;
    then_ = [&](lawn_conn_t *, char what) {
        told = what == 'd' ? stats().unacked_since : told;
    };
    run_to(start + sec);
    EXPECT_EQ(told, start + 5 * msec);
    EXPECT_EQ(stats().unacked_since, start + 5 * msec);
    open();
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
    send();
    lawn_conn_close(&conn_);
    EXPECT_EQ(stats().unacked_since, start + sec);
    open();
    send();
    ack(0, true);
    lawn_conn_close(&conn_);
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
}

// What was sent first counts, whenever it is told of. But an ACK that has come
// since shows that the peer lived.
TEST_F(ConnStats, SendsMayBeToldOfInAnyOrder)
{
    pass_at(start + 8 * msec);
    open();
    send();
    lawn_conn_on_send(&conn_, start);
    EXPECT_EQ(stats().unacked_since, start);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), now_ + 100 * msec);
    lawn_conn_on_send(&conn_, start + 3 * msec);
    EXPECT_EQ(stats().unacked_since, start);
    pass_at(start + 20 * msec);
    ack(0, false);
    lawn_conn_on_send(&conn_, start + 9 * msec);
    EXPECT_EQ(stats().unacked_since, start + 20 * msec);
    ack(0, true);
    lawn_conn_on_send(&conn_, start + 9 * msec);
    EXPECT_EQ(stats().unacked_since, start + 20 * msec);
}

TEST_F(ConnStats, AnAckCountsOnceAsSpurious)
{
    open();
    pass_at(start + msec);
    send();
    run_to(now_ + 350 * msec);
    EXPECT_EQ(stats().retransmissions, 2U);
    lawn_conn_on_ack_of(&conn_, now_, start + msec, true);
    EXPECT_EQ(stats().spurious, 1U);
}

TEST_F(ConnStats, ThatWasNeverOpenedWaitsForNothing)
{
    const lawn_conn_t conn = {};
    lawn_conn_stats_t stats = {};
    lawn_conn_query(&conn, &stats);
    EXPECT_EQ(stats.unacked_since, LAWN_TIME_INFINITY);
    EXPECT_EQ(stats.heard_at, 0U);
}

TEST_F(ConnStats, BeginAnewWithTheConnection)
{
    open();
    send();
    run_to(start + 500 * msec);
    lawn_conn_on_spurious(&conn_);
    lawn_conn_close(&conn_);
    EXPECT_EQ(stats().retransmissions, 2U);
    open();
    EXPECT_EQ(stats().retransmissions, 0U);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(stats().heard_at, now_);
}

} // namespace
