// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// std::multimap from deadline to timer: what most programs without a timer
// library do. A start is O(log n) and allocates, a stop is O(1) and frees, and
// a tick looks at the earliest deadline alone.

#ifndef LAWN_BENCH_SCHEMES_MULTIMAP_H
#define LAWN_BENCH_SCHEMES_MULTIMAP_H

#include "ticks.h"

#include <map>

namespace bench
{

class Multimap
{
public:
    static constexpr Traits traits{
        "multimap", "std::multimap", false, false, false, false,
    };

    struct Node {
        std::multimap<Time, Node *>::iterator place;
        bool running = false;
    };

    explicit Multimap(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        stop(node);
        node.place = timers_.emplace(deadline_of(now, ttl), &node);
        node.running = true;
    }

    bool stop(Node &node)
    {
        const bool was_running = node.running;
        if (was_running) {
            timers_.erase(node.place);
        }
        node.running = false;
        return was_running;
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        unsigned count = 0;
        while (!timers_.empty() && timers_.begin()->first <= now &&
               (budget == 0 || count < budget)) {
            Node &node = *timers_.begin()->second;
            stop(node);
            ++count;
            fired(node, now);
        }
        return count;
    }

private:
    std::multimap<Time, Node *> timers_;
};

} // namespace bench

#endif
