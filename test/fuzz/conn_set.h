// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Some connections of one engine, each with its model, and what may be done to
// them, in a callback or not, for conn_fuzz.cc.

#ifndef LAWN_TEST_FUZZ_CONN_SET_H
#define LAWN_TEST_FUZZ_CONN_SET_H

#include "conn_calls.h"
#include "memory.h"

#include <algorithm>

namespace fuzz
{

constexpr unsigned conn_count = 4;
inline lawn_conn_t conns[conn_count];

class ConnSet
{
protected:
    explicit ConnSet(Input input) : input_(input)
    {
        for (lawn_conn_t &conn : conns) {
            conn = {};
            conn.context = this;
        }
    }

    static unsigned index_of(const lawn_conn_t *conn)
    {
        return static_cast<unsigned>(conn - conns);
    }

    lawn_conn_t *conn(unsigned i)
    {
        if (models_[i].is_buried) {
            dig_up(&conns[i], sizeof(conns[i]));
            conns[i] = {};
            conns[i].context = this;
            models_[i].is_buried = false;
        }
        return &conns[i];
    }

    void open_any(unsigned i)
    {
        const unsigned how = input_.byte();
        arena_.set_failing(how & 32);
        if (how & 16) { // the same, or nearly
            lawn_conn_params_t params = models_[how % conn_count].params;
            params.max_retries ^= how / 4 % 2;
            open(i, &params, how);
        } else if (how & 8) {
            open(i, nullptr, how);
        } else {
            const lawn_conn_params_t params = make_params(&input_);
            open(i, &params, how);
        }
        arena_.set_failing(false);
    }

    // With `ask` or not, for one of the two sets of calls.
    void open(unsigned i, const lawn_conn_params_t *params, unsigned how)
    {
        lawn_conn_ops_t ops = ops_;
        ops.ask = how & 64 ? ops_.ask : nullptr;
        lawn_conn_t *const c = conn(i);
        const bool is_valid = !params || params_are_valid(*params);
        if (models_[i].is_open) {
            FUZZ_CHECK(lawn_conn_open(engine_, params, &ops, c) ==
                       (is_valid ? LAWN_ERR_BUSY : LAWN_ERR_INVALID_PARAM));
            close(i);
        }
        Model m;
        m.params = params ? *params : default_params();
        m.has_ask = ops.ask;
        m.knows_oldest = how & 128;
        const bool is_shared = is_valid && shares(m);
        const unsigned refusals = arena_.refusals();
        const unsigned allocations = arena_.allocations();
        const lawn_status_t status = lawn_conn_open(engine_, params, &ops, c);
        ++work_;
        if (!is_valid) {
            FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
        } else if (status == LAWN_ERR_NO_MEMORY) {
            FUZZ_CHECK(!is_shared && refusals != arena_.refusals());
        } else {
            FUZZ_CHECK(status == LAWN_OK);
            FUZZ_CHECK(!is_shared || allocations == arena_.allocations());
            models_[i] = m;
            opened(models_[i], c, at_);
        }
        FUZZ_CHECK(c->context == this);
        check(i);
    }

    // An open connection has equal parameters and ops.
    bool shares(const Model &m) const
    {
        return std::any_of(models_, models_ + conn_count, [&m](const Model &o) {
            return o.is_open && o.has_ask == m.has_ask &&
                   are_equal(o.params, m.params);
        });
    }

    void close(unsigned i)
    {
        if (!models_[i].is_buried) {
            lawn_conn_close(&conns[i]);
        }
        models_[i].is_open = false;
        check(i);
    }

    void close_and_bury(unsigned i)
    {
        close(i);
        if (!models_[i].is_buried) {
            bury(&conns[i], sizeof(conns[i]));
            const lawn_conn_params_t params = models_[i].params;
            models_[i] = {};
            models_[i].params = params;
            models_[i].is_buried = true;
        }
    }

    void send(unsigned i, lawn_time_t now)
    {
        fuzz::send(models_[i], conn(i), now, at_);
        check(i);
    }

    void receive(unsigned i, lawn_time_t now)
    {
        fuzz::receive(models_[i], conn(i), now);
        check(i);
    }

    // A time to tell a connection of: one that matters to it, or any.
    template <class Number>
    lawn_time_t time_of(unsigned i, unsigned which, Number number) const
    {
        const Model &m = models_[i];
        switch (which % 8) {
        case 0:
            return LAWN_TIME_INFINITY;
        case 1:
            return m.oldest;
        case 2:
            return m.resent_at;
        case 3:
            return m.asked_at;
        case 4:
            return m.newest();
        case 5:
            return m.sent_at;
        case 6:
            return at_.now - number(); // or below zero
        default:
            return at_.clock + number();
        }
    }

    template <class Number>
    void ack(unsigned i, lawn_time_t now, unsigned how, Number number)
    {
        lawn_conn_t *const c = conn(i);
        if (models_[i].knows_oldest) {
            const lawn_time_t sent_at = time_of(i, how, number);
            const lawn_time_t oldest = time_of(i, how / 8, number);
            ack_oldest(models_[i], c, now, sent_at, oldest, at_);
        } else {
            const lawn_time_t rtt = how & 1 ? number() : 0;
            fuzz::ack(models_[i], c, now, rtt, how & 2, at_);
        }
        check(i);
    }

    template <class Number>
    void echo(unsigned i, lawn_time_t now, unsigned how, Number number)
    {
        lawn_conn_t *const c = conn(i);
        if (models_[i].knows_oldest) {
            fuzz::echo(models_[i], c, now, time_of(i, how, number), at_);
        } else {
            fuzz::receive(models_[i], c, now);
        }
        check(i);
    }

    template <class Number>
    void resend(unsigned i, lawn_time_t now, unsigned how, Number number)
    {
        lawn_conn_t *const c = conn(i);
        if (models_[i].knows_oldest) {
            fuzz::resend(models_[i], c, now, time_of(i, how, number), at_);
        }
        check(i);
    }

    // From one that may be closed, or from none.
    void inherit(unsigned i, unsigned from)
    {
        lawn_conn_t *const c = conn(i);
        if (from == conn_count) {
            FUZZ_CHECK(lawn_conn_inherit(c, nullptr) == LAWN_ERR_INVALID_PARAM);
            return;
        }
        fuzz::inherit(models_[i], c, models_[from], conn(from), at_);
        check(i);
    }

    void spurious(unsigned i)
    {
        lawn_conn_on_spurious(conn(i));
        models_[i].stats.spurious += models_[i].is_open;
        check(i);
    }

    // Many samples of one round trip: the estimator forgets by windows of some
    // thousand, and knows after a hundred whether the path keeps its order.
    // Those between the first and the last one are not looked at.
    void fill_window(unsigned i)
    {
        Model &m = models_[i];
        lawn_conn_t *const c = conn(i);
        const lawn_time_t now = at_.clock;
        const unsigned more = input_.byte() % 4 ? 200 : 5000;
        const lawn_time_t rtt = input_.number();
        if (filled_ > 10000 || !m.is_open || now < rtt || now - rtt < m.since ||
            rtt == 0 || !may_measure(at_)) {
            return;
        }
        filled_ += more;
        ack_all(i, now, rtt);
        for (unsigned n = 0; n < more; ++n) {
            if (m.knows_oldest) {
                lawn_conn_on_ack_oldest(c, now, now - rtt, LAWN_TIME_INFINITY);
            } else {
                lawn_conn_on_ack(c, now, rtt, true);
            }
        }
        m.path.repeat(more);
        ack_all(i, now, rtt);
    }

    void ack_all(unsigned i, lawn_time_t now, lawn_time_t rtt)
    {
        if (models_[i].knows_oldest) {
            ack_oldest(models_[i], &conns[i], now, now - rtt,
                       LAWN_TIME_INFINITY, at_);
        } else {
            fuzz::ack(models_[i], &conns[i], now, rtt, true, at_);
        }
        check(i);
    }

    //
    // The model.
    //

    lawn_time_t due() const
    {
        lawn_time_t due = LAWN_TIME_INFINITY;
        for (const Model &m : models_) {
            due = m.is_open ? std::min(due, m.due()) : due;
        }
        return due;
    }

    void check(unsigned i) const
    {
        size_t running = 0;
        for (const Model &m : models_) {
            running += m.is_open ? m.waits + m.keeps_alive() : 0;
        }
        FUZZ_CHECK(lawn_count(lawn_) == running);
        if (!models_[i].is_buried) {
            check_conn(models_[i], &conns[i]);
        }
    }

    void check_between() const
    {
        for (unsigned i = 0; i < conn_count; ++i) {
            check(i);
        }
        FUZZ_CHECK(lawn_engine_next(engine_) <= due());
    }

    Input input_;
    Arena arena_;
    lawn_engine_t *engine_ = nullptr;
    lawn_t *lawn_ = nullptr;
    lawn_conn_ops_t ops_ = {};
    Model models_[conn_count];
    Moment at_;
    unsigned work_ = 0;

private:
    unsigned filled_ = 0;
};

} // namespace fuzz

#endif
