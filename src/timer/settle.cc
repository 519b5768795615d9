// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_settle(): looks for the earliest deadline where it can be, in the slots
// that begin before the best that was found. Nothing moves.

#include "timer/lawn_impl.h"
#include "timer/queue.h"

#include <stdint.h>

namespace lawn
{

namespace
{

struct Search {
    lawn_time_t best; // the earliest deadline so far
    size_t left;      // timers that may be looked at
};

// True while the search may go on. A queue's first timer that is not paused has
// its earliest deadline.
bool search_queue(const lawn_link_t *list, Search *search)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        if (search->left == 0) {
            return false;
        }
        --search->left;
        if (is_active(timer_of(i))) {
            search->best = earlier_of(search->best, timer_of(i)->deadline);
            break;
        }
    }
    return true;
}

bool search_list(const lawn_link_t *list, Search *search)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        if (search->left == 0) {
            return false;
        }
        --search->left;
        const lawn_timer_t *const timer = timer_of(i);
        __builtin_prefetch(i->next->next);
        if (!is_alarm(timer)) {
            search->best = earlier_of(search->best, timer->deadline);
        } else if (!search_queue(&queue_of(timer)->timers, search)) {
            return false;
        }
    }
    return true;
}

// From now on `wake` may be later than the begin of a slot, where an inline
// re-arm would go unnoticed: none is inline until the next start or advance.
void settle_at(Lawn *lawn, lawn_time_t wake)
{
    set_wake(lawn, wake);
    lawn->is_settled = true;
    lawn->limit = 0;
}

} // namespace

} // namespace lawn

using namespace lawn;

bool lawn_settle(lawn_t *handle, unsigned max_touches)
{
    Lawn *const lawn = impl_of(handle);
    Search search = {LAWN_TIME_INFINITY, max_touches ? max_touches : SIZE_MAX};
    if (lawn->busy || !search_list(&lawn->due, &search)) {
        return false;
    }
    uint64_t left[class_count]; // of each class, the slots not yet looked at
    for (unsigned c = 0; c < class_count; ++c) {
        left[c] = lawn->filled[c];
    }
    for (;;) {
        lawn_time_t begin = LAWN_TIME_INFINITY;
        unsigned first = 0;
        for (unsigned c = 0; c < class_count; ++c) {
            if (left[c] != 0) {
                const lawn_time_t own = first_begin(c, left[c], lawn->seen);
                first = own < begin ? c : first;
                begin = earlier_of(begin, own);
            }
        }
        if (begin >= search.best) {
            break;
        }
        const lawn_time_t slot = slot_of(first, begin);
        left[first] &= ~bit_of(slot);
        if (!search_list(&lawn->slots[first][slot % slot_count], &search)) {
            settle_at(lawn, later_of(begin, lawn->wake));
            return false;
        }
    }
    if (search.best <= lawn->now) {
        return false;
    }
    settle_at(lawn, search.best);
    return true;
}
