// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The Lawn, Algorithm 3 of A. Lev-Libfeld's paper, as printed: a hash table of
// FIFO queues, one for each TTL. Timers of one TTL expire in the order of their
// starts. So every queue is sorted without sorting, and only its head can be
// due. The scheme keeps the closest expiration. Before this time a tick does
// nothing; at this time it visits the head of every queue.
//
// Start and stop are O(1) expected. A tick is O(t) in the number t of TTLs. The
// scheme is exact and unbounded, and there is no resolution to choose. It is
// good with a few configured TTLs. If each timer has its own TTL, for example
// from a measured round trip, a tick is O(n) and every start allocates. If the
// closest timer is stopped, the closest expiration is unknown, and the next
// tick visits all queues to find it.
//
// Start allocates a queue for a TTL that has none. A queue is freed with its
// last timer. The paper also keeps a table from ids to timers. Here the caller
// has the node itself, as in all schemes of this folder. The paper's sketch
// fires after the deadline (`<`); this code fires at the deadline.

#ifndef LAWN_BENCH_SCHEMES_LAWN_TEXTBOOK_H
#define LAWN_BENCH_SCHEMES_LAWN_TEXTBOOK_H

#include "list.h"
#include "ticks.h"

#include <unordered_map>

namespace bench
{

class LawnTextbook
{
    struct Queue;

public:
    static constexpr Traits traits{
        "lawn-textbook",
        "Lev-Libfeld, Lawn, algorithm 3",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time deadline = 0;
        Queue *queue = nullptr; // NULL: in none
    };

    explicit LawnTextbook(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        stop(node);
        node.deadline = deadline_of(now, ttl);
        if (is_passing_ && ttl == 0) {
            next_pass_.push_back(node);
        } else {
            enqueue(node, ttl);
        }
    }

    bool stop(Node &node)
    {
        if (!unlink(node)) {
            return false;
        }
        Queue *const queue = node.queue;
        node.queue = nullptr;
        if (node.deadline == closest_) {
            closest_ = 0;
        }
        if (queue && queue != visited_ && queue->timers.empty()) {
            remove(*queue);
        }
        return true;
    }

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
        for (Queue *queue = queues_.first(); queue;) {
            visited_ = queue;
            Node *head = queue->timers.first();
            while (head && head->deadline <= present && may_fire()) {
                stop(*head);
                ++count;
                fired(*head, now);
                head = queue->timers.first();
            }
            visited_ = nullptr;
            Queue *const next = queues_.after(*queue);
            if (head) {
                closest_ = std::min(closest_, head->deadline);
            } else {
                remove(*queue);
            }
            queue = next;
        }
        is_passing_ = false;
        next_pass_.each([&](Node &node) { enqueue(node, 0); });
        return count;
    }

private:
    struct Queue : Link {
        Time ttl = 0;
        List<Node> timers;
    };

    void enqueue(Node &node, Time ttl)
    {
        Queue &queue = by_ttl_[ttl];
        if (!queue.next) {
            queue.ttl = ttl;
            queues_.push_back(queue);
        }
        node.queue = &queue;
        queue.timers.push_back(node);
        closest_ = std::min(closest_, node.deadline);
    }

    void remove(Queue &queue)
    {
        unlink(queue);
        by_ttl_.erase(queue.ttl);
    }

    std::unordered_map<Time, Queue> by_ttl_;
    List<Queue> queues_; // the same, to visit while callbacks change the table
    Time closest_ = never; // never later than the earliest deadline
    bool is_passing_ = false;
    Queue *visited_ = nullptr; // kept though empty
    List<Node> next_pass_;     // started by callbacks with a TTL of 0
};

} // namespace bench

#endif
