// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which round trips count: those that can have been measured, however they are
// given.

#include "../../misuse.h"
#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

class ConnSample : public Conn
{
protected:
    // `age` after it was opened; nothing has been measured.
    void open_and_wait(lawn_time_t age)
    {
        open();
        send();
        pass_at(now_ + age);
    }

    void ack_of(lawn_time_t sent_at, bool all_acked)
    {
        lawn_conn_on_ack_of(&conn_, now_, sent_at, all_acked);
    }

    bool has_sample() const
    {
        return stats().srtt != 0;
    }
};

using ConnSampleDeathTest = ConnSample;

// The difference to a clock that was read later than the pass began.
TEST_F(ConnSampleDeathTest, OneBelowZeroDoesNotSpoilTheRto)
{
    open_and_wait(8 * msec);
    ack(8 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    send();
    EXPECT_MISUSE(ack(static_cast<lawn_time_t>(-100), true), "ssert");
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    EXPECT_EQ(stats().srtt, 8 * msec);
}

// It is an ACK all the same.
TEST_F(ConnSampleDeathTest, WithAnImpossibleOneAnAckCountsAsOneWithout)
{
    keep_alive(sec, sec, 2);
    open_and_wait(100 * msec);
    EXPECT_EQ(take_log(), "r1@100");
#ifdef NDEBUG
    ack(LAWN_TIME_INFINITY, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 200 * msec); // Karn: it stays
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
    run_to(start + 1100 * msec);
    EXPECT_EQ(take_log(), "p1@1100");
#else
    EXPECT_DEATH(ack(LAWN_TIME_INFINITY, true), "ssert");
#endif
}

// The longest is the age of the connection, a tick more where it was rounded
// up: so 1 is possible in the tick of the opening.
TEST_F(ConnSampleDeathTest, NoneIsLongerThanTheConnectionIsOpen)
{
    open_and_wait(0);
    EXPECT_MISUSE(ack(2, false), "ssert");
    EXPECT_FALSE(has_sample());
    ack(1, true);
    EXPECT_TRUE(has_sample());
    lawn_conn_close(&conn_);

    open_and_wait(8 * msec);
    EXPECT_MISUSE(ack(8 * msec + 2, false), "ssert");
    EXPECT_FALSE(has_sample());
    ack(8 * msec + 1, true);
    EXPECT_TRUE(has_sample());
}

// What was sent when the connection was last idle may be answered late, by an
// ACK of something newer that echoes the older: it took as long as it says.
TEST_F(ConnSample, OneFromBeforeTheConnectionWasIdleCounts)
{
    open_and_wait(20 * msec);
    ack(0, true);
    pass_at(start + 30 * msec);
    send();
    pass_at(start + 31 * msec);
    ack(31 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 93 * msec);
}

// A send that is reported late does not make the connection younger.
TEST_F(ConnSample, OneFromBeforeALateReportCounts)
{
    open_and_wait(20 * msec);
    ack(0, true);
    lawn_conn_on_send(&conn_, now_ - 5 * msec);
    ack_of(start + 2 * msec, true);
    EXPECT_EQ(stats().srtt, 18 * msec);
}

// The pass began before it was sent; the sample was taken by a fresh clock.
TEST_F(ConnSample, OneThatBeganAndEndedInAPassCounts)
{
    lawn_source_t *source = nullptr;
    std::function<unsigned()> poll = [&] {
        open();
        send();
        now_ += 8 * msec;
        lawn_conn_on_ack(&conn_, lawn_engine_now(engine_), 8 * msec, true);
        return 1U;
    };
    const auto call = [](void *arg) {
        return (*static_cast<std::function<unsigned()> *>(arg))();
    };
    ASSERT_EQ(lawn_engine_add(engine_, call, &poll, -1, &source), LAWN_OK);
    pass_at(start);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    lawn_engine_remove(engine_, source);
}

// A pass that was delayed tells of it with a time before the opening.
TEST_F(ConnSampleDeathTest, OneThatEndsBeforeTheOpeningIsJudgedByTheClock)
{
    open_and_wait(8 * msec);
    EXPECT_MISUSE(lawn_conn_on_ack(&conn_, start - sec, 8 * msec + 2, false),
                  "ssert");
    EXPECT_FALSE(has_sample());
    lawn_conn_on_ack(&conn_, start - sec, 8 * msec, true);
    EXPECT_TRUE(has_sample());
}

// A handshake that came before the connection.
TEST_F(ConnSample, OneOfASendBeforeTheOpeningCountsIfToldOf)
{
    pass_at(start + 8 * msec);
    open();
    ack_of(start, true);
    EXPECT_FALSE(has_sample());
    lawn_conn_on_send(&conn_, start);
    ack_of(start, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    lawn_conn_close(&conn_);

    open(); // again: it begins anew
    ack_of(start, true);
    EXPECT_FALSE(has_sample());
    lawn_conn_on_send(&conn_, start);
    ack(8 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
}

// Also if something newer was sent first.
TEST_F(ConnSample, OneOfASendBeforeTheOpeningCountsIfToldOfLater)
{
    pass_at(start + 8 * msec);
    open();
    send();
    lawn_conn_on_send(&conn_, start);
    ack(8 * msec, true);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    lawn_conn_close(&conn_);

    open();
    send();
    lawn_conn_on_send(&conn_, start);
    ack_of(start, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
}

// The RTO is learnt also when everything was sent twice.
TEST_F(ConnSample, AnEchoedTimeEndsABackoff)
{
    open();
    send();
    run_to(start + 300 * msec);
    EXPECT_EQ(take_log(), "r1@100 r2@300");
    EXPECT_EQ(lawn_conn_rto(&conn_), 400 * msec);
    pass_at(start + 308 * msec);
    ack_of(start + 300 * msec, false);
    EXPECT_EQ(lawn_conn_rto(&conn_), 24 * msec);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 332 * msec);
    ack_of(start + 300 * msec, true);
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
}

// A peer may echo anything: no assertion, in no build.
TEST_F(ConnSample, AnEchoedTimeThatCannotBeIsNoSample)
{
    open_and_wait(20 * msec);
    const lawn_time_t wrong[] = {0,
                                 1,
                                 start - 1,
                                 now_,
                                 now_ + 1,
                                 now_ + 100,
                                 now_ * 2,
                                 UINT64_MAX / 2,
                                 LAWN_TIME_INFINITY - 1,
                                 LAWN_TIME_INFINITY};
    for (const lawn_time_t sent_at : wrong) {
        ack_of(sent_at, false);
        EXPECT_FALSE(has_sample()) << sent_at;
        EXPECT_EQ(lawn_conn_rto(&conn_), 100 * msec) << sent_at;
    }
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), now_ + 100 * msec);
    ack_of(now_ - 1, true);
    EXPECT_EQ(stats().srtt, 1U);
    lawn_conn_close(&conn_);

    open_and_wait(20 * msec);
    ack_of(now_ - 20 * msec, true);
    EXPECT_EQ(stats().srtt, 20 * msec);
    lawn_conn_close(&conn_);
    ack_of(now_ - 1, true); // closed: it does nothing
    EXPECT_EQ(stats().srtt, 20 * msec);
}

// Nor where the clock has just begun, so that its difference to `now` is small.
TEST_F(ConnSample, AnUnknownTimeIsNoSampleOnAClockThatHasJustBegun)
{
    now_ = 0;
    create_engine(infinity);
    open_and_wait(8 * msec);
    lawn_conn_on_ack_oldest(&conn_, now_, 1, infinity);
    const lawn_time_t rttvar = stats().rttvar;
    send();
    lawn_conn_on_ack_oldest(&conn_, now_, infinity, infinity);
    lawn_conn_on_ack_oldest(&conn_, now_, infinity - 1, infinity);
    EXPECT_EQ(stats().rttvar, rttvar);
}

// 0 is none also where the clock has begun with it.
TEST_F(ConnSample, ATimeOfZeroIsNoneOnAClockThatBeganThere)
{
    now_ = 0;
    create_engine(0);
    open_and_wait(8 * msec);
    ack_of(0, false);
    EXPECT_FALSE(has_sample());
    ack_of(1, true);
    EXPECT_EQ(stats().srtt, 8 * msec - 1);
}

// And nothing has taken long there.
TEST_F(ConnSampleDeathTest, NoneIsLongerThanAClockThatHasJustBegun)
{
    now_ = 0;
    create_engine(infinity);
    open_and_wait(0);
    EXPECT_MISUSE(ack(8 * msec, false), "ssert");
    EXPECT_FALSE(has_sample());
    ack(1, true);
    EXPECT_TRUE(has_sample());
}

} // namespace
