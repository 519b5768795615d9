// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What must hold, at each step and at the end (shared_judge.h).

#include "shared_judge.h"

#include "shared/box.h"

namespace explore::shared
{

namespace
{

void fail_if(bool is_wrong, const char *what)
{
    explorer().expect(!is_wrong, what);
}

// What a user calls for a timer, and must have returned from when it is
// released.
bool is_call(Op::What what)
{
    return what == Op::start || what == Op::local || what == Op::stop ||
           what == Op::sync;
}

} // namespace

void Judge::begin(const lawn_box_t *box, lawn_shared_t *const *timers,
                  unsigned count)
{
    *this = Judge();
    box_ = box;
    count_ = count;
    for (unsigned i = 0; i < count; ++i) {
        timers_[i].timer = timers[i];
        timers_[i].is_first = true;
    }
}

uint64_t Judge::hash() const
{
    uint64_t hash = mix(destroy_ * 4096U + sleeps_ * 64 + wakes_, runs_);
    for (unsigned i = 0; i < count_; ++i) {
        const Timer &timer = timers_[i];
        hash = mix(hash, timer.holder * 32 + timer.taken);
        hash =
            mix(hash, timer.run * 32 + timer.retire * 8U + timer.is_late * 4U +
                          timer.is_first * 2U + timer.is_released);
    }
    for (const Start &i : starts_) {
        hash = mix(hash, static_cast<uint64_t>(i.state));
    }
    for (const Thread &thread : threads_) {
        hash = mix(hash, thread.calls_for);
        for (const unsigned run : thread.seen_runs) {
            hash = mix(hash, run);
        }
        for (const Frame *i = thread.frame; i; i = i->parent) {
            hash = mix(hash, i->op->id * 64 + i->advances * 32U +
                                 i->has_stopped * 16U + i->destroy * 4U +
                                 i->retire);
        }
    }
    return hash;
}

void Judge::begin_op(unsigned thread, const Op &op, Frame *frame)
{
    Timer &timer = timers_[op.timer];
    if ((is_call(op.what) || op.what == Op::retire) && timer.is_released) {
        explorer().refuse();
    }
    frame->op = &op;
    frame->destroy = destroy_;
    frame->retire = timer.retire;
    frame->parent = threads_[thread].frame;
    threads_[thread].frame = frame;
    if (is_call(op.what)) {
        threads_[thread].calls_for = op.timer + 1;
    }
    if (op.what == Op::start || op.what == Op::local) {
        starts_[op.id].deadline = op.time;
    } else if (op.what == Op::retire) {
        timer.retire = begun;
    } else if (op.what == Op::destroy) {
        destroy_ = begun;
    }
}

void Judge::end_op(unsigned thread, const Op &op, const Frame &frame,
                   bool result)
{
    Thread &own = threads_[thread];
    Timer &timer = timers_[op.timer];
    own.frame = frame.parent;
    if (is_call(op.what)) {
        own.calls_for = 0;
    }
    switch (op.what) {
    case Op::start:
    case Op::local:
        judge_start(op, frame, result);
        break;
    case Op::stop:
        fail_if(result && !frame.has_stopped, "stops what does not run");
        fail_if(!result && frame.has_stopped, "stops and says it did not");
        own.seen_runs[op.timer] = timer.run;
        break;
    case Op::sync:
        fail_if(timer.run != 0 && timer.run == own.seen_runs[op.timer],
                "sync returns while a callback runs");
        break;
    case Op::retire:
        timer.retire = returned;
        break;
    case Op::destroy:
        destroy_ = returned;
        break;
    default:
        break;
    }
}

void Judge::judge_start(const Op &op, const Frame &frame, bool result) const
{
    const State state = starts_[op.id].state;
    if (result) {
        fail_if(frame.destroy == returned, "starts in a destroyed box");
        fail_if(frame.retire == returned && op.what == Op::start,
                "starts a retired timer");
        fail_if(state == State::none, "a start that does not begin");
        fail_if(state == State::withdrawn,
                "withdraws a start and says it runs");
    } else {
        fail_if(destroy_ == not_yet && timers_[op.timer].retire == not_yet,
                "refuses a start for no reason");
        fail_if(state == State::active,
                "refuses a start and leaves it running");
        // What a destroy overtakes may have ended before it is refused.
        fail_if(destroy_ == not_yet &&
                    (state == State::taken || state == State::called ||
                     state == State::stopped),
                "refuses a start that has ended");
    }
}

bool Judge::is_misuse(unsigned thread) const
{
    const Frame *const frame = threads_[thread].frame;
    return frame && is_call(frame->op->what) &&
           timers_[frame->op->timer].retire != not_yet;
}

void Judge::on_store(unsigned thread, const void *at, uint64_t value)
{
    Timer *timer = nullptr;
    for (unsigned i = 0; i < count_; ++i) {
        if (at == &timers_[i].timer->deadline) {
            timer = &timers_[i];
        }
    }
    if (at == &box_->running && value == 0) {
        end_runs();
    }
    Frame *const frame = threads_[thread].frame;
    if (!timer || !frame) {
        return;
    }
    if (value != LAWN_TIME_INFINITY) {
        start(timer, *frame->op);
    } else if (timer->holder != 0) {
        end_start(timer, frame);
    }
}

void Judge::start(Timer *timer, const Op &op)
{
    fail_if(op.what != Op::start && op.what != Op::local,
            "stores a deadline that nobody asked for");
    if (timer->holder != 0) {
        starts_[timer->holder].state = State::superseded;
    }
    fail_if(starts_[op.id].state != State::none, "starts again by itself");
    starts_[op.id].state = State::active;
    timer->holder = op.id;
}

void Judge::end_start(Timer *timer, Frame *frame)
{
    const unsigned ended = timer->holder;
    State &state = starts_[ended].state;
    timer->holder = 0;
    state = State::ended;
    switch (frame->op->what) {
    case Op::stop:
        state = State::stopped;
        frame->has_stopped = true;
        break;
    case Op::pass:
    case Op::advance:
        fail_if(!frame->advances, "takes a start away for no reason");
        state = State::taken;
        timer->taken = ended;
        timer->is_late = timer->retire == returned;
        timer->run = ++runs_;
        break;
    case Op::start:
    case Op::local:
        if (ended == frame->op->id) {
            state = State::withdrawn;
        } else {
            fail_if(destroy_ == not_yet, "takes back another's start");
        }
        break;
    case Op::retire:
    case Op::empty:
    case Op::destroy:
        break;
    default:
        fail_if(true, "takes a start away for no reason");
    }
}

bool Judge::begin_call(unsigned i, lawn_time_t now)
{
    Timer &timer = timers_[i];
    fail_if(timer.taken == 0, "calls back for no start");
    fail_if(starts_[timer.taken].deadline > now, "calls back early");
    fail_if(timer.is_late, "calls back when retire has returned");
    fail_if(timer.is_released, "calls back when released");
    fail_if(destroy_ != not_yet, "calls back in a destroyed box");
    starts_[timer.taken].state = State::called;
    timer.taken = 0;
    const bool is_first = timer.is_first;
    timer.is_first = false;
    return is_first;
}

// The owner says that no callback runs.
void Judge::end_runs()
{
    for (Timer &timer : timers_) {
        fail_if(timer.taken != 0 && timer.retire == not_yet,
                "takes a start and calls nobody");
        timer.taken = 0;
        timer.run = 0;
    }
}

void Judge::release(unsigned thread, unsigned i)
{
    Timer &timer = timers_[i];
    for (unsigned other = 0; other < most_threads; ++other) {
        if (other != thread && threads_[other].calls_for == i + 1) {
            explorer().refuse();
        }
    }
    fail_if(timer.retire == not_yet, "releases what nobody retired");
    fail_if(timer.is_released, "releases twice");
    fail_if(lawn::is_linked(&timer.timer->timer), "releases a plain timer");
    timer.is_released = true;
    timer.holder = 0;
}

void Judge::sleep()
{
    ++sleeps_;
}

void Judge::wake()
{
    expect_not_destroyed();
    fail_if(++wakes_ > sleeps_, "wakes twice from one sleep");
}

void Judge::expect_not_destroyed() const
{
    fail_if(destroy_ == returned, "wakes when destroy has returned");
}

void Judge::expect_nothing_before(lawn_time_t time) const
{
    for (unsigned i = 0; i < count_; ++i) {
        const Timer &timer = timers_[i];
        fail_if(timer.holder != 0 && starts_[timer.holder].deadline < time,
                "a start is lost");
        fail_if(timer.retire != not_yet && !timer.is_released,
                "a retired timer is not released");
    }
}

void Judge::expect_all_released() const
{
    for (unsigned i = 0; i < count_; ++i) {
        fail_if(!timers_[i].is_released, "a retired timer is not released");
    }
}

bool Judge::is_in_box(const lawn_shared_t *timer) const
{
    unsigned count = 0;
    for (const lawn_shared_t *i :
         {box_->taken,
          reinterpret_cast<lawn_shared_t *>(box_->head & ~lawn::tags)}) {
        for (; i; i = i->next) {
            fail_if(++count > count_, "a timer is in the box twice");
            if (i == timer) {
                return true;
            }
        }
    }
    return false;
}

void Judge::expect_rest() const
{
    unsigned users = 1;
    for (unsigned i = 0; i < count_; ++i) {
        if (timers_[i].is_released) {
            continue;
        }
        ++users;
        const lawn_shared_t &timer = *timers_[i].timer;
        const bool is_message = is_in_box(&timer);
        fail_if(is_message != ((timer.flags & lawn::posted) != 0),
                "posted and not in the box, or the reverse");
        fail_if(timer.cover != (lawn::is_linked(&timer.timer)
                                    ? timer.timer.deadline
                                    : LAWN_TIME_INFINITY),
                "the cover is not the plain timer's deadline");
        fail_if(timer.deadline < timer.cover && !is_message,
                "a deadline is earlier than the cover");
    }
    fail_if(box_->users != users, "a wrong count of users");
    fail_if(box_->ringing != 0, "still ringing");
}

} // namespace explore::shared
