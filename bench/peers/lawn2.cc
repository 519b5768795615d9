// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn2: the Lawn by the paper's author, in C (github.com/picotera/lawn,
// src/lawn2.c, which -Dlawn2_source points to): a hash table of FIFO queues of
// the caller's nodes, by TTL, and a list of those that are not empty, each of
// which is visited when the closest expiration has come.
//
// The store has a time of its own, from which TTLs are counted; here it is set
// before each start, so that deadlines are exact. An advance to the time that
// it already has does nothing there, so it is set one tick back first. All that
// is due comes in one list, the last of a TTL first. TTLs are never forgotten:
// continuous ones make the table grow for as long as it is used. A TTL beyond
// 2^62 is cut to that, or deadlines would overflow.

#include "peers/peers.h"

#include <algorithm>

#include <stdint.h>
#include <stdlib.h>

extern "C" {
#include <lawn2.h>
}

namespace bench
{

namespace
{

class Lawn2
{
public:
    static constexpr Traits traits{
        "lawn2",
        "Lev-Libfeld's own, by its sources",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };
    static constexpr bool no_budget = true;

    struct Node {
        lawn2_timer timer = {}; // first: lawn2 hands it back
    };

    explicit Lawn2(const Config &) : store_(lawn2_new())
    {
    }

    ~Lawn2()
    {
        lawn2_free(store_);
    }

    Lawn2(const Lawn2 &) = delete;
    Lawn2 &operator=(const Lawn2 &) = delete;

    const char *defect() const
    {
        return store_ ? nullptr : "lawn2_new fails";
    }

    void start(Node &node, Time now, Time ttl)
    {
        stop(node);
        lawn2_set_now(store_, now);
        lawn2_add(store_, &node.timer, std::min(ttl, Time{1} << 62));
    }

    bool stop(Node &node)
    {
        const bool was_running = node.timer.in_store != 0;
        lawn2_del(store_, &node.timer);
        return was_running;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned, const Fired &fired)
    {
        lawn2_timer *due = nullptr;
        lawn2_set_now(store_, now - 1);
        const uint64_t count = lawn2_advance(store_, now, &due);
        while (due) {
            lawn2_timer *const timer = due;
            due = due->next;
            fired(*reinterpret_cast<Node *>(timer), now);
        }
        return static_cast<unsigned>(count);
    }

private:
    lawn2 *store_;
};

} // namespace

Contender lawn2_store()
{
    return peer_of<Lawn2>();
}

} // namespace bench
