// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// This library as contenders, by its public API; see contender.h.

#include "contender.h"

#include <lawn/queue.h>
#include <lawn/timer.h>

#include <map>

namespace bench
{

namespace
{

// A lawn and the queues of a program that knows its TTLs.
struct Declared {
    lawn_t *lawn = nullptr;
    std::map<Time, lawn_queue_t *> queues;

    Declared()
    {
        lawn_create(nullptr, &lawn);
    }

    ~Declared()
    {
        lawn_destroy(lawn); // the queues with it
    }

    Declared(const Declared &) = delete;
    Declared &operator=(const Declared &) = delete;

    lawn_queue_t *queue_for(Time ttl)
    {
        lawn_queue_t *&queue = queues[ttl];
        if (!queue) {
            lawn_queue_create(lawn, ttl, &queue);
        }
        return queue;
    }
};

lawn_t *lawn_of(void *lawn)
{
    return static_cast<lawn_t *>(lawn);
}

lawn_timer_t *timer_of(void *node)
{
    return static_cast<lawn_timer_t *>(node);
}

Declared *declared_of(void *scheme)
{
    return static_cast<Declared *>(scheme);
}

void on_expired(lawn_timer_t *timer, lawn_time_t)
{
    expired.push_back(timer);
}

Contender with_timers(const Traits &traits)
{
    Contender c = {};
    c.traits = traits;
    c.node_bytes = sizeof(lawn_timer_t);
    c.node_size = sizeof(Object<lawn_timer_t>);
    c.make_nodes = [](void *memory, size_t count) {
        auto *const objects = static_cast<Object<lawn_timer_t> *>(memory);
        for (size_t i = 0; i < count; ++i) {
            lawn_timer_init(&(new (objects + i) Object<lawn_timer_t>)->node,
                            on_expired);
        }
    };
    c.end_nodes = end_objects<lawn_timer_t>;
    return c;
}

} // namespace

Contender lawn()
{
    Contender c = with_timers({
        "lawn",
        "this library",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    });
    c.create = [](const Config &) -> void * {
        lawn_t *lawn = nullptr;
        lawn_create(nullptr, &lawn);
        return lawn;
    };
    c.destroy = [](void *lawn) { lawn_destroy(lawn_of(lawn)); };
    c.start = [](void *lawn, void *node, Time now, Time ttl) {
        lawn_timer_start(lawn_of(lawn), timer_of(node), now, ttl);
    };
    c.stop = [](void *lawn, void *node) {
        return lawn_timer_stop(lawn_of(lawn), timer_of(node));
    };
    c.advance = [](void *lawn, Time now, unsigned budget) {
        return lawn_advance(lawn_of(lawn), now, budget);
    };
    c.has_more = [](void *lawn, Time now) {
        return lawn_next(lawn_of(lawn)) <= now;
    };
    return c;
}

Contender lawn_pause()
{
    Contender c = lawn();
    c.traits.name = "lawn-pause";
    c.traits.source = "this library, stop by lawn_timer_pause: the node stays";
    c.stop = [](void *lawn, void *node) {
        return lawn_timer_pause(lawn_of(lawn), timer_of(node));
    };
    return c;
}

// A program that declares a TTL keeps the queue where it would keep the TTL, as
// in its configuration, so nothing is looked up at a start. The workloads do as
// much: to choose one of many TTLs is arithmetic for the others, and for this
// one a load from a table, which is no less.
Contender lawn_queue()
{
    Contender c = with_timers({
        "lawn-queue",
        "this library, a lawn_queue_t for each TTL",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    });
    c.create = [](const Config &) -> void * { return new Declared; };
    c.destroy = [](void *scheme) { delete declared_of(scheme); };
    c.declare = [](void *scheme, Time ttl) {
        static_assert(sizeof(Time) >= sizeof(lawn_queue_t *));
        return Time{
            reinterpret_cast<uintptr_t>(declared_of(scheme)->queue_for(ttl))};
    };
    c.start = [](void *, void *node, Time now, Time queue) {
        lawn_queue_start(
            reinterpret_cast<lawn_queue_t *>(static_cast<uintptr_t>(queue)),
            timer_of(node), now);
    };
    c.stop = [](void *scheme, void *node) {
        return lawn_timer_stop(declared_of(scheme)->lawn, timer_of(node));
    };
    c.advance = [](void *scheme, Time now, unsigned budget) {
        return lawn_advance(declared_of(scheme)->lawn, now, budget);
    };
    c.has_more = [](void *scheme, Time now) {
        return lawn_next(declared_of(scheme)->lawn) <= now;
    };
    return c;
}

} // namespace bench
