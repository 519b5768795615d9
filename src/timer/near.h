// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The near timers: those that are due, or so soon that another queue is not
// worth it, in the order in which they fire: by deadline, then by turn.
//
// A treap (Seidel and Aragon, "Randomized Search Trees", 1996) through the
// timers' own links, `next` being left and `prev` right. Keys are unique, so a
// timer is found from the root and needs no link to its parent; its priority
// is a hash of its address and needs no field. Polled often, the tree holds a
// timer or two.

#ifndef LAWN_SRC_TIMER_NEAR_H
#define LAWN_SRC_TIMER_NEAR_H

#include <lawn/timer.h>

namespace lawn
{

class Near
{
public:
    // The first to fire, or nullptr.
    lawn_timer_t *first() const
    {
        return first_;
    }

    size_t count() const
    {
        return count_;
    }

    lawn_time_t first_deadline() const
    {
        return first_ ? first_->deadline : LAWN_TIME_INFINITY;
    }

    void insert(lawn_timer_t *timer);

    // `timer` must be in the tree, its deadline and turn unchanged.
    void remove(lawn_timer_t *timer);

    // Number of timers in order; SIZE_MAX if the tree is not one.
    size_t check() const;

private:
    lawn_link_t *root_;
    lawn_timer_t *first_;
    size_t count_;
};

} // namespace lawn

#endif
