// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection's beginning and its end: what ops may do, and what close leaves.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

TEST_F(Conn, AStallIsOneAttemptAndOneProbe)
{
    create_engine(0);
    keep_alive(50 * msec, 50 * msec, 2);
    open();
    pass_at(start);
    send();
    pass_at(start + sec); // the RTO, twice it and four times it have gone by
    pass_at(start + sec);
    EXPECT_EQ(take_log(), "p1@1000 r1@1000");
    EXPECT_EQ(lawn_conn_rto(&conn_), 200 * msec);
    lawn_conn_on_receive(&conn_, start + 1190 * msec);
    run_to(start + 1200 * msec);
    EXPECT_EQ(take_log(), "r2@1200");
}

// Its timers would be in the lawn still, and in nobody's hands.
TEST_F(Conn, AnOpenOneIsNotOpenedAgain)
{
    keep_alive(sec, sec, 3);
    params_.keepalive_jitter = 0;
    open();
    pass_at(start);
    lawn_conn_on_send(&conn_, now_);
    EXPECT_EQ(open(&conn_), LAWN_ERR_BUSY);
    EXPECT_TRUE(lawn_timer_is_active(&conn_.retransmit));
    EXPECT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
    lawn_conn_close(&conn_);
    EXPECT_EQ(open(&conn_), LAWN_OK);
}

TEST_F(Conn, EveryOpMayCloseAndFree)
{
    params_.max_retries = 1;
    keep_alive(50 * msec, 400 * msec, 1);
    for (const char victim : std::string("prd")) {
        lawn_conn_t *const conn = new lawn_conn_t();
        ASSERT_EQ(open(conn), LAWN_OK);
        lawn_conn_on_send(conn, now_);
        bool is_freed = false;
        then_ = [&](lawn_conn_t *c, char what) {
            EXPECT_FALSE(is_freed);
            if (what == victim) {
                lawn_conn_close(c);
                delete c;
                is_freed = true;
            }
        };
        run_to(now_ + 10 * sec);
        EXPECT_TRUE(is_freed) << victim;
    }
}

TEST_F(Conn, DeadStopsBothTimers)
{
    params_.max_retries = 1;
    keep_alive(10 * sec, sec, 1);
    open();
    send();
    then_ = [&](lawn_conn_t *conn, char what) {
        if (what == 'd') {
            EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
            EXPECT_EQ(open(conn), LAWN_OK); // may be opened again at once
            send();
        }
    };
    run_to(start + 400 * msec);
    EXPECT_EQ(take_log(), "r1@100 d1@300 r1@400");
}

TEST_F(Conn, OpsAreOptional)
{
    params_.max_retries = 1;
    keep_alive(50 * msec, sec, 1);
    const lawn_conn_ops_t none = {};
    ASSERT_EQ(lawn_conn_open(engine_, &params_, &none, &conn_), LAWN_OK);
    send();
    run_to(start + 10 * sec);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
}

TEST_F(Conn, CloseForgetsAndMayBeRepeated)
{
    lawn_conn_close(nullptr);
    lawn_conn_close(&conn_); // zero-filled
    keep_alive(sec, sec, 1);
    auto conn = std::make_unique<lawn_conn_t>();
    ASSERT_EQ(open(conn.get()), LAWN_OK);
    EXPECT_EQ(conn->context, this);
    lawn_conn_on_send(conn.get(), now_);
    lawn_conn_on_ack(conn.get(), now_, 0, true); // paused, still in the lawn
    lawn_conn_close(conn.get());
    lawn_conn_close(conn.get());
    lawn_conn_on_send(conn.get(), now_);
    EXPECT_FALSE(lawn_timer_is_active(&conn->retransmit));
    conn.reset();
    run_to(start + 100 * sec);
    EXPECT_EQ(take_log(), "");
}

TEST(ConnReason, HasAText)
{
    EXPECT_STREQ(lawn_conn_reason_string(LAWN_CONN_RETRY_EXCEEDED),
                 "retry exceeded");
    EXPECT_STREQ(lawn_conn_reason_string(LAWN_CONN_PEER_TIMEOUT),
                 "peer timeout");
    EXPECT_STREQ(lawn_conn_reason_string(LAWN_CONN_KEEPALIVE), "keepalive");
    EXPECT_STREQ(lawn_conn_reason_string(static_cast<lawn_conn_reason_t>(0)),
                 "unknown reason");
}

} // namespace
