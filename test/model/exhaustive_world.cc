// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Making a world, preparing it, telling what is done to it, and what is met in
// it.

#include "exhaustive_world.h"

#include "base/ticks.h"

#include <sys/mman.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

namespace exhaustive
{

namespace
{

constexpr size_t most_timers = 200;
constexpr size_t lawn_size = (sizeof(lawn::Lawn) + 127) / 64 * 64;
constexpr size_t arena_size =
    lawn_size + sizeof(State) + most_timers * sizeof(Entry);

bool is_listed(const lawn_link_t *head, const lawn_link_t *link)
{
    for (const lawn_link_t *i = head->next; i != head; i = i->next) {
        if (i == link) {
            return true;
        }
    }
    return false;
}

void forget_if_idle(lawn_timer_t *timer)
{
    if (!lawn::is_linked(timer)) {
        timer->link = {};
        // Of what has fired, it tells the deadline.
        timer->check = timer->deadline == 0 ? timer->check : 0;
    }
}

void forget_passes(lawn_link_t *list, lawn_time_t round)
{
    for (lawn_link_t *i = list->next; i != list; i = i->next) {
        lawn_time_t &check = lawn::timer_of(i)->check;
        check = lawn::open_limit + (check >= round);
    }
}

} // namespace

World *World::current_;

World::World()
{
    void *const memory = mmap(nullptr, arena_size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        abort();
    }
    arena_ = static_cast<unsigned char *>(memory);
    state_ = reinterpret_cast<State *>(arena_ + lawn_size);
    entries_ = reinterpret_cast<Entry *>(state_ + 1);
    observer_.event = on_event;
    current_ = this;
}

World::~World()
{
    munmap(arena_, arena_size);
    current_ = nullptr;
}

void *World::allocate(void *arg, size_t size)
{
    World *const world = static_cast<World *>(arg);
    if (size == sizeof(lawn::Queue)) {
        return &world->state_->queues[world->opening_].memory;
    }
    return size <= lawn_size ? world->arena_ : nullptr;
}

// Nothing of a queue stays: who follows a link to it goes to 0.
void World::release(void *, void *memory)
{
    memset(memory, 0, sizeof(lawn::Queue));
}

void World::open(const Scenario &scenario)
{
    scenario_ = &scenario;
    failure_ = nullptr;
    op_ = {};
    waits_.clear();
    memset(static_cast<void *>(state_), 0, sizeof(State));
    state_->clock = scenario.clock;
    for (QueueEntry &queue : state_->queues) {
        queue.first = queue.last = nobody;
    }
    lawn_params_t params = {};
    params.allocator.alloc = allocate;
    params.allocator.release = release;
    params.allocator.arg = this;
    expect(lawn_create(&params, &lawn_) == LAWN_OK, "not created");
    if (scenario.observed) {
        write("/* observed */");
        lawn_observe(lawn_, &observer_);
    }
    for (unsigned i = 0; i < scenario.actors; ++i) {
        add();
    }
    if (!scenario.is_new) {
        // Its slots are then counted from the clock on.
        const Reached before = reached_;
        start(0, 0);
        advance(0);
        stop(0);
        reached_ = before;
    }
    if (scenario.prepare) {
        scenario.prepare(*this);
    }
    compare();
    image_.reset(arena_,
                 lawn_size + sizeof(State) + state_->timers * sizeof(Entry));
}

lawn::Lawn *World::lawn() const
{
    return lawn::impl_of(lawn_);
}

Image &World::image()
{
    return image_;
}

Reached &World::reached()
{
    return reached_;
}

void World::write_to(FILE *script)
{
    script_ = script;
}

// A line of the script; what callbacks do is a comment.
void World::write(const char *format, ...)
{
    if (!script_) {
        return;
    }
    va_list args;
    va_start(args, format);
    fputs(in_pass_ || in_drain_ ? "    //   " : "    ", script_);
    vfprintf(script_, format, args);
    fputc('\n', script_);
    fflush(script_);
    va_end(args);
}

void World::expect(bool is_so, const char *otherwise)
{
    if (!is_so && !failure_) {
        failure_ = otherwise;
        write("/* %s */", otherwise);
    }
}

unsigned World::add()
{
    const unsigned i = state_->timers++;
    if (i >= most_timers) {
        abort();
    }
    entries_[i] = {};
    lawn_timer_init(&entries_[i].timer, on_expired);
    entries_[i].deadline = LAWN_TIME_INFINITY;
    entries_[i].queue = no_queue;
    return i;
}

void World::start(unsigned timer, lawn_time_t ttl)
{
    start(timer, state_->clock, ttl);
}

void World::stop(unsigned timer)
{
    end(timer, false);
}

void World::pause(unsigned timer)
{
    end(timer, true);
}

void World::wait(lawn_time_t time)
{
    go_to(lawn::add_saturating(state_->clock, time));
}

Entry &World::entry_of(const lawn_timer_t *timer, unsigned *index)
{
    *index = static_cast<unsigned>(reinterpret_cast<const Entry *>(timer) -
                                   entries_);
    return entries_[*index];
}

void World::go_to(lawn_time_t clock)
{
    state_->clock = lawn::later_of(state_->clock, clock);
}

lawn_time_t World::ago(lawn_time_t time) const
{
    return state_->clock - lawn::earlier_of(state_->clock, time);
}

lawn_time_t World::earliest() const
{
    lawn_time_t earliest = LAWN_TIME_INFINITY;
    for (unsigned i = 0; i < state_->timers; ++i) {
        if (entries_[i].runs) {
            earliest = lawn::earlier_of(earliest, entries_[i].deadline);
        }
    }
    return earliest;
}

lawn_time_t World::time_of(Target target, unsigned timer) const
{
    const lawn_time_t clock = state_->clock;
    lawn_time_t last = 0;
    for (unsigned i = 0; i < state_->timers; ++i) {
        const lawn_time_t deadline = entries_[i].deadline;
        if (entries_[i].runs && deadline != LAWN_TIME_INFINITY) {
            last = lawn::later_of(last, deadline);
        }
    }
    const lawn_time_t first = last == 0 ? clock : earliest();
    const lawn_time_t next = lawn_next(lawn_);
    const Entry &entry = entries_[timer];
    const lawn_time_t own = entry.runs ? entry.deadline : clock;
    switch (target) {
    case Target::now:
        break;
    case Target::tick:
        return lawn::add_saturating(clock, 1);
    case Target::next:
        return next == LAWN_TIME_INFINITY ? clock : next;
    case Target::before:
        return first - (last != 0 && first != 0);
    case Target::at:
        return first;
    case Target::after:
        return lawn::add_saturating(first, last != 0);
    case Target::last:
        return last == 0 ? clock : last;
    case Target::slot:
        return lawn::add_saturating(clock, scenario_->width -
                                               clock % scenario_->width);
    case Target::wrap:
        return lawn::add_saturating(clock, 65 * scenario_->width);
    case Target::far:
        return lawn::add_saturating(clock, scenario_->far);
    case Target::past:
        return ago(scenario_->far / 2);
    case Target::zero:
        return 0;
    case Target::sooner:
        return own - (own != 0);
    case Target::later:
        return lawn::add_saturating(own, scenario_->far);
    }
    return clock;
}

// The head of the list that a timer is in.
const lawn_link_t *World::list_of(const lawn_timer_t *timer) const
{
    const lawn_link_t *link = &timer->link;
    for (;;) {
        const size_t inside = static_cast<size_t>(
            reinterpret_cast<const unsigned char *>(link) - arena_);
        bool is_head = inside < lawn_size;
        for (const QueueEntry &queue : state_->queues) {
            is_head |= link == &queue.memory.timers;
        }
        if (is_head) {
            return link;
        }
        link = link->next;
    }
}

// Of the list, the paused included.
unsigned World::length_of(unsigned q) const
{
    const QueueEntry &queue = state_->queues[q];
    const lawn_link_t *const head = &queue.memory.timers;
    unsigned length = 0;
    for (const lawn_link_t *i = head->next; queue.is_open && i != head;
         i = i->next) {
        length += i != &queue.memory.mark.link;
    }
    return length;
}

// Timers that are not where they were before the pass; and alarms that were
// touched while no timer of their queue was, which counts instead.
unsigned World::changed() const
{
    const auto has_moved = [](const lawn_timer_t &now,
                              const lawn_timer_t &before) {
        return lawn::is_linked(&now) != lawn::is_linked(&before) ||
               (lawn::is_linked(&now) && now.check != before.check);
    };
    unsigned count = 0;
    for (unsigned i = 0; i < state_->timers; ++i) {
        count += has_moved(entries_[i].timer, before_[i]);
    }
    for (unsigned q = 0; q < most_queues; ++q) {
        count +=
            length_of(q) == lengths_before_[q] &&
            has_moved(state_->queues[q].memory.alarm.timer, alarms_before_[q]);
    }
    return count;
}

Place World::place_of(unsigned i) const
{
    const Entry &entry = entries_[i];
    const lawn_timer_t *const timer = &entry.timer;
    if (!lawn::is_linked(timer)) {
        return idle;
    }
    if (in_drain_ && entry.is_drained) {
        return drained;
    }
    const lawn_link_t *const list = list_of(timer);
    if (list == &lawn()->due) {
        return entry.is_deferred ? deferred : due;
    }
    const bool is_paused = lawn::is_paused(timer);
    const lawn_link_t *const first = lawn()->slots;
    if (list < first || list >= first + lawn::class_count * lawn::slot_count) {
        return is_paused ? queue_paused : queued;
    }
    const unsigned c = static_cast<unsigned>(list - first) / lawn::slot_count;
    if (is_paused) {
        return paused;
    }
    return lawn::slot_of(c, timer->check) == lawn::slot_of(c, timer->deadline)
               ? filed
               : rearmed;
}

void World::note_op(unsigned op, unsigned i)
{
    if (i < scenario_->actors) {
        ++reached_.ops[op][place_of(i)];
    }
}

void World::note()
{
    const lawn::Lawn *const l = lawn();
    for (unsigned c = 0; c < lawn::class_count; ++c) {
        for (uint64_t bits = l->filled[c]; bits != 0; bits &= bits - 1) {
            const lawn_link_t *const slot =
                &l->slots[lawn::index_of(c, lawn::lowest_bit(bits))];
            reached_.stale += lawn::list_is_empty(slot);
            if (!lawn::list_is_empty(slot)) {
                reached_.late += lawn::timer_of(slot->next)->check !=
                                 lawn::timer_of(slot->prev)->check;
            }
            for (unsigned i = 0; i < scenario_->actors; ++i) {
                if (is_listed(slot, &entries_[i].timer.link)) {
                    reached_.classes.set(c);
                }
            }
        }
    }
    reached_.left += l->round_time != l->done;
    reached_.settled += l->inline_limit == 0 && !l->observer;
    for (const QueueEntry &queue : state_->queues) {
        if (queue.is_open && lawn::is_linked(&queue.memory.alarm.timer)) {
            const lawn_time_t alarm = queue.memory.alarm.timer.deadline;
            const bool is_empty = queue.first == nobody;
            reached_.empty_alarm += is_empty;
            reached_.early_alarm +=
                !is_empty && alarm < entries_[queue.first].deadline;
        }
    }
}

void World::on_counted(const lawn_timer_t *timer, void *count)
{
    unsigned i = 0;
    const Entry &entry = current_->entry_of(timer, &i);
    current_->expect(i < current_->state_->timers && entry.runs,
                     "lawn_for_each() shows what does not run");
    ++*static_cast<unsigned *>(count);
}

const char *World::check()
{
    expect(lawn_check(lawn_) == LAWN_OK, "lawn_check() finds it corrupt");
    unsigned count = 0;
    lawn_for_each(lawn_, on_counted, &count);
    expect(count == state_->running, "lawn_for_each() does not show all");
    return failure_;
}

// What nobody may look at, and would tell equal states apart.
void World::forget_remains()
{
    lawn::Lawn *const l = lawn();
    // Of an advance that has ended:
    l->pass_time = l->quiet_until = l->budget_left = l->unfired = 0;
    for (unsigned i = 0; i < state_->timers; ++i) {
        forget_if_idle(&entries_[i].timer);
    }
    // The next advance is of no pass before, and no matter of which. Of a check
    // in `due` it matters only whether the round that is not done has it.
    const bool is_done = l->round_time == l->done;
    forget_passes(&l->due, is_done ? LAWN_TIME_INFINITY : l->round_check);
    l->round_check = l->due_check = lawn::open_limit + 1;
    for (QueueEntry &queue : state_->queues) {
        forget_if_idle(&queue.memory.alarm.timer);
        if (queue.is_open) {
            forget_passes(&queue.memory.timers, 0);
        }
    }
}

// What holds after every operation.
void World::compare()
{
    const lawn_time_t next = lawn_next(lawn_);
    expect(lawn_count(lawn_) == state_->running, "lawn_count() is wrong");
    expect(lawn_now(lawn_) == state_->seen, "lawn_now() is wrong");
    expect(next <= earliest(), "lawn_next() is after the earliest deadline");
    expect(state_->running != 0 || next == LAWN_TIME_INFINITY,
           "nothing runs, but lawn_next() is not never");
    for (unsigned i = 0; i < state_->timers; ++i) {
        const Entry &entry = entries_[i];
        expect(lawn_timer_is_active(&entry.timer) == entry.runs,
               "lawn_timer_is_active() is wrong");
        expect(lawn_timer_deadline(&entry.timer) == entry.deadline,
               "lawn_timer_deadline() is wrong");
    }
    for (unsigned q = 0; q < most_queues; ++q) {
        const QueueEntry &queue = state_->queues[q];
        if (queue.is_open) {
            expect(lawn_queue_count(&queue.memory) == queue.running,
                   "lawn_queue_count() is wrong");
            expect(lawn_queue_ttl(&queue.memory) == scenario_->queues[q],
                   "lawn_queue_ttl() is wrong");
        }
    }
    for (unsigned event = 0; scenario_->observed && event < 5; ++event) {
        expect(told_[event] == calls_[event], "an observer is not told");
    }
    for (unsigned event = 0; event < 5; ++event) {
        told_[event] = calls_[event] = 0;
    }
    forget_remains();
    note();
}

} // namespace exhaustive
