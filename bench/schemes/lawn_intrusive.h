// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The Lawn in its strongest published form: Algorithm 3 of the paper, with the
// improvements of later implementations. Timers are intrusive. The table of
// TTLs uses open addressing. The earliest deadline of each queue is in a dense
// array, and a tick scans this array only when the closest expiration has come.
//
//     by_ttl_   TTL -> queue        heads_   12 | 90 | 15 | ...  (one a queue)
//                                             |    |    |
//                                            FIFO FIFO FIFO
//
// Start is O(1) expected, and stop is an unlink. Both may leave bounds that are
// too early: a head may be earlier than the first timer of its queue, and the
// closest expiration may be earlier than every head. The next scan corrects the
// bounds and drops empty queues. A scan is O(t) in the number t of TTLs, at 16
// bytes each. So this is the scheme to beat with tens or hundreds of TTLs. It
// breaks down with continuous TTLs: then t is n, and each tick at which a timer
// is due reads all bounds.
//
// Start allocates if there are more TTLs at a time than ever before.

#ifndef LAWN_BENCH_SCHEMES_LAWN_INTRUSIVE_H
#define LAWN_BENCH_SCHEMES_LAWN_INTRUSIVE_H

#include "list.h"
#include "ticks.h"

#include <deque>
#include <vector>

namespace bench
{

class LawnIntrusive
{
public:
    static constexpr Traits traits{
        "lawn-intrusive",           "Lev-Libfeld, Lawn, algorithm 3, intrusive",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time deadline = 0;
    };

    explicit LawnIntrusive(const Config &)
    {
        rebuild(64);
    }

    void start(Node &node, Time now, Time ttl)
    {
        node.deadline = deadline_of(now, ttl);
        if (is_passing_ && ttl == 0) {
            next_pass_.push_back(node);
            return;
        }
        unlink(node);
        Queue &queue = queue_of(ttl);
        if (queue.timers.empty()) {
            heads_[queue.index].deadline = node.deadline;
        }
        queue.timers.push_back(node);
        closest_ = std::min(closest_, node.deadline);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // Callbacks may add queues, at the end of the array; only this removes.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const Time present = before_never(now);
        if (present < closest_) {
            return 0;
        }
        unsigned count = 0;
        const auto may_fire = [&] { return budget == 0 || count < budget; };
        is_passing_ = true;
        closest_ = never;
        for (size_t i = 0; i < heads_.size();) {
            if (heads_[i].deadline > present) {
                closest_ = std::min(closest_, heads_[i++].deadline);
                continue;
            }
            Queue &queue = *heads_[i].queue;
            Node *first = queue.timers.first();
            while (first && first->deadline <= present && may_fire()) {
                unlink(*first);
                ++count;
                fired(*first, now);
                first = queue.timers.first();
            }
            if (first) {
                heads_[i++].deadline = first->deadline;
                closest_ = std::min(closest_, first->deadline);
            } else {
                remove(queue);
            }
        }
        is_passing_ = false;
        next_pass_.each([&](Node &node) { start(node, node.deadline, 0); });
        return count;
    }

private:
    struct Queue {
        List<Node> timers;
        Time ttl = 0;
        size_t index = 0; // in heads_
    };

    struct Head {
        Time deadline; // never later than that of the queue's first timer
        Queue *queue;
    };

    size_t home_of(Time ttl) const
    {
        return (ttl * 0x9e3779b97f4a7c15) >> shift_;
    }

    size_t after(size_t place) const
    {
        return (place + 1) & (by_ttl_.size() - 1);
    }

    // Where a TTL is, or is to be.
    size_t place_of(Time ttl) const
    {
        size_t place = home_of(ttl);
        while (by_ttl_[place] && by_ttl_[place]->ttl != ttl) {
            place = after(place);
        }
        return place;
    }

    Queue &queue_of(Time ttl)
    {
        size_t place = place_of(ttl);
        if (by_ttl_[place]) {
            return *by_ttl_[place];
        }
        if (heads_.size() >= by_ttl_.size() / 2) {
            make_room();
            place = place_of(ttl);
        }
        if (unused_.empty()) {
            pool_.emplace_back();
            unused_.push_back(&pool_.back());
        }
        Queue &queue = *unused_.back();
        unused_.pop_back();
        queue.ttl = ttl;
        queue.index = heads_.size();
        heads_.push_back({never, &queue});
        by_ttl_[place] = &queue;
        return queue;
    }

    // Continuous TTLs leave an empty queue behind at every re-arm. A scan must
    // not find its array in another order than it was.
    void make_room()
    {
        for (size_t i = 0; i < heads_.size() && !is_passing_;) {
            if (heads_[i].queue->timers.empty()) {
                remove(*heads_[i].queue);
            } else {
                ++i;
            }
        }
        if (heads_.size() > by_ttl_.size() / 4) {
            rebuild(2 * by_ttl_.size());
        }
    }

    void rebuild(size_t size)
    {
        heads_.reserve(size / 2);
        unused_.reserve(size / 2);
        by_ttl_.assign(size, nullptr);
        shift_ = static_cast<unsigned>(__builtin_clzll(size)) + 1;
        for (const Head &head : heads_) {
            by_ttl_[place_of(head.queue->ttl)] = head.queue;
        }
    }

    void remove(Queue &queue)
    {
        heads_[queue.index] = heads_.back();
        heads_[queue.index].queue->index = queue.index;
        heads_.pop_back();
        unused_.push_back(&queue);
        // Queues behind it in its cluster must stay reachable from home.
        const size_t mask = by_ttl_.size() - 1;
        size_t hole = place_of(queue.ttl);
        by_ttl_[hole] = nullptr;
        for (size_t i = after(hole); by_ttl_[i]; i = after(i)) {
            const size_t from_home = (i - home_of(by_ttl_[i]->ttl)) & mask;
            if (from_home >= ((i - hole) & mask)) {
                by_ttl_[hole] = by_ttl_[i];
                by_ttl_[i] = nullptr;
                hole = i;
            }
        }
    }

    std::vector<Queue *> by_ttl_; // at most half full, linear probing
    unsigned shift_ = 0;
    std::vector<Head> heads_;
    std::deque<Queue> pool_; // does not move what it holds
    std::vector<Queue *> unused_;
    Time closest_ = never; // never later than the earliest deadline
    bool is_passing_ = false;
    List<Node> next_pass_; // started by callbacks with a TTL of 0
};

} // namespace bench

#endif
