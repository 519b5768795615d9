// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the ops of a flight may do, and messages in a black hole.

#include "../../environment.h"
#include "flight_fixture.h"

#include <string>

using namespace lawn_test;

namespace
{

// Four messages, a to d, of which the last one is acknowledged: 156 us later,
// at 12.156 ms, a to c are sent again.
class FlightOps : public Flight
{
protected:
    void lose_three(lawn_flight_ops_t ops = {resend, black_hole, false})
    {
        open_flight(ops);
        send('a');
        send('b');
        send('c');
        run(2000);
        send('d');
        run(11999);
        now_ = base_ + 12 * msec;
        ASSERT_TRUE(ack('d', base_ + 2000 * usec));
        ASSERT_EQ(list(), "abc");
        log_.clear();
    }
};

TEST_F(FlightOps, AreCalledOnceForEach)
{
    lose_three();
    run(12157);
    EXPECT_EQ(take_log(), "a@12156 b@12156 c@12156");
    EXPECT_EQ(list(), "abc");
}

TEST_F(FlightOps, MayGiveUpAndAcknowledgeTheirMessage)
{
    lose_three();
    then_resent_ = [&](char name) {
        if (name == 'a') {
            give_up('a');
        } else if (name == 'b') {
            EXPECT_TRUE(ack('b'));
        }
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156 b@12156 c@12156");
    EXPECT_EQ(list(), "c");
}

TEST_F(FlightOps, MayTakeAllOthersOut)
{
    lose_three();
    then_resent_ = [&](char) {
        EXPECT_TRUE(ack('c'));
        give_up('b');
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156");
    EXPECT_EQ(list(), "a");
    then_resent_ = [&](char) {
        give_up('a');
        return true;
    };
    run(100000);
    EXPECT_EQ(list(), "");
}

// Not even if what they send counts as sent before that.
TEST_F(FlightOps, MaySendNewMessages)
{
    lose_three();
    char next = 'A';
    then_resent_ = [&](char) {
        if (next != 'F') {
            const lawn_time_t sent_at = next % 2 != 0 ? now_ : base_;
            lawn_flight_send(&flight_, at(next++), sent_at);
        }
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156 b@12156 c@12156");
    EXPECT_EQ(list(), "aAbBcC");
}

TEST_F(FlightOps, MaySendAgainByThemselves)
{
    lose_three();
    then_resent_ = [&](char name) {
        if (name == 'a') {
            send('c');
        }
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156 b@12156");
    EXPECT_EQ(list(), "acb");
}

TEST_F(FlightOps, MayRetransmitInside)
{
    lose_three();
    bool is_inside = false;
    then_resent_ = [&](char) {
        if (!is_inside) {
            is_inside = true;
            EXPECT_TRUE(lawn_flight_retransmit(&flight_, now_, 0));
        }
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156 b@12156 c@12156");
    EXPECT_EQ(list(), "abc");
}

TEST_F(FlightOps, MayCloseTheConnection)
{
    lose_three();
    then_resent_ = [&](char) {
        lawn_conn_close(&conn_);
        return true;
    };
    run(100000);
    EXPECT_EQ(take_log(), "a@12156");
    EXPECT_FALSE(is_gone_);
    EXPECT_EQ(list(), "bca");
}

TEST_F(FlightOps, MayBeginAnew)
{
    lose_three();
    then_resent_ = [&](char) {
        while (lawn_flight_oldest(&flight_)) {
            lawn_flight_give_up(&flight_, lawn_flight_oldest(&flight_), now_);
        }
        lawn_conn_close(&conn_);
        EXPECT_EQ(Conn::open(&conn_), LAWN_OK);
        EXPECT_EQ(lawn_flight_init(&flight_, &conn_, &ops_), LAWN_OK);
        send('e');
        return true;
    };
    run(12157);
    EXPECT_EQ(take_log(), "a@12156");
    EXPECT_EQ(list(), "e");
}

// All of it is one allocation, which AddressSanitizer and valgrind watch.
TEST_F(FlightOps, MayFreeEverything)
{
    struct World {
        lawn_flight_message_t message; // first, so that it is the world
        lawn_flight_message_t other;
        lawn_conn_t conn;
        lawn_flight_t flight;
    };
    World *const world = static_cast<World *>(calloc(1, sizeof(World)));
    const lawn_flight_lost_fn_t end =
        [](lawn_flight_t *flight, lawn_flight_message_t *message, lawn_time_t) {
            lawn_conn_close(flight->conn);
            free(message);
            return false;
        };
    const lawn_flight_ops_t ops = {end, nullptr, false};
    lawn_conn_ops_t conn_ops = {};
    conn_ops.retransmit = [](lawn_conn_t *conn, lawn_time_t now, unsigned n) {
        EXPECT_FALSE(lawn_flight_retransmit(
            static_cast<lawn_flight_t *>(conn->context), now, n));
    };
    world->conn.context = &world->flight;
    ASSERT_EQ(lawn_conn_open(engine_, &params_, &conn_ops, &world->conn),
              LAWN_OK);
    ASSERT_EQ(lawn_flight_init(&world->flight, &world->conn, &ops), LAWN_OK);
    lawn_flight_send(&world->flight, &world->message, now_);
    lawn_flight_send(&world->flight, &world->other, now_);
    run_to(now_ + sec);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
}

// A message that never gets through, beside others that do.
class FlightHole : public FlightOps
{
protected:
    // Others take 10 ms each, one after the other.
    void run_others(int count)
    {
        for (int i = 0; i < count; ++i) {
            send('o');
            const lawn_time_t sent_at = now_;
            run_to(now_ + 10 * msec - 1);
            now_ = sent_at + 10 * msec;
            ack('o', sent_at);
        }
    }

    std::vector<std::string> sent()
    {
        std::vector<std::string> names;
        std::istringstream log(take_log());
        for (std::string word; log >> word;) {
            names.push_back(word.substr(0, word.find('@')));
        }
        return names;
    }
};

TEST_F(FlightHole, IsToldOnce)
{
    open_flight();
    send('x');
    run_others(1000);
    EXPECT_EQ(at('x')->losses, 799U);
    EXPECT_EQ(sent(), (std::vector<std::string>{"x", "x", "x", "x", "x", "x",
                                                "x", "(x)", "x", "x", "x", "x",
                                                "x", "x"})); // 16 to 512
    EXPECT_EQ(list(), "x");
    // When it does get through, it is as good as any other.
    EXPECT_TRUE(ack('x'));
    send('x');
    run_others(4);
    EXPECT_EQ(sent(), std::vector<std::string>(3, "x"));
}

TEST_F(FlightHole, IsToldOnceEvenIfTheCountIsFull)
{
    open_flight();
    send('x');
    at('x')->losses = UINT32_MAX - 1;
    run_others(100);
    EXPECT_EQ(at('x')->losses, UINT32_MAX);
    EXPECT_TRUE(sent().empty());
}

TEST_F(FlightHole, IsSentAgainIfNobodyWantsToKnow)
{
    open_flight({resend, nullptr, false});
    send('x');
    run_others(1000);
    EXPECT_EQ(sent(), std::vector<std::string>(14, "x"));
}

TEST_F(FlightHole, MayBeGivenUp)
{
    open_flight();
    send('x');
    then_resent_ = [&](char) {
        if (at('x')->losses == 8) {
            give_up('x');
        }
        return true;
    };
    run_others(100);
    EXPECT_EQ(sent().size(), 8U);
    EXPECT_EQ(list(), "");
}

// In a silence, nobody can tell a black hole from a dead path.
TEST_F(FlightHole, IsSentAgainInEachSilence)
{
    open_flight();
    send('x');
    send('y');
    run_others(100);
    take_log();
    restart();
    run(1000000);
    EXPECT_EQ(lawn_conn_rto(&conn_), 12500 * usec << 6);
    EXPECT_EQ(sent().size(), 5U); // not in the first attempt
    EXPECT_EQ(list().size(), 2U);
}

// A path that is dead for long is no black hole.
TEST_F(FlightHole, IsNoDeadPath)
{
    open_flight();
    send('x');
    run(100000000);
    run_others(1);
    EXPECT_LE(at('x')->losses, 2U);
    EXPECT_EQ(sent(), std::vector<std::string>(18, "x"));
}

// With a window of 1 and of 8, where others are sent in the pass that reads an
// ACK, and where they are sent a little later, without and with an echo. One of
// them is for a million round trips.
class FlightBound : public Flight, public testing::WithParamInterface<int>
{
};

TEST_P(FlightBound, ABlackHoleCostsALogarithm)
{
    open_flight();
    const uint64_t window = GetParam() & 1 ? 8 : 1;
    const lawn_time_t pause = GetParam() & 2 ? 100 * usec : 0;
    const bool has_echo = GetParam() & 4;
    const lawn_time_t gap = 10 * msec / window;
    uint64_t holes = 0;
    std::map<char, uint64_t> resent;
    then_resent_ = [&](char name) {
        holes += log_.back() == ')';
        resent[name]++;
        log_.clear();
        return true;
    };
    send('x');
    const uint64_t count = scaled(GetParam() == 4 ? 1000000 : 100000) + 1000;
    for (uint64_t i = 0; i < count; ++i) {
        const char name = static_cast<char>('a' + i % window);
        const lawn_time_t end = now_ + gap;
        run_to(end - 1);
        now_ = end;
        if (at(name)->sent_at != 0) {
            EXPECT_TRUE(ack(name, has_echo ? at(name)->sent_at : no_echo));
        }
        lawn_engine_progress(engine_);
        if (pause != 0) {
            run_to(now_ + pause);
        }
        send(name);
    }
    EXPECT_GT(at('x')->losses, count / 2 / window);
    EXPECT_GE(resent['x'], 8U);
    EXPECT_LE(resent['x'], 28U);
    EXPECT_EQ(resent.size(), 1U);
    EXPECT_TRUE(lawn_timer_is_active(&conn_.retransmit));
}

INSTANTIATE_TEST_SUITE_P(, FlightBound, testing::Range(0, 8));

} // namespace
