// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Shared timers as a contender: one thread both owns and uses them, so that
// what is measured is the price of what makes them safe for others.

#include "evaluation/experiments.h"

#include <lawn/shared.h>

#include <algorithm>
#include <new>

namespace bench
{

namespace
{

using Node = Object<lawn_shared_t>;

// Nodes are made before there is a box, so each is initialised by its first
// start. Those that were lie between `first` and `last`.
struct Owner {
    lawn_t *lawn = nullptr;
    lawn_box_t *box = nullptr;
    Node *first = nullptr;
    Node *last = nullptr;

    Owner()
    {
        if (lawn_create(nullptr, &lawn) != LAWN_OK ||
            lawn_box_create(lawn, &box) != LAWN_OK) {
            throw std::bad_alloc();
        }
    }

    ~Owner()
    {
        for (Node *node = first; node && node <= last; ++node) {
            if (node->node.box) {
                lawn_shared_retire(&node->node, nullptr);
            }
        }
        lawn_box_destroy(box);
        lawn_destroy(lawn);
    }

    Owner(const Owner &) = delete;
    Owner &operator=(const Owner &) = delete;

    void init(Node *node)
    {
        lawn_shared_init(&node->node, box,
                         [](lawn_shared_t *timer, lawn_time_t) {
                             expired.push_back(timer);
                         });
        first = first ? std::min(first, node) : node;
        last = std::max(last, node);
    }
};

} // namespace

Contender lawn_shared()
{
    Contender c = {};
    c.traits = {
        "lawn-shared",
        "this library, lawn/shared.h, one thread",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    c.family = Family::lawn;
    c.node_bytes = sizeof(lawn_shared_t);
    c.node_size = sizeof(Node);
    c.create = [](const Config &) -> void * { return new Owner; };
    c.destroy = [](void *owner) { delete static_cast<Owner *>(owner); };
    c.make_nodes = make_objects<lawn_shared_t>;
    c.end_nodes = end_objects<lawn_shared_t>;
    c.start = [](void *owner, void *node, Time now, Time ttl) {
        auto *const timer = static_cast<Node *>(node);
        if (!timer->node.box) {
            static_cast<Owner *>(owner)->init(timer);
        }
        lawn_shared_start(&timer->node, ttl > LAWN_TIME_INFINITY - now
                                            ? LAWN_TIME_INFINITY
                                            : now + ttl);
    };
    c.stop = [](void *, void *node) {
        auto *const timer = static_cast<Node *>(node);
        return timer->node.box && lawn_shared_stop(&timer->node);
    };
    c.advance = [](void *owner, Time now, unsigned budget) {
        auto *const all = static_cast<Owner *>(owner);
        const size_t before = expired.size();
        lawn_box_drain(all->box, now, 0);
        lawn_advance(all->lawn, now, budget);
        return static_cast<unsigned>(expired.size() - before);
    };
    c.has_more = [](void *owner, Time now) {
        return lawn_next(static_cast<Owner *>(owner)->lawn) <= now;
    };
    return c;
}

} // namespace bench
