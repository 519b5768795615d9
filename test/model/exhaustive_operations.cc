// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The operations, on the lawn and on the model, and what must hold after each.

#include "exhaustive_world.h"

#include "base/ticks.h"

#include <inttypes.h>

namespace exhaustive
{

void World::called(lawn_event_t event)
{
    ++calls_[static_cast<int>(event)];
}

void World::see(lawn_time_t now)
{
    state_->seen = lawn::later_of(state_->seen, now);
}

void World::link(unsigned i, uint8_t q)
{
    Entry &entry = entries_[i];
    entry.runs = true;
    entry.queue = q;
    state_->running++;
    if (q == no_queue) {
        return;
    }
    QueueEntry &queue = state_->queues[q];
    entry.next = nobody;
    entry.prev = queue.last;
    uint16_t &before =
        entry.prev == nobody ? queue.first : entries_[entry.prev].next;
    before = static_cast<uint16_t>(i);
    queue.last = static_cast<uint16_t>(i);
    queue.running++;
}

// Leaves no trace of where it was.
void World::unlink(unsigned i)
{
    Entry &entry = entries_[i];
    if (entry.queue != no_queue) {
        QueueEntry &queue = state_->queues[entry.queue];
        uint16_t &before =
            entry.prev == nobody ? queue.first : entries_[entry.prev].next;
        uint16_t &behind =
            entry.next == nobody ? queue.last : entries_[entry.next].prev;
        before = entry.next;
        behind = entry.prev;
        queue.running--;
    }
    entry.next = entry.prev = 0;
    entry.queue = no_queue;
    entry.runs = entry.is_deferred = entry.is_drained = false;
    state_->running--;
}

// Before it, the time has been seen.
void World::started(unsigned i, lawn_time_t deadline, uint8_t queue)
{
    Entry &entry = entries_[i];
    if (entry.runs) {
        unlink(i);
    }
    link(i, queue);
    has_started_ = true;
    entry.is_deferred = (in_pass_ || in_drain_) && deadline <= state_->seen;
    // The last tick but one is never, too.
    entry.deadline =
        deadline < LAWN_TIME_INFINITY - 1 ? deadline : LAWN_TIME_INFINITY;
    if (!waits_.empty()) {
        waits_[i] = -1; // due from the next advance on
    }
    called(LAWN_EVENT_START);
    expect(lawn_timer_is_active(&entry.timer), "started, not active");
    expect(lawn_timer_deadline(&entry.timer) == entry.deadline,
           "started with another deadline");
}

void World::start(unsigned i, lawn_time_t now, lawn_time_t ttl)
{
    note_op(0, i);
    write("lawn_timer_start(lawn, &t[%u], %" PRIu64 "U, %" PRIu64 "U);", i, now,
          ttl);
    lawn_timer_start(lawn_, &entries_[i].timer, now, ttl);
    see(now);
    started(i, lawn::add_saturating(state_->seen, ttl), no_queue);
}

void World::start_at(unsigned i, lawn_time_t deadline)
{
    note_op(0, i);
    write("lawn_timer_start_at(lawn, &t[%u], %" PRIu64 "U, %" PRIu64 "U);", i,
          state_->clock, deadline);
    lawn_timer_start_at(lawn_, &entries_[i].timer, state_->clock, deadline);
    see(state_->clock);
    started(i, deadline, no_queue);
}

void World::enqueue(unsigned i, unsigned q)
{
    QueueEntry &queue = state_->queues[q];
    const lawn_time_t ttl = scenario_->queues[q];
    if (!queue.is_open) {
        write("lawn_queue_create(lawn, %" PRIu64 "U, &q[%u]);", ttl, q);
        opening_ = q;
        lawn_queue_t *made = nullptr;
        const lawn_status_t status = lawn_queue_create(lawn_, ttl, &made);
        expect(status == LAWN_OK && made == &queue.memory, "no queue made");
        queue.is_open = true;
    }
    note_op(3, i);
    write("lawn_queue_start(q[%u], &t[%u], %" PRIu64 "U);", q, i,
          state_->clock);
    lawn_queue_start(&queue.memory, &entries_[i].timer, state_->clock);
    see(state_->clock);
    started(i, lawn::add_saturating(state_->seen, ttl),
            static_cast<uint8_t>(q));
}

void World::close(unsigned q)
{
    QueueEntry &queue = state_->queues[q];
    if (!queue.is_open) {
        return;
    }
    write("lawn_queue_destroy(q[%u]);", q);
    for (unsigned i = 0; i < state_->timers; ++i) { // the paused ones, too
        const lawn_timer_t *const timer = &entries_[i].timer;
        if (lawn::is_linked(timer) && list_of(timer) == &queue.memory.timers) {
            called(LAWN_EVENT_STOP);
        }
    }
    lawn_queue_destroy(&queue.memory);
    queue.is_open = false;
    while (queue.first != nobody) {
        const unsigned i = queue.first;
        unlink(i);
        entries_[i].deadline = LAWN_TIME_INFINITY;
        expect(!lawn_timer_is_active(&entries_[i].timer),
               "active in a queue that is gone");
    }
}

// Stops or pauses.
void World::end(unsigned i, bool pause)
{
    Entry &entry = entries_[i];
    note_op(pause ? 2 : 1, i);
    write("lawn_timer_%s(lawn, &t[%u]); /* %s */", pause ? "pause" : "stop", i,
          entry.runs ? "true" : "false");
    called(pause ? LAWN_EVENT_PAUSE : LAWN_EVENT_STOP);
    const bool was_active = pause ? lawn_timer_pause(lawn_, &entry.timer)
                                  : lawn_timer_stop(lawn_, &entry.timer);
    expect(was_active == entry.runs, "stop or pause tells what is not so");
    expect(pause || !lawn::is_linked(&entry.timer), "stopped, but not let go");
    if (entry.runs) {
        unlink(i);
    }
    entry.deadline = LAWN_TIME_INFINITY;
}

// Everything about a pass but the call.
void World::begin_pass(lawn_time_t now)
{
    see(now);
    // The last two ticks are never.
    pass_ = lawn::earlier_of(now, LAWN_TIME_INFINITY - 2);
    before_.clear();
    for (unsigned i = 0; i < state_->timers; ++i) {
        before_.push_back(entries_[i].timer);
    }
    for (unsigned q = 0; q < most_queues; ++q) {
        alarms_before_[q] = state_->queues[q].memory.alarm.timer;
        lengths_before_[q] = length_of(q);
    }
    fired_ = 0;
    has_started_ = false;
    in_pass_ = true;
    called(LAWN_EVENT_ADVANCE);
}

void World::end_pass(lawn::Work work, unsigned budget, bool is_done)
{
    in_pass_ = false;
    bool is_due = false;
    for (unsigned i = 0; i < state_->timers; ++i) {
        Entry &entry = entries_[i];
        is_due |= entry.runs && !entry.is_deferred && entry.deadline <= pass_;
        entry.is_deferred = false;
    }
    reached_.moved += work.touched - work.fired;
    reached_.waited += is_due;
    reached_.behind += pass_ < state_->seen;
    expect(work.fired == fired_, "advance tells another number than fired");
    expect(work.fired <= work.touched, "fired more than it touched");
    expect(budget == 0 || work.touched <= budget, "more than the budget");
    expect(op_.reaction.self != Action::none ||
               op_.reaction.other != Action::none || changed() <= work.touched,
           "touched more than it tells");
    expect(!is_due || lawn_next(lawn_) == 0,
           "due, but lawn_next() is not at once");
    if (is_done) {
        expect(!is_due, "late");
        // A callback has started what is due then, and may have stopped it; or
        // something is due after the time of this pass.
        const bool may_remain =
            has_started_ ||
            (pass_ < state_->seen && !lawn::list_is_empty(&lawn()->due));
        expect(may_remain || lawn_next(lawn_) > pass_,
               "nothing due, but lawn_next() has come");
    }
}

void World::advance(unsigned budget)
{
    begin_pass(state_->clock);
    write("lawn_advance(lawn, %" PRIu64 "U, %u);", state_->clock, budget);
    const lawn::Work work = lawn::advance_as_of(lawn_, state_->clock, budget);
    end_pass(work, budget, budget == 0 || work.touched < budget);
}

void World::advance_behind(lawn_time_t now, unsigned budget)
{
    now = lawn::earlier_of(now, state_->clock);
    begin_pass(now);
    write("lawn::advance_as_of(lawn, %" PRIu64 "U, %u);", now, budget);
    const lawn::Work work = lawn::advance_as_of(lawn_, now, budget);
    end_pass(work, budget, budget == 0 || work.touched < budget);
}

// After an advance: false when a timer waits for more of them than lawn/timer.h
// says.
bool World::wait_for_due(unsigned budget, int *bound)
{
    unsigned linked = 0; // running or paused
    for (unsigned i = 0; i < state_->timers; ++i) {
        linked += lawn::is_linked(&entries_[i].timer);
    }
    const int most = 4 + static_cast<int>(budget ? 4 * linked / budget : 0);
    *bound = most < *bound ? *bound : most;
    for (unsigned i = 0; i < state_->timers; ++i) {
        const bool is_due = entries_[i].runs && entries_[i].deadline <= pass_;
        waits_[i] = is_due ? waits_[i] + 1 : 0;
        if (waits_[i] >= *bound) {
            return false;
        }
    }
    return true;
}

// By the public call. Callbacks may keep the lawn busy for ever: then for so
// long that what has to wait for all others must have fired.
void World::finish(bool is_ticking)
{
    const bool is_endless = is_ticking || op_.reaction.self != Action::none ||
                            op_.reaction.other != Action::none;
    int bound = 0;
    int rounds = 0;
    waits_.assign(state_->timers, 0);
    do {
        wait(is_ticking);
        begin_pass(state_->clock);
        write("lawn_advance(lawn, %" PRIu64 "U, %u);", state_->clock,
              op_.limit);
        const unsigned fired = lawn_advance(lawn_, state_->clock, op_.limit);
        const size_t touched =
            is_endless || fired > changed() ? fired : changed();
        end_pass({fired, touched}, op_.limit, op_.limit == 0);
        expect(wait_for_due(op_.limit, &bound), "waits for ever");
        expect(++rounds < 10'000, "does not come to an end");
        if (is_endless && rounds > 2 * bound) {
            break;
        }
    } while (!failure_ && (is_ticking || lawn_next(lawn_) <= pass_));
    expect(is_endless || earliest() > pass_, "late");
    waits_.clear();
}

void World::settle(unsigned max_touches)
{
    const lawn_time_t first = earliest();
    const lawn_time_t before = lawn_next(lawn_);
    write("lawn_settle(lawn, %u);", max_touches);
    const bool is_settled = lawn_settle(lawn_, max_touches);
    expect(lawn_next(lawn_) >= before, "settled earlier than before");
    if (is_settled) {
        expect(lawn_next(lawn_) == first, "settled, but not on the earliest");
        expect(first > state_->seen || first == LAWN_TIME_INFINITY,
               "settled, but something is due");
        return;
    }
    unsigned linked = 0; // alarms and marks count, too
    for (unsigned i = 0; i < state_->timers; ++i) {
        linked += lawn::is_linked(&entries_[i].timer);
    }
    for (const QueueEntry &queue : state_->queues) {
        linked += lawn::is_linked(&queue.memory.alarm.timer);
        linked += lawn::is_linked(&queue.memory.mark);
    }
    expect((max_touches != 0 && max_touches < linked) || first <= state_->seen,
           "not settled without a reason");
}

void World::drain()
{
    for (unsigned i = 0; i < state_->timers; ++i) {
        entries_[i].is_drained = entries_[i].runs;
    }
    const unsigned fired = fired_;
    fired_ = 0;
    write("lawn_drain(lawn, each);");
    in_drain_ = true;
    const unsigned result = lawn_drain(lawn_, on_drained);
    in_drain_ = false;
    expect(result == fired_, "drain tells another number than it handed over");
    fired_ = fired;
    for (unsigned i = 0; i < state_->timers; ++i) {
        expect(!entries_[i].is_drained, "not drained");
        expect(entries_[i].runs == lawn::is_linked(&entries_[i].timer) ||
                   op_.reaction.other == Action::pause,
               "drained, but not let go");
        entries_[i].is_deferred &= in_pass_;
    }
}

void World::on_drained(lawn_timer_t *timer, lawn_time_t now)
{
    unsigned i = 0;
    World &world = *current_;
    Entry &entry = world.entry_of(timer, &i);
    world.write("handed over: t[%u]", i);
    world.expect(now == world.state_->seen, "drained at another time");
    world.expect(entry.is_drained, "drained, but not running before");
    world.expect(!lawn_timer_is_active(timer), "drained, but active");
    ++world.fired_;
    world.called(LAWN_EVENT_STOP);
    if (entry.runs) {
        world.unlink(i);
    }
    if (entry.deadline == 0) {
        entry.deadline = LAWN_TIME_INFINITY;
    }
    world.react(i);
}

void World::on_expired(lawn_timer_t *timer, lawn_time_t now)
{
    unsigned i = 0;
    World &world = *current_;
    Entry &entry = world.entry_of(timer, &i);
    world.write("expired: t[%u]", i);
    ++world.fired_;
    ++world.reached_.fired;
    world.called(LAWN_EVENT_FIRE);
    world.expect(world.in_pass_ && now == world.pass_, "expired at no advance");
    world.expect(entry.runs, "expired, but not running");
    world.expect(entry.deadline <= now, "early");
    world.expect(!entry.is_deferred, "started and expired in one pass");
    world.expect(!lawn_timer_is_active(timer), "expired, but active");
    if (entry.deadline == 0) { // who could tell
        entry.deadline = LAWN_TIME_INFINITY;
    }
    world.expect(lawn_timer_deadline(timer) == entry.deadline,
                 "expired with another deadline");
    if (entry.runs) {
        world.expect(entry.queue == no_queue ||
                         world.state_->queues[entry.queue].first == i,
                     "out of order");
        world.unlink(i);
    }
    world.expect(lawn_count(world.lawn_) == world.state_->running,
                 "lawn_count() is wrong in a callback");
    world.expect(!lawn_settle(world.lawn_, 0), "settled in a callback");
    world.react(i);
}

void World::on_event(lawn_observer_t *, lawn_event_t event,
                     const lawn_timer_t *, lawn_time_t, lawn_time_t)
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

void World::act(Action action, unsigned i)
{
    switch (action) {
    case Action::none:
        break;
    case Action::start:
        start(i, scenario_->ttls[op_.which]);
        break;
    case Action::start_now:
        start(i, 0);
        break;
    case Action::start_later:
        wait(scenario_->far);
        start(i, scenario_->ttls[op_.which]);
        break;
    case Action::start_past:
        start_at(i, time_of(Target::past, i));
        break;
    case Action::enqueue:
        enqueue(i, op_.which);
        break;
    case Action::close:
        close(op_.which);
        break;
    case Action::stop:
    case Action::pause:
        end(i, action == Action::pause);
        break;
    case Action::drain:
        if (!in_drain_) {
            drain();
        }
        break;
    }
}

const char *World::apply(const Op &op)
{
    op_ = op;
    const lawn_time_t time = time_of(op.target, op.timer);
    switch (op.kind) {
    case Kind::start:
        start(op.timer, scenario_->ttls[op.which]);
        break;
    case Kind::start_behind:
        start(op.timer, 0, scenario_->ttls[op.which]);
        break;
    case Kind::start_at:
        start_at(op.timer, time);
        break;
    case Kind::enqueue:
        enqueue(op.timer, op.which);
        break;
    case Kind::close:
        close(op.which);
        break;
    case Kind::stop:
    case Kind::pause:
        end(op.timer, op.kind == Kind::pause);
        break;
    case Kind::skip:
        go_to(time);
        break;
    case Kind::advance:
        go_to(time);
        advance(op.limit);
        break;
    case Kind::advance_behind:
        advance_behind(time, op.limit);
        break;
    case Kind::finish:
    case Kind::endure:
        go_to(time);
        finish(op.kind == Kind::endure);
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

} // namespace exhaustive
