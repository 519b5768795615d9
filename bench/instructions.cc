// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What bench/count-instructions runs under callgrind: each operation a thousand
// times, in a function of its own. One TTL, a tick between starts; then the
// same by a queue for that TTL. Passes of an engine that has nothing to do,
// before and after it has a box for shared timers; and re-arms by their owner.
// A message of a connection and its ACK, beside two re-arms of bare timers with
// the TTLs of a connection. Packets of a thousand paced flows. A start and a
// cancel of a service, beside a lawn behind a mutex.

#include "finish.h"

#include <lawn/conn.h>
#include <lawn/engine.h>
#include <lawn/pacer.h>
#include <lawn/queue.h>
#include <lawn/service.h>
#include <lawn/shared.h>
#include <lawn/timer.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace
{

constexpr size_t timers = 1000;
constexpr lawn_time_t ttl = 1'000'000;
constexpr size_t conns = 100;
constexpr lawn_time_t rtt = 10'000;
constexpr uint64_t packet = 1500;

struct World {
    lawn_t *lawn = nullptr;
    lawn_queue_t *queue = nullptr;
    lawn_engine_t *engine = nullptr;
    lawn_service_t *service = nullptr;
    std::mutex mutex;
    lawn_shared_t shared = {};
    std::vector<lawn_timer_t> timers;
    std::vector<lawn_timer_t> retransmits;
    std::vector<lawn_timer_t> keepalives;
    std::vector<lawn_conn_t> conns;
    std::vector<lawn_pacer_t> pacers;
    lawn_time_t now = 1000;
};

lawn_time_t clock_of(void *arg)
{
    return static_cast<World *>(arg)->now;
}

void on_expired(lawn_timer_t *, lawn_time_t)
{
}

void make_timers(std::vector<lawn_timer_t> *made, size_t count)
{
    made->resize(count);
    for (lawn_timer_t &timer : *made) {
        lawn_timer_init(&timer, on_expired);
    }
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

// Ten rounds over a hundred connections.
template <class Operation>
void repeat_conns(World &world, Operation &&operation)
{
    for (size_t round = 0; round < timers / conns; ++round) {
        for (size_t i = 0; i < conns; ++i) {
            world.now += rtt;
            operation(world, i);
        }
    }
}

OPERATION(op_no_conn)(World &world)
{
    repeat_conns(world, [](World &w, size_t i) {
        __asm__ volatile("" ::"r"(&w.conns[i]));
    });
}

void re_arm_two(World &world, size_t i)
{
    lawn_timer_start(world.lawn, &world.retransmits[i], world.now, 100'000'000);
    lawn_timer_start(world.lawn, &world.keepalives[i], world.now,
                     5'000'000'000);
}

OPERATION(op_two_re_arms)(World &world)
{
    repeat_conns(world, re_arm_two);
}

// One message under way: each ACK acknowledges all.
void exchange_one(World &world, size_t i)
{
    lawn_conn_on_send(&world.conns[i], world.now - rtt);
    lawn_conn_on_ack_oldest(&world.conns[i], world.now, world.now - rtt,
                            LAWN_TIME_INFINITY);
}

OPERATION(op_conn_alone)(World &world)
{
    repeat_conns(world, exchange_one);
}

// The peer may be asked before an RTO is over.
OPERATION(op_conn_ask)(World &world)
{
    repeat_conns(world, exchange_one);
}

// Two messages under way: at each ACK, the other one is the oldest.
OPERATION(op_conn_window)(World &world)
{
    repeat_conns(world, [](World &w, size_t i) {
        lawn_conn_on_send(&w.conns[i], w.now);
        lawn_conn_on_ack_oldest(&w.conns[i], w.now, w.now - rtt, w.now);
    });
}

void take_packets(World &world)
{
    for (lawn_pacer_t &pacer : world.pacers) {
        lawn_pacer_take(&pacer, ++world.now, packet);
    }
}

// Each may go.
OPERATION(op_pacer_take)(World &world)
{
    take_packets(world);
}

// Each must wait.
OPERATION(op_pacer_wait)(World &world)
{
    take_packets(world);
}

// Each flow wakes, takes a packet that may go, and waits for the next.
OPERATION(op_pacer_packet)(World &world)
{
    expire_all(world);
}

void open_pacers(World &world)
{
    lawn_pacer_params_t params = {};
    params.rate = 1e9 * packet / ttl;
    params.burst = packet;
    params.ticks_per_sec = 1e9;
    world.pacers.resize(timers);
    for (lawn_pacer_t &pacer : world.pacers) {
        const auto send = [](lawn_pacer_t *flow, lawn_time_t now) {
            while (lawn_pacer_take(flow, now, packet)) {
            }
        };
        if (lawn_pacer_init(&pacer, world.lawn, &params, send) != LAWN_OK) {
            std::exit(1);
        }
    }
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

// A service does more: it has handles, and wakes its thread.
void serve_one(World &world, lawn_timer_t &)
{
    lawn_service_timer_t handle;
    lawn_service_start(
        world.service, ttl, [](void *) {}, nullptr, &handle);
    lawn_service_cancel(world.service, handle);
}

OPERATION(op_service)(World &world)
{
    repeat(world, serve_one);
}

OPERATION(op_mutex)(World &world)
{
    repeat(world, [](World &here, lawn_timer_t &timer) {
        {
            const std::lock_guard<std::mutex> guard(here.mutex);
            lawn_timer_start(here.lawn, &timer, lawn_get_time(), ttl);
        }
        const std::lock_guard<std::mutex> guard(here.mutex);
        lawn_timer_stop(here.lawn, &timer);
    });
}

void open_conns(World &world, const lawn_conn_ops_t &ops)
{
    lawn_conn_params_t conn_params;
    lawn_conn_params_init(&conn_params);
    world.conns.resize(conns);
    for (lawn_conn_t &conn : world.conns) {
        if (lawn_conn_open(world.engine, &conn_params, &ops, &conn) !=
            LAWN_OK) {
            std::exit(1);
        }
    }
}

void close_conns(World &world)
{
    for (lawn_conn_t &conn : world.conns) {
        lawn_conn_close(&conn);
    }
}

void open_to_ask(World &world)
{
    lawn_conn_ops_t ops = {};
    ops.ask = [](lawn_conn_t *, lawn_time_t) {};
    close_conns(world);
    open_conns(world, ops);
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
    make_timers(&world.timers, timers);
    make_timers(&world.retransmits, conns);
    make_timers(&world.keepalives, conns);
    open_conns(world, {});
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
    open_pacers(world);
    op_pacer_take(world);
    op_pacer_wait(world);
    op_pacer_packet(world);
    for (lawn_pacer_t &pacer : world.pacers) {
        lawn_pacer_stop(&pacer);
    }
    op_idle_pass(world);
    lawn_shared_init(&world.shared, lawn_engine_box(world.engine),
                     [](lawn_shared_t *, lawn_time_t) {});
    lawn_shared_start_local(&world.shared, world.now + ttl);
    op_shared_re_arm(world);
    op_idle_pass_box(world);
    lawn_shared_retire(&world.shared, nullptr);
    op_no_conn(world);
    repeat_conns(world, re_arm_two);
    op_two_re_arms(world);
    repeat_conns(world, exchange_one);
    op_conn_alone(world);
    op_conn_window(world);
    open_to_ask(world);
    repeat_conns(world, exchange_one);
    op_conn_ask(world);
    close_conns(world);
    lawn_engine_destroy(world.engine);
    if (lawn_service_create(nullptr, &world.service) != LAWN_OK) {
        return 1;
    }
    repeat(world, serve_one); // the nodes are made
    op_service(world);
    op_mutex(world);
    lawn_service_stop(world.service, nullptr, nullptr);
    lawn_service_destroy(world.service);
    lawn_destroy(world.lawn);
}
