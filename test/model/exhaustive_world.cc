// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Making a world, preparing it, and telling what is done to it and met in it.

#include "exhaustive_world.h"

#include "exhaustive_blockers.h"

#include "base/ticks.h"

#include <sys/mman.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

namespace exhaustive
{

namespace
{

constexpr size_t most_timers = 1500;
constexpr size_t lawn_size = (sizeof(lawn::Lawn) + 127) / 64 * 64;
constexpr size_t arena_size =
    lawn_size + sizeof(State) + most_timers * sizeof(Entry);

} // namespace

World *World::current_;

// The lawn, the state and the timers are at the same addresses in every run
// where the system has these free: the shape of the tree depends on them.
World::World()
{
    void *const hint = reinterpret_cast<void *>(uintptr_t{1} << 45);
    void *const memory = mmap(hint, arena_size, PROT_READ | PROT_WRITE,
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
    return size <= lawn_size ? static_cast<World *>(arg)->arena_ : nullptr;
}

void World::release(void *, void *)
{
}

void World::open(const Scenario &scenario)
{
    scenario_ = &scenario;
    failure_ = nullptr;
    op_ = {};
    memset(static_cast<void *>(state_), 0, sizeof(State));
    state_->clock = scenario.clock;
    state_->first = nobody;
    state_->last = nobody;
    lawn_params_t params = {};
    params.allocator.alloc = allocate;
    params.allocator.release = release;
    params.allocator.arg = this;
    params.max_moves = scenario.max_moves;
    expect(lawn_create(&params, &lawn_) == LAWN_OK, "not created");
    write("/* max_moves = %u%s */", scenario.max_moves,
          scenario.observed ? ", observed" : "");
    if (scenario.observed) {
        lawn::observe(lawn_, &observer_);
    }
    for (unsigned i = 0; i < scenario.actors; ++i) {
        add();
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
    return i;
}

void World::start(unsigned timer, lawn_time_t ttl)
{
    start_at(timer, state_->clock, ttl);
}

void World::stop(unsigned timer)
{
    end(timer, false);
}

void World::wait(lawn_time_t time)
{
    go_to(lawn::add_saturating(state_->clock, time));
}

void World::advance(unsigned budget)
{
    advance_to_clock(budget);
}

void World::use_up_turns(unsigned timer, unsigned left)
{
    FILE *const script = script_;
    write("for (uint64_t n = %" PRIu64 "U; n < %" PRIu64 "U; ++n)",
          state_->starts, last_turn - left);
    while (state_->starts < last_turn - left) {
        start(timer, entries_[timer].ttl);
        script_ = nullptr; // one call is enough
    }
    script_ = script;
}

void World::block(lawn_time_t ttl)
{
    static const Blockers blockers;
    lawn::Queue *const queues = lawn()->queues;
    while (lawn::Queue *const free = lawn::single_queue(queues, ttl)) {
        const unsigned q = static_cast<unsigned>(free - queues);
        const unsigned i = add();
        start(i, blockers.ttl_for(q));
        expect(lawn::queue_of(&entries_[i].timer) == q &&
                   entries_[i].deadline == LAWN_TIME_INFINITY,
               "not blocked for ever");
    }
}

Entry &World::entry_of(lawn_timer_t *timer, unsigned *index)
{
    Entry *const entry = reinterpret_cast<Entry *>(timer);
    *index = static_cast<unsigned>(entry - entries_);
    return *entry;
}

void World::go_to(lawn_time_t clock)
{
    state_->clock = lawn::later_of(state_->clock, clock);
}

lawn_time_t World::target_of(Target target) const
{
    lawn_time_t last = 0;
    for (unsigned i = state_->first; i != nobody; i = entries_[i].next) {
        const lawn_time_t deadline = entries_[i].deadline;
        last = deadline == LAWN_TIME_INFINITY ? last
                                              : lawn::later_of(last, deadline);
    }
    const lawn_time_t first = last == 0 ? state_->clock : earliest();
    const lawn_time_t next = lawn_next(lawn_);
    switch (target) {
    case Target::now:
        break;
    case Target::tick:
        return lawn::add_saturating(state_->clock, 1);
    case Target::next:
        return next == LAWN_TIME_INFINITY ? 0 : next;
    case Target::before:
        return first - 1;
    case Target::at:
        return first;
    case Target::after:
        return last == 0 ? 0 : lawn::add_saturating(first, 1);
    case Target::last:
        return last;
    case Target::far:
        return lawn::add_saturating(state_->clock, scenario_->far);
    }
    return state_->clock;
}

void World::note_op(unsigned op, unsigned i)
{
    if (i < scenario_->actors) {
        ++reached_.ops[op][lawn::where_is(&entries_[i].timer)];
    }
}

void World::note(unsigned i)
{
    const lawn_timer_t *const timer = &entries_[i].timer;
    if (!lawn::is_in_queue(timer)) {
        return;
    }
    const uint64_t where = lawn::where_is(timer);
    const unsigned q = lawn::queue_of(timer);
    ++(lawn::is_single(q) ? reached_.in_single : reached_.in_class)[where];
    reached_.coarse += lawn()->queues[q].shift != 0;
    if (!lawn::is_single(q)) {
        reached_.classes.set(q);
    }
    for (unsigned j = 0; where == lawn::native && j < i; ++j) {
        const lawn_timer_t *const other = &entries_[j].timer;
        reached_.split += lawn::where_is(other) == lawn::native &&
                          entries_[j].ttl == entries_[i].ttl &&
                          lawn::queue_of(other) != q;
    }
}

} // namespace exhaustive
