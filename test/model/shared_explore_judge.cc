// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What must hold, at each step and at the end.

#include "shared_explore_world.h"

namespace shared_explore
{

unsigned World::index_of(const lawn_shared_t *timer) const
{
    return static_cast<unsigned>(timer - timers_);
}

World::Place World::place_of(const void *at) const
{
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        const lawn_shared_t &timer = timers_[i];
        const Field field = at == &timer.deadline ? Field::deadline
                            : at == &timer.cover  ? Field::cover
                            : at == &timer.flags  ? Field::flags
                                                  : Field::other;
        if (field != Field::other) {
            return {field, i};
        }
    }
    const Field field = at == &box_->head      ? Field::head
                        : at == &box_->wake_at ? Field::wake_at
                        : at == &box_->ringing ? Field::ringing
                        : at == &box_->users   ? Field::users
                        : at == &box_->running ? Field::running
                        : at == &box_->runs    ? Field::runs
                                               : Field::other;
    return {field, most_timers};
}

void World::on_access(unsigned thread, const Access &access)
{
    Frame *const frame = frames_[thread];
    if (frame && !frame->has_begun) {
        on_begin(frame);
    }
    const Place place = place_of(access.at);
    if (place.timer != most_timers) {
        fail_if(past_.released[place.timer] != 0,
                "touches a timer that was released");
    } else if (place.field != Field::other) {
        fail_if(past_.box_frees != 0, "touches the box that was freed");
    }
}

// With the first access.
void World::on_begin(Frame *frame)
{
    frame->has_begun = true;
    const Op &op = *frame->op;
    const bool is_of_timer = is_call(op.what) || op.what == Do::retire;
    if (is_of_timer && past_.released[op.timer] != 0) {
        explorer_.refuse(); // Nobody does that.
    }
    if (is_call(op.what)) {
        past_.calls[who()] = op.timer + 1;
    }
    frame->destroy = past_.destroy;
    frame->retire = past_.retire[op.timer];
    frame->run = past_.run[op.timer];
    frame->cover = timers_[op.timer].cover;
    if (op.what == Do::retire) {
        past_.retire[op.timer] = begun;
    } else if (op.what == Do::destroy) {
        past_.destroy = begun;
    } else if (op.what == Do::pass && op.budget == 0) {
        find_due(frame);
    }
    if (op.what == Do::start || op.what == Do::local) {
        explorer_.remember(frame->destroy + 4 * frame->retire);
    } else if (op.what == Do::sync) {
        explorer_.remember(frame->run);
    }
    if (fault_ && fault_->how == How::stale) {
        explorer_.remember(frame->cover);
    }
    for (const uint64_t id : frame->due) {
        explorer_.remember(id);
    }
}

// What this pass must end: but not while another thread is about to bring the
// timer.
void World::find_due(Frame *frame) const
{
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        const uint64_t id = past_.holder[i];
        bool is_due = id != 0 && past_.has_returned[id] != 0 &&
                      past_.retire[i] == not_yet &&
                      starts_[id]->time <= frame->op->time;
        for (const uint64_t call : past_.calls) {
            is_due = is_due && call != i + 1;
        }
        frame->due[i] = is_due ? id : 0;
    }
}

// With the last.
void World::on_return(const Frame &frame, bool result)
{
    const Op &op = *frame.op;
    if (is_call(op.what)) {
        past_.calls[who()] = 0;
    }
    switch (op.what) {
    case Do::start:
    case Do::local:
        judge_start(frame, result);
        past_.has_returned[op.id] = 1;
        break;
    case Do::stop:
        fail_if(result && !frame.has_ended_one, "stops what does not run");
        fail_if(!result && frame.has_ended_one, "stops and says it did not");
        break;
    case Do::sync:
        fail_if(frame.run != 0 && frame.run == past_.run[op.timer],
                "sync returns while a callback runs");
        break;
    case Do::retire:
        past_.retire[op.timer] = returned;
        break;
    case Do::destroy:
        past_.destroy = returned;
        break;
    case Do::pass:
        for (const uint64_t id : frame.due) {
            fail_if(id != 0 && past_.state[id] == active, "fires late");
        }
        break;
    default:
        break;
    }
}

void World::judge_start(const Frame &frame, bool result)
{
    const Op &op = *frame.op;
    const uint64_t state = past_.state[op.id];
    if (result) {
        fail_if(frame.destroy == returned, "starts in a destroyed box");
        fail_if(frame.retire == returned && op.what == Do::start,
                "starts a retired timer");
        fail_if(state == withdrawn, "withdraws a start and says it runs");
    } else {
        fail_if(past_.destroy == not_yet && past_.retire[op.timer] == not_yet,
                "refuses a start for no reason");
        fail_if(state == active, "refuses a start and leaves it running");
        // What a destroy overtakes may have ended before it is refused.
        const bool is_overtaken = past_.destroy != not_yet;
        fail_if(!is_overtaken && (state == taken || state == fired),
                "refuses a start and calls back");
        fail_if(!is_overtaken && state == stopped,
                "refuses a start that a stop has stopped");
    }
}

uint64_t World::token(unsigned thread) const
{
    const Frame *const frame = frames_[thread];
    return frame ? frame->op->id << 8 | static_cast<uint64_t>(frame->what) : 0;
}

void World::on_write(uint64_t token, const void *at, uint64_t, uint64_t value)
{
    const Place place = place_of(at);
    if (place.field != Field::deadline) {
        return;
    }
    const uint64_t id = token >> 8;
    const Do what = static_cast<Do>(token & 0xff);
    if (value != LAWN_TIME_INFINITY) {
        fail_if(what != Do::start && what != Do::local,
                "stores a deadline that nobody asked for");
        on_start(place.timer, id);
    } else if (past_.holder[place.timer] != 0) {
        on_end(place.timer, id, what);
    }
}

void World::on_start(unsigned timer, uint64_t id)
{
    const uint64_t before = past_.holder[timer];
    if (before != 0) {
        past_.state[before] = superseded;
    }
    fail_if(past_.state[id] != none, "starts again by itself");
    past_.state[id] = active;
    past_.holder[timer] = id;
}

// By an operation, of its own.
void World::on_end(unsigned timer, uint64_t id, Do what)
{
    const uint64_t ended = past_.holder[timer];
    past_.holder[timer] = 0;
    past_.state[ended] = killed;
    switch (what) {
    case Do::stop:
        past_.state[ended] = stopped;
        if (Frame *const frame = frames_[who()]; frame && frame->op->id == id) {
            frame->has_ended_one = true;
        } else {
            explorer_.fail("stops when stop has returned");
        }
        break;
    case Do::advance:
        past_.state[ended] = taken;
        past_.taken[timer] = ended;
        past_.is_late[timer] = past_.retire[timer] == returned;
        past_.run[timer] = ++past_.runs;
        break;
    case Do::start:
    case Do::local:
        if (ended == id) {
            past_.state[ended] = withdrawn;
        } else {
            fail_if(past_.destroy == not_yet, "takes back another's start");
        }
        break;
    case Do::retire:
    case Do::empty:
    case Do::destroy:
        break;
    default:
        explorer_.fail("takes a start away for no reason");
    }
}

void World::fire(unsigned timer, lawn_time_t now)
{
    const uint64_t id = past_.taken[timer];
    fail_if(id == 0, "calls back for no start");
    fail_if(id != 0 && starts_[id]->time > now, "fires early");
    fail_if(past_.is_late[timer] != 0, "fires when retire has returned");
    fail_if(past_.released[timer] != 0, "fires when released");
    fail_if(past_.destroy != not_yet, "fires in a destroyed box");
    past_.state[id] = fired;
    past_.taken[timer] = 0;
    touch();
    if (++past_.fires[timer] == 1 && timer == 0) {
        for (const Op &op : scenario_.on_fire) {
            apply(op);
        }
    }
    past_.run[timer] = 0;
}

void World::end_run(unsigned timer)
{
    if (past_.taken[timer] != 0) {
        fail_if(past_.retire[timer] == not_yet, "takes a start, fires nothing");
        past_.state[past_.taken[timer]] = killed;
        past_.taken[timer] = 0;
    }
    past_.run[timer] = 0;
}

void World::release(unsigned timer)
{
    for (unsigned i = 0; i <= most_threads; ++i) {
        if (i != who() && past_.calls[i] == timer + 1) {
            explorer_.refuse(); // Users take care that it is not so.
        }
    }
    bool is_circle;
    fail_if(past_.retire[timer] == not_yet, "releases what nobody retired");
    fail_if(++past_.released[timer] > 1, "releases twice");
    fail_if(lawn::is_linked(&timers_[timer].timer), "releases a plain timer");
    fail_if(is_boxed(&timers_[timer], &is_circle), "releases a message");
    fail_if(past_.run[timer] != 0, "releases while the callback runs");
    if (past_.holder[timer] != 0) {
        past_.state[past_.holder[timer]] = killed;
        past_.holder[timer] = 0;
    }
}

bool World::is_boxed(const lawn_shared_t *timer, bool *is_circle) const
{
    bool is_boxed = false;
    unsigned count = 0;
    for (const lawn_shared_t *i :
         {box_->taken,
          reinterpret_cast<lawn_shared_t *>(box_->head & ~lawn::tags)}) {
        for (; i && count < most_boxed; i = i->next) {
            is_boxed = is_boxed || i == timer;
            ++count;
        }
    }
    *is_circle = count > scenario_.timers;
    return is_boxed;
}

// What holds when nobody does anything.
void World::check_rest()
{
    uint64_t users = 1;
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        const lawn_shared_t &timer = timers_[i];
        if (past_.released[i] != 0) {
            continue;
        }
        ++users;
        bool is_circle;
        const bool is_message = is_boxed(&timer, &is_circle);
        fail_if(is_circle, "a timer is in the box twice");
        if (fault_) {
            continue; // To be found by what a user sees of it.
        }
        fail_if(is_message != ((timer.flags & lawn::posted) != 0),
                "posted and not in the box, or the reverse");
        fail_if(timer.cover != (lawn::is_linked(&timer.timer)
                                    ? timer.timer.deadline
                                    : LAWN_TIME_INFINITY),
                "the cover is not the plain timer's deadline");
        fail_if(timer.deadline < timer.cover && !is_message,
                "a deadline is earlier than the cover");
    }
    fail_if(!fault_ && box_->users != users, "a wrong count of users");
    fail_if(!fault_ && box_->ringing != 0, "still ringing");
}

void World::fire_all()
{
    for (const lawn_time_t time : times_) {
        if (!explorer_.has_failed()) {
            check_rest();
        }
        if (!explorer_.has_failed()) {
            apply(at(Do::pass, time));
        }
    }
    // What a callback has started at a time that was past.
    if (!times_.empty() && !explorer_.has_failed()) {
        apply(at(Do::pass, times_.back()));
    }
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        fail_if(past_.holder[i] != 0, "a start is lost");
    }
    if (!explorer_.has_failed()) {
        check_rest();
    }
}

void World::retire_all()
{
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        if (past_.retire[i] == not_yet) {
            apply(on(Do::retire, i));
        }
    }
    if (past_.destroy == not_yet && !explorer_.has_failed()) {
        apply(at(Do::drain, lawn_->now));
        apply(at(Do::destroy, 0));
    }
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        fail_if(past_.released[i] == 0, "a retired timer is not released");
    }
}

void World::end()
{
    if (past_.destroy == not_yet) {
        fire_all();
    }
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        fail_if(past_.holder[i] != 0, "a start is left");
    }
    if (!explorer_.has_failed()) {
        retire_all();
    }
    fail_if(past_.box_frees != 1, "the box is not freed");
    fail_if(lawn_check(lawn_) != LAWN_OK, "lawn_check() fails");
    if (!explorer_.has_failed()) {
        lawn_destroy(lawn_);
        fail_if(live_ != 0, "memory is left");
    }
}

} // namespace shared_explore
