// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Connections in an engine on virtual time, against a model that reckons with
// the rules of lawn/conn.h alone: when each timer is due, what it then does,
// and when a peer is dead. Callbacks close, free and open again; the clock
// jumps; parameters are anything that is accepted, and what should be refused
// is.

#include "conn_model.h"
#include "memory.h"

#include <lawn/conn.h>

#include <algorithm>
#include <cmath>

namespace
{

using fuzz::add;
using fuzz::Input;
using fuzz::make_params;
using fuzz::Model;
using fuzz::params_are_valid;
using fuzz::usec;

constexpr unsigned conn_count = 4;
lawn_conn_t conns[conn_count];

class Connections
{
public:
    explicit Connections(Input input) : input_(input)
    {
        const unsigned head = input_.byte();
        lawn_engine_params_t params = {};
        params.clock = [](void *arg) {
            return static_cast<Connections *>(arg)->clock_;
        };
        params.clock_arg = this;
        params.ticks_per_sec = 1e9;
        params.stall_threshold = head & 1 ? input_.number() : 0;
        stall_threshold_ =
            params.stall_threshold ? params.stall_threshold : 10000 * usec;
        params.budget = head & 2 ? 1 + input_.byte() % 8 : 0;
        budget_ = params.budget ? params.budget : 64;
        clock_ = head & 4 ? input_.number() / 2 : 0;
        clock_ = head & 8 ? fuzz::last_time - clock_ : clock_;
        FUZZ_CHECK(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_ = lawn_engine_lawn(engine_);
        now_ = clock_;
        FUZZ_CHECK(lawn_engine_add(engine_, polled, this, -1, nullptr) ==
                   LAWN_OK);
        for (unsigned i = 0; i < conn_count; ++i) {
            conns[i] = {};
            conns[i].context = this;
        }
    }

    void run()
    {
        for (unsigned i = 0; i < conn_count / 2; ++i) {
            open(i, make_params(&input_));
        }
        for (unsigned i = 1; !input_.is_empty() && work_ < fuzz::most_work;
             ++i) {
            step();
            check_between();
            FUZZ_CHECK(i % 32 != 0 || lawn_check(lawn_) == LAWN_OK);
        }
        for (unsigned i = 0; i < conn_count; ++i) {
            close(i);
            if (models_[i].is_buried) {
                fuzz::dig_up(&conns[i], sizeof(conns[i]));
            }
        }
        FUZZ_CHECK(lawn_count(lawn_) == 0);
        FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        lawn_engine_destroy(engine_);
    }

private:
    void step()
    {
        const unsigned op = input_.byte();
        const unsigned flags = op / 16;
        const unsigned i = flags % conn_count;
        switch (op % 16) {
        case 0:
            open(i, make_params(&input_));
            break;
        case 1:
            close(i);
            break;
        case 2:
            close_and_bury(i);
            break;
        case 3:
        case 4:
            send(i, now_);
            break;
        case 5:
            send(i, clock_);
            break;
        case 6:
            receive(i, flags & 8 ? now_ : clock_);
            break;
        case 7:
            ack(i, flags & 8 ? now_ : clock_, input_.number(), true);
            break;
        case 8:
            ack(i, flags & 8 ? now_ : clock_, 0, true);
            break;
        case 9:
            ack(i, flags & 8 ? now_ : clock_, input_.number(), false);
            break;
        case 10:
            pass_time(input_.number());
            break;
        case 11:
        case 12:
            pass_time(input_.number());
            pass();
            break;
        default:
            go_to_next(flags);
            break;
        }
    }

    void pass_time(lawn_time_t time)
    {
        // The last two ticks are "never": nothing has to be done at them.
        clock_ = std::min(add(clock_, time), fuzz::last_time);
    }

    // To the tick at which a timer is due, or to the one before.
    void go_to_next(unsigned flags)
    {
        const lawn_time_t next = flags & 2 ? lawn_engine_next(engine_) : due();
        if (next > clock_ && next != LAWN_TIME_INFINITY) {
            clock_ = next - (flags & 1);
        }
        pass();
    }

    //
    // The calls, in a callback or not.
    //

    lawn_conn_t *conn(unsigned i)
    {
        if (models_[i].is_buried) {
            fuzz::dig_up(&conns[i], sizeof(conns[i]));
            conns[i] = {};
            conns[i].context = this;
            models_[i].is_buried = false;
        }
        return &conns[i];
    }

    void open(unsigned i, const lawn_conn_params_t params)
    {
        close(i); // an open one may not be opened
        lawn_conn_t *const c = conn(i);
        lawn_conn_ops_t ops;
        ops.retransmit = [](lawn_conn_t *cc, lawn_time_t now, unsigned n) {
            of(cc)->on_retransmit(static_cast<unsigned>(cc - conns), now, n);
        };
        ops.probe = [](lawn_conn_t *cc, lawn_time_t now, unsigned n) {
            of(cc)->on_probe(static_cast<unsigned>(cc - conns), now, n);
        };
        ops.dead = [](lawn_conn_t *cc, lawn_time_t now, lawn_conn_reason_t r) {
            of(cc)->on_dead(static_cast<unsigned>(cc - conns), now, r);
        };
        const lawn_status_t status = lawn_conn_open(engine_, &params, &ops, c);
        if (!params_are_valid(params)) {
            FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
            return;
        }
        FUZZ_CHECK(status == LAWN_OK);
        FUZZ_CHECK(c->context == this);
        ++work_;
        models_[i] = {};
        Model &m = models_[i];
        m.params = params;
        m.is_open = true;
        m.since = now_;
        m.rto =
            params.rto_fixed ? params.rto_fixed : m.clamp(params.rto_initial);
        FUZZ_CHECK(lawn_conn_rto(c) == m.rto);
        if (m.keeps_alive()) {
            FUZZ_CHECK(c->idle >= params.keepalive_idle);
            FUZZ_CHECK(c->idle <=
                       add(params.keepalive_idle, params.keepalive_jitter));
            m.keepalive_due = add(seen(clock_), c->idle);
        }
        check_count();
    }

    void close(unsigned i)
    {
        if (!models_[i].is_buried) {
            lawn_conn_close(&conns[i]);
        }
        models_[i].is_open = false;
        check_count();
    }

    void close_and_bury(unsigned i)
    {
        close(i);
        if (!models_[i].is_buried) {
            fuzz::bury(&conns[i], sizeof(conns[i]));
            models_[i].is_buried = true;
        }
    }

    void send(unsigned i, lawn_time_t now)
    {
        Model &m = models_[i];
        lawn_conn_on_send(conn(i), now);
        if (m.is_open) {
            m.since = std::min(m.since, now);
            m.unacked_since =
                std::min(m.unacked_since, std::max(now, m.acked_at));
        }
        if (m.is_open && !m.waits) {
            m.wait(now, passes_);
        }
        check_count();
    }

    void receive(unsigned i, lawn_time_t now)
    {
        const lawn_time_t at = seen(now);
        lawn_conn_on_receive(conn(i), now);
        heard(i, at);
        check_count();
    }

    void ack(unsigned i, lawn_time_t now, lawn_time_t rtt, bool all_acked)
    {
        Model &m = models_[i];
        const lawn_time_t at = seen(now);
        const bool is_sample =
            fuzz::ack(m, conn(i), now, clock_, rtt, all_acked);
        heard(i, at);
        if (!m.is_open) {
            return;
        }
        m.attempt = 0;
        m.acked_at = std::max(m.acked_at, now);
        m.excused_until = 0;
        m.unacked_since = all_acked ? LAWN_TIME_INFINITY : m.acked_at;
        if (is_sample) {
            m.measure(rtt, lawn_conn_rto(&conns[i]));
        }
        FUZZ_CHECK(lawn_conn_rto(&conns[i]) == m.rto);
        m.waits = false;
        if (!all_acked) {
            m.wait(now, passes_);
        }
        check_count();
    }

    //
    // The model.
    //

    // When a timer started at `now` would count from.
    lawn_time_t seen(lawn_time_t now) const
    {
        return std::max(now, lawn_->now);
    }

    void heard(unsigned i, lawn_time_t at)
    {
        Model &m = models_[i];
        if (m.is_open && m.keeps_alive()) {
            m.probe = 0;
            m.keepalive_due = add(at, conns[i].idle);
        }
    }

    lawn_time_t due() const
    {
        lawn_time_t due = LAWN_TIME_INFINITY;
        for (const Model &m : models_) {
            due = m.is_open ? std::min(due, m.due()) : due;
        }
        return due;
    }

    size_t running() const
    {
        size_t count = 0;
        for (const Model &m : models_) {
            count += m.is_open ? m.waits + m.keeps_alive() : 0;
        }
        return count;
    }

    void check_count() const
    {
        FUZZ_CHECK(lawn_count(lawn_) == running());
    }

    void check_between() const
    {
        check_count();
        FUZZ_CHECK(lawn_engine_next(engine_) <= due());
    }

    //
    // Passes, and what is called in them.
    //

    static Connections *of(lawn_conn_t *conn)
    {
        return static_cast<Connections *>(conn->context);
    }

    void pass()
    {
        const bool is_late =
            has_passed_ && clock_ >= add(now_passed_, stall_threshold_);
        const uint64_t fired_before = fired_;
        ++passes_;
        has_passed_ = true;
        now_ = now_passed_ = clock_;
        polls_ = 0;
        if (is_late) {
            stalled_at_ = now_;
            ++stalls_;
        }
        const unsigned work = lawn_engine_progress(engine_);
        FUZZ_CHECK(polls_ == (is_late ? 2U : 1U));
        FUZZ_CHECK(work >= fired_ - fired_before); // or only moved
        FUZZ_CHECK(work <= budget_);
        lawn_engine_stats_t stats;
        lawn_engine_query(engine_, &stats);
        FUZZ_CHECK(stats.stalls == stalls_ && stats.fired == fired_);
        FUZZ_CHECK(stats.passes == passes_);
        FUZZ_CHECK(lawn_engine_now(engine_) == now_);
        if (work < budget_) { // nothing is late but what callbacks did
            for (const Model &m : models_) {
                FUZZ_CHECK(!m.is_open || m.started_in == stats.passes ||
                           m.due() > now_);
            }
        }
    }

    static unsigned polled(void *arg)
    {
        Connections *const self = static_cast<Connections *>(arg);
        ++self->polls_;
        self->act(self->input_.byte_at_end() % conn_count);
        return 0;
    }

    void on_retransmit(unsigned i, lawn_time_t now, unsigned attempt)
    {
        Model &m = models_[i];
        begin_event(now);
        FUZZ_CHECK(m.is_open && m.waits);
        FUZZ_CHECK(now >= m.retransmit_due);
        FUZZ_CHECK(attempt == m.attempt + 1);
        FUZZ_CHECK(m.params.max_retries == 0 ||
                   attempt <= m.params.max_retries);
        if (now >= m.peer_end()) {
            FUZZ_CHECK(m.was_absent(stalled_at_));
            m.excused_until = add(now, m.rto);
        }
        m.attempt = attempt;
        m.back_off(lawn_conn_rto(&conns[i]));
        m.wait(now, passes_);
        FUZZ_CHECK(lawn_timer_is_active(&conns[i].retransmit));
        FUZZ_CHECK(lawn_timer_deadline(&conns[i].retransmit) ==
                   m.retransmit_due);
        check_count();
        act(i);
    }

    void on_probe(unsigned i, lawn_time_t now, unsigned count)
    {
        Model &m = models_[i];
        begin_event(now);
        FUZZ_CHECK(m.is_open && m.keeps_alive());
        FUZZ_CHECK(now >= m.keepalive_due);
        FUZZ_CHECK(count == m.probe + 1);
        FUZZ_CHECK(count <= m.params.keepalive_probes);
        m.probe = count;
        m.keepalive_due = add(seen(now), m.params.keepalive_interval);
        FUZZ_CHECK(lawn_timer_deadline(&conns[i].keepalive) == m.keepalive_due);
        check_count();
        act(i);
    }

    void on_dead(unsigned i, lawn_time_t now, lawn_conn_reason_t reason)
    {
        Model &m = models_[i];
        begin_event(now);
        FUZZ_CHECK(m.is_open); // so it comes once
        switch (reason) {
        case LAWN_CONN_PEER_TIMEOUT:
            FUZZ_CHECK(m.waits && now >= m.retransmit_due);
            FUZZ_CHECK(now >= m.peer_end() && !m.was_absent(stalled_at_));
            break;
        case LAWN_CONN_RETRY_EXCEEDED:
            FUZZ_CHECK(m.waits && now >= m.retransmit_due);
            FUZZ_CHECK(now < m.peer_end() || m.was_absent(stalled_at_));
            FUZZ_CHECK(m.params.max_retries != 0);
            FUZZ_CHECK(m.attempt == m.params.max_retries);
            break;
        case LAWN_CONN_KEEPALIVE:
            FUZZ_CHECK(m.keeps_alive() && now >= m.keepalive_due);
            FUZZ_CHECK(m.probe == m.params.keepalive_probes);
            break;
        default:
            FUZZ_CHECK(!"a reason");
        }
        m.is_open = false;
        FUZZ_CHECK(!lawn_timer_is_active(&conns[i].retransmit));
        FUZZ_CHECK(!lawn_timer_is_active(&conns[i].keepalive));
        check_count();
        act(i);
    }

    void begin_event(lawn_time_t now)
    {
        ++fired_;
        ++work_;
        FUZZ_CHECK(now == now_);
    }

    // Up to three things, done in a callback.
    void act(unsigned self)
    {
        if (work_ > fuzz::most_work) {
            return;
        }
        for (unsigned n = input_.byte_at_end() % 4; n > 0; --n) {
            const unsigned op = input_.byte_at_end();
            const unsigned i = op & 1 ? self : op / 2 % conn_count;
            switch (op / 16) {
            case 0:
                close(i);
                break;
            case 1:
            case 2:
                close_and_bury(i);
                break;
            case 3:
            case 4:
                open(i, models_[op / 4 % conn_count].params);
                break;
            case 5:
            case 6:
                receive(i, now_);
                break;
            case 7:
            case 8:
                ack(i, now_, input_.number_at_end(), op & 8);
                break;
            case 9:
                pass_time(input_.number_at_end());
                break;
            case 10:
                FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
                break;
            case 11:
                send(i, clock_);
                break;
            default:
                send(i, now_);
                break;
            }
        }
    }

    Input input_;
    lawn_engine_t *engine_ = nullptr;
    lawn_t *lawn_ = nullptr;
    Model models_[conn_count];
    lawn_time_t clock_ = 0;
    lawn_time_t now_ = 0; // of the latest pass
    lawn_time_t now_passed_ = 0;
    lawn_time_t stall_threshold_ = 0;
    unsigned budget_ = 0;
    lawn_time_t stalled_at_ = 0;
    bool has_passed_ = false;
    unsigned polls_ = 0;
    uint64_t passes_ = 0;
    uint64_t stalls_ = 0;
    uint64_t fired_ = 0;
    unsigned work_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Connections(Input(data, size)).run();
    return 0;
}
