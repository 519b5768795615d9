// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The links of a timer: from a link to its timer, and circular lists of them.

#ifndef LAWN_SRC_TIMER_LINK_H
#define LAWN_SRC_TIMER_LINK_H

#include <lawn/timer.h>

namespace lawn
{

// The link is a timer's first member.
inline lawn_timer_t *timer_of(lawn_link_t *link)
{
    return reinterpret_cast<lawn_timer_t *>(link);
}

inline const lawn_timer_t *timer_of(const lawn_link_t *link)
{
    return reinterpret_cast<const lawn_timer_t *>(link);
}

// A circular list with a head that is not a timer.
inline void list_init(lawn_link_t *head)
{
    head->next = head;
    head->prev = head;
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

// Moves all of `from` to the end of `to`.
inline void list_splice(lawn_link_t *to, lawn_link_t *from)
{
    if (!list_is_empty(from)) {
        from->next->prev = to->prev;
        to->prev->next = from->next;
        from->prev->next = to;
        to->prev = from->prev;
        list_init(from);
    }
}

} // namespace lawn

#endif
