// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Connections in an engine on virtual time, against a model that calculates
// with the rules of lawn/conn.h alone: when each timer is due, what it then
// does, and when a peer is dead. Callbacks close, free and open again; the
// clock jumps; memory runs out; parameters are anything that is accepted, and
// what should be refused is.

#include "conn_ops.h"
#include "conn_set.h"

#include <sys/random.h>

namespace
{

using fuzz::conn_count;
using fuzz::conns;
using fuzz::Input;
using fuzz::Model;

class Connections : fuzz::ConnSet
{
public:
    explicit Connections(Input input) : ConnSet(input)
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
        ops_.retransmit = [](lawn_conn_t *c, lawn_time_t now, unsigned n) {
            of(c)->on_retransmit(index_of(c), now, n);
        };
        ops_.probe = [](lawn_conn_t *c, lawn_time_t now, unsigned n) {
            of(c)->on_probe(index_of(c), now, n);
        };
        ops_.dead = [](lawn_conn_t *c, lawn_time_t now, lawn_conn_reason_t r) {
            of(c)->on_dead(index_of(c), now, r);
        };
        ops_.ask = [](lawn_conn_t *c, lawn_time_t now) {
            of(c)->on_ask(index_of(c), now);
        };
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
            flags & 4 ? fill_window(i) : spurious(i);
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
    // Passes, and what is called in them.
    //

    static Connections *of(lawn_conn_t *conn)
    {
        ConnSet *const set = static_cast<ConnSet *>(conn->context);
        return static_cast<Connections *>(set);
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

    lawn_time_t stall_threshold_ = 0;
    unsigned budget_ = 0;
    bool has_passed_ = false;
    unsigned polls_ = 0;
    uint64_t stalls_ = 0;
    uint64_t fired_ = 0;  // timers, by the engine's count
    uint64_t called_ = 0; // ops
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
