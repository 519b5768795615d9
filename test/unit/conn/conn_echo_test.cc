// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// on_echo, `ask`, inherit, the jitters, and what connections share.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

class ConnEcho : public Conn
{
protected:
    void open_asking()
    {
        asks_ = true;
        open();
    }

    // Measures a round trip of 8 ms, often. Returns when the last one ended.
    lawn_time_t measure(lawn_conn_t *conn)
    {
        for (int i = 0; i < 100; ++i) {
            lawn_conn_on_send(conn, now_);
            run_to(now_ + 8 * msec);
            lawn_conn_on_ack_oldest(conn, now_, now_ - 8 * msec, infinity);
        }
        take_log();
        return now_;
    }

    static std::string at(const char *what, lawn_time_t time)
    {
        return what + ('@' + std::to_string((time - start) / msec));
    }
};

// What is sent again on the evidence of an echo alone backs off and counts:
// else a message that never gets through would be sent for ever.
TEST_F(ConnEcho, NothingBeginsAnew)
{
    params_.max_retries = 12;
    params_.rto_max = 40 * msec;
    open();
    lawn_time_t now = measure(&conn_);
    send();
    then_ = [&](lawn_conn_t *conn, char what) {
        if (what == 'r') {
            lawn_conn_on_resend(conn, now_, now_);
        }
    };
    // Something that was sent later is answered at once, again and again.
    while (lawn_conn_is_open(&conn_)) {
        now += msec;
        run_to(now);
        lawn_conn_on_echo(&conn_, now_, now_ - msec / 2);
        ASSERT_LT(now, start + 10 * sec);
    }
    EXPECT_EQ(stats().retransmissions, 12U);
    EXPECT_GT(stats().by_evidence, 0U);
}

TEST_F(ConnEcho, IsASample)
{
    open();
    const lawn_time_t zero = measure(&conn_);
    const lawn_time_t rto = lawn_conn_rto(&conn_);
    lawn_conn_on_echo(&conn_, now_, zero - 12 * msec);
    EXPECT_GT(lawn_conn_rto(&conn_), rto);
}

TEST_F(ConnEcho, IsEvidence)
{
    open();
    const lawn_time_t zero = measure(&conn_);
    send();
    run_to(zero + 9 * msec);
    lawn_conn_on_echo(&conn_, now_, zero + msec);
    // It stands for a moment: 1/64 of SRTT.
    run_to(zero + 9 * msec + 124 * usec);
    EXPECT_EQ(take_log(), "");
    run_to(zero + 9 * msec + 125 * usec);
    EXPECT_EQ(take_log(), at("r1", zero + 9 * msec) + "+125000");
    EXPECT_EQ(stats().by_evidence, 1U);
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec); // backed off
    EXPECT_EQ(stats().spurious, 0U);
}

// An ACK of what was sent after the latest retransmission says nothing of it.
TEST_F(ConnEcho, IsTheSignOfANeedlessRetransmission)
{
    open();
    const lawn_time_t zero = measure(&conn_);
    lawn_conn_on_echo(&conn_, now_, zero - 8 * msec);
    EXPECT_EQ(stats().spurious, 0U); // there was none
    send();
    run_to(zero + 19 * msec);
    EXPECT_EQ(take_log(), at("r1", zero + 10 * msec));
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec);
    lawn_conn_on_echo(&conn_, now_, zero + 11 * msec);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(stats().undone, 0U);
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec);
    // It takes the back-off back, and its round trip is a sample.
    take_log();
    lawn_conn_on_echo(&conn_, now_, zero);
    EXPECT_EQ(stats().spurious, 1U);
    EXPECT_EQ(stats().undone, 1U);
    EXPECT_GT(lawn_conn_rto(&conn_), 19 * msec);
    EXPECT_LT(lawn_conn_rto(&conn_), 24 * msec);
}

// With cumulative ACKs, what was sent in the retransmission is answered from
// behind the gap before anything new is. After that, its answer is a duplicate.
TEST_F(ConnEcho, TheRetransmissionIsNeedlessOnlyIfSomethingNewWasAcked)
{
    open();
    const lawn_time_t zero = measure(&conn_);
    send();
    run_to(zero + 19 * msec);
    EXPECT_EQ(take_log(), at("r1", zero + 10 * msec));
    const lawn_time_t resent_at = zero + 10 * msec;
    lawn_conn_on_echo(&conn_, now_, resent_at);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(stats().undone, 0U);
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec);
    lawn_conn_on_ack_oldest(&conn_, now_, zero, LAWN_TIME_INFINITY);
    EXPECT_EQ(stats().spurious, 0U);
    lawn_conn_on_echo(&conn_, now_, resent_at);
    EXPECT_EQ(stats().spurious, 1U);
}

// A back-off that an ACK without a sample has left, and one with a sample has
// ended, is not taken back once more.
TEST_F(ConnEcho, OnlyABackOffThatLastsIsTakenBack)
{
    open();
    const lawn_time_t zero = measure(&conn_);
    send();
    run_to(zero + 19 * msec);
    EXPECT_EQ(take_log(), at("r1", zero + 10 * msec));
    lawn_conn_on_ack_oldest(&conn_, now_, infinity, infinity);
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec);
    send();
    run_to(zero + 27 * msec);
    lawn_conn_on_ack_oldest(&conn_, now_, zero + 19 * msec, infinity);
    EXPECT_LT(lawn_conn_rto(&conn_), 12 * msec);
    lawn_conn_on_echo(&conn_, now_, zero);
    EXPECT_EQ(stats().spurious, 1U);
    EXPECT_EQ(stats().undone, 0U);
}

// SRTT and a quarter after the send; nothing sent later can show the loss.
TEST_F(ConnEcho, TheAnswerToAskIsEvidence)
{
    open_asking();
    // A path with great errors, so that the RTO is long.
    for (const lawn_time_t rtt : {8, 40, 44}) {
        send();
        run_to(now_ + rtt * msec);
        lawn_conn_on_ack_oldest(&conn_, now_, now_ - rtt * msec, infinity);
    }
    const lawn_time_t zero = measure(&conn_);
    EXPECT_GT(lawn_conn_rto(&conn_), 30 * msec);
    const uint64_t asked = stats().asked;
    send();
    run_to(zero + 11 * msec);
    EXPECT_EQ(take_log().substr(0, 3), "a0@");
    ASSERT_EQ(stats().asked, asked + 1);
    const lawn_time_t asked_at = conn_.asked_at;
    EXPECT_NEAR(static_cast<double>(asked_at - zero), 10e6, 1e5);
    // One ask for each oldest message.
    run_to(asked_at + 8 * msec);
    EXPECT_EQ(take_log(), "");
    lawn_conn_on_echo(&conn_, now_, asked_at);
    run_to(now_ + 20 * msec);
    EXPECT_EQ(stats().asked, asked + 1);
    EXPECT_EQ(stats().by_evidence, 1U);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(take_log().substr(0, 3), "r1@");
}

TEST_F(ConnEcho, AConnectionThatMayAskWaitsForWhateverIsFirst)
{
    const auto wait = [&] {
        send();
        return lawn_timer_deadline(&conn_.retransmit) - now_;
    };
    const auto measured_wait = [&] {
        lawn_conn_close(&conn_);
        open_asking();
        measure(&conn_);
        return wait();
    };
    params_.rto_min = 50 * msec;
    EXPECT_EQ(measured_wait(), 10 * msec); // the ask: 5/4 of SRTT
    params_.rto_jitter = 0.5;
    EXPECT_EQ(measured_wait(), 10 * msec);
    params_.rto_min = params_.rto_max = 9 * msec;
    params_.rto_jitter = 0;
    EXPECT_EQ(measured_wait(), 9 * msec); // the RTO
    lawn_conn_close(&conn_);
    params_.rto_fixed = sec;
    params_.peer_timeout = sec / 2;
    open_asking(); // nothing is measured yet
    EXPECT_EQ(wait(), sec / 2);
    lawn_conn_close(&conn_);
    params_.peer_timeout = 0;
    params_.rto_jitter = 1;
    open_asking();
    EXPECT_GT(wait(), sec);
}

// It comes after the RTO: it says nothing of the retransmission.
TEST_F(ConnEcho, ALateAnswerToAskIsNoSignOfANeedlessRetransmission)
{
    open_asking();
    for (const lawn_time_t rtt : {8, 12, 12}) {
        send();
        run_to(now_ + rtt * msec);
        lawn_conn_on_ack_oldest(&conn_, now_, now_ - rtt * msec, infinity);
    }
    const lawn_time_t zero = measure(&conn_);
    send();
    run_to(zero + 20 * msec);
    EXPECT_EQ(stats().asked, 1U);
    EXPECT_EQ(stats().retransmissions, 1U);
    EXPECT_LT(conn_.asked_at, conn_.resent_at);
    const lawn_time_t rto = lawn_conn_rto(&conn_);
    lawn_conn_on_echo(&conn_, now_, conn_.asked_at);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(lawn_conn_rto(&conn_), rto);
}

// It begins with the tail of the path, too.
TEST_F(ConnEcho, InheritBeginsWithWhatAnotherHasMeasured)
{
    open_many(3);
    EXPECT_EQ(lawn_conn_inherit(&conns_[1], &conns_[0]), LAWN_OK);
    EXPECT_EQ(lawn_conn_rto(&conns_[1]), 100 * msec); // nothing was measured
    measure(&conns_[0]);
    for (int i = 0; i < 2; ++i) {
        lawn_conn_on_send(&conns_[0], now_);
        run_to(now_ + 20 * msec);
        lawn_conn_on_ack_oldest(&conns_[0], now_, now_ - 20 * msec, infinity);
    }
    measure(&conns_[0]);
    EXPECT_GT(lawn_conn_rto(&conns_[0]), 20 * msec);
    lawn_conn_on_send(&conns_[1], now_);
    EXPECT_EQ(lawn_conn_inherit(&conns_[1], &conns_[0]), LAWN_OK);
    EXPECT_EQ(lawn_conn_rto(&conns_[1]), lawn_conn_rto(&conns_[0]));
    // The timer runs by it.
    EXPECT_EQ(lawn_timer_deadline(&conns_[1].retransmit),
              now_ + lawn_conn_rto(&conns_[0]));
    // Once it knows something itself, no more.
    EXPECT_EQ(lawn_conn_inherit(&conns_[1], &conns_[0]), LAWN_ERR_BUSY);
    // A closed one knows what it has known, but learns nothing.
    lawn_conn_close(&conns_[0]);
    EXPECT_EQ(lawn_conn_inherit(&conns_[2], &conns_[0]), LAWN_OK);
    EXPECT_EQ(lawn_conn_rto(&conns_[2]), lawn_conn_rto(&conns_[0]));
    EXPECT_EQ(lawn_conn_inherit(&conns_[0], &conns_[1]),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_conn_inherit(nullptr, &conns_[1]), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_conn_inherit(&conns_[1], nullptr), LAWN_ERR_INVALID_PARAM);
}

// Where answers overtake others, one that does is no proof of a loss, also for
// a connection that has not seen it itself.
TEST_F(ConnEcho, InheritKnowsThatAnswersOvertakeOthers)
{
    open_many(2);
    for (int i = 0; i < 300; ++i) {
        lawn_conn_on_send(&conns_[0], now_);
        run_to(now_ + 8 * msec);
        lawn_conn_on_ack_oldest(&conns_[0], now_, now_ - 8 * msec, infinity);
    }
    lawn_time_t first = now_;
    lawn_conn_on_send(&conns_[0], first);
    lawn_conn_on_send(&conns_[0], first + 1);
    run_to(now_ + 8 * msec);
    lawn_conn_on_ack_oldest(&conns_[0], now_, first + 1, first);
    lawn_conn_on_ack_oldest(&conns_[0], now_, first, infinity);
    EXPECT_EQ(lawn_conn_inherit(&conns_[1], &conns_[0]), LAWN_OK);
    first = now_;
    lawn_conn_on_send(&conns_[1], first);
    lawn_conn_on_send(&conns_[1], first + 1);
    run_to(now_ + 4 * msec);
    lawn_conn_on_ack_oldest(&conns_[1], now_, first + 1, first);
    // The other one's SRTT and an eighth; this sample makes it less.
    EXPECT_GT(lawn_timer_deadline(&conns_[1].retransmit), first + 8 * msec);
}

TEST_F(ConnEcho, InheritTakesNoBackOffBack)
{
    open_many(1);
    measure(&conns_[0]);
    open();
    send();
    run_to(now_ + 100 * msec);
    EXPECT_EQ(lawn_conn_rto(&conn_), 200 * msec);
    EXPECT_EQ(lawn_conn_inherit(&conn_, &conns_[0]), LAWN_OK);
    EXPECT_EQ(lawn_conn_rto(&conn_), 200 * msec);
    EXPECT_EQ(stats().srtt, 8 * msec);
}

TEST_F(ConnEcho, IsOpenFromTheOpenToTheClose)
{
    EXPECT_FALSE(lawn_conn_is_open(nullptr));
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
    open();
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    lawn_conn_close(&conn_);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
    // All calls do nothing then.
    lawn_conn_on_ack_oldest(&conn_, now_, now_, now_);
    lawn_conn_on_echo(&conn_, now_, now_);
    lawn_conn_on_resend(&conn_, now_, now_);
    EXPECT_EQ(lawn_conn_lost_before(&conn_, now_), 0U);
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
}

// A hundred thousand that sent at once do not send again at once.
TEST_F(ConnEcho, TheJitterOfTheRtoSpreadsAHerd)
{
    params_.rto_jitter = 0.5;
    open_many(100'000);
    unsigned tenths[10] = {};
    for (lawn_conn_t &conn : conns_) {
        lawn_conn_on_send(&conn, now_);
        const lawn_time_t more =
            lawn_timer_deadline(&conn.retransmit) - now_ - 100 * msec;
        ASSERT_LE(more, 50 * msec);
        ++tenths[std::min(more / (5 * msec), lawn_time_t{9})];
    }
    EXPECT_GT(*std::min_element(tenths, tenths + 10), 9400U);
    EXPECT_LT(*std::max_element(tenths, tenths + 10), 10600U);
}

// Two processes whose connections have the same addresses.
TEST_F(ConnEcho, TheJitterOfTwoProcessesDiffers)
{
    keep_alive(sec, sec, 1);
    params_.keepalive_jitter = sec;
    const auto deadlines = [&](uint64_t seed) {
        create_engine(infinity);
        params_.jitter_seed = seed;
        open_many(100'000);
        std::vector<lawn_time_t> all;
        for (lawn_conn_t &conn : conns_) {
            all.push_back(lawn_timer_deadline(&conn.keepalive));
            lawn_conn_close(&conn);
        }
        return all;
    };
    const std::vector<lawn_time_t> first = deadlines(0);
    const std::vector<lawn_time_t> other = deadlines(0);
    size_t near = 0; // within a thousandth
    for (size_t i = 0; i < first.size(); ++i) {
        near +=
            std::max(first[i], other[i]) - std::min(first[i], other[i]) < msec;
    }
    EXPECT_LT(near, 400U); // 200 expected
    // A seed of its own makes a run repeatable.
    EXPECT_EQ(deadlines(7), deadlines(7));
    EXPECT_NE(deadlines(7), deadlines(8));
}

// Different ones do not mix, and equal ones are the same.
TEST_F(ConnEcho, ConnectionsShareEqualParameters)
{
    open_many(2);
    EXPECT_EQ(conns_[0].profile, conns_[1].profile);
    params_.max_retries = 5;
    open();
    EXPECT_NE(conn_.profile, conns_[0].profile);
    lawn_conn_close(&conn_);
    open_asking(); // the same parameters with other ops
    EXPECT_NE(conn_.profile, conns_[0].profile);
    send();
    lawn_conn_on_send(&conns_[0], now_);
    run_to(start + 10 * sec);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
    EXPECT_TRUE(lawn_conn_is_open(&conns_[0]));
}

// An engine whose allocator gives memory `left` times.
class ConnMemory : public ConnEcho
{
protected:
    ConnMemory()
    {
        lawn_engine_destroy(engine_);
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        params.lawn.allocator = {[](void *, size_t size) {
                                     return left-- > 0 ? malloc(size) : nullptr;
                                 },
                                 [](void *, void *memory) { free(memory); },
                                 nullptr};
        left = 100;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
    }

    lawn_status_t open_with(unsigned max_retries, int given)
    {
        params_.max_retries = max_retries;
        left = given;
        return open(&conn_);
    }

    static int left;
};

int ConnMemory::left;

TEST_F(ConnMemory, OpeningNeedsSomeForNewParameters)
{
    for (const int given : {0, 1, 2}) {
        left = given;
        EXPECT_EQ(open(&conn_), LAWN_ERR_NO_MEMORY);
        EXPECT_FALSE(lawn_conn_is_open(&conn_));
    }
    left = 3;
    EXPECT_EQ(open(&conn_), LAWN_OK);
    // With the same ones, there is nothing to allocate. And a table that cannot
    // grow still takes more.
    conns_.resize(20);
    EXPECT_EQ(open(&conns_[0]), LAWN_OK);
    for (size_t i = 1; i < conns_.size(); ++i) {
        params_.max_retries = static_cast<unsigned>(i);
        left = 1;
        EXPECT_EQ(open(&conns_[i]), LAWN_OK);
    }
}

// The parameters of the connection that was closed last are still there, and no
// others.
TEST_F(ConnMemory, OpeningAgainNeedsNone)
{
    for (const unsigned retries : {1, 2, 3}) {
        EXPECT_EQ(open_with(retries, 3), LAWN_OK);
        lawn_conn_close(&conn_);
        EXPECT_EQ(open_with(retries, 0), LAWN_OK);
        lawn_conn_close(&conn_);
    }
    EXPECT_EQ(open_with(2, 0), LAWN_ERR_NO_MEMORY);
    EXPECT_EQ(open_with(3, 0), LAWN_OK);
    // While they are in use, others are not given up for them.
    conns_.resize(1);
    params_.max_retries = 4;
    left = 1;
    EXPECT_EQ(open(&conns_[0]), LAWN_OK);
    lawn_conn_close(&conns_[0]);
    EXPECT_EQ(lawn_conn_is_open(&conn_), true);
    EXPECT_EQ(open(&conns_[0]), LAWN_OK);
    lawn_conn_close(&conn_);
    EXPECT_EQ(open_with(3, 0), LAWN_OK);
}

} // namespace
