// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// This library's connections, and beside them two bare timers for each, which
// are started again with every message and every ACK: the least that a
// transport would do that has timers, and no estimator.

#include "conns/conns.h"

#include <lawn/conn.h>

namespace bench
{

namespace
{

// An engine on virtual time.
class Engine
{
public:
    Engine()
    {
        lawn_engine_params_t params = {};
        params.clock = [](void *now) {
            return *static_cast<lawn_time_t *>(now);
        };
        params.clock_arg = &now_;
        params.ticks_per_sec = 1e9;
        params.stall_threshold = LAWN_TIME_INFINITY;
        if (lawn_engine_create(&params, &engine_) != LAWN_OK) {
            throw std::bad_alloc();
        }
    }

    ~Engine()
    {
        lawn_engine_destroy(engine_);
    }

    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    lawn_engine_t *get() const
    {
        return engine_;
    }

    bool pass(lawn_time_t now)
    {
        now_ = now;
        return lawn_engine_progress(engine_) != 0;
    }

private:
    lawn_time_t now_ = 1;
    lawn_engine_t *engine_ = nullptr;
};

class LawnConns : public Conns
{
public:
    explicit LawnConns(size_t count)
        : Conns("lawn_conn", sizeof(lawn_conn_t)), conns_(count)
    {
        lawn_conn_params_init(&params_);
        params_.rto_initial = 100 * conn_msec;
        params_.rto_max = 10000 * conn_msec;
        params_.peer_timeout = 0;
        params_.keepalive_idle = keepalive_idle;
        params_.keepalive_interval = 1000 * conn_msec;
        params_.keepalive_jitter = 0;
        ops_.retransmit = [](lawn_conn_t *conn, lawn_time_t, unsigned) {
            ++static_cast<LawnConns *>(conn->context)->retransmissions;
        };
        ops_.probe = [](lawn_conn_t *conn, lawn_time_t, unsigned) {
            ++static_cast<LawnConns *>(conn->context)->probes;
        };
        for (lawn_conn_t &conn : conns_) {
            conn.context = this;
        }
    }

    void open(size_t i, lawn_time_t) override
    {
        if (lawn_conn_open(engine_.get(), &params_, &ops_, &conns_[i]) !=
            LAWN_OK) {
            throw std::bad_alloc();
        }
    }

    void send(size_t i, lawn_time_t now) override
    {
        lawn_conn_on_send(&conns_[i], now);
    }

    void ack(size_t i, lawn_time_t now, lawn_time_t sent_at) override
    {
        lawn_conn_on_ack_oldest(&conns_[i], now, sent_at, LAWN_TIME_INFINITY);
    }

    bool pass(lawn_time_t now) override
    {
        return engine_.pass(now);
    }

    void close(size_t i) override
    {
        lawn_conn_close(&conns_[i]);
    }

private:
    Engine engine_; // outlives the connections
    lawn_conn_params_t params_;
    lawn_conn_ops_t ops_ = {};
    std::vector<lawn_conn_t> conns_;
};

struct TwoTimers {
    lawn_timer_t retransmit;
    lawn_timer_t keepalive;
};

class BareTimers : public Conns
{
public:
    explicit BareTimers(size_t count)
        : Conns("two timers", sizeof(TwoTimers)), timers_(count)
    {
        instance = this;
    }

    void open(size_t i, lawn_time_t now) override
    {
        lawn_timer_init(&timers_[i].retransmit, retransmit);
        lawn_timer_init(&timers_[i].keepalive, probe);
        start(&timers_[i].keepalive, now, keepalive_idle);
    }

    void send(size_t i, lawn_time_t now) override
    {
        start(&timers_[i].retransmit, now, rto);
    }

    void ack(size_t i, lawn_time_t now, lawn_time_t) override
    {
        lawn_timer_pause(lawn(), &timers_[i].retransmit);
        start(&timers_[i].keepalive, now, keepalive_idle);
    }

    bool pass(lawn_time_t now) override
    {
        return engine_.pass(now);
    }

    void close(size_t i) override
    {
        lawn_timer_stop(lawn(), &timers_[i].retransmit);
        lawn_timer_stop(lawn(), &timers_[i].keepalive);
    }

private:
    static constexpr lawn_time_t rto = 100 * conn_msec;

    lawn_t *lawn() const
    {
        return lawn_engine_lawn(engine_.get());
    }

    void start(lawn_timer_t *timer, lawn_time_t now, lawn_time_t ttl)
    {
        lawn_timer_start(lawn(), timer, now, ttl);
    }

    static void retransmit(lawn_timer_t *timer, lawn_time_t now)
    {
        ++instance->retransmissions;
        instance->start(timer, now, 2 * rto);
    }

    static void probe(lawn_timer_t *timer, lawn_time_t now)
    {
        ++instance->probes;
        instance->start(timer, now, keepalive_idle / 5);
    }

    static BareTimers *instance; // one at a time

    Engine engine_;
    std::vector<TwoTimers> timers_;
};

BareTimers *BareTimers::instance;

} // namespace

std::unique_ptr<Conns> make_lawn_conns(size_t count)
{
    return std::make_unique<LawnConns>(count);
}

std::unique_ptr<Conns> make_bare_timers(size_t count)
{
    return std::make_unique<BareTimers>(count);
}

} // namespace bench
