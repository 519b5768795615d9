// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 3 of Varghese and Lauck: a balanced search tree by deadline, as in the
// hrtimers of Linux or in nginx. This one is a treap (Seidel and Aragon 1996).
// It is ordered by deadline, and is a heap by a pseudo-random weight. So it is
// balanced in expectation, whatever the deadlines are. A timer goes to the
// right of timers with an equal deadline, so equal deadlines keep the order of
// their starts.
//
// Start and stop are O(log n), and touch O(log n) cache lines, which is most of
// their cost. The tree remembers its first timer, so an idle tick is O(1). The
// scheme is exact and unbounded, and there is no resolution to choose. It is
// good if most timers expire and few are re-armed. It is slow for a transport,
// which re-arms on every ACK.

#ifndef LAWN_BENCH_SCHEMES_TREE_H
#define LAWN_BENCH_SCHEMES_TREE_H

#include "ticks.h"

namespace bench
{

class Tree
{
public:
    static constexpr Traits traits{
        "tree",
        "Varghese & Lauck 1987, scheme 3",
        /* rounds_to_tick */ false,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node {
        Node *parent = nullptr;
        Node *left = nullptr;
        Node *right = nullptr;
        Time deadline = 0;
        uint64_t sequence = 0; // number of the start; 0: idle
    };

    explicit Tree(const Config &)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        stop(node);
        node.deadline = deadline_of(now, ttl);
        node.sequence = ++sequence_;
        insert(node);
    }

    bool stop(Node &node)
    {
        if (node.sequence == 0) {
            return false;
        }
        erase(node);
        node.sequence = 0;
        return true;
    }

    // A timer started by a callback with a TTL of 0 is to the right of all
    // others that are due, and its number tells it from them.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        const Time present = before_never(now);
        const uint64_t last = sequence_;
        unsigned count = 0;
        while (budget == 0 || count < budget) {
            Node *const node = first_;
            if (!node || node->deadline > present || node->sequence > last) {
                break;
            }
            stop(*node);
            ++count;
            fired(*node, now);
        }
        return count;
    }

private:
    // Computed, not stored: the number of the start, well mixed.
    static uint64_t weight(const Node &node)
    {
        uint64_t x = node.sequence;
        x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
        x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
        return x ^ (x >> 32);
    }

    // The pointer that points to `node`.
    Node *&link_to(Node &node)
    {
        Node *const parent = node.parent;
        if (!parent) {
            return root_;
        }
        return parent->left == &node ? parent->left : parent->right;
    }

    void insert(Node &node)
    {
        Node **link = &root_;
        Node *parent = nullptr;
        bool is_first = true;
        while (*link) {
            parent = *link;
            if (node.deadline < parent->deadline) {
                link = &parent->left;
            } else {
                link = &parent->right;
                is_first = false;
            }
        }
        *link = &node;
        node.parent = parent;
        node.left = nullptr;
        node.right = nullptr;
        if (is_first) {
            first_ = &node;
        }
        const uint64_t own_weight = weight(node);
        while (node.parent && own_weight > weight(*node.parent)) {
            rotate_up(node);
        }
    }

    void erase(Node &node)
    {
        if (first_ == &node) {
            first_ = successor_of_first();
        }
        while (node.left && node.right) {
            const bool left = weight(*node.left) > weight(*node.right);
            rotate_up(left ? *node.left : *node.right);
        }
        Node *const child = node.left ? node.left : node.right;
        link_to(node) = child;
        if (child) {
            child->parent = node.parent;
        }
    }

    // The first has nothing to its left.
    Node *successor_of_first() const
    {
        Node *node = first_->right;
        if (!node) {
            return first_->parent;
        }
        while (node->left) {
            node = node->left;
        }
        return node;
    }

    // Exchanges `node` with its parent, keeping the order of deadlines.
    void rotate_up(Node &node)
    {
        Node &parent = *node.parent;
        link_to(parent) = &node;
        node.parent = parent.parent;
        parent.parent = &node;
        Node *moved = nullptr;
        if (parent.left == &node) {
            moved = node.right;
            parent.left = moved;
            node.right = &parent;
        } else {
            moved = node.left;
            parent.right = moved;
            node.left = &parent;
        }
        if (moved) {
            moved->parent = &parent;
        }
    }

    Node *root_ = nullptr;
    Node *first_ = nullptr;
    uint64_t sequence_ = 0;
};

} // namespace bench

#endif
