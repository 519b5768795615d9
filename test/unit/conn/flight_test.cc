// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/flight.h: the order of the list, what the connection is
// told of an ACK, and what is sent again.

#include "flight_fixture.h"

using namespace lawn_test;

namespace
{

static_assert(sizeof(void *) != 8 || sizeof(lawn_flight_message_t) == 32, "");

TEST_F(Flight, RefusesWhatIsMissing)
{
    lawn_flight_t flight = {};
    const lawn_flight_ops_t none = {};
    ops_.resend = resend;
    EXPECT_EQ(lawn_flight_init(nullptr, &conn_, &ops_), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_flight_init(&flight, nullptr, &ops_),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_flight_init(&flight, &conn_, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_flight_init(&flight, &conn_, &none), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(flight.messages.next, nullptr);
    EXPECT_EQ(lawn_flight_init(&flight, &conn_, &ops_), LAWN_OK);
    EXPECT_EQ(flight.count, 0U);
    EXPECT_EQ(lawn_flight_oldest(&flight), nullptr);
}

TEST_F(Flight, IsInTheOrderOfTheLatestSending)
{
    open_flight();
    for (char name : {'a', 'b', 'c', 'd'}) {
        run_to(now_ + usec);
        send(name);
    }
    EXPECT_EQ(list(), "abcd");
    run_to(now_ + usec);
    send('b'); // again, after a NACK
    EXPECT_EQ(list(), "acdb");
    EXPECT_EQ(at('b')->sent_at, now_);
    send('b');
    EXPECT_EQ(list(), "acdb");
    EXPECT_TRUE(ack('c'));
    EXPECT_EQ(list(), "adb");
    give_up('a');
    EXPECT_EQ(list(), "db");
    EXPECT_TRUE(ack('b'));
    give_up('d');
    EXPECT_EQ(list(), "");
    // What is not in flight changes nothing.
    give_up('d');
    EXPECT_FALSE(lawn_flight_cover(&flight_, at('b')));
    EXPECT_FALSE(ack('e'));
    EXPECT_EQ(list(), "");
}

// A whole window that is sent in one pass: the one that is lost is found by the
// ACKs of those behind it, not by the RTO.
TEST_F(Flight, WhatIsSentInOnePassIsInOrder)
{
    open_flight();
    send('a'); // makes the round trip known: 8 ms
    run(8000);
    EXPECT_TRUE(ack('a'));
    run(9000);
    for (char name : {'b', 'c', 'd'}) {
        send(name);
    }
    EXPECT_EQ(at('b')->sent_at, now_);
    EXPECT_EQ(at('c')->sent_at, now_ + 1);
    EXPECT_EQ(at('d')->sent_at, now_ + 2);
    run(17000);
    EXPECT_TRUE(ack('b', at('b')->sent_at));
    EXPECT_TRUE(ack('d', at('d')->sent_at));
    run(60000);
    EXPECT_EQ(take_log().substr(0, 2), "c@");
    EXPECT_GT(stats().by_evidence, 0U);
    send('e'); // later than all before
    EXPECT_EQ(at('e')->sent_at, now_);
}

TEST_F(Flight, AnAckIsASampleOnceOrWithAnEcho)
{
    open_flight();
    send('a');
    send('b');
    send('c');
    run(4000);
    send('b');
    send('c');
    run(12000);
    EXPECT_TRUE(ack('a')); // sent once, and so 12 ms
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_TRUE(ack('b')); // sent twice: which one?
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_TRUE(ack('c', base_ + 1750 * usec)); // as it says
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_LT(stats().rttvar, 500 * usec);
    EXPECT_EQ(list(), "");
}

TEST_F(Flight, ASecondAckShowsANeedlessRetransmission)
{
    open_flight();
    send('a');
    run(12500);
    EXPECT_EQ(take_log(), "a@12500");
    run(15000);
    EXPECT_TRUE(ack('a'));
    EXPECT_EQ(stats().spurious, 0U);
    run(22500);
    EXPECT_FALSE(ack('a'));
    EXPECT_EQ(stats().spurious, 1U);
    // There was no third transmission.
    run(23000);
    EXPECT_FALSE(ack('a'));
    EXPECT_FALSE(ack('a', base_));
    EXPECT_EQ(stats().spurious, 1U);
    EXPECT_EQ(stats().heard_at, now_);
}

TEST_F(Flight, ASecondAckWithAnEchoIsASample)
{
    open_flight();
    send('a');
    run(20500);
    EXPECT_EQ(take_log(), "a@12500");
    EXPECT_TRUE(ack('a', base_ + 12500 * usec));
    EXPECT_EQ(stats().srtt, 9750 * usec); // 8 ms
    EXPECT_FALSE(ack('a', base_));
    EXPECT_GT(stats().srtt, 11 * msec); // 20.5 ms
    EXPECT_EQ(stats().spurious, 1U);
}

TEST_F(Flight, AnAckThatComesTwiceShowsNothing)
{
    open_flight();
    send('a');
    send('b');
    run(10000);
    EXPECT_TRUE(ack('b', base_));
    run(14000);
    EXPECT_EQ(take_log(), "a@12500");
    // It is from before the retransmission, but b was sent only once.
    EXPECT_FALSE(ack('b', base_));
    EXPECT_EQ(stats().srtt, 10 * msec);
    EXPECT_EQ(stats().spurious, 0U);
    EXPECT_EQ(stats().heard_at, now_);
}

TEST_F(Flight, ALateAckOfWhatWasGivenUpIsASample)
{
    open_flight();
    send('a');
    send('b');
    give_up('a');
    EXPECT_EQ(list(), "b");
    run(12000);
    EXPECT_FALSE(ack('a'));
    EXPECT_EQ(stats().srtt, 10 * msec);
    lawn_flight_ack_covered(&flight_, now_, base_);
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_EQ(list(), "b");
}

TEST_F(Flight, OneSilenceSendsOneMessage)
{
    open_flight();
    send('a');
    send('b');
    run(12500);
    EXPECT_EQ(take_log(), "a@12500");
    EXPECT_EQ(list(), "ba");
    run(40000);
    EXPECT_EQ(take_log(), "b@37500");
    EXPECT_EQ(list(), "ab");
}

TEST_F(Flight, OneEvidenceSendsAllThatIsLost)
{
    open_flight();
    // On this path, one overtakes another: what is older than 11.25 ms is lost.
    send('y');
    run(10);
    send('z');
    run(10000);
    ack('z', base_ + 10 * usec);
    ack('y', base_);
    restart();
    send('a');
    run(100);
    send('b');
    run(1500);
    send('c');
    run(2000);
    send('d');
    run(12000);
    EXPECT_TRUE(ack('d'));
    run(12700);
    EXPECT_EQ(take_log(), "a@12156 b@12156");
    EXPECT_EQ(list(), "cab");
    run(20000);
    EXPECT_EQ(take_log(), "c@12748");
    EXPECT_EQ(list(), "abc");
    EXPECT_EQ(stats().by_evidence, 2U);
    run(22000);
    EXPECT_TRUE(ack('a', base_ + 12156 * usec));
    EXPECT_TRUE(ack('b', base_ + 12156 * usec));
    run(22750);
    EXPECT_TRUE(ack('c', base_ + 12750 * usec));
    EXPECT_EQ(list(), "");
    run(100000);
    EXPECT_EQ(take_log(), "");
}

TEST_F(Flight, WhatIsLeftDeterminesTheTimer)
{
    open_flight();
    send('a');
    run(5000);
    send('b');
    give_up('a');
    EXPECT_EQ(list(), "b");
    run(17500);
    EXPECT_EQ(take_log(), "b@17500");
    give_up('b');
    EXPECT_EQ(list(), "");
    run(1000000);
    EXPECT_EQ(take_log(), "");
    EXPECT_EQ(stats().unacked_since, LAWN_TIME_INFINITY);
}

TEST_F(Flight, AcksOfRangesAreOneAck)
{
    open_flight();
    for (char name : {'a', 'b', 'c', 'd', 'e'}) {
        send(name);
        run_to(now_ + msec);
    }
    run(13000);
    EXPECT_EQ(take_log(), "a@12500");
    // The newest of those that were sent once is measured, in any order.
    for (char name : {'b', 'd', 'c'}) {
        EXPECT_TRUE(lawn_flight_cover(&flight_, at(name)));
    }
    run(15000);
    take_log();
    lawn_flight_ack_covered(&flight_, now_, no_echo);
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_EQ(list(), "ea");
    // One that was sent twice makes it ambiguous.
    EXPECT_TRUE(lawn_flight_cover(&flight_, at('e')));
    EXPECT_TRUE(lawn_flight_cover(&flight_, at('a')));
    lawn_flight_ack_covered(&flight_, now_, no_echo);
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_EQ(list(), "");
    // Nothing is covered.
    run(16000);
    lawn_flight_ack_covered(&flight_, now_, no_echo);
    EXPECT_EQ(stats().srtt, 10250 * usec);
    EXPECT_EQ(stats().heard_at, now_);
    lawn_flight_ack_covered(&flight_, now_, base_ + 12500 * usec);
    EXPECT_LT(stats().srtt, 10 * msec);
}

// Time 0 is no time of sending for a connection, but it is one for the list.
TEST_F(Flight, WhatWasSentAtZeroIsAcknowledged)
{
    open_flight();
    now_ = 0;
    send('a');
    now_ = base_;
    EXPECT_TRUE(ack('a'));
    EXPECT_EQ(list(), "");
}

TEST_F(Flight, CumulativeAcksKeepTheOrder)
{
    open_flight({resend, black_hole, true});
    for (char name : {'a', 'b', 'c', 'd', 'e'}) {
        send(name);
        run_to(now_ + msec);
    }
    const auto ack_before = [&](char end, lawn_time_t echo) {
        lawn_flight_message_t *message;
        while ((message = lawn_flight_oldest(&flight_)) &&
               reinterpret_cast<Message *>(message)->name < end) {
            EXPECT_TRUE(lawn_flight_cover(&flight_, message));
        }
        lawn_flight_ack_covered(&flight_, now_, echo);
    };
    run(10000);
    ack_before('b', base_);
    EXPECT_EQ(list(), "bcde");
    run(12000);
    ack_before('b', base_ + 2 * msec); // c has arrived, b has not
    EXPECT_EQ(list(), "bcde");
    run(14000);
    // Only b is sent again, and it stays the first.
    EXPECT_EQ(take_log(), "b@12156");
    EXPECT_EQ(list(), "bcde");
    run(22250);
    ack_before('d', base_ + 12250 * usec);
    EXPECT_EQ(list(), "de");
    run(22450);
    EXPECT_EQ(take_log(), "d@22406");
    run(32250);
    ack_before('f', base_ + 22250 * usec);
    EXPECT_EQ(list(), "");
    EXPECT_EQ(stats().undone, 0U);
}

TEST_F(Flight, GoBackNSendsAll)
{
    ASSERT_NO_FATAL_FAILURE(open_flight({resend, nullptr, true}));
    then_resent_ = [&](char name) {
        EXPECT_EQ(name, 'a');
        send('b');
        send('c');
        return true;
    };
    for (char name : {'a', 'b', 'c'}) {
        send(name);
        run_to(now_ + msec);
    }
    run(13000);
    EXPECT_EQ(take_log(), "a@12500");
    EXPECT_EQ(list(), "abc");
    EXPECT_EQ(at('c')->sent_at, base_ + 12500 * usec);
    for (char name : {'a', 'b', 'c'}) {
        EXPECT_TRUE(ack(name));
        EXPECT_FALSE(ack(name));
    }
    EXPECT_EQ(stats().spurious, 3U);
}

TEST_F(Flight, TheListWorksWithoutAConnection)
{
    open_flight();
    send('a');
    lawn_conn_close(&conn_);
    send('b');
    send('a');
    EXPECT_EQ(list(), "ba");
    EXPECT_TRUE(lawn_flight_retransmit(&flight_, now_, 1));
    EXPECT_EQ(take_log(), "");
    EXPECT_TRUE(ack('b'));
    give_up('a');
    EXPECT_EQ(list(), "");
}

} // namespace
