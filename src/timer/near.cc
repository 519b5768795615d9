// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The tree of near timers; see near.h.

#include "timer/near.h"

#include "base/base.h"
#include "timer/link.h"
#include "timer/place.h"

namespace lawn
{

namespace
{

// By address last, so that keys are unique: only timers of different TTLs, or
// beyond the last turn, have equal deadlines and turns.
bool fires_before(const lawn_timer_t *a, const lawn_timer_t *b)
{
    if (a->deadline != b->deadline) {
        return a->deadline < b->deadline;
    }
    return turn_of(a) != turn_of(b) ? turn_of(a) < turn_of(b) : a < b;
}

__extension__ typedef unsigned __int128 Product;

// Both halves of a product mix an address well enough, for one instruction.
uint64_t priority(const lawn_link_t *link)
{
    const Product product = Product{reinterpret_cast<uintptr_t>(link)} *
                            UINT64_C(0x9e3779b97f4a7c15);
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
}

} // namespace

void Near::insert(lawn_timer_t *timer)
{
    ++count_;
    lawn_link_t *const link = &timer->link;
    const uint64_t own = priority(link);
    lawn_link_t **place = &root_;
    while (*place && priority(*place) >= own) {
        place = fires_before(timer, timer_of(*place)) ? &(*place)->next
                                                      : &(*place)->prev;
    }
    // Split what is below: earlier timers go left of this one, later right.
    lawn_link_t *rest = *place;
    lawn_link_t **left = &link->next;
    lawn_link_t **right = &link->prev;
    *place = link;
    while (rest) {
        if (fires_before(timer, timer_of(rest))) {
            *right = rest;
            right = &rest->next;
            rest = *right;
        } else {
            *left = rest;
            left = &rest->prev;
            rest = *left;
        }
    }
    *left = nullptr;
    *right = nullptr;
    if (!first_ || fires_before(timer, first_)) {
        first_ = timer;
    }
}

void Near::remove(lawn_timer_t *timer)
{
    --count_;
    lawn_link_t *const link = &timer->link;
    lawn_link_t **place = &root_;
    while (*place != link) {
        LAWN_ASSERT(*place);
        place = fires_before(timer, timer_of(*place)) ? &(*place)->next
                                                      : &(*place)->prev;
    }
    lawn_link_t *left = link->next;
    lawn_link_t *right = link->prev;
    while (left && right) {
        if (priority(left) >= priority(right)) {
            *place = left;
            place = &left->prev;
            left = *place;
        } else {
            *place = right;
            place = &right->next;
            right = *place;
        }
    }
    *place = left ? left : right;
    if (timer == first_) {
        first_ = nullptr;
        for (lawn_link_t *i = root_; i; i = i->next) {
            first_ = timer_of(i);
        }
    }
}

// In-order walk without a stack or recursion would need parent links: count
// by descending to each successor instead. O(n log n), and only for tests.
size_t Near::check() const
{
    size_t count = 0;
    const lawn_timer_t *last = nullptr;
    for (;;) {
        const lawn_timer_t *successor = nullptr;
        const lawn_link_t *i = root_;
        while (i) {
            const lawn_link_t *const child[] = {i->next, i->prev};
            for (const lawn_link_t *c : child) {
                if (c && priority(c) > priority(i)) {
                    return SIZE_MAX;
                }
            }
            if (!last || fires_before(last, timer_of(i))) {
                successor = timer_of(i);
                i = i->next;
            } else {
                i = i->prev;
            }
        }
        if (!successor) {
            return count == count_ ? count : SIZE_MAX;
        }
        if (count == 0 && successor != first_) {
            return SIZE_MAX;
        }
        last = successor;
        ++count;
    }
}

} // namespace lawn
