// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What bench/count-instructions runs under callgrind: each operation a thousand
// times, in a function of its own. One TTL, a tick between starts; then the
// same by a queue for that TTL. Passes of an engine that has nothing to do,
// before and after it has a box for shared timers; and re-arms by their owner.

#include "finish.h"

#include <lawn/engine.h>
#include <lawn/queue.h>
#include <lawn/shared.h>
#include <lawn/timer.h>

#include <cstdio>
#include <vector>

namespace
{

constexpr size_t timers = 1000;
constexpr lawn_time_t ttl = 1'000'000;

struct World {
    lawn_t *lawn = nullptr;
    lawn_queue_t *queue = nullptr;
    lawn_engine_t *engine = nullptr;
    lawn_shared_t shared = {};
    std::vector<lawn_timer_t> timers;
    lawn_time_t now = 1000;
};

lawn_time_t clock_of(void *arg)
{
    return static_cast<World *>(arg)->now;
}

void on_expired(lawn_timer_t *, lawn_time_t)
{
}

template <class Operation> void repeat(World &world, Operation &&operation)
{
    for (lawn_timer_t &timer : world.timers) {
        ++world.now;
        operation(world, timer);
    }
}

void start_one(World &world, lawn_timer_t &timer)
{
    lawn_timer_start(world.lawn, &timer, world.now, ttl);
}

void queue_one(World &world, lawn_timer_t &timer)
{
    lawn_queue_start(world.queue, &timer, world.now);
}

void expire_all(World &world)
{
    lawn_advance(world.lawn, world.now += 2 * ttl, 0);
}

} // namespace

#define OPERATION(name) extern "C" __attribute__((noinline)) void name

OPERATION(op_nothing)(World &world)
{
    repeat(world, [](World &, lawn_timer_t &timer) {
        __asm__ volatile("" ::"r"(&timer));
    });
}

OPERATION(op_start)(World &world)
{
    repeat(world, start_one);
}

OPERATION(op_re_arm)(World &world)
{
    repeat(world, start_one);
}

OPERATION(op_pause)(World &world)
{
    repeat(world, [](World &w, lawn_timer_t &timer) {
        lawn_timer_pause(w.lawn, &timer);
    });
}

OPERATION(op_start_paused)(World &world)
{
    repeat(world, start_one);
}

OPERATION(op_stop)(World &world)
{
    repeat(world, [](World &w, lawn_timer_t &timer) {
        lawn_timer_stop(w.lawn, &timer);
    });
}

OPERATION(op_idle_advance)(World &world)
{
    repeat(world,
           [](World &w, lawn_timer_t &) { lawn_advance(w.lawn, w.now, 64); });
}

OPERATION(op_expiry)(World &world)
{
    expire_all(world);
}

OPERATION(op_expiry_re_armed)(World &world)
{
    expire_all(world);
}

OPERATION(op_queue_start)(World &world)
{
    repeat(world, queue_one);
}

OPERATION(op_queue_restart)(World &world)
{
    repeat(world, queue_one);
}

OPERATION(op_queue_expiry)(World &world)
{
    expire_all(world);
}

// From later to later: what a connection does that hears from its peer.
OPERATION(op_shared_re_arm)(World &world)
{
    repeat(world, [](World &w, lawn_timer_t &) {
        lawn_shared_start_local(&w.shared, w.now + ttl);
    });
}

void pass(World &world, lawn_timer_t &)
{
    lawn_engine_progress(world.engine);
}

OPERATION(op_idle_pass)(World &world)
{
    repeat(world, pass);
}

OPERATION(op_idle_pass_box)(World &world)
{
    repeat(world, pass);
}

int main(int argc, char **argv)
{
    if (bench::print_usage(argc, argv, "usage: lawn_instructions")) {
        return bench::finish_output(0);
    }
    if (argc > 1) {
        std::fprintf(stderr, "lawn_instructions: unexpected argument '%s'\n",
                     argv[1]);
        return 2;
    }
    World world;
    lawn_engine_params_t params = {};
    params.clock = clock_of;
    params.clock_arg = &world;
    if (lawn_create(nullptr, &world.lawn) != LAWN_OK ||
        lawn_queue_create(world.lawn, ttl, &world.queue) != LAWN_OK ||
        lawn_engine_create(&params, &world.engine) != LAWN_OK) {
        return 1;
    }
    world.timers.resize(timers);
    for (lawn_timer_t &timer : world.timers) {
        lawn_timer_init(&timer, on_expired);
    }
    op_nothing(world);
    op_start(world);
    op_re_arm(world);
    op_idle_advance(world);
    op_pause(world);
    op_start_paused(world);
    op_stop(world);
    repeat(world, start_one);
    op_expiry(world);
    repeat(world, start_one);
    repeat(world, start_one);
    op_expiry_re_armed(world);
    op_queue_start(world);
    op_queue_restart(world);
    op_queue_expiry(world);
    op_idle_pass(world);
    lawn_shared_init(&world.shared, lawn_engine_box(world.engine),
                     [](lawn_shared_t *, lawn_time_t) {});
    lawn_shared_start_local(&world.shared, world.now + ttl);
    op_shared_re_arm(world);
    op_idle_pass_box(world);
    lawn_shared_retire(&world.shared, nullptr);
    lawn_engine_destroy(world.engine);
    lawn_destroy(world.lawn);
}
