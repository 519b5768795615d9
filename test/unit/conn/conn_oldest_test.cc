// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// on_ack_oldest, on_resend and lost_before: from when the retransmit timer
// runs, and what evidence of a loss does.

#include "conn_fixture.h"

using namespace lawn_test;

namespace
{

class ConnOldest : public Conn
{
protected:
    // Opens, and measures a steady round trip of 8 ms, so that the RTO is 10.
    void open_steady()
    {
        open();
        exchange(100);
        ASSERT_EQ(lawn_conn_rto(&conn_), 10 * msec);
        take_log();
        // Times in the log are then from here.
        zero_ = now_ - start;
    }

    // One message at a time, each answered after its round trip.
    void exchange(int count, lawn_time_t rtt = 8 * msec)
    {
        for (int i = 0; i < count; ++i) {
            send();
            run_to(now_ + rtt);
            lawn_conn_on_ack_oldest(&conn_, now_, now_ - rtt, infinity);
        }
    }

    // How old something is when evidence says that it is lost.
    lawn_time_t evidence_age()
    {
        send();
        const lawn_time_t sent_at = now_;
        run_to(sent_at + msec);
        send();
        run_to(sent_at + 7 * msec);
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at + msec, sent_at);
        const lawn_time_t at = lawn_timer_deadline(&conn_.retransmit) - sent_at;
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at, infinity);
        return at;
    }

    lawn_time_t zero() const
    {
        return start + zero_;
    }

    void send_at(lawn_time_t at)
    {
        run_to(zero() + at);
        send();
    }

    void ack_at(lawn_time_t at, lawn_time_t sent_at, lawn_time_t oldest)
    {
        run_to(zero() + at);
        lawn_conn_on_ack_oldest(
            &conn_, now_, sent_at == infinity ? infinity : zero() + sent_at,
            oldest == infinity ? infinity : zero() + oldest);
    }

    lawn_time_t due() const
    {
        return lawn_timer_deadline(&conn_.retransmit) - zero();
    }

    lawn_time_t zero_ = 0;
};

// With on_ack, the ACK of each later message puts the loss off.
TEST_F(ConnOldest, AcksOfLaterDataDoNotPutOffALoss)
{
    open_steady();
    send_at(0); // lost
    ack_at(5 * msec, infinity, 0);
    EXPECT_EQ(due(), 10 * msec);
    ack_at(7 * msec, infinity, 0);
    EXPECT_EQ(due(), 10 * msec);
    ack_at(8 * msec, infinity, 3 * msec);
    EXPECT_EQ(due(), 13 * msec);
}

// RFC 6298, 5.4 to 5.6. Nothing was heard, so nothing more is sent for an RTO,
// though other messages are older.
TEST_F(ConnOldest, ASilenceIsOneAttemptForEachRto)
{
    open_steady();
    then_ = [&](lawn_conn_t *conn, char) {
        lawn_conn_on_resend(conn, now_, zero() + 2 * msec);
    };
    send_at(0);
    send_at(2 * msec);
    run_to(zero() + 100 * msec);
    EXPECT_EQ(stats().retransmissions, 3U); // at 10, 30 and 70 ms
    EXPECT_EQ(due(), 150 * msec);
    // Something is heard: the older one counts from when it was sent.
    lawn_conn_on_ack_oldest(&conn_, now_, zero() + 70 * msec,
                            zero() + 71 * msec);
    EXPECT_LT(due(), 150 * msec);
}

TEST_F(ConnOldest, WithoutOnResendTheTimerRunsFromTheRetransmission)
{
    open_steady();
    send_at(0);
    run_to(zero() + 10 * msec);
    EXPECT_EQ(stats().retransmissions, 1U);
    EXPECT_EQ(due(), 30 * msec);
}

TEST_F(ConnOldest, OnResendMovesTheTimerAndNothingElse)
{
    params_.peer_timeout = sec;
    open_steady();
    send_at(0);
    run_to(zero() + 10 * msec);
    // A NACK: the transport has sent again by itself.
    run_to(zero() + 15 * msec);
    lawn_conn_on_receive(&conn_, now_);
    lawn_conn_on_resend(&conn_, now_, now_);
    EXPECT_EQ(due(), 15 * msec + lawn_conn_rto(&conn_));
    EXPECT_EQ(lawn_conn_rto(&conn_), 20 * msec); // backed off
    EXPECT_EQ(stats().unacked_since, zero());
    // All is given up.
    lawn_conn_on_resend(&conn_, now_, infinity);
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
    EXPECT_EQ(stats().unacked_since, infinity);
}

TEST_F(ConnOldest, NoneWhereNothingIsOutstandingStartsNothing)
{
    open_steady();
    send_at(0);
    ack_at(8 * msec, 0, infinity);
    EXPECT_FALSE(lawn_timer_is_active(&conn_.retransmit));
    run_to(zero() + sec);
    EXPECT_EQ(stats().retransmissions, 0U);
}

TEST_F(ConnOldest, WhatCannotBeTrueIsMadeTrue)
{
    open();
    send(); // the RTO is 100 ms
    run_to(start + msec);
    // In the future: from now, or the timer would not run until then.
    lawn_conn_on_ack_oldest(&conn_, now_, infinity, infinity - 1);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), now_ + 100 * msec);
    lawn_conn_on_resend(&conn_, now_, now_ + sec);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), now_ + 100 * msec);
    // But a clock that was read after the pass began is right.
    now_ += msec;
    lawn_conn_on_ack_oldest(&conn_, now_ - msec, infinity, now_);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), now_ + 100 * msec);
    // Before the open: from the open.
    lawn_conn_on_ack_oldest(&conn_, now_, infinity, start - 1);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 100 * msec);
    lawn_conn_on_resend(&conn_, now_, 0);
    EXPECT_EQ(lawn_timer_deadline(&conn_.retransmit), start + 100 * msec);
}

// RFC 8985. On a path that keeps its order, SRTT and an eighth.
TEST_F(ConnOldest, EvidenceIsNoAttempt)
{
    open_steady();
    std::vector<lawn_time_t> lost;
    then_ = [&](lawn_conn_t *conn, char) {
        lost.push_back(lawn_conn_lost_before(conn, now_) - zero());
    };
    send_at(0); // lost
    send_at(msec / 4);
    ack_at(msec / 4 + 8 * msec, msec / 4, 0);
    EXPECT_EQ(due(), 9 * msec);
    run_to(zero() + 9 * msec);
    EXPECT_EQ(stats().by_evidence, 1U);
    EXPECT_EQ(lawn_conn_rto(&conn_), 10 * msec);
    // Besides the oldest, what was sent before the message that was answered,
    // and is as old.
    EXPECT_EQ(lost, std::vector<lawn_time_t>{0});
    EXPECT_EQ(take_log(), "r0@" + std::to_string((zero_ + 9 * msec) / msec));
}

// Where nothing was overtaken for a hundred samples, what is overtaken is lost.
TEST_F(ConnOldest, EvidenceIsAtOnceWhereThePathKeepsItsOrder)
{
    open_steady();
    exchange(100);
    zero_ = now_ - start;
    send_at(0); // lost
    send_at(1);
    ack_at(8 * msec + 1, 1, 0);
    EXPECT_EQ(due(), 8 * msec + 1 + 125 * usec);
    // Another ACK does not put it off.
    ack_at(8 * msec + 3, 1, 0);
    EXPECT_EQ(due(), 8 * msec + 1 + 125 * usec);
    ack_at(10 * msec, 0, infinity);
    // It was not lost. From now on, what is overtaken is waited for.
    send_at(20 * msec);
    send_at(21 * msec);
    ack_at(29 * msec, 21 * msec, 20 * msec);
    EXPECT_GT(due(), 30 * msec + 400 * usec);
}

// A pause has just ended, or the route has become longer.
TEST_F(ConnOldest, EvidenceWaitsAsLongAsTheLatestSamples)
{
    open_steady();
    send_at(0);
    send_at(0);
    send_at(0);
    ack_at(20 * msec, 0, 0); // r1 at 10 ms
    send_at(20 * msec);
    ack_at(28 * msec, 20 * msec, 19 * msec);
    EXPECT_GT(due(), 19 * msec + 20 * msec);
}

TEST_F(ConnOldest, EvidenceSaysWhatElseIsLost)
{
    open_steady();
    lawn_time_t lost = 0;
    then_ = [&](lawn_conn_t *conn, char) {
        lost = lawn_conn_lost_before(conn, now_) - zero();
    };
    send_at(0); // lost, and all until 5 ms
    send_at(5 * msec);
    ack_at(13 * msec, 5 * msec, 0);
    run_to(zero() + 13 * msec + 125 * usec);
    EXPECT_EQ(stats().by_evidence, 1U);
    // 13 - 9: the others may be on their way.
    EXPECT_EQ(lost, 4 * msec + 125 * usec);
    ack_at(20 * msec, 12 * msec, 3 * msec);
    run_to(zero() + 22 * msec);
    EXPECT_EQ(stats().by_evidence, 2U);
    EXPECT_EQ(lost, 11 * msec + 125 * usec);
}

TEST_F(ConnOldest, WithoutEvidenceTheOldestAloneIsLost)
{
    open_steady();
    lawn_time_t lost = 1;
    then_ = [&](lawn_conn_t *conn, char) {
        lost = lawn_conn_lost_before(conn, now_);
    };
    send_at(0);
    run_to(zero() + 10 * msec);
    EXPECT_EQ(stats().retransmissions, 1U);
    EXPECT_EQ(lost, 0U);
}

// A whole window that was sent in one pass has one time.
TEST_F(ConnOldest, AnAckOfTheSameTimeIsNoEvidence)
{
    open_steady();
    send_at(0);
    send_at(0);
    ack_at(8 * msec, 0, 0);
    EXPECT_EQ(due(), 10 * msec);
    ack_at(8 * msec, 0, infinity);
}

TEST_F(ConnOldest, AnEchoThatCannotBeTrueIsNeitherSampleNorEvidence)
{
    open_steady();
    send_at(0);
    const lawn_time_t rto = lawn_conn_rto(&conn_);
    run_to(zero() + msec);
    for (const lawn_time_t sent_at :
         {lawn_time_t{0}, lawn_time_t{1}, start - 1, now_ + 1, now_ * 2,
          infinity - 1, infinity}) {
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at, zero());
        lawn_conn_on_echo(&conn_, now_, sent_at);
        EXPECT_EQ(due(), 10 * msec);
        EXPECT_EQ(lawn_conn_rto(&conn_), rto);
    }
    EXPECT_EQ(stats().spurious, 0U);
}

// Karn: without a sample, the backed-off RTO stays. The attempts begin anew.
TEST_F(ConnOldest, OnlyASampleEndsABackOff)
{
    open_steady();
    send_at(0);
    run_to(zero() + 30 * msec);
    EXPECT_EQ(stats().retransmissions, 2U);
    take_log();
    ack_at(35 * msec, infinity, 35 * msec);
    EXPECT_EQ(lawn_conn_rto(&conn_), 40 * msec);
    run_to(zero() + 75 * msec);
    EXPECT_EQ(take_log(), "r1@" + std::to_string((zero_ + 75 * msec) / msec));
    ack_at(83 * msec, 75 * msec, infinity);
    EXPECT_EQ(lawn_conn_rto(&conn_), 10 * msec);
}

// The answer to what was sent first comes after the RTO. It is known by its
// time: everything outstanding was last sent later.
TEST_F(ConnOldest, ALateAnswerTakesBackTheBackOff)
{
    open_steady();
    send_at(0);
    ack_at(12 * msec, 0, infinity);
    EXPECT_EQ(stats().retransmissions, 1U);
    EXPECT_EQ(stats().undone, 1U);
    EXPECT_GT(lawn_conn_rto(&conn_), 12 * msec); // and it is a sample
    EXPECT_LT(lawn_conn_rto(&conn_), 20 * msec);
    // The answer to the needless one.
    run_to(zero() + 18 * msec);
    lawn_conn_on_echo(&conn_, now_, zero() + 10 * msec);
    EXPECT_EQ(stats().spurious, 1U);
}

TEST_F(ConnOldest, ResendingDoesNotMoveThePeerTimeout)
{
    params_.peer_timeout = sec;
    open_steady();
    then_ = [&](lawn_conn_t *conn, char what) {
        if (what == 'r') {
            lawn_conn_on_resend(conn, now_, now_);
        }
    };
    send_at(0);
    run_to(zero() + sec - 1);
    EXPECT_TRUE(lawn_conn_is_open(&conn_));
    run_to(zero() + sec);
    EXPECT_FALSE(lawn_conn_is_open(&conn_));
}

// An ACK in good times goes another way; what is odd in it counts all the same.
TEST_F(ConnOldest, AnOddAckInGoodTimesIsLikeAnyOther)
{
    open_steady();
    send_at(0);
    run_to(zero() + 8 * msec);
    // Something was heard later than this ACK.
    lawn_conn_on_receive(&conn_, now_ + msec);
    ack_at(8 * msec, 0, infinity);
    EXPECT_EQ(stats().heard_at, zero() + 9 * msec);
    EXPECT_EQ(stats().srtt, 8 * msec);
    // The oldest is from the future.
    send_at(20 * msec);
    ack_at(28 * msec, 20 * msec, 33 * msec);
    EXPECT_EQ(due(), 38 * msec);
    // What it answers was sent before the open, though not long ago.
    lawn_conn_close(&conn_);
    open();
    send();
    const lawn_time_t opened = now_;
    run_to(opened + 8 * msec);
    lawn_conn_on_ack_oldest(&conn_, now_, opened, infinity);
    send();
    const lawn_time_t rttvar = stats().rttvar;
    run_to(opened + 8 * msec + msec / 2);
    lawn_conn_on_ack_oldest(&conn_, now_, opened - 1, infinity);
    EXPECT_EQ(stats().rttvar, rttvar);
    EXPECT_EQ(stats().unacked_since, infinity);
}

TEST_F(ConnOldest, AnEarlierSendThatIsReportedLaterCounts)
{
    open_steady();
    send_at(10 * msec);
    EXPECT_EQ(stats().unacked_since, zero() + 10 * msec);
    lawn_conn_on_send(&conn_, zero() + 4 * msec);
    EXPECT_EQ(stats().unacked_since, zero() + 4 * msec);
}

// Where an answer was overtaken, evidence must be old enough; a window of
// samples later, too; and when another one is over in which none was, no more.
TEST_F(ConnOldest, ThatAnswersOvertakeIsForgotten)
{
    open_steady();
    EXPECT_GT(evidence_age(), 8 * msec); // too few samples to know
    exchange(4096);
    EXPECT_GT(evidence_age(), 8 * msec);
    exchange(3 * 4096);
    EXPECT_LT(evidence_age(), 8 * msec);
}

// At the end of a pause, answers overtake each other in a burst. What is late
// in it does not make evidence wait longer, but what is overtaken for longer
// than a burst does.
TEST_F(ConnOldest, ABurstDoesNotTeachHowLongEvidenceWaits)
{
    open_steady();
    // One is sent and, after `heard`, answered. Of two that are sent with it,
    // the later one is answered after `late`, and the other one after `apart`.
    const auto overtake = [this](lawn_time_t heard, lawn_time_t late,
                                 lawn_time_t apart) {
        send();
        const lawn_time_t sent_at = now_;
        for (int i = 1; i <= 2; ++i) {
            run_to(sent_at + static_cast<lawn_time_t>(i));
            send();
        }
        run_to(sent_at + heard);
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at, sent_at + 1);
        run_to(sent_at + late);
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at + 2, sent_at + 1);
        const lawn_time_t due = lawn_timer_deadline(&conn_.retransmit);
        run_to(now_ + apart);
        lawn_conn_on_ack_oldest(&conn_, now_, sent_at + 1, infinity);
        return due - sent_at;
    };
    const auto evidence_age_after = [&](lawn_time_t late, lawn_time_t apart) {
        for (int i = 0; i < 4; ++i) {
            overtake(8 * msec, late, apart);
            exchange(500);
        }
        return overtake(7 * msec, 8 * msec, 0);
    };
    EXPECT_LT(evidence_age_after(160 * msec, 100 * usec), 10 * msec);
    // This was no pause.
    EXPECT_GT(evidence_age_after(14 * msec, 100 * usec), 12 * msec);
    // This was no burst.
    EXPECT_GT(evidence_age_after(160 * msec, 2 * msec), 100 * msec);
}

// Two are sent over the long route, and those that are sent after them over a
// short one overtake them. They took as long as was usual when they were sent,
// so evidence does not wait for longer. That this was so once does not hide
// what the short route makes late.
TEST_F(ConnOldest, ARouteThatIsGoneDoesNotTeachHowLongEvidenceWaits)
{
    open_steady();
    // Answered in good times, after a late one, and by an echo.
    const auto answer = [&](int kind, lawn_time_t oldest) {
        if (kind == 2) {
            lawn_conn_on_echo(&conn_, now_, now_ - 8 * msec);
        }
        lawn_conn_on_ack_oldest(&conn_, now_, now_ - 8 * msec, oldest);
    };
    const auto age_after = [&](lawn_time_t usual, lawn_time_t late) {
        for (int i = 0; i < 6; ++i) {
            evidence_age(); // overtakes, so the path does not keep its order
            exchange(100, usual);
            exchange(i % 3 == 1 ? 1 : 0, usual + usual / 4);
            const lawn_time_t sent_at = now_;
            send();
            run_to(sent_at + usec);
            send();
            for (int j = 0; j < 4; ++j) {
                run_to(now_ + usec);
                send();
                run_to(now_ + 8 * msec);
                answer(i % 3, sent_at);
            }
            run_to(sent_at + late);
            lawn_conn_on_ack_oldest(&conn_, now_, sent_at, sent_at + usec);
            run_to(now_ + msec);
            lawn_conn_on_ack_oldest(&conn_, now_, sent_at + usec, infinity);
            exchange(500);
        }
        return evidence_age();
    };
    EXPECT_LT(age_after(80 * msec, 80 * msec), 10 * msec);
    EXPECT_GT(age_after(8 * msec, 80 * msec), 70 * msec);
    // Not even a long route explains this.
    exchange(3 * 4096);
    EXPECT_GT(age_after(80 * msec, 120 * msec), 70 * msec);
}

// While something overtaken is always waited for, the mean from before it is
// not noted anew.
TEST_F(ConnOldest, OvertakingWithoutEndForgetsTheRouteThatIsGone)
{
    open_steady();
    exchange(100, 80 * msec);
    // Each is answered after 20 ms, and one that is sent behind it and its
    // successor, after 8, just before.
    send();
    lawn_time_t oldest = now_;
    for (int i = 0; i < 400; ++i) {
        const lawn_time_t next = oldest + 11 * msec;
        run_to(next);
        send();
        run_to(next + usec);
        send();
        run_to(next + 8 * msec);
        lawn_conn_on_ack_oldest(&conn_, now_, next + usec, oldest);
        run_to(oldest + 20 * msec);
        lawn_conn_on_ack_oldest(&conn_, now_, oldest, next);
        oldest = next;
    }
    lawn_conn_on_ack_oldest(&conn_, now_, oldest, infinity);
    exchange(500);
    EXPECT_GT(evidence_age(), 12 * msec);
}

} // namespace
