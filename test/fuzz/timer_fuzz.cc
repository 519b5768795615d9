// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The core under any sequence of operations, in callbacks too, against a model
// of two ordered sets: which timers run, by deadline, and the starts of each
// TTL, in their order. No timer may fire early, late, twice, never, or before
// one of its TTL that was started first; none may be touched once it is
// stopped.

#include "input.h"
#include "memory.h"
#include "timer_model.h"

#include "timer/observer.h"

#include <lawn/timer.h>

#include <algorithm>

namespace
{

using fuzz::Input;
using State = fuzz::TimerState;

constexpr size_t most_timers = 2048;
lawn_timer_t timers[most_timers];

class Timers : lawn::Observer
{
public:
    explicit Timers(Input input) : input_(input), model_(most_timers)
    {
        const unsigned head = input_.byte();
        lawn_params_t params = {};
        params.allocator = arena_.allocator();
        params.max_moves = head & 1 ? 1 + input_.byte() % 100 : 0;
        max_moves_ = params.max_moves;
        clock_ = head & 2 ? input_.number() : 0;
        clock_ = head & 4 ? UINT64_MAX - clock_ : clock_;
        FUZZ_CHECK(lawn_create(&params, &lawn_) == LAWN_OK);
        is_observed_ = head & 8;
        if (is_observed_) {
            event = observed;
            lawn::observe(lawn_, this);
        }
        current = this;
    }

    void run()
    {
        for (unsigned i = 1; !input_.is_empty() && work_ < fuzz::most_work;
             ++i) {
            step();
            check_between(i % 32 == 0);
        }
        const bool runs_out = input_.byte() % 2 == 0;
        if (runs_out) { // what does not fire now never would
            clock_ = LAWN_TIME_INFINITY;
            advance_all();
            FUZZ_CHECK(model_.earliest() == LAWN_TIME_INFINITY);
        }
        check_between(true);
        end();
    }

private:
    //
    // The main line.
    //

    void step()
    {
        const unsigned op = input_.byte();
        const unsigned flags = op / 16;
        switch (op % 16) {
        case 0:
        case 1:
        case 2:
        case 3:
            start_one(flags);
            break;
        case 4:
            start_herd(flags);
            break;
        case 5:
            stop_herd(flags);
            break;
        case 6:
            stop(input_.byte());
            break;
        case 7:
            pause(input_.byte());
            break;
        case 8:
            stop_and_bury(input_.byte());
            break;
        case 9:
            pass_time(flags & 1 ? 1 : input_.number());
            break;
        case 10:
            pass_time(input_.number());
            advance(0);
            break;
        case 11:
            advance(1 + input_.byte());
            break;
        case 12:
            settle(flags);
            break;
        case 13:
            go_to_next(flags);
            break;
        case 14:
            advance_all();
            break;
        default:
            do_rarely(flags);
            break;
        }
    }

    void do_rarely(unsigned flags)
    {
        if (flags % 4 == 0) {
            drain();
        } else if (flags % 4 == 1) {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        } else if (flags % 4 == 2) {
            use_up_turns(input_.byte() % 8);
        } else {
            advance_as_of(clock_ - std::min(clock_, input_.number()), 0);
        }
    }

    void pass_time(lawn_time_t time)
    {
        clock_ += std::min(time, UINT64_MAX - clock_);
    }

    // To the very tick at which the next timer is due, or one before it.
    void go_to_next(unsigned flags)
    {
        if (model_.earliest() == LAWN_TIME_INFINITY) {
            return;
        }
        const lawn_time_t due = model_.earliest() - (flags & 1);
        clock_ = std::max(clock_, flags & 2 ? lawn_next(lawn_) : due);
        advance(flags & 4 ? 1 : 0);
    }

    void start_one(unsigned flags)
    {
        const size_t index = input_.byte();
        const lawn_time_t ttl = input_.number();
        const lawn_time_t old = flags & 2 ? input_.number() : 0;
        start(index, clock_ - std::min(clock_, old), ttl, flags & 1);
    }

    // Many timers at once, as after a stall or when a cluster starts.
    void start_herd(unsigned flags)
    {
        const size_t first = size_t{input_.byte()} * 8;
        const size_t count = 1 + size_t{input_.byte()} * 4;
        lawn_time_t ttl = input_.number();
        const lawn_time_t step = flags & 1 ? input_.number() : 0;
        for (size_t i = first; i < std::min(first + count, most_timers); ++i) {
            start(i, clock_, ttl, flags & 2 && i % 16 == 0);
            ttl += step;
            pass_time(flags & 4 ? 1 : 0);
            if (work_ > fuzz::most_work) {
                return;
            }
        }
    }

    void stop_herd(unsigned flags)
    {
        const size_t first = size_t{input_.byte()} * 8;
        const size_t count = 1 + size_t{input_.byte()} * 4;
        const size_t step = flags & 1 ? 3 : 1;
        for (size_t i = first; i < std::min(first + count, most_timers);
             i += step) {
            flags & 2 ? stop(i) : pause(i);
        }
    }

    // As so many starts and stops of another timer would: all but `left` of
    // those that one tick can tell apart.
    void use_up_turns(uint64_t left)
    {
        lawn_->turn = std::max(lawn_->turn, ~(LAWN_PLACE_TURN_ONE - 1) -
                                                left * LAWN_PLACE_TURN_ONE);
    }

    //
    // Operations, in a callback or not.
    //

    lawn_timer_t *timer(size_t index)
    {
        State &state = model_[index];
        used_ = std::max(used_, index + 1);
        if (state.is_buried) {
            fuzz::dig_up(&timers[index], sizeof(timers[index]));
        }
        if (state.is_new || state.is_buried) {
            lawn_timer_init(&timers[index], on_expired);
            state.is_new = state.is_buried = false;
        }
        return &timers[index];
    }

    void start(size_t index, lawn_time_t now, lawn_time_t ttl, bool acts)
    {
        lawn_timer_t *const t = timer(index);
        ++work_;
        seen_ = std::max(seen_, now);
        const lawn_time_t deadline =
            ttl > UINT64_MAX - seen_ ? LAWN_TIME_INFINITY : seen_ + ttl;
        lawn_timer_start(lawn_, t, now, ttl);
        model_.stop(index);
        State &state = model_[index];
        state.deadline = deadline;
        state.ttl = ttl;
        state.number = ++starts_;
        state.acts = acts;
        state.is_last_turn = lawn_->turn == ~(LAWN_PLACE_TURN_ONE - 1);
        state.is_deferred = in_pass_ && ttl == 0;
        model_.start(index);
        FUZZ_CHECK(lawn_timer_is_active(t));
        FUZZ_CHECK(lawn_timer_deadline(t) == deadline);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    void stop(size_t index)
    {
        lawn_timer_t *const t = timer(index);
        FUZZ_CHECK(lawn_timer_stop(lawn_, t) == model_.stop(index));
        check_idle(t);
    }

    void pause(size_t index)
    {
        lawn_timer_t *const t = timer(index);
        FUZZ_CHECK(lawn_timer_pause(lawn_, t) == model_.stop(index));
        check_idle(t);
    }

    void stop_and_bury(size_t index)
    {
        stop(index);
        fuzz::bury(&timers[index], sizeof(timers[index]));
        model_[index].is_buried = true;
    }

    void check_idle(const lawn_timer_t *t) const
    {
        FUZZ_CHECK(!lawn_timer_is_active(t));
        FUZZ_CHECK(lawn_timer_deadline(t) == LAWN_TIME_INFINITY);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    void leave_pass()
    {
        in_pass_ = false;
        model_.end_pass();
    }

    void check_between(bool thoroughly)
    {
        FUZZ_CHECK(lawn_count(lawn_) == model_.count());
        FUZZ_CHECK(lawn_next(lawn_) <= model_.earliest());
        FUZZ_CHECK(model_.count() != 0 ||
                   lawn_next(lawn_) == LAWN_TIME_INFINITY);
        if (thoroughly) {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        }
    }

    //
    // Passes.
    //

    unsigned advance(unsigned budget)
    {
        return advance_as_of(clock_, budget);
    }

    unsigned advance_as_of(lawn_time_t now, unsigned budget)
    {
        seen_ = std::max(seen_, now);
        pass_ = std::min(seen_, LAWN_TIME_INFINITY - 1);
        const uint64_t before = fired_;
        in_pass_ = true;
        is_advancing_ = true;
        const unsigned fired = lawn_advance(lawn_, now, budget);
        is_advancing_ = false;
        FUZZ_CHECK(fired == fired_ - before);
        FUZZ_CHECK(!is_observed_ || observed_ == fired_);
        if (budget == 0 || fired < budget) {
            check_done();
        }
        FUZZ_CHECK(budget == 0 || fired <= budget);
        leave_pass();
        return fired;
    }

    // After an advance that its budget did not end.
    void check_done() const
    {
        if (max_moves_ == 0) {
            FUZZ_CHECK(!(model_.earliest() <= pass_));
        }
        if ((model_.earliest() <= pass_)) {
            FUZZ_CHECK(lawn_next(lawn_) <= pass_);
        } else if (!model_.has_deferred() && max_moves_ == 0) {
            FUZZ_CHECK(lawn_next(lawn_) > pass_);
        }
    }

    // Advances until nothing is due, which must not take for ever: callbacks
    // do nothing more once there was work enough.
    void advance_all()
    {
        size_t passes = 0;
        do {
            advance(0);
            FUZZ_CHECK(++passes <= 16 + 8 * model_.size());
        } while (model_.earliest() <= pass_);
    }

    void settle(unsigned flags)
    {
        const unsigned max_moves = flags & 1 ? 1 + flags : 0;
        const bool is_settled = lawn_settle(lawn_, max_moves);
        const lawn_time_t next = lawn_next(lawn_);
        const lawn_time_t earliest = model_.earliest();
        FUZZ_CHECK(next <= earliest);
        FUZZ_CHECK(is_settled ? next == earliest
                              : max_moves != 0 || next <= seen_);
    }

    void drain()
    {
        const bool is_nested = in_pass_;
        const size_t running = model_.count();
        in_pass_ = true;
        const unsigned before = drained_;
        last_before_drain_ = starts_;
        const unsigned drained = lawn_drain(lawn_, on_drained);
        FUZZ_CHECK(drained == drained_ - before);
        if (!is_nested) {
            leave_pass();
        }
        // All that ran, but for what was stopped or started anew meanwhile.
        FUZZ_CHECK(drained <= running);
        for (size_t i = 0; i < used_; ++i) {
            FUZZ_CHECK(!model_[i].runs ||
                       model_[i].number > last_before_drain_);
        }
    }

    static void on_expired(lawn_timer_t *timer, lawn_time_t now)
    {
        current->expired(static_cast<size_t>(timer - timers), now);
    }

    void expired(size_t index, lawn_time_t now)
    {
        const State &state = model_[index];
        ++fired_;
        ++work_;
        FUZZ_CHECK(is_advancing_);
        FUZZ_CHECK(now == pass_);
        FUZZ_CHECK(state.runs && !state.is_deferred);
        FUZZ_CHECK(state.deadline <= now);
        FUZZ_CHECK(lawn_timer_deadline(&timers[index]) == state.deadline);
        FUZZ_CHECK(!lawn_timer_is_active(&timers[index]));
        FUZZ_CHECK(model_.may_fire(index));
        model_.stop(index);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
        act(index);
    }

    static void on_drained(lawn_timer_t *timer, lawn_time_t now)
    {
        Timers *const self = current;
        const size_t index = static_cast<size_t>(timer - timers);
        ++self->drained_;
        FUZZ_CHECK(now == self->seen_);
        FUZZ_CHECK(!lawn_timer_is_active(timer));
        FUZZ_CHECK(self->model_[index].number <= self->last_before_drain_);
        FUZZ_CHECK(self->model_.stop(index));
        self->act(index);
    }

    // What a callback does: up to three things.
    void act(size_t index)
    {
        if (!model_[index].acts || work_ > fuzz::most_work) {
            return;
        }
        for (unsigned i = input_.byte_at_end() % 4; i > 0; --i) {
            const unsigned op = input_.byte_at_end();
            const size_t other = op & 1 ? index : input_.byte_at_end();
            switch (op / 2 % 8) {
            case 0:
            case 1:
            case 2:
                start(other, clock_, input_.number_at_end(), op & 16);
                break;
            case 3:
                start(other, clock_, model_[other].ttl, op & 16);
                break;
            case 4:
                stop(other);
                break;
            case 5:
                pause(other);
                break;
            case 6:
                stop_and_bury(other);
                break;
            default:
                act_rarely(op);
                break;
            }
        }
    }

    void act_rarely(unsigned op)
    {
        if (op & 32) {
            pass_time(input_.number_at_end());
        } else if (op & 64) {
            FUZZ_CHECK(!lawn_settle(lawn_, 0));
        } else if (op & 128 && is_advancing_ && !is_draining_) {
            is_draining_ = true;
            drain();
            is_draining_ = false;
        } else {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        }
    }

    static void observed(Observer *observer, lawn::Event event,
                         const lawn_timer_t *, lawn_time_t, lawn_time_t)
    {
        static_cast<Timers *>(observer)->observed_ +=
            event == lawn::Event::fire;
    }

    // With whatever still runs or is paused.
    void end()
    {
        lawn_destroy(lawn_);
        for (size_t i = 0; i < used_; ++i) {
            if (model_[i].is_buried) {
                fuzz::dig_up(&timers[i], sizeof(timers[i]));
            } else if (!model_[i].is_new) {
                FUZZ_CHECK(!lawn_timer_is_active(&timers[i]));
            }
        }
    }

    static inline Timers *current;

    Input input_;
    fuzz::Arena arena_;
    lawn_t *lawn_ = nullptr;
    unsigned max_moves_ = 0;
    lawn_time_t clock_ = 0;
    lawn_time_t seen_ = 0; // by the lawn
    lawn_time_t pass_ = 0; // the time of the latest
    bool in_pass_ = false; // or in a drain
    bool is_advancing_ = false;
    bool is_draining_ = false;
    bool is_observed_ = false;
    unsigned work_ = 0;
    uint64_t fired_ = 0;
    uint64_t observed_ = 0;
    unsigned drained_ = 0;
    uint64_t last_before_drain_ = 0; // start
    uint64_t starts_ = 0;
    size_t used_ = 0; // states before this
    fuzz::TimerModel model_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Timers(Input(data, size)).run();
    return 0;
}
