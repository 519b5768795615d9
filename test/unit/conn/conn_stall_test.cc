// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a stall of the program excuses: once until something is heard, at any
// attempt and for every reason of death, until one transmission (or probe) made
// after it has been unanswered.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

class Stall : public Conn
{
protected:
    Stall()
    {
        create_engine(0); // 10 ms
    }

    // Passes each millisecond, which is never late.
    void poll_to(lawn_time_t end)
    {
        while (now_ < end) {
            pass_at(std::min(now_ + msec, end));
        }
    }
};

// A peer is not dead because the program slept through the only
// retransmission; nor are the peers beyond the budget of that pass.
TEST_F(Stall, BeyondThePeerTimeoutRetransmitsFirst)
{
    params_.peer_timeout = sec;
    open_many(100);
    pass_at(start);
    for (lawn_conn_t &conn : conns_) {
        lawn_conn_on_send(&conn, now_);
    }
    pass_at(start + 60 * sec);
    pass_at(start + 60 * sec);
    std::string expected;
    for (size_t i = 0; i < 100; ++i) {
        expected += i == 0 ? "r1@60000" : " r1@60000";
    }
    EXPECT_EQ(take_log(), expected);
    // All but one of the peers answer; it has one backed-off RTO to do so.
    for (size_t i = 1; i < 100; ++i) {
        lawn_conn_on_ack(&conns_[i], now_, 0, true);
    }
    poll_to(start + 60 * sec + 199 * msec);
    EXPECT_EQ(take_log(), "");
    poll_to(start + 62 * sec);
    EXPECT_EQ(take_log(), "d2@60200");
}

// The program stops after 0 to 4 attempts. The peer lives, and answers what is
// sent after the stall.
TEST_F(Stall, IsExcusedAtEachAttempt)
{
    params_.peer_timeout = sec;
    params_.rto_initial = 10 * msec;
    for (unsigned attempts = 0; attempts <= 4; ++attempts) {
        SCOPED_TRACE(attempts);
        open();
        pass_at(now_);
        send();
        // 10, 20, 40 and 80 ms
        poll_to(now_ + 10 * msec * ((1U << attempts) - 1));
        EXPECT_EQ(stats().retransmissions, attempts);
        pass_at(now_ + 1500 * msec);
        ASSERT_TRUE(lawn_conn_is_open(&conn_));
        EXPECT_EQ(stats().retransmissions, attempts + 1);
        EXPECT_EQ(stats().excused, 1U);
        EXPECT_EQ(stats().unacked_since,
                  now_ - 1500 * msec - 10 * msec * ((1U << attempts) - 1));
        const lawn_time_t rto = lawn_conn_rto(&conn_);
        poll_to(now_ + rto - 1);
        ASSERT_TRUE(lawn_conn_is_open(&conn_));
        // A dead one does not answer that either.
        poll_to(now_ + 1);
        EXPECT_FALSE(lawn_conn_is_open(&conn_));
    }
}

TEST_F(Stall, IsExcusedWhenTheRetriesAreUsedUp)
{
    params_.max_retries = 2;
    open();
    pass_at(start);
    send();
    poll_to(start + 300 * msec);
    EXPECT_EQ(take_log(), "r1@100 r2@300");
    pass_at(start + sec);
    EXPECT_EQ(take_log(), "r3@1000");
    poll_to(start + 1800 * msec);
    EXPECT_EQ(take_log(), "d1@1800"); // one backed-off RTO later
}

// Nor does a moment's stall use the excuse up that a long one needs later. On a
// busy machine, each pass may be late.
TEST_F(Stall, IsExcusedAlsoAfterAShortOne)
{
    params_.peer_timeout = sec;
    params_.rto_initial = 10 * msec;
    for (const bool is_busy : {false, true}) {
        open();
        pass_at(now_);
        send();
        while (stats().retransmissions < 4) {
            pass_at(now_ + (is_busy ? 11 : 1) * msec);
        }
        pass_at(now_ + 1500 * msec);
        EXPECT_TRUE(lawn_conn_is_open(&conn_));
        EXPECT_EQ(stats().retransmissions, 5U);
        lawn_conn_close(&conn_);
    }
}

// The last keepalive's answer was lost to a full receive ring.
TEST_F(Stall, IsExcusedWhenAProbeIsUnanswered)
{
    keep_alive(100 * msec, 50 * msec, 2);
    open();
    poll_to(start + 150 * msec);
    EXPECT_EQ(take_log(), "p1@100 p2@150");
    pass_at(start + sec);
    EXPECT_EQ(take_log(), "p2@1000");
    poll_to(start + 1050 * msec - 1);
    EXPECT_EQ(take_log(), "");
    poll_to(start + 1050 * msec);
    EXPECT_EQ(take_log(), "d3@1050");
    EXPECT_EQ(stats().excused, 1U);
}

// The counter jumps, in a guest that was restored.
TEST_F(Stall, AJumpOfTheClockIsOne)
{
    params_.peer_timeout = 30 * sec;
    keep_alive(5 * sec, sec, 3);
    open();
    pass_at(start);
    send();
    pass_at(now_ + (lawn_time_t{1} << 60));
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    lawn_conn_on_ack(&conn_, now_, 0, true);
    poll_to(now_ + sec);
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
}

TEST_F(Stall, AProgramThatAlwaysPollsLateFindsADeadPeer)
{
    params_.peer_timeout = sec;
    params_.rto_fixed = msec;
    open();
    pass_at(start);
    send();
    for (int i = 0; i < 4; ++i) {
        pass_at(now_ + 400 * msec);
    }
    EXPECT_EQ(take_log(), "r1@400 r2@800 r3@1200 d2@1600");
}

// Another stall meanwhile excuses nothing more, until something is heard.
TEST_F(Stall, IsExcusedOnceUntilSomethingIsHeard)
{
    params_.max_retries = 1;
    params_.rto_fixed = 50 * msec;
    for (const bool hears : {false, true}) {
        open();
        pass_at(now_);
        send();
        poll_to(now_ + 50 * msec);
        pass_at(now_ + 200 * msec);
        EXPECT_EQ(stats().retransmissions, 2U);
        if (hears) {
            lawn_conn_on_receive(&conn_, now_);
        }
        pass_at(now_ + 200 * msec);
        EXPECT_EQ(lawn_conn_is_open(&conn_), hears);
        lawn_conn_close(&conn_);
    }
}

// The peer has said something, but not answered what was sent after the stall.
TEST_F(Stall, WaitsForOneAnswerAlsoWhenSomethingIsHeard)
{
    params_.peer_timeout = 200 * msec;
    params_.rto_fixed = 40 * msec;
    open();
    pass_at(start);
    send();
    pass_at(start + sec);
    EXPECT_EQ(take_log(), "r1@1000");
    lawn_conn_on_receive(&conn_, now_);
    lawn_conn_on_resend(&conn_, now_, now_);
    poll_to(start + 1039 * msec);
    EXPECT_EQ(take_log(), "");
    poll_to(start + 1040 * msec);
    EXPECT_EQ(take_log(), "d2@1040");
}

// What was sent after it counts as it always does.
TEST_F(Stall, ExcusesNothingThatWasSentAfterIt)
{
    params_.peer_timeout = sec;
    params_.max_retries = 1;
    params_.rto_fixed = 50 * msec;
    open();
    pass_at(start);
    pass_at(start + 500 * msec);
    send();
    poll_to(start + 2 * sec);
    EXPECT_EQ(take_log(), "r1@550 d1@600");
    EXPECT_EQ(stats().excused, 0U);
}

// The RTO backs off from where it was, and ends at a quarter of the timeout: so
// a dead peer is found within two of them, and the timeout, of running time.
TEST_F(Stall, ADeadPeerIsFoundWithinTwoRtosOfRunningTime)
{
    params_.peer_timeout = sec;
    for (lawn_time_t before = 0; before < sec; before += 37 * msec) {
        open();
        pass_at(now_);
        send();
        const lawn_time_t sent_at = now_;
        poll_to(now_ + before);
        pass_at(now_ + 31 * sec);
        poll_to(now_ + 2 * sec);
        EXPECT_FALSE(lawn_conn_is_open(&conn_));
        const std::string log = take_log();
        const lawn_time_t died =
            std::stoul(log.substr(log.rfind("d2@") + 3)) * msec + start;
        EXPECT_LE(died - sent_at - 31 * sec, sec + 2 * (sec / 4) + msec);
    }
}

// It may have waited in a queue while the program did not run.
TEST_F(Stall, WhatIsReadInThePassAfterItIsNoSample)
{
    open();
    pass_at(start);
    send();
    lawn_source_t *source = nullptr;
    std::function<unsigned()> poll = [] { return 0U; };
    const auto call = [](void *arg) {
        return (*static_cast<std::function<unsigned()> *>(arg))();
    };
    ASSERT_EQ(lawn_engine_add(engine_, call, &poll, -1, &source), LAWN_OK);
    poll = [&] {
        lawn_conn_on_ack_oldest(&conn_, now_, start, LAWN_TIME_INFINITY);
        return 1U;
    };
    pass_at(start + 50 * msec);
    EXPECT_EQ(stats().srtt, 0U);
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
    pass_at(start + 51 * msec);
    EXPECT_EQ(stats().srtt, 51 * msec);
    // Nor is one that says what all have said.
    poll = [&] {
        lawn_conn_on_ack_oldest(&conn_, now_, now_ - 50 * msec, infinity);
        return 1U;
    };
    pass_at(now_ + 100 * msec);
    EXPECT_EQ(stats().srtt, 51 * msec);
    pass_at(now_ + msec);
    EXPECT_LT(stats().srtt, 51 * msec);
    lawn_engine_remove(engine_, source);
}

TEST_F(Stall, WithoutDetectionThePeerTimeoutIsLiteral)
{
    create_engine(LAWN_TIME_INFINITY);
    params_.peer_timeout = sec;
    open();
    pass_at(start);
    send();
    pass_at(start + 60 * sec);
    EXPECT_EQ(take_log(), "d2@60000");
}

} // namespace
