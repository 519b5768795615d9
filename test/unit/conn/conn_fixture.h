// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection on virtual time, 1 tick = 1 ns. What it did is logged as
// "r2@300": the second attempt (r), probe (p) or reason of death (d), or that
// the peer was asked (a), at 300 ms after the start of the test.

#ifndef LAWN_TEST_UNIT_CONN_FIXTURE_H
#define LAWN_TEST_UNIT_CONN_FIXTURE_H

#include <lawn/conn.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace lawn_test
{

constexpr lawn_time_t usec = 1000;
constexpr lawn_time_t msec = 1000 * usec;
constexpr lawn_time_t sec = 1000 * msec;
constexpr lawn_time_t start = 5 * sec;
constexpr lawn_time_t infinity = LAWN_TIME_INFINITY;

class Conn : public testing::Test
{
protected:
    // The clock of these tests jumps, and that is no stall, unless a test
    // creates the engine anew with a threshold.
    Conn()
    {
        create_engine(LAWN_TIME_INFINITY);
        params_.rto_initial = 100 * msec;
        params_.rto_min = 1 * msec;
        params_.rto_max = 10 * sec;
        params_.backoff = 2;
    }

    ~Conn() override
    {
        lawn_conn_close(&conn_);
        for (lawn_conn_t &conn : conns_) {
            lawn_conn_close(&conn);
        }
        EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 0U);
        lawn_engine_destroy(engine_);
    }

    void create_engine(lawn_time_t stall_threshold)
    {
        lawn_engine_destroy(engine_);
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return *static_cast<lawn_time_t *>(arg);
        };
        params.clock_arg = &now_;
        params.ticks_per_sec = 1e9;
        params.stall_threshold = stall_threshold;
        ASSERT_EQ(lawn_engine_create(&params, &engine_), LAWN_OK);
    }

    void keep_alive(lawn_time_t idle, lawn_time_t interval, unsigned probes)
    {
        params_.keepalive_idle = idle;
        params_.keepalive_interval = interval;
        params_.keepalive_probes = probes;
    }

    lawn_status_t open(lawn_conn_t *conn)
    {
        lawn_conn_ops_t ops = {};
        ops.retransmit = [](lawn_conn_t *c, lawn_time_t now, unsigned attempt) {
            of(c)->on_event(c, 'r', attempt, now);
        };
        ops.probe = [](lawn_conn_t *c, lawn_time_t now, unsigned count) {
            of(c)->on_event(c, 'p', count, now);
        };
        ops.dead = [](lawn_conn_t *c, lawn_time_t now, lawn_conn_reason_t r) {
            of(c)->on_event(c, 'd', r, now);
        };
        if (asks_) {
            ops.ask = [](lawn_conn_t *c, lawn_time_t now) {
                of(c)->on_event(c, 'a', 0, now);
            };
        }
        conn->context = this;
        return lawn_conn_open(engine_, &params_, &ops, conn);
    }

    void open()
    {
        ASSERT_EQ(open(&conn_), LAWN_OK);
    }

    // Closed at the end of the test.
    void open_many(size_t count)
    {
        conns_.resize(count);
        for (lawn_conn_t &conn : conns_) {
            ASSERT_EQ(open(&conn), LAWN_OK);
        }
    }

    static Conn *of(lawn_conn_t *conn)
    {
        return static_cast<Conn *>(conn->context);
    }

    void on_event(lawn_conn_t *conn, char what, unsigned value, lawn_time_t now)
    {
        const lawn_time_t at = now - start;
        log_ += log_.empty() ? "" : " ";
        log_ += what + std::to_string(value) + '@' + std::to_string(at / msec);
        if (at % msec != 0) {
            log_ += '+' + std::to_string(at % msec);
        }
        if (then_) {
            then_(conn, what);
        }
    }

    std::string take_log()
    {
        std::string log;
        log.swap(log_);
        return log;
    }

    void pass_at(lawn_time_t now)
    {
        now_ = now;
        lawn_engine_progress(engine_);
    }

    // Passes at every time at which something may happen, `end` included.
    void run_to(lawn_time_t end)
    {
        while (lawn_engine_next(engine_) <= end) {
            pass_at(std::max(lawn_engine_next(engine_), now_));
        }
        pass_at(end);
    }

    void send()
    {
        lawn_conn_on_send(&conn_, now_);
    }

    void ack(lawn_time_t rtt, bool all_acked)
    {
        lawn_conn_on_ack(&conn_, now_, rtt, all_acked);
    }

    lawn_conn_stats_t stats() const
    {
        lawn_conn_stats_t stats;
        lawn_conn_query(&conn_, &stats);
        return stats;
    }

    lawn_time_t now_ = start;
    lawn_engine_t *engine_ = nullptr;
    lawn_conn_params_t params_ = {};
    lawn_conn_t conn_ = {};
    std::vector<lawn_conn_t> conns_;
    std::string log_;
    bool asks_ = false;
    std::function<void(lawn_conn_t *, char)> then_;
};

} // namespace lawn_test

#endif
