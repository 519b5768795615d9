// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A flight and what it should be, on virtual time. Each operation is done to
// both. check() compares them: the order, the counts, the times, and that the
// timer runs exactly while something is in flight. Each message that is sent
// again is compared with the one that the model would send again.

#ifndef LAWN_TEST_UNIT_FLIGHT_MODEL_H
#define LAWN_TEST_UNIT_FLIGHT_MODEL_H

#include <lawn/flight.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace lawn_test
{

class FlightModel
{
public:
    // A message, and what it should be.
    struct Known {
        std::unique_ptr<lawn_flight_message_t> message;
        lawn_time_t sent_at = 0;
        uint32_t losses = 0;
        uint32_t unanswered = 0;
        bool gets_through = true; // for the test that drives this
    };

    FlightModel(bool is_cumulative, bool has_black_hole)
    {
        ops.resend = on_resend;
        ops.black_hole = has_black_hole ? on_black_hole : nullptr;
        ops.is_cumulative = is_cumulative;
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now;
        params.ticks_per_sec = 1e9;
        params.stall_threshold = uint64_t{1} << 60;
        EXPECT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
        open();
    }

    ~FlightModel()
    {
        free_all();
        EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
        lawn_engine_destroy(engine_);
    }

    bool exists() const
    {
        return peer_ != nullptr;
    }

    bool is_open() const
    {
        return peer_ && lawn_conn_is_open(&peer_->conn);
    }

    // How many retransmissions are under way.
    size_t depth() const
    {
        return calls_.size();
    }

    void open()
    {
        if (!peer_) {
            peer_ = std::make_unique<Peer>();
        }
        while (!list.empty()) {
            give_up(0);
        }
        lawn_conn_params_t params = {};
        params.rto_initial = 100000;
        params.rto_max = 10000000;
        params.backoff = 2;
        lawn_conn_ops_t conn_ops = {};
        conn_ops.retransmit = [](lawn_conn_t *conn, lawn_time_t at,
                                 unsigned attempt) {
            FlightModel *const model =
                static_cast<FlightModel *>(conn->context);
            EXPECT_EQ(at, model->now);
            model->retransmit(attempt);
        };
        peer_->conn.context = this;
        ASSERT_EQ(lawn_conn_open(engine_, &params, &conn_ops, &peer_->conn),
                  LAWN_OK);
        ASSERT_EQ(lawn_flight_init(&peer_->flight, &peer_->conn, &ops),
                  LAWN_OK);
        latest_ = 0;
    }

    void close()
    {
        lawn_conn_close(&peer_->conn);
    }

    // The connection, the flight and all messages.
    void free_all()
    {
        if (peer_) {
            close();
            peer_.reset();
            list.clear();
            idle.clear();
        }
    }

    void pass_after(lawn_time_t time)
    {
        now += time;
        lawn_engine_progress(engine_);
    }

    void send(Known known)
    {
        if (!known.message) {
            known.message = std::make_unique<lawn_flight_message_t>();
        }
        latest_ = std::max(now, latest_ + 1);
        ahead_ = std::max(ahead_, latest_ - now);
        known.sent_at = latest_;
        known.losses = 0;
        known.unanswered = 1;
        lawn_flight_send(&peer_->flight, known.message.get(), now);
        list.push_back(std::move(known));
    }

    void send_again(size_t i)
    {
        lawn_flight_send(&peer_->flight, list[i].message.get(), now);
        list[i].unanswered++;
        list[i].sent_at = now;
        move_to_end(i);
    }

    // These move what was in flight to the end of `idle`.
    void ack(size_t i, lawn_time_t echo)
    {
        const lawn_conn_stats_t before = stats();
        Known known = take(&list, i);
        EXPECT_TRUE(
            lawn_flight_ack(&peer_->flight, known.message.get(), now, echo));
        expect_sample(before,
                      known.unanswered == 1 || echo != LAWN_TIME_INFINITY);
        known.unanswered--;
        idle.push_back(std::move(known));
    }

    void ack_several(const std::function<size_t()> &which, size_t count)
    {
        const lawn_conn_stats_t before = stats();
        bool is_known = count != 0;
        for (size_t n = 0; n < count; ++n) {
            Known known = take(&list, which());
            lawn_flight_message_t *const message = known.message.get();
            EXPECT_TRUE(lawn_flight_cover(&peer_->flight, message));
            EXPECT_FALSE(lawn_flight_cover(&peer_->flight, message));
            is_known = is_known && known.unanswered == 1;
            known.unanswered--;
            idle.push_back(std::move(known));
        }
        lawn_flight_ack_covered(&peer_->flight, now, LAWN_TIME_INFINITY);
        expect_sample(before, is_known);
    }

    void give_up(size_t i)
    {
        Known known = take(&list, i);
        lawn_flight_give_up(&peer_->flight, known.message.get(), now);
        known.unanswered = 0;
        idle.push_back(std::move(known));
    }

    // Of what is not in flight.
    void ack_again(size_t i, lawn_time_t echo)
    {
        Known &known = idle[i];
        const lawn_conn_stats_t before = stats();
        EXPECT_FALSE(
            lawn_flight_ack(&peer_->flight, known.message.get(), now, echo));
        const bool is_answer = known.unanswered != 0;
        known.unanswered -= is_answer;
        if (echo == LAWN_TIME_INFINITY || !is_answer) {
            expect_sample(before, false);
            EXPECT_EQ(stats().spurious - before.spurious, is_answer);
        }
    }

    void give_up_again(size_t i)
    {
        lawn_flight_give_up(&peer_->flight, idle[i].message.get(), now);
    }

    void retransmit(unsigned attempt)
    {
        Call call = {lawn_conn_lost_before(&peer_->conn, now), list.size(),
                     attempt, false};
        if (ops.is_cumulative) {
            call.left = std::min<size_t>(call.left, 1);
        }
        calls_.push_back(&call);
        const bool exists_still =
            lawn_flight_retransmit(&peer_->flight, now, attempt);
        calls_.pop_back();
        EXPECT_EQ(exists_still, exists());
        if (exists_still) {
            bool is_hole;
            EXPECT_EQ(next_lost(&call, &is_hole), nullptr);
        }
    }

    static Known take(std::vector<Known> *from, size_t i)
    {
        Known known = std::move((*from)[i]);
        from->erase(from->begin() + static_cast<std::ptrdiff_t>(i));
        return known;
    }

    void check()
    {
        const lawn_flight_t &flight = peer_->flight;
        ASSERT_EQ(flight.count, list.size());
        const lawn_link_t *link = &flight.messages;
        for (const Known &known : list) {
            const lawn_flight_message_t &message = *known.message;
            ASSERT_EQ(link->next, &message.link);
            ASSERT_EQ(message.link.prev, link);
            ASSERT_EQ(message.sent_at, known.sent_at);
            ASSERT_EQ(message.losses, known.losses);
            ASSERT_EQ(message.unanswered, known.unanswered);
            link = &message.link;
        }
        ASSERT_EQ(link->next, &flight.messages);
        ASSERT_EQ(flight.messages.prev, link);
        ASSERT_EQ(lawn_flight_oldest(&flight),
                  list.empty() ? nullptr : list[0].message.get());
        for (const Known &known : idle) {
            ASSERT_EQ(known.message->link.next, nullptr);
            ASSERT_EQ(known.message->unanswered, known.unanswered);
        }
        const bool waits = is_open() && !list.empty();
        ASSERT_EQ(lawn_timer_is_active(&peer_->conn.retransmit), waits);
        // A retransmission that is under way has still to tell it.
        if (waits && calls_.empty()) {
            // What was told of it may have been before it.
            ASSERT_LE(peer_->conn.oldest, list[0].sent_at);
            ASSERT_GE(peer_->conn.oldest, list[0].sent_at - ahead_);
        }
    }

    lawn_time_t now = 1000000000;
    lawn_flight_ops_t ops = {};
    std::vector<Known> list;               // in flight
    std::vector<Known> idle;               // was in flight
    std::function<void()> in_op;           // called in each op
    std::vector<uint64_t> counts{0, 0, 0}; // sent again, told, left out

private:
    struct Peer {
        lawn_conn_t conn = {};
        lawn_flight_t flight = {};
    };

    // A retransmission that is under way.
    struct Call {
        lawn_time_t before;
        size_t left;
        unsigned attempt;
        bool has_begun;
    };

    // Returns the next message of `call` that an op is called for, or nullptr.
    lawn_flight_message_t *next_lost(Call *call, bool *is_hole)
    {
        for (;;) {
            if (call->has_begun) {
                const bool goes_on =
                    !list.empty() && list[0].sent_at < call->before;
                call->left = goes_on ? call->left - 1 : 0;
            }
            call->has_begun = true;
            if (call->left == 0 || !is_open()) {
                return nullptr;
            }
            list[0].sent_at = now;
            Known &known = list[move_to_end(0)];
            const uint32_t losses = known.losses += call->attempt <= 1;
            *is_hole = call->attempt <= 1 && losses == 8 && ops.black_hole;
            if (call->attempt <= 1 && losses > 8 &&
                __builtin_popcount(losses) != 1) {
                counts[2]++;
                continue;
            }
            known.unanswered += !*is_hole;
            counts[*is_hole]++;
            return known.message.get();
        }
    }

    bool on_lost(lawn_flight_message_t *message, lawn_time_t at, bool is_hole)
    {
        bool expected = false;
        EXPECT_EQ(next_lost(calls_.back(), &expected), message);
        EXPECT_EQ(expected, is_hole);
        EXPECT_EQ(at, now);
        check();
        in_op();
        return exists();
    }

    static bool on_resend(lawn_flight_t *flight, lawn_flight_message_t *message,
                          lawn_time_t at)
    {
        return of(flight)->on_lost(message, at, false);
    }

    static bool on_black_hole(lawn_flight_t *flight,
                              lawn_flight_message_t *message, lawn_time_t at)
    {
        return of(flight)->on_lost(message, at, true);
    }

    static FlightModel *of(lawn_flight_t *flight)
    {
        return static_cast<FlightModel *>(flight->conn->context);
    }

    // Returns where it is then.
    size_t move_to_end(size_t i)
    {
        if (ops.is_cumulative) {
            return i;
        }
        list.push_back(take(&list, i));
        return list.size() - 1;
    }

    lawn_conn_stats_t stats()
    {
        lawn_conn_stats_t stats;
        lawn_conn_query(&peer_->conn, &stats);
        return stats;
    }

    // Without a sample, nothing is measured.
    void expect_sample(const lawn_conn_stats_t &before, bool may_be)
    {
        if (!may_be) {
            EXPECT_EQ(stats().srtt, before.srtt);
            EXPECT_EQ(stats().rttvar, before.rttvar);
            EXPECT_EQ(stats().rto, before.rto);
        }
    }

    lawn_engine_t *engine_ = nullptr;
    std::unique_ptr<Peer> peer_;
    std::vector<Call *> calls_;
    lawn_time_t latest_ = 0; // first sending
    lawn_time_t ahead_ = 0;  // of its pass, at most
};

} // namespace lawn_test

#endif
