// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn_settle(): finds the earliest deadline, by moving what is in the way of
// knowing it.

#include "base/ticks.h"
#include "timer/lawn_impl.h"

#include <limits.h>

namespace lawn
{

namespace
{

constexpr unsigned most_queues = 64; // looked at together

// Takes from the head of a queue what comes up before *first, the earliest
// deadline known, at most *moves timers. Ends at natives of a single TTL, whose
// first deadline is plain, and lowers *first to it.
void clear_head(Lawn *lawn, unsigned q, lawn_time_t *first, unsigned *moves)
{
    Queue *const queue = &lawn->queues[q];
    for (; *moves > 0 && !list_is_empty(&queue->head); --*moves) {
        lawn_timer_t *const timer = timer_of(queue->head.next);
        if (check_of(queue, timer) >= *first) {
            break;
        }
        if (is_single(q) && queue->strays == 0) {
            *first = earlier_of(*first, timer->deadline);
            break;
        }
        take(queue, timer);
        if (where_is(timer) == paused) {
            timer->place = idle;
        } else if ((timer->deadline - lawn->now) / 2 > *first - lawn->now) {
            enqueue(lawn, timer, stray); // to come up well after *first
        } else {
            insert_near(lawn, timer);
            *first = earlier_of(*first, timer->deadline);
        }
    }
    settle(lawn, q);
}

} // namespace

} // namespace lawn

using namespace lawn;

bool lawn_settle(lawn_t *handle, unsigned max_moves)
{
    Lawn *const lawn = impl_of(handle);
    if (lawn->busy || lawn_next(lawn) <= lawn->now) {
        return false;
    }
    unsigned moves = max_moves ? max_moves : UINT_MAX;
    lawn_time_t first = first_waiting(lawn);
    // What moves comes up after *first, so no queue is looked at twice.
    for (unsigned from = 0; from < queue_count && moves != 0;) {
        unsigned queues[most_queues];
        const unsigned count =
            lawn->bounds.find(first - 1, queues, most_queues, from);
        for (unsigned i = 0; i < count; ++i) {
            clear_head(lawn, queues[i], &first, &moves);
        }
        from = count < most_queues ? queue_count : queues[count - 1] + 1;
    }
    set_next(lawn, moves != 0 ? first : find_next(lawn));
    return moves != 0;
}
