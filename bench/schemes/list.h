// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The parts that most schemes use: a circular, doubly linked list of nodes that
// the caller owns, and the list of due timers. A node can leave its list
// without knowing which list it is in. So stopping a timer is the same few
// stores in all of these schemes.

#ifndef LAWN_BENCH_SCHEMES_LIST_H
#define LAWN_BENCH_SCHEMES_LIST_H

#include "scheme.h"

namespace bench
{

struct Link {
    Link *next = nullptr; // NULL: in no list
    Link *prev = nullptr;
};

// True if it was in a list.
inline bool unlink(Link &link)
{
    if (!link.next) {
        return false;
    }
    link.next->prev = link.prev;
    link.prev->next = link.next;
    link.next = nullptr;
    return true;
}

// Node derives from Link.
template <class Node> class List
{
public:
    List()
    {
        clear();
    }

    List(const List &) = delete;
    List &operator=(const List &) = delete;

    bool empty() const
    {
        return head_.next == &head_;
    }

    // The neighbours; NULL at the ends.
    Node *first()
    {
        return node(head_.next);
    }

    Node *after(Node &place)
    {
        return node(place.next);
    }

    Node *last()
    {
        return node(head_.prev);
    }

    Node *before(Node &place)
    {
        return node(place.prev);
    }

    // These two take the node out of the list that it is in, if any. A NULL
    // place is before the first.
    void insert_after(Node *place, Node &added)
    {
        unlink(added);
        Link *const prev = place ? static_cast<Link *>(place) : &head_;
        added.prev = prev;
        added.next = prev->next;
        prev->next->prev = &added;
        prev->next = &added;
    }

    void push_back(Node &added)
    {
        unlink(added);
        added.prev = head_.prev;
        added.next = &head_;
        head_.prev->next = &added;
        head_.prev = &added;
    }

    // Takes over all of `other`, touching only the nodes at its ends.
    void append(List &other)
    {
        if (other.empty()) {
            return;
        }
        other.head_.next->prev = head_.prev;
        head_.prev->next = other.head_.next;
        other.head_.prev->next = &head_;
        head_.prev = other.head_.prev;
        other.clear();
    }

    // visit(node) may move the node that it is given.
    template <class Visit> void each(Visit &&visit)
    {
        for (Link *link = head_.next; link != &head_;) {
            Link *const here = link;
            link = link->next;
            visit(static_cast<Node &>(*here));
        }
    }

private:
    Node *node(Link *link)
    {
        return link == &head_ ? nullptr : static_cast<Node *>(link);
    }

    void clear()
    {
        head_.next = &head_;
        head_.prev = &head_;
    }

    Link head_;
};

// What is due, in the order in which it will be fired. Callbacks may stop any
// of it. What a budget leaves over is the first of the next pass.
template <class Node> class DueList
{
public:
    // For a timer that is due as it is started: the next pass fires it, not
    // the one that may be running.
    void add_for_next_pass(Node &node)
    {
        next_pass_.push_back(node);
    }

    void begin_pass(unsigned budget)
    {
        due_.append(next_pass_);
        budget_ = budget;
        fired_ = 0;
    }

    void add(Node &node)
    {
        due_.push_back(node);
    }

    void add_all(List<Node> &nodes)
    {
        due_.append(nodes);
    }

    template <class Fired> void fire(Time now, Fired &&fired)
    {
        while (!due_.empty() && (budget_ == 0 || fired_ < budget_)) {
            Node &node = *due_.first();
            unlink(node);
            ++fired_;
            fired(node, now);
        }
    }

    unsigned fired() const
    {
        return fired_;
    }

private:
    List<Node> due_;
    List<Node> next_pass_;
    unsigned budget_ = 0;
    unsigned fired_ = 0;
};

} // namespace bench

#endif
