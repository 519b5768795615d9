// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Circular lists of timers, by links within them.

#ifndef LAWN_SRC_TIMER_LIST_H
#define LAWN_SRC_TIMER_LIST_H

#include "timer/inside.h"

namespace lawn
{

// Returns whether the neighbours of a link in a list point back to it. They do
// not if the timer was initialised, freed or overwritten while it ran.
inline bool is_in_place(const lawn_link_t *link)
{
    const auto is_link = [](const lawn_link_t *at) {
        return at &&
               reinterpret_cast<uintptr_t>(at) % alignof(lawn_link_t) == 0;
    };
    return is_link(link->next) && is_link(link->prev) &&
           link->next->prev == link && link->prev->next == link;
}

// The link is a timer's first member.
inline lawn_timer_t *timer_of(lawn_link_t *link)
{
    return reinterpret_cast<lawn_timer_t *>(link);
}

inline const lawn_timer_t *timer_of(const lawn_link_t *link)
{
    return reinterpret_cast<const lawn_timer_t *>(link);
}

inline bool list_is_empty(const lawn_link_t *head)
{
    return head->next == head;
}

inline void list_append(lawn_link_t *head, lawn_link_t *link)
{
    lawn_link_t *const last = head->prev;
    link->next = head;
    link->prev = last;
    last->next = link;
    head->prev = link;
}

inline void list_remove(lawn_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

// Takes the first or the last timer out of a list that is not empty. Prefetches
// the link that will be the second: a pass soon takes the link before it, and
// then writes to it.
inline lawn_timer_t *list_take_first(lawn_link_t *head)
{
    lawn_link_t *const first = head->next;
    lawn_link_t *const next = first->next;
    __builtin_prefetch(next->next);
    head->next = next;
    next->prev = head;
    return timer_of(first);
}

inline lawn_timer_t *list_take_last(lawn_link_t *head)
{
    lawn_link_t *const last = head->prev;
    lawn_link_t *const prev = last->prev;
    __builtin_prefetch(prev->prev);
    head->prev = prev;
    prev->next = head;
    return timer_of(last);
}

// The timer may be in a list or not.
inline void detach(lawn_timer_t *timer)
{
    if (is_linked(timer)) {
        list_remove(&timer->link);
        timer->link.next = nullptr;
    }
}

} // namespace lawn

#endif
