// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A flight on a connection on virtual time. Its messages are named by a letter.
// Each one that was sent again is logged as "a@12500", with the microseconds
// since the latest restart() of the time, and a black hole as "(a)@12500".

#ifndef LAWN_TEST_UNIT_FLIGHT_FIXTURE_H
#define LAWN_TEST_UNIT_FLIGHT_FIXTURE_H

#include "conn_fixture.h"

#include <lawn/flight.h>

#include <map>

namespace lawn_test
{

constexpr lawn_time_t no_echo = LAWN_TIME_INFINITY;
constexpr lawn_time_t most_in_a_pass = 256;

class Flight : public Conn
{
protected:
    struct Message {
        lawn_flight_message_t message;
        char name;
    };

    // Without timeouts. The path is known: each round trip takes 10 ms, so the
    // RTO is 12.5 ms. It keeps its order, so what was overtaken is lost when
    // the evidence has stood for 1/64 of it, 156 us.
    void open_flight(lawn_flight_ops_t ops = {resend, black_hole, false})
    {
        create_engine(1000 * sec);
        ops_ = ops;
        params_.rto_min = 0;
        lawn_conn_ops_t conn_ops = {};
        conn_ops.retransmit = [](lawn_conn_t *conn, lawn_time_t now,
                                 unsigned attempt) {
            Flight *const test = static_cast<Flight *>(conn->context);
            test->is_gone_ =
                !lawn_flight_retransmit(&test->flight_, now, attempt);
        };
        conn_.context = this;
        ASSERT_EQ(lawn_conn_open(engine_, &params_, &conn_ops, &conn_),
                  LAWN_OK);
        ASSERT_EQ(lawn_flight_init(&flight_, &conn_, &ops_), LAWN_OK);
        for (int i = 0; i < 160; ++i) {
            run_to(now_ + msec);
            send('z');
            run_to(now_ + 10 * msec);
            ack('z', now_ - 10 * msec);
        }
        ASSERT_EQ(lawn_conn_rto(&conn_), 12500 * usec);
        restart();
    }

    static bool resend(lawn_flight_t *flight, lawn_flight_message_t *message,
                       lawn_time_t now)
    {
        const char name = reinterpret_cast<Message *>(message)->name;
        return of_flight(flight)->note(std::string(1, name), name, now);
    }

    static bool black_hole(lawn_flight_t *flight,
                           lawn_flight_message_t *message, lawn_time_t now)
    {
        const char name = reinterpret_cast<Message *>(message)->name;
        return of_flight(flight)->note(std::string{'(', name, ')'}, name, now);
    }

    static Flight *of_flight(lawn_flight_t *flight)
    {
        return static_cast<Flight *>(flight->conn->context);
    }

    bool note(const std::string &what, char name, lawn_time_t now)
    {
        log_ += log_.empty() ? "" : " ";
        log_ += what + '@' + std::to_string((now - base_) / usec);
        return then_resent_ ? then_resent_(name) : true;
    }

    void restart()
    {
        run_to(now_ + msec);
        base_ = now_;
    }

    lawn_flight_message_t *at(char name)
    {
        Message &message = messages_[name];
        message.name = name;
        return &message.message;
    }

    // Runs until so many microseconds after the restart.
    void run(lawn_time_t microseconds)
    {
        run_to(base_ + microseconds * usec);
    }

    void send(char name)
    {
        lawn_flight_send(&flight_, at(name), now_);
    }

    bool ack(char name, lawn_time_t echo = no_echo)
    {
        return lawn_flight_ack(&flight_, at(name), now_, echo);
    }

    void give_up(char name)
    {
        lawn_flight_give_up(&flight_, at(name), now_);
    }

    // The letters of what is in flight, and what must hold whatever happened.
    std::string list()
    {
        std::string names;
        const lawn_link_t *const end = &flight_.messages;
        for (const lawn_link_t *i = end->next; i != end; i = i->next) {
            EXPECT_EQ(i->next->prev, i);
            names += reinterpret_cast<const Message *>(i)->name;
        }
        EXPECT_EQ(flight_.count, names.size());
        const bool waits = lawn_conn_is_open(&conn_) && !names.empty();
        EXPECT_EQ(lawn_timer_is_active(&conn_.retransmit), waits);
        lawn_flight_message_t *const oldest = lawn_flight_oldest(&flight_);
        EXPECT_EQ(oldest, names.empty() ? nullptr : at(names[0]));
        if (waits) {
            // A few ticks before it if it is told in the pass of the sends.
            EXPECT_LE(conn_.oldest, oldest->sent_at);
            EXPECT_LT(oldest->sent_at - conn_.oldest, most_in_a_pass);
        }
        return names;
    }

    lawn_conn_stats_t stats()
    {
        lawn_conn_stats_t stats;
        lawn_conn_query(&conn_, &stats);
        return stats;
    }

    lawn_flight_ops_t ops_ = {};
    lawn_flight_t flight_ = {};
    lawn_time_t base_ = 0;
    bool is_gone_ = false;
    std::map<char, Message> messages_;
    std::function<bool(char)> then_resent_;
};

} // namespace lawn_test

#endif
