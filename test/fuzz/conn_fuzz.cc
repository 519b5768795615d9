// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Connections in an engine on virtual time, against a model that reckons with
// the rules of lawn/conn.h alone: when each timer is due, what it then does,
// and when a peer is dead. Callbacks close, free and open again; the clock
// jumps; memory runs out; parameters are anything that is accepted, and what
// should be refused is.

#include "conn_calls.h"
#include "memory.h"

#include <lawn/conn.h>

#include <sys/random.h>

namespace
{

using fuzz::Input;
using fuzz::Model;

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
            return static_cast<Connections *>(arg)->at_.clock;
        };
        params.clock_arg = this;
        params.ticks_per_sec = 1e9;
        params.lawn.allocator = arena_.allocator();
        params.stall_threshold = head & 1 ? input_.number() : 0;
        stall_threshold_ = params.stall_threshold ? params.stall_threshold
                                                  : 10000 * fuzz::usec;
        params.budget = head & 2 ? 1 + input_.byte() % 8 : 0;
        budget_ = params.budget ? params.budget : 64;
        at_.clock = head & 4 ? input_.number() / 2 : 0;
        at_.clock = head & 8 ? fuzz::last_time - at_.clock : at_.clock;
        at_.now = at_.clock;
        FUZZ_CHECK(lawn_engine_create(&params, &engine_) == LAWN_OK);
        lawn_ = lawn_engine_lawn(engine_);
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
            const lawn_conn_params_t params = fuzz::make_params(&input_);
            open(i, &params, input_.byte());
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
        const unsigned flags = op / 20;
        const unsigned i = flags % conn_count;
        const lawn_time_t now = flags & 8 ? at_.clock : at_.now;
        switch (op % 20) {
        case 0:
            open_any(i);
            break;
        case 1:
            flags & 4 ? close(i) : close_and_bury(i);
            break;
        case 2:
        case 3:
            send(i, now);
            break;
        case 4:
            send(i, at_.clock - std::min(at_.clock, input_.number()));
            break;
        case 5:
            receive(i, now);
            break;
        case 6:
        case 7:
        case 8:
            ack(i, now, input_.byte(), [this] { return input_.number(); });
            break;
        case 9:
            echo(i, now, input_.byte(), [this] { return input_.number(); });
            break;
        case 10:
            resend(i, now, input_.byte(), [this] { return input_.number(); });
            break;
        case 11:
            inherit(i, input_.byte() % (conn_count + 1));
            break;
        case 12:
            flags & 8 ? fill_window(i) : spurious(i);
            break;
        case 13:
            pass_time(input_.number());
            break;
        case 14:
        case 15:
        case 16:
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
        at_.clock = std::min(fuzz::add(at_.clock, time), fuzz::last_time);
    }

    // To the tick at which a timer is due, or to the one before.
    void go_to_next(unsigned flags)
    {
        const lawn_time_t next = flags & 2 ? lawn_engine_next(engine_) : due();
        if (next > at_.clock && next != LAWN_TIME_INFINITY) {
            at_.clock = next - (flags & 1);
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
            const lawn_conn_params_t params = fuzz::make_params(&input_);
            open(i, &params, how);
        }
        arena_.set_failing(false);
    }

    // With `ask` or not, for one of the two sets of calls.
    void open(unsigned i, const lawn_conn_params_t *params, unsigned how)
    {
        const bool has_ask = how & 64;
        lawn_conn_ops_t ops = {};
        ops.retransmit = [](lawn_conn_t *c, lawn_time_t now, unsigned n) {
            of(c)->on_retransmit(static_cast<unsigned>(c - conns), now, n);
        };
        ops.probe = [](lawn_conn_t *c, lawn_time_t now, unsigned n) {
            of(c)->on_probe(static_cast<unsigned>(c - conns), now, n);
        };
        ops.dead = [](lawn_conn_t *c, lawn_time_t now, lawn_conn_reason_t r) {
            of(c)->on_dead(static_cast<unsigned>(c - conns), now, r);
        };
        if (has_ask) {
            ops.ask = [](lawn_conn_t *c, lawn_time_t now) {
                of(c)->on_ask(static_cast<unsigned>(c - conns), now);
            };
        }
        lawn_conn_t *const c = conn(i);
        const bool is_valid = !params || fuzz::params_are_valid(*params);
        if (models_[i].is_open) {
            FUZZ_CHECK(lawn_conn_open(engine_, params, &ops, c) ==
                       (is_valid ? LAWN_ERR_BUSY : LAWN_ERR_INVALID_PARAM));
            close(i);
        }
        Model m;
        m.params = params ? *params : fuzz::default_params();
        m.has_ask = has_ask;
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
            fuzz::opened(models_[i], c, at_);
        }
        FUZZ_CHECK(c->context == this);
        check(i);
    }

    // An open connection has equal parameters and ops.
    bool shares(const Model &m) const
    {
        return std::any_of(models_, models_ + conn_count, [&m](const Model &o) {
            return o.is_open && o.has_ask == m.has_ask &&
                   fuzz::are_equal(o.params, m.params);
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
            fuzz::bury(&conns[i], sizeof(conns[i]));
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
            fuzz::ack_oldest(models_[i], c, now, sent_at, oldest, at_);
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

    // The estimator forgets by windows of some thousand samples.
    void fill_window(unsigned i)
    {
        const Model &m = models_[i];
        lawn_conn_t *const c = conn(i);
        const lawn_time_t rtt = input_.number();
        const bool is_sample = at_.clock - rtt >= m.since && rtt < at_.clock;
        if (windows_ == 2 || !m.is_open || !is_sample) {
            return;
        }
        ++windows_;
        for (unsigned n = 0; n < 5000; ++n) {
            if (m.knows_oldest) {
                fuzz::ack_oldest(models_[i], c, at_.clock, at_.clock - rtt,
                                 LAWN_TIME_INFINITY, at_);
            } else {
                fuzz::ack(models_[i], c, at_.clock, rtt, true, at_);
            }
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
            fuzz::check_conn(models_[i], &conns[i]);
        }
    }

    void check_between() const
    {
        for (unsigned i = 0; i < conn_count; ++i) {
            check(i);
        }
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
            has_passed_ && at_.clock >= fuzz::add(at_.now, stall_threshold_);
        const uint64_t called_before = called_;
        ++at_.passes;
        has_passed_ = true;
        at_.now = at_.clock;
        polls_ = 0;
        if (is_late) {
            at_.stalled_at = at_.now;
            ++stalls_;
            for (Model &m : models_) {
                m.stalled(at_.now);
            }
        }
        const unsigned work = lawn_engine_progress(engine_);
        FUZZ_CHECK(polls_ == (is_late ? 2U : 1U));
        FUZZ_CHECK(work <= budget_);
        lawn_engine_stats_t stats;
        lawn_engine_query(engine_, &stats);
        // A timer may fire and find that something was heard meanwhile.
        const uint64_t fired = stats.fired - fired_;
        FUZZ_CHECK(fired <= work && fired >= called_ - called_before);
        fired_ = stats.fired;
        FUZZ_CHECK(stats.stalls == stalls_ && stats.passes == at_.passes);
        FUZZ_CHECK(lawn_engine_now(engine_) == at_.now);
        for (unsigned i = 0; i < conn_count; ++i) {
            find_moved(i);
            const Model &m = models_[i];
            // Nothing is late but what callbacks did.
            FUZZ_CHECK(work == budget_ || !m.is_open ||
                       m.started_in == at_.passes || m.due() > at_.now);
        }
    }

    // A timer that was early has been started again, without an op.
    void find_moved(unsigned i)
    {
        Model &m = models_[i];
        if (m.is_open && m.waits && m.retransmit_due <= at_.now &&
            lawn_timer_deadline(&conns[i].retransmit) != m.retransmit_due) {
            m.started(&conns[i], at_);
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
        begin_event(now, i);
        fuzz::retransmitted(models_[i], &conns[i], now, attempt, at_);
        end_event(i);
    }

    void on_ask(unsigned i, lawn_time_t now)
    {
        begin_event(now, i);
        fuzz::asked(models_[i], &conns[i], now, at_);
        end_event(i);
    }

    void on_probe(unsigned i, lawn_time_t now, unsigned count)
    {
        begin_event(now, conn_count);
        const lawn_time_t seen = std::max(now, lawn_->now);
        fuzz::probed(models_[i], &conns[i], now, count, seen, at_);
        end_event(i);
    }

    void on_dead(unsigned i, lawn_time_t now, lawn_conn_reason_t reason)
    {
        begin_event(now, i);
        fuzz::died(models_[i], now, reason, at_);
        end_event(i);
    }

    // The retransmit timer of `expired` has expired; conn_count: none has.
    void begin_event(lawn_time_t now, unsigned expired)
    {
        ++called_;
        ++work_;
        FUZZ_CHECK(now == at_.now);
        for (unsigned i = 0; i < conn_count; ++i) {
            i != expired ? find_moved(i) : void();
        }
    }

    void end_event(unsigned i)
    {
        check(i);
        act(i);
    }

    // Up to three things, done in a callback.
    void act(unsigned self)
    {
        const auto number = [this] { return input_.number_at_end(); };
        if (work_ > fuzz::most_work) {
            return;
        }
        for (unsigned n = input_.byte_at_end() % 4; n > 0; --n) {
            const unsigned op = input_.byte_at_end();
            const unsigned i = op & 1 ? self : op / 2 % conn_count;
            switch (op / 16) {
            case 0:
                op & 8 ? close(i) : close_and_bury(i);
                break;
            case 1:
            case 2:
                open(i, &models_[op / 4 % conn_count].params, op * 16);
                break;
            case 3:
                receive(i, at_.now);
                break;
            case 4:
            case 5:
                ack(i, op & 8 ? at_.clock : at_.now, input_.byte_at_end(),
                    number);
                break;
            case 6:
                echo(i, op & 8 ? at_.clock : at_.now, input_.byte_at_end(),
                     number);
                break;
            case 7:
            case 8:
            case 9:
                resend(i, op & 8 ? at_.clock : at_.now, input_.byte_at_end(),
                       number);
                break;
            case 10:
                inherit(i, input_.byte_at_end() % conn_count);
                break;
            case 11:
                pass_time(number());
                break;
            case 12:
                FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
                break;
            default:
                send(i, op & 8 ? at_.clock : at_.now);
                break;
            }
        }
    }

    Input input_;
    fuzz::Arena arena_;
    lawn_engine_t *engine_ = nullptr;
    lawn_t *lawn_ = nullptr;
    Model models_[conn_count];
    fuzz::Moment at_;
    lawn_time_t stall_threshold_ = 0;
    unsigned budget_ = 0;
    bool has_passed_ = false;
    unsigned polls_ = 0;
    uint64_t stalls_ = 0;
    uint64_t fired_ = 0;  // timers, by the engine's count
    uint64_t called_ = 0; // ops
    unsigned work_ = 0;
    unsigned windows_ = 0;
};

} // namespace

// A random seed of the jitters, but an input must do the same in each run.
extern "C" ssize_t getrandom(void *memory, size_t size, unsigned /*flags*/)
{
    memset(memory, fuzz::earth, size);
    return static_cast<ssize_t>(size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Connections(Input(data, size)).run();
    return 0;
}
