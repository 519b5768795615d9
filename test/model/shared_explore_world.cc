// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The threads, by the steps of shared_ops.h. What shared.cc adds to these is
// here as it is there.

#include "shared_explore_world.h"

#include "shared/shared_ops.h"

#include <string.h>

#include <algorithm>
#include <iterator>
#include <memory>

namespace shared_explore
{

namespace
{

World *world; // that is explored

constexpr unsigned fresh_live = 2; // the lawn and the box

template <class T> uint64_t bits_of(T value)
{
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<uintptr_t>(value);
    } else {
        return static_cast<uint64_t>(value);
    }
}

template <class T> T of_bits(uint64_t bits)
{
    if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<T>(static_cast<uintptr_t>(bits));
    } else {
        return static_cast<T>(bits);
    }
}

// What an access has found. What the thread makes of it, and no more, is part
// of its state: of a comparison, the answer.
template <class T> class Found
{
public:
    explicit Found(T value) : value_(value)
    {
    }

    operator T() const
    {
        world->see(bits_of(value_));
        return value_;
    }

    Found operator&(T mask) const
    {
        return Found(value_ & mask);
    }

    template <class U> friend bool operator==(Found a, U b)
    {
        return a.seen(bits_of(a.value_) == bits_of(b));
    }

    template <class U> friend bool operator!=(Found a, U b)
    {
        return a.seen(bits_of(a.value_) != bits_of(b));
    }

    template <class U> friend bool operator>=(U a, Found b)
    {
        return b.seen(a >= b.value_);
    }

private:
    static bool seen(bool answer)
    {
        world->see(answer);
        return answer;
    }

    T value_;
};

template <class T>
Found<T> act(Kind kind, const T *at, uint64_t value, uint64_t expected = 0)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return Found<T>(of_bits<T>(
        world->act({kind, sizeof(T), const_cast<T *>(at), value, expected})));
}

// Every access is a step.
struct Explore {
    template <class T> static Found<T> load(const T *from)
    {
        return act(Kind::load, from, 0);
    }

    template <class T> static void store(T *to, T value)
    {
        act(Kind::store, to, bits_of(value));
    }

    template <class T> static void put(T *to, T value)
    {
        act(Kind::put, to, bits_of(value));
    }

    template <class T> static Found<T> exchange(T *at, T value)
    {
        return act(Kind::exchange, at, bits_of(value));
    }

    template <class T> static bool swap(T *at, T *expected, T value)
    {
        const Found<T> was =
            act(Kind::swap, at, bits_of(value), bits_of(*expected));
        if (was == *expected) {
            return true;
        }
        *expected = was;
        return false;
    }

    static Found<uintptr_t> add(uintptr_t *at, uintptr_t value)
    {
        return act(Kind::add, at, value);
    }

    static Found<uintptr_t> set(uintptr_t *at, uintptr_t bits)
    {
        return act(Kind::set, at, bits);
    }

    static Found<uintptr_t> clear(uintptr_t *at, uintptr_t bits)
    {
        return act(Kind::clear, at, bits);
    }

    struct Patience {
        static void wait()
        {
            world->pause();
        }
    };
};

using Ops = lawn::SharedOps<Explore>;

} // namespace

World::World(const Scenario &scenario, const Fault *fault)
    : scenario_(scenario), fault_(fault), explorer_(this),
      weakness_(&explorer_, fault), arena_{}
{
    unsigned id = 0;
    const auto enrol = [&](std::vector<Op> *ops) {
        for (Op &op : *ops) {
            op.id = ++id;
            starts_[id] = &op;
            if (op.what == Do::start || op.what == Do::local) {
                times_.push_back(op.time);
            }
        }
    };
    enrol(&scenario_.before);
    for (std::vector<Op> &ops : scenario_.threads) {
        enrol(&ops);
    }
    enrol(&scenario_.on_fire);
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
}

Result World::explore(const Scenario &scenario, const Fault *fault,
                      uint64_t most_runs, bool merges)
{
    const auto it = std::make_unique<World>(scenario, fault);
    return it->explorer_.explore(most_runs, merges);
}

// As lawn_box_create(), with the callbacks of this file. The second time and
// later from memory, which is faster.
void World::make_box()
{
    if (!fresh_.empty()) {
        memcpy(arena_, fresh_.data(), fresh_.size());
        live_ = fresh_live;
        return;
    }
    lawn_params_t params = {};
    params.allocator.alloc = on_allocate;
    params.allocator.release = on_release;
    params.allocator.arg = this;
    lawn_create(&params, &lawn_);

    box_ = static_cast<lawn_box_t *>(on_allocate(this, sizeof(*box_)));
    Ops::open(box_, lawn_, on_plain, on_drain);
    box_->wake = on_wake;
    fresh_.assign(arena_, arena_ + allocated_);
}

unsigned World::begin()
{
    world = this;
    past_ = {};
    std::fill(std::begin(frames_), std::end(frames_), nullptr);
    weakness_.reset();
    make_box();
    for (unsigned i = 0; i < scenario_.timers; ++i) {
        Ops::init(&timers_[i], box_, on_plain, on_expired);
    }
    for (const Op &op : scenario_.before) {
        apply(op);
    }
    return static_cast<unsigned>(scenario_.threads.size());
}

void World::run(unsigned thread)
{
    for (const Op &op : scenario_.threads[thread]) {
        apply(op);
    }
}

unsigned World::who() const
{
    return explorer_.running();
}

uint64_t World::act(const Access &access)
{
    Context context = {};
    if (const Frame *const frame = frames_[who()]) {
        context.what = frame->what;
        context.deadline = frame->op->time;
        context.cover = frame->cover;
    }
    context.field = fault_ ? place_of(access.at).field : Field::other;
    return weakness_.access(access, context);
}

void World::see(uint64_t value)
{
    explorer_.remember(value);
}

void World::pause()
{
    explorer_.pause();
}

// A step in which others may do something.
void World::touch()
{
    explorer_.access({Kind::load, sizeof(past_.scratch), &past_.scratch, 0, 0});
}

void World::apply(const Op &op)
{
    Frame *&top = frames_[who()];
    Frame frame = {};
    frame.op = &op;
    frame.parent = top;
    frame.what = op.what;
    top = &frame;
    explorer_.may_spin(op.what == Do::sync || op.what == Do::destroy);
    const bool result = call(op, &frame);
    explorer_.may_spin(false);
    if (!frame.has_begun) {
        on_begin(&frame);
    }
    on_return(frame, result);
    top = frame.parent;
    if (!top && who() != nobody) {
        explorer_.forget(mix(op.id, who() == 0 ? lawn_hash() : 0));
    }
}

bool World::call(const Op &op, Frame *frame)
{
    lawn_shared_t *const timer = &timers_[op.timer];
    switch (op.what) {
    case Do::start:
        return Ops::start(timer, op.time);
    case Do::local:
        return start_local(timer, op.time);
    case Do::stop:
        return Ops::stop(timer);
    case Do::sync:
        Ops::sync(timer);
        break;
    case Do::retire:
        Ops::retire(timer, on_released);
        break;
    case Do::pass:
        frame->what = Do::drain;
        drain(op.time, op.budget);
        frame->what = Do::advance;
        lawn_advance(lawn_, op.time, op.budget);
        break;
    case Do::drain:
        drain(op.time, op.budget);
        break;
    case Do::advance:
        lawn_advance(lawn_, op.time, op.budget);
        break;
    case Do::sleep:
        sleep(op.time, true);
        break;
    case Do::doze:
        sleep(op.time, false);
        break;
    case Do::empty:
        lawn_drain(lawn_, nullptr);
        break;
    case Do::destroy:
        Ops::destroy(box_, on_plain);
        break;
    }
    return true;
}

// As lawn_box_drain().
void World::drain(lawn_time_t now, unsigned budget)
{
    if (Explore::load(&box_->head) != 0 || box_->taken) {
        Ops::drain(box_, now, budget);
    }
}

// As lawn_shared_start_local().
bool World::start_local(lawn_shared_t *timer, lawn_time_t deadline)
{
    if (deadline >= Explore::load(&timer->cover) &&
        deadline < LAWN_TIME_INFINITY) {
        Explore::put(&timer->deadline, deadline);
        return true;
    }
    return Ops::start_local(timer, deadline);
}

void World::sleep(lawn_time_t until, bool stays)
{
    until = lawn::earlier_of(until, lawn_next(lawn_));
    if (!Ops::sleep(box_, until)) {
        return;
    }
    ++past_.sleeps;
    past_.woken = 0;
    if (!stays || until <= lawn_->now) {
        return; // It wakes by itself.
    }
    explorer_.wait();
    for (unsigned i = 0; i < scenario_.timers && past_.woken == 0; ++i) {
        fail_if(past_.retire[i] != not_yet && past_.released[i] == 0,
                "the owner sleeps through a retire");
        const uint64_t id = past_.holder[i];
        fail_if(id != 0 && starts_[id]->time < until,
                "the owner sleeps through a start");
    }
}

void World::on_plain(lawn_timer_t *timer, lawn_time_t now)
{
    Ops::expire(Ops::of(timer), now);
    world->end_run(world->index_of(Ops::of(timer)));
}

void World::on_drain(lawn_timer_t *timer)
{
    Ops::uncover(Ops::of(timer));
}

void World::on_expired(lawn_shared_t *timer, lawn_time_t now)
{
    world->fire(world->index_of(timer), now);
}

// A step goes before it: a start may return between the owner's last look at
// the timer and the call.
void World::on_released(lawn_shared_t *timer, lawn_time_t)
{
    world->touch();
    world->release(world->index_of(timer));
}

void World::on_wake(void *)
{
    Past &past = world->past_;
    world->fail_if(past.destroy == returned, "wakes when destroy has returned");
    world->touch();
    world->fail_if(past.destroy == returned, "wakes when destroy has returned");
    past.woken = 1;
    world->fail_if(++past.wakes > past.sleeps, "wakes twice from one sleep");
}

void *World::on_allocate(void *arg, size_t size)
{
    World *const self = static_cast<World *>(arg);
    size = (size + 63) / 64 * 64;
    if (self->allocated_ + size > sizeof(self->arena_)) {
        return nullptr;
    }
    void *const memory = self->arena_ + self->allocated_;
    self->allocated_ += size;
    ++self->live_;
    return memory;
}

void World::on_release(void *arg, void *memory)
{
    World *const self = static_cast<World *>(arg);
    --self->live_;
    if (memory == self->box_) {
        self->fail_if(++self->past_.box_frees > 1, "frees the box twice");
    }
}

bool World::is_ready(unsigned thread) const
{
    return past_.woken != 0 || explorer_.is_alone(thread);
}

} // namespace shared_explore
