// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The operations, on the lawn and on the model, and what must hold after each.

#include "exhaustive_world.h"

#include "base/ticks.h"

#include <inttypes.h>

namespace exhaustive
{

void World::see(lawn_time_t now)
{
    if (now > state_->seen) {
        state_->seen = now;
        state_->starts = 0;
    }
}

void World::link(unsigned i)
{
    Entry &entry = entries_[i];
    entry.runs = true;
    entry.next = nobody;
    entry.prev = state_->last;
    uint16_t &before =
        entry.prev == nobody ? state_->first : entries_[entry.prev].next;
    before = static_cast<uint16_t>(i);
    state_->last = static_cast<uint16_t>(i);
    state_->running++;
}

// Leaves no trace of where it was.
void World::unlink(unsigned i)
{
    Entry &entry = entries_[i];
    uint16_t &before =
        entry.prev == nobody ? state_->first : entries_[entry.prev].next;
    uint16_t &behind =
        entry.next == nobody ? state_->last : entries_[entry.next].prev;
    before = entry.next;
    behind = entry.prev;
    entry.next = entry.prev = 0;
    entry.runs = entry.deferred = entry.turnless = entry.drained = false;
    state_->running--;
}

void World::start_at(unsigned i, lawn_time_t now, lawn_time_t ttl)
{
    Entry &entry = entries_[i];
    note_op(0, i);
    write("lawn_timer_start(lawn, &t[%u], %" PRIu64 "U, %" PRIu64 "U);", i, now,
          ttl);
    ++calls_[static_cast<int>(lawn::Event::start)];
    lawn_timer_start(lawn_, &entry.timer, now, ttl);
    see(now);
    if (entry.runs) {
        unlink(i);
    }
    link(i);
    state_->starts += state_->starts < last_turn;
    entry.ttl = ttl;
    entry.deadline = lawn::add_saturating(state_->seen, ttl);
    entry.deferred = ttl == 0 && (in_pass_ || in_drain_);
    entry.turnless = state_->starts == last_turn;
    expect(lawn_timer_is_active(&entry.timer), "started, not active");
    expect(lawn_timer_deadline(&entry.timer) == entry.deadline,
           "started with another deadline");
    reached_.straight += !entry.deferred && !in_pass_ &&
                         lawn::where_is(&entry.timer) == lawn::near;
    reached_.last_turn += entry.turnless;
}

// Stops or pauses.
void World::end(unsigned i, bool pause)
{
    Entry &entry = entries_[i];
    note_op(pause ? 2 : 1, i);
    write("lawn_timer_%s(lawn, &t[%u]); /* %s */", pause ? "pause" : "stop", i,
          entry.runs ? "true" : "false");
    const lawn::Event event = pause ? lawn::Event::pause : lawn::Event::stop;
    ++calls_[static_cast<int>(event)];
    const bool was_active = pause ? lawn_timer_pause(lawn_, &entry.timer)
                                  : lawn_timer_stop(lawn_, &entry.timer);
    expect(was_active == entry.runs, "stop or pause tells what is not so");
    if (entry.runs) {
        unlink(i);
    }
    entry.deadline = LAWN_TIME_INFINITY;
}

lawn_time_t World::earliest() const
{
    lawn_time_t earliest = LAWN_TIME_INFINITY;
    for (unsigned i = state_->first; i != nobody; i = entries_[i].next) {
        earliest = lawn::earlier_of(earliest, entries_[i].deadline);
    }
    return earliest;
}

void World::advance_to_clock(unsigned budget)
{
    see(state_->clock);
    write("lawn_advance(lawn, %" PRIu64 "U, %u);", state_->clock, budget);
    // The last tick is never.
    pass_ = lawn::earlier_of(state_->seen, LAWN_TIME_INFINITY - 1);
    fired_ = 0;
    ++calls_[static_cast<int>(lawn::Event::advance)];
    in_pass_ = true;
    const unsigned result = lawn_advance(lawn_, state_->clock, budget);
    in_pass_ = false;
    bool is_due = false;
    bool is_deferred = false;
    for (unsigned i = state_->first; i != nobody; i = entries_[i].next) {
        is_deferred |= entries_[i].deferred;
        is_due |= !entries_[i].deferred && entries_[i].deadline <= pass_;
        entries_[i].deferred = false;
    }
    expect(result == fired_, "advance tells another number than fired");
    expect(budget == 0 || result <= budget, "more than the budget");
    if (budget == 0 || result < budget) {
        expect(!is_due || scenario_->max_moves != 0, "late");
        expect(!is_due || lawn_next(lawn_) <= state_->seen,
               "due, but lawn_next() is in the future");
        expect(is_deferred || scenario_->max_moves != 0 ||
                   lawn_next(lawn_) > pass_,
               "nothing due, but lawn_next() has come");
    }
}

void World::finish()
{
    unsigned rounds = 0;
    do {
        advance_to_clock(op_.limit);
        expect(++rounds < 10'000, "does not come to an end");
    } while (!failure_ && lawn_next(lawn_) <= pass_);
    expect(earliest() > pass_, "late");
}

void World::settle(unsigned max_moves)
{
    const lawn_time_t first = earliest();
    write("lawn_settle(lawn, %u);", max_moves);
    const bool is_settled = lawn_settle(lawn_, max_moves);
    if (is_settled) {
        expect(lawn_next(lawn_) == first, "settled, but not on the earliest");
    } else {
        expect(max_moves != 0 || lawn_next(lawn_) <= state_->seen,
               "not settled without a reason");
    }
}

void World::drain()
{
    for (unsigned i = state_->first; i != nobody; i = entries_[i].next) {
        entries_[i].drained = true;
    }
    for (unsigned i = 0; i < state_->timers; ++i) {
        // Paused timers are let go; of those that expired the deadline stays.
        Entry &entry = entries_[i];
        if (lawn::where_is(&entry.timer) == lawn::paused) {
            entry.deadline = LAWN_TIME_INFINITY;
        }
    }
    const unsigned fired = fired_;
    fired_ = 0;
    write("lawn_drain(lawn, each);");
    in_drain_ = true;
    const unsigned result = lawn_drain(lawn_, on_drained);
    in_drain_ = false;
    expect(result == fired_, "drain tells another number than it handed over");
    fired_ = fired;
    for (unsigned i = state_->first; i != nobody; i = entries_[i].next) {
        expect(!entries_[i].drained, "not drained");
        entries_[i].deferred &= in_pass_;
    }
}

void World::on_drained(lawn_timer_t *timer, lawn_time_t now)
{
    unsigned i = 0;
    World &world = *current_;
    const Entry &entry = world.entry_of(timer, &i);
    world.write("handed over: t[%u]", i);
    world.expect(now == world.state_->seen, "drained at another time");
    world.expect(entry.drained, "drained, but not running before");
    world.expect(!lawn_timer_is_active(timer), "drained, but active");
    ++world.fired_;
    ++world.calls_[static_cast<int>(lawn::Event::stop)];
    if (entry.runs) {
        world.unlink(i);
    }
    world.react(i);
}

bool World::is_first_of_its_ttl(unsigned i) const
{
    const Entry &entry = entries_[i];
    for (unsigned j = state_->first; j != i && j != nobody;
         j = entries_[j].next) {
        const Entry &earlier = entries_[j];
        const bool is_free = earlier.turnless && entry.turnless &&
                             earlier.deadline == entry.deadline;
        if (earlier.ttl == entry.ttl && !earlier.deferred && !is_free) {
            return false;
        }
    }
    return true;
}

void World::on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    unsigned i = 0;
    World &world = *current_;
    const Entry &entry = world.entry_of(timer, &i);
    world.write("expired: t[%u]", i);
    ++world.fired_;
    ++world.reached_.fired;
    ++world.calls_[static_cast<int>(lawn::Event::fire)];
    world.expect(world.in_pass_ && now == world.pass_, "expired at no advance");
    world.expect(entry.runs, "expired, but not running");
    world.expect(entry.deadline <= now, "early");
    world.expect(!entry.deferred, "started with 0 and expired in one pass");
    world.expect(!lawn_timer_is_active(timer), "expired, but active");
    world.expect(lawn_timer_deadline(timer) == entry.deadline,
                 "expired with another deadline");
    if (entry.runs) {
        world.expect(world.is_first_of_its_ttl(i), "out of order");
        world.unlink(i);
    }
    world.expect(lawn_count(world.lawn_) == world.state_->running,
                 "lawn_count() is wrong in a callback");
    world.expect(!lawn_settle(world.lawn_, 0), "settled in a callback");
    world.react(i);
}

void World::on_event(lawn::Observer *, lawn::Event event, const lawn_timer_t *,
                     lawn_time_t, lawn_time_t)
{
    ++current_->told_[static_cast<int>(event)];
}

void World::react(unsigned i)
{
    if (failure_) {
        return; // or a pass may never end
    }
    if (i < scenario_->actors) {
        act(op_.reaction.self, i);
        act(op_.reaction.other, (i + 1) % scenario_->actors);
    } else {
        act(op_.reaction.other, 0);
    }
}

void World::act(Deed deed, unsigned i)
{
    switch (deed) {
    case Deed::none:
        break;
    case Deed::start:
        start(i, scenario_->ttls[op_.ttl]);
        break;
    case Deed::start_now:
        start(i, 0);
        break;
    case Deed::start_later:
        wait(scenario_->far);
        start(i, scenario_->ttls[op_.ttl]);
        break;
    case Deed::stop:
    case Deed::pause:
        end(i, deed == Deed::pause);
        break;
    case Deed::drain:
        if (!in_drain_) {
            drain();
        }
        break;
    }
}

const char *World::apply(const Op &op)
{
    op_ = op;
    switch (op.kind) {
    case Kind::start:
        start(op.timer, scenario_->ttls[op.ttl]);
        break;
    case Kind::start_behind:
        start_at(op.timer, 0, scenario_->ttls[op.ttl]);
        break;
    case Kind::stop:
    case Kind::pause:
        end(op.timer, op.kind == Kind::pause);
        break;
    case Kind::skip:
        go_to(target_of(op.target));
        break;
    case Kind::advance:
        go_to(target_of(op.target));
        advance_to_clock(op.limit);
        break;
    case Kind::finish:
        go_to(target_of(op.target));
        finish();
        break;
    case Kind::settle:
        settle(op.limit);
        break;
    case Kind::drain:
        drain();
        break;
    }
    compare();
    return failure_;
}

const char *World::check()
{
    expect(lawn_check(lawn_) == LAWN_OK, "lawn_check() finds it corrupt");
    return failure_;
}

// What holds after every operation.
void World::compare()
{
    const lawn_time_t next = lawn_next(lawn_);
    expect(lawn_count(lawn_) == state_->running, "lawn_count() is wrong");
    expect(next <= earliest(), "lawn_next() is after the earliest deadline");
    expect(state_->running != 0 || next == LAWN_TIME_INFINITY,
           "nothing runs, but lawn_next() is not never");
    for (unsigned i = 0; i < state_->timers; ++i) {
        Entry &entry = entries_[i];
        expect(lawn_timer_is_active(&entry.timer) == entry.runs,
               "lawn_timer_is_active() is wrong");
        expect(lawn_timer_deadline(&entry.timer) == entry.deadline,
               "lawn_timer_deadline() is wrong");
        if (lawn::where_is(&entry.timer) == lawn::idle) {
            entry.timer.link = {}; // nobody may follow it
        }
    }
    reached_.crowded += lawn()->near.count() > lawn::near_count;
    for (unsigned i = 0; i < scenario_->actors; ++i) {
        note(i);
    }
    for (unsigned event = 0; scenario_->observed && event < 5; ++event) {
        expect(told_[event] == calls_[event], "an observer is not told");
        told_[event] = calls_[event] = 0;
    }
}

} // namespace exhaustive
