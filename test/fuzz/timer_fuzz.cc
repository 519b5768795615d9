// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The core under any sequence of operations, in callbacks too, against a model
// of ordered sets: which timers run, by deadline, and the starts in each queue,
// in their order. No timer may fire early, late, twice, never, or before one of
// its queue that was started first; none may be touched once it is stopped, and
// no advance may touch more than its budget.

#include "timer_calls.h"

#include "timer/lawn_impl.h"
#include <lawn/observer.h>

namespace
{

using fuzz::Input;
using fuzz::most_timers;
using fuzz::queue_count;
using fuzz::timers;
using State = fuzz::TimerState;

class Timers : lawn_observer_t, fuzz::TimerCalls
{
public:
    explicit Timers(Input input) : TimerCalls(input, on_expired)
    {
        const unsigned head = input_.byte();
        lawn_params_t params = {};
        params.allocator = arena_.allocator();
        usual_budget_ = head & 1 ? 1 + input_.byte() % 100 : 0;
        clock_ = head & 2 ? input_.number() : 0;
        clock_ = head & 4 ? UINT64_MAX - clock_ : clock_;
        FUZZ_CHECK(lawn_create(&params, &lawn_) == LAWN_OK);
        is_observed_ = head & 8;
        if (is_observed_) {
            event = observed;
            lawn_observe(lawn_, this);
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
            count_each();
        } else if (flags % 4 == 2) {
            close(input_.byte() % queue_count);
        } else if (flags & 4) {
            advance_behind(clock_ - std::min(clock_, input_.number()),
                           flags & 8 ? 1 : 0);
        } else { // by a clock that has gone back
            advance_to(clock_ - std::min(clock_, input_.number()), 0);
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
        const lawn_time_t now = clock_ - std::min(clock_, old);
        if ((flags & 12) == 12) {
            enqueue(index, now, ttl % queue_count, flags & 1);
        } else if (flags & 4) { // as much before
            start_at(index, now, now - std::min(now, ttl), flags & 1);
        } else if (flags & 8) { // by the tick
            start_at(index, now, ttl, flags & 1);
        } else {
            start(index, now, ttl, flags & 1);
        }
    }

    // Many timers at once, as after a stall or when a cluster starts.
    void start_herd(unsigned flags)
    {
        const size_t first = size_t{input_.byte()} * 8;
        const size_t count = 1 + size_t{input_.byte()} * 4;
        lawn_time_t ttl = input_.number();
        const lawn_time_t step = flags & 1 ? input_.number() : 0;
        for (size_t i = first; i < std::min(first + count, most_timers); ++i) {
            const bool acts = flags & 2 && i % 16 == 0;
            if (flags & 8 && i % 4 != 0) {
                enqueue(i, clock_, i % queue_count, acts);
            } else {
                start(i, clock_, ttl, acts);
            }
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

    //
    // Passes.
    //

    void leave_pass()
    {
        in_pass_ = false;
        model_.end_pass();
    }

    void check_between(bool thoroughly)
    {
        FUZZ_CHECK(lawn_count(lawn_) == model_.count());
        FUZZ_CHECK(lawn_now(lawn_) == seen_);
        FUZZ_CHECK(lawn_next(lawn_) <= model_.earliest());
        FUZZ_CHECK(model_.count() != 0 ||
                   lawn_next(lawn_) == LAWN_TIME_INFINITY);
        if (thoroughly) {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        }
    }

    void advance(unsigned budget)
    {
        if (budget == 0) {
            advance_to(clock_, 0);
        } else {
            advance_behind(clock_, budget);
        }
    }

    // By the public call, which does not tell what it has touched.
    void advance_to(lawn_time_t now, unsigned budget)
    {
        enter_pass(std::max(seen_, now));
        const uint64_t before = fired_;
        const unsigned fired = lawn_advance(lawn_, now, budget);
        FUZZ_CHECK(fired == fired_ - before);
        FUZZ_CHECK(budget == 0 || fired <= budget);
        leave_advance(budget == 0);
    }

    // As of a time that may be older than what the lawn has seen.
    void advance_behind(lawn_time_t now, unsigned budget)
    {
        enter_pass(now);
        const uint64_t before = fired_;
        const lawn::Work work = lawn::advance_as_of(lawn_, now, budget);
        FUZZ_CHECK(work.fired == fired_ - before);
        FUZZ_CHECK(work.fired <= work.touched);
        FUZZ_CHECK(budget == 0 || work.touched <= budget);
        leave_advance(budget == 0 || work.touched < budget);
    }

    void enter_pass(lawn_time_t now)
    {
        seen_ = std::max(seen_, now);
        pass_ = std::min(now, LAWN_TIME_INFINITY - 2);
        starts_before_pass_ = starts_;
        in_pass_ = true;
        is_advancing_ = true;
    }

    void leave_advance(bool is_done)
    {
        is_advancing_ = false;
        FUZZ_CHECK(!is_observed_ || observed_ == fired_);
        const bool is_due = model_.earliest() <= pass_;
        if (is_due) {
            FUZZ_CHECK(!is_done);
            FUZZ_CHECK(lawn_next(lawn_) == 0);
        } else if (is_done && starts_ == starts_before_pass_ &&
                   pass_ >= std::min(seen_, LAWN_TIME_INFINITY - 2)) {
            FUZZ_CHECK(lawn_next(lawn_) > pass_);
        }
        leave_pass();
    }

    // Advances until nothing is due, which must not take for ever: callbacks
    // do nothing more once there was work enough. Nor may what is due longest
    // wait for more advances than lawn/timer.h says.
    void advance_all()
    {
        const unsigned budget = usual_budget_;
        size_t passes = 0;
        size_t waited = 0;
        uint64_t first = 0; // its start
        do {
            advance_to(clock_, budget);
            FUZZ_CHECK(++passes <= 16 + 8 * model_.size() +
                                       (budget ? 25 * fuzz::most_work : 0));
            if (model_.earliest() <= pass_) {
                const uint64_t number = model_[model_.first()].number;
                waited = number == first ? waited + 1 : 0;
                first = number;
                FUZZ_CHECK(
                    waited <
                    4 + (budget ? 4 * (used_ + queue_count) / budget : 0));
            }
        } while (model_.earliest() <= pass_);
    }

    void settle(unsigned flags)
    {
        const unsigned max_touches = flags & 1 ? 1 + flags : 0;
        const lawn_time_t before = lawn_next(lawn_);
        const bool is_settled = lawn_settle(lawn_, max_touches);
        const lawn_time_t next = lawn_next(lawn_);
        const lawn_time_t earliest = model_.earliest();
        FUZZ_CHECK(before <= next && next <= earliest);
        FUZZ_CHECK(is_settled ? next == earliest
                              : max_touches != 0 || earliest <= seen_);
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
        FUZZ_CHECK(lawn_timer_deadline(&timers[index]) ==
                   (state.deadline != 0 ? state.deadline : LAWN_TIME_INFINITY));
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
                start(other, clock_, input_.number_at_end(), op & 16);
                break;
            case 2:
                start_at(other, clock_, after_or_before(op), op & 16);
                break;
            case 3:
                if (op & 32) {
                    enqueue(other, clock_, op / 64 % queue_count, op & 16);
                } else {
                    start(other, clock_, model_[other].ttl, op & 16);
                }
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

    lawn_time_t after_or_before(unsigned op)
    {
        const lawn_time_t time = input_.number_at_end();
        return op & 32 ? after(clock_, time) : clock_ - std::min(clock_, time);
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
        } else if (op & 16) {
            close(op % queue_count);
        } else {
            FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
        }
    }

    static void observed(lawn_observer_t *observer, lawn_event_t event,
                         const lawn_timer_t *, lawn_time_t, lawn_time_t)
    {
        static_cast<Timers *>(observer)->observed_ += event == LAWN_EVENT_FIRE;
    }

    // With whatever still runs or is paused, and the queues that are left.
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

    unsigned usual_budget_ = 0;
    lawn_time_t clock_ = 0;
    lawn_time_t pass_ = 0; // the time of the latest
    bool is_advancing_ = false;
    bool is_draining_ = false;
    bool is_observed_ = false;
    uint64_t fired_ = 0;
    uint64_t observed_ = 0;
    unsigned drained_ = 0;
    uint64_t starts_before_pass_ = 0;
    uint64_t last_before_drain_ = 0; // start
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Timers(Input(data, size)).run();
    return 0;
}
