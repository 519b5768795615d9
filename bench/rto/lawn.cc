// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// This library's own connection, on an engine whose clock is the virtual time.
// Its parameters are the defaults, but a peer is never dead: the longest outage
// is part of the comparison.

#include "rto/flow.h"

#include <lawn/conn.h>
#include <lawn/engine.h>

#include <algorithm>
#include <new>

namespace bench::rto
{

namespace
{

class Connection : public Contender
{
public:
    explicit Connection(bool does_ask_, const Connection *known_ = nullptr)
        : does_ask(does_ask_), known(known_)
    {
    }

    Connection(const Connection &) = delete;
    Connection &operator=(const Connection &) = delete;

    ~Connection() override
    {
        lawn_conn_close(&conn);
        lawn_engine_destroy(engine);
    }

    void open(Flow &flow_, Tick now, Tick round_trip) override
    {
        flow = &flow_;
        clock = latest = now;
        // A loop that has nothing to do polls nevertheless. Passes in all of a
        // silence would take long to simulate, so they are far apart.
        stall_threshold = std::max(10 * millisecond, 100 * round_trip);
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return static_cast<Connection *>(arg)->clock;
        };
        params.clock_arg = this;
        params.ticks_per_sec = second;
        params.stall_threshold = stall_threshold;
        if (lawn_engine_create(&params, &engine) != LAWN_OK ||
            lawn_engine_add(
                engine,
                [](void *arg) {
                    Connection &self = *static_cast<Connection *>(arg);
                    return self.flow->poll(lawn_engine_now(self.engine));
                },
                this, -1, nullptr) != LAWN_OK) {
            throw std::bad_alloc();
        }
        open_connection();
    }

    void sent(Tick now, Sending /*sending*/) override
    {
        lawn_conn_on_send(&conn, now);
    }

    void acked(Tick now, Sending sending, Sending oldest) override
    {
        lawn_conn_on_ack_oldest(&conn, now, sending.at, oldest.at);
    }

    void echoed(Tick now, Sending sending) override
    {
        lawn_conn_on_echo(&conn, now, sending.at);
    }

    void received(Tick now) override
    {
        lawn_conn_on_receive(&conn, now);
    }

    void resent(Tick now, Sending oldest) override
    {
        lawn_conn_on_resend(&conn, now, oldest.at);
    }

    Tick next() const override
    {
        return lawn_timer_is_active(&conn.retransmit)
                   ? lawn_timer_deadline(&conn.retransmit)
                   : never;
    }

    void pass(Tick now) override
    {
        // The passes in which nothing happened.
        while (now - latest >= stall_threshold) {
            const Tick idle = flow->awake(latest + stall_threshold / 2);
            if (idle >= now) {
                break;
            }
            clock = latest = idle;
            lawn_engine_progress(engine);
        }
        clock = latest = now;
        lawn_engine_progress(engine);
    }

private:
    static Connection &of(lawn_conn_t *self)
    {
        return *static_cast<Connection *>(self->context);
    }

    void open_connection()
    {
        lawn_conn_ops_t ops = {};
        ops.retransmit = [](lawn_conn_t *self, lawn_time_t now, unsigned) {
            of(self).flow->resend(now, {lawn_conn_lost_before(self, now)});
        };
        if (does_ask) {
            ops.ask = [](lawn_conn_t *self, lawn_time_t now) {
                of(self).flow->ask(now);
            };
        }
        lawn_conn_params_t params;
        lawn_conn_params_init(&params);
        for (lawn_time_t *const time :
             {&params.rto_initial, &params.rto_min, &params.rto_max}) {
            *time = static_cast<lawn_time_t>(static_cast<double>(*time) *
                                             second / lawn_time_sec_value());
        }
        params.peer_timeout = 0;
        params.keepalive_idle = 0;
        conn = {};
        conn.context = this;
        if (lawn_conn_open(engine, &params, &ops, &conn) != LAWN_OK) {
            throw std::bad_alloc();
        }
        if (known) {
            (void)lawn_conn_inherit(&conn, &known->conn);
        }
    }

    const bool does_ask;
    const Connection *const known; // by another one; or NULL
    Flow *flow = nullptr;
    lawn_engine_t *engine = nullptr;
    lawn_conn_t conn = {};
    Tick clock = 0;
    Tick latest = 0; // pass
    Tick stall_threshold = 0;
};

} // namespace

std::unique_ptr<Contender> make_lawn()
{
    return std::make_unique<Connection>(false);
}

std::unique_ptr<Contender> make_lawn_ask()
{
    return std::make_unique<Connection>(true);
}

std::unique_ptr<Contender> make_lawn_heir(const Contender &known, bool does_ask)
{
    return std::make_unique<Connection>(
        does_ask, &static_cast<const Connection &>(known));
}

} // namespace bench::rto
