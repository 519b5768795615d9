// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A contender as the workloads see it: a table of calls over opaque nodes, one
// indirect call each, the same for all, so that none gains by being inlined
// into a benchmark as no program would have it. For the same reason a node has
// cache lines of its own: it is part of a connection or a request, and timers
// of two of those do not share a line.

#ifndef LAWN_BENCH_CONTENDER_H
#define LAWN_BENCH_CONTENDER_H

#include "schemes/scheme.h"

#include <new>
#include <vector>

namespace bench
{

// What the workloads know of expiry: which nodes, in what order.
extern std::vector<void *> expired;

// What contenders have in common. Of those that a plot has no room for, it
// shows the best of each family.
enum class Family {
    lawn,    // this library, and the floor beside it: always shown
    sorted,  // lists, trees and heaps
    wheel,   // timing wheels
    fifos,   // a FIFO for each TTL, as the Lawn was published
    library, // timers of other libraries
};

struct Contender {
    Traits traits;
    Family family;
    size_t node_bytes; // what a node adds to the object that it is part of
    size_t node_size;  // of that object here
    // nullptr if it cannot run here; the reason goes to stderr, once.
    void *(*create)(const Config &config);
    void (*destroy)(void *scheme);
    // Makes `count` idle nodes in memory, node_size apart, and ends them.
    void (*make_nodes)(void *memory, size_t count);
    void (*end_nodes)(void *memory, size_t count);
    void (*start)(void *scheme, void *node, Time now, Time ttl);
    bool (*stop)(void *scheme, void *node);
    unsigned (*advance)(void *scheme, Time now, unsigned budget);
    // Null for a contender on virtual time. Else it has a clock of its own,
    // 1 tick = 1 ns, and ignores `now`: this waits until the clock has gone on
    // by `time`.
    void (*wait)(void *scheme, Time time);
    bool no_budget; // an advance fires all that is due, whatever its budget
    // Null where an advance that fires less than its budget has done all. Else
    // its budget may end before it has fired as much, or anything: this tells
    // whether it is to be called again.
    bool (*has_more)(void *scheme, Time now);
    // Null, or for a program that knows its TTLs: tells of one before its first
    // use, and gets what start() is to be given instead of it.
    Time (*declare)(void *scheme, Time ttl);
    // Null, or true when it can go on no longer.
    bool (*is_over)(void *scheme);
    bool is_floor; // no timer scheme; see floor.h
};

template <class Node> struct alignas(64) Object {
    Node node; // first
};

// A contender's idle nodes, on the heap.
class Nodes
{
public:
    Nodes(const Contender &contender, size_t count)
        : contender_(contender), count_(count),
          memory_(allocate(contender.node_size * count))
    {
        contender.make_nodes(memory_, count);
    }

    ~Nodes()
    {
        contender_.end_nodes(memory_, count_);
        operator delete(memory_, alignment);
    }

    Nodes(const Nodes &) = delete;
    Nodes &operator=(const Nodes &) = delete;

    char *begin() const
    {
        return memory_;
    }

private:
    static constexpr std::align_val_t alignment{64};

    static char *allocate(size_t size)
    {
        return static_cast<char *>(operator new(size, alignment));
    }

    const Contender &contender_;
    const size_t count_;
    char *const memory_;
};

// What make_nodes() and end_nodes() of most contenders are.
template <class T> void make_objects(void *memory, size_t count)
{
    auto *const objects = static_cast<Object<T> *>(memory);
    for (size_t i = 0; i < count; ++i) {
        new (objects + i) Object<T>();
    }
}

template <class T> void end_objects(void *memory, size_t count)
{
    auto *const objects = static_cast<Object<T> *>(memory);
    for (size_t i = 0; i < count; ++i) {
        objects[i].~Object<T>();
    }
}

// A contender from a class as schemes/scheme.h describes it.
template <class Scheme> Contender contender_of()
{
    using Node = typename Scheme::Node;
    Contender c = {};
    c.traits = Scheme::traits;
    c.node_bytes = sizeof(Node);
    c.node_size = sizeof(Object<Node>);
    c.create = [](const Config &config) -> void * {
        return new Scheme(config);
    };
    c.destroy = [](void *scheme) { delete static_cast<Scheme *>(scheme); };
    c.make_nodes = make_objects<Node>;
    c.end_nodes = end_objects<Node>;
    c.start = [](void *scheme, void *node, Time now, Time ttl) {
        static_cast<Scheme *>(scheme)->start(*static_cast<Node *>(node), now,
                                             ttl);
    };
    c.stop = [](void *scheme, void *node) {
        return static_cast<Scheme *>(scheme)->stop(*static_cast<Node *>(node));
    };
    c.advance = [](void *scheme, Time now, unsigned budget) {
        return static_cast<Scheme *>(scheme)->advance(
            now, budget, [](Node &node, Time) { expired.push_back(&node); });
    };
    return c;
}

// This library by its public API: as it is, with lawn_timer_pause() for a stop,
// and with a queue for each TTL.
Contender lawn();
Contender lawn_pause();
Contender lawn_queue();

// This library, by whichever of these three.
inline bool is_lawn(const Contender &contender)
{
    return contender.family == Family::lawn && !contender.is_floor;
}

// Those that Lawn is compared with.
inline bool is_rival(const Contender &contender)
{
    return contender.family != Family::lawn && !contender.traits.may_be_early;
}

// All that this build has, Lawn first.
const std::vector<Contender> &contenders();

} // namespace bench

#endif
