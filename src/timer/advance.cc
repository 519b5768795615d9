// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The advance: it touches every timer whose slot has begun, and fires those
// that are due. lawn_next() and lawn_settle(), which tell when to advance next,
// are here too.
//
// If many timers expire, cache misses limit the speed: one miss per timer. So
// an advance takes timers from both ends of up to 16 slots in turn. It
// prefetches the next timer at each end, so that the misses overlap.

#include "timer/lawn_impl.h"

#include <stdint.h>

namespace lawn
{

namespace
{

constexpr unsigned most_lanes = 16;

// The slots that are worked on in turn.
struct Lanes {
    lawn_link_t *slots[most_lanes];
    size_t count;
};

// Calls `visit` for the slots with a bit that begin after `seen` and before
// `end`, which `visit` may change. Returns false if `visit` does, which ends
// it.
template <class Visit>
bool each_slot(Lawn *lawn, const lawn_time_t &end, Visit visit)
{
    for (uint64_t classes = lawn->occupied; classes; classes &= classes - 1) {
        const unsigned c = lowest_bit(classes);
        // Slots of this class and of higher classes begin then or later.
        if ((slot_of(c, lawn->seen) + 1) << shift_of(c) >= end) {
            break;
        }
        for (uint64_t bits = lawn->filled[c]; bits != 0;) {
            const lawn_time_t begin = first_begin(c, bits, lawn->seen);
            if (begin >= end) {
                break;
            }
            const lawn_time_t slot = slot_of(c, begin);
            bits &= ~bit_of(slot);
            if (!visit(begin, &lawn->slots[index_of(c, slot)])) {
                return false;
            }
            // `visit` may have found that it needs no later slot.
            if (end <= begin) {
                break;
            }
        }
    }
    return true;
}

// Clears the bits of a slot that has become empty.
void clear_if_empty(Lawn *lawn, const lawn_link_t *slot)
{
    if (list_is_empty(slot)) {
        const size_t index = static_cast<size_t>(slot - lawn->slots);
        const size_t c = index / slot_count;
        lawn->filled[c] &= ~bit_of(index);
        lawn->occupied &= ~(uint64_t{lawn->filled[c] == 0} << c);
    }
}

// Returns true if `link` is a timer that the round `until` must touch. Checks
// do not decrease in a slot: if a timer is not up, the timers behind it are not
// up either.
bool is_up(const lawn_link_t *slot, const lawn_link_t *link, lawn_time_t until)
{
    LAWN_ASSERT(is_in_place(slot) && is_in_place(link) &&
                "no timer was lost while it ran");
    return link != slot && timer_of(link)->check <= until;
}

// Works until at most `most` lanes have timers left. Returns false if the
// budget ends before that.
bool work_lanes(Lawn *lawn, Lanes *lanes, size_t most)
{
    const lawn_time_t until = lawn->until;
    while (lanes->count > most) {
        for (size_t i = 0; i < lanes->count;) {
            lawn_link_t *const slot = lanes->slots[i];
            // A callback may have stopped the timers that were up.
            if (!is_up(slot, slot->next, until)) {
                clear_if_empty(lawn, slot);
                lanes->slots[i] = lanes->slots[--lanes->count];
                continue;
            }
            ++i;
            if (!touch(lawn, list_take_first(slot)) ||
                (is_up(slot, slot->prev, until) &&
                 !touch(lawn, list_take_last(slot)))) {
                return false;
            }
        }
    }
    return true;
}

bool work_due(Lawn *lawn)
{
    lawn_link_t *const due = &lawn->due;
    while (!list_is_empty(due) && timer_of(due->next)->check < lawn->round) {
        if (!touch(lawn, list_take_first(due))) {
            return false;
        }
    }
    return true;
}

// Works on a round. Returns false if the budget ends before the round is done.
bool work_round(Lawn *lawn)
{
    Lanes lanes;
    lanes.count = 0;
    const auto add = [&](lawn_time_t, lawn_link_t *slot) {
        lanes.slots[lanes.count++] = slot;
        return lanes.count < most_lanes ||
               work_lanes(lawn, &lanes, most_lanes - 1);
    };
    const auto is_over = [&](lawn_time_t, const lawn_link_t *slot) {
        clear_if_empty(lawn, slot);
        return !is_up(slot, slot->next, lawn->until);
    };
    const lawn_time_t end = lawn->until + 1;
    // The last timer of the budget may have been the last in the slots. What is
    // left in `due` is the first that the next round touches.
    const bool is_done =
        (lawn->left != 0 && work_due(lawn) && each_slot(lawn, end, add) &&
         work_lanes(lawn, &lanes, 0)) ||
        each_slot(lawn, end, is_over);
    if (is_done) {
        lawn->seen = lawn->until;
    }
    return is_done;
}

// Returns the beginning of the first slot that holds a timer and begins after
// `seen`, or INFINITY if there is none. Nobody needs to wake for a slot that
// stops have left empty.
lawn_time_t first_slot(Lawn *lawn)
{
    lawn_time_t first = LAWN_TIME_INFINITY;
    each_slot(lawn, first, [&](lawn_time_t begin, const lawn_link_t *slot) {
        clear_if_empty(lawn, slot);
        if (!list_is_empty(slot)) {
            first = begin;
        }
        return true;
    });
    return first;
}

// Returns a time that is not after any deadline. Timers that are left of a
// round or in `due` may have any.
lawn_time_t deadline_bound(Lawn *lawn)
{
    return lawn->until == lawn->seen && list_is_empty(&lawn->due)
               ? first_slot(lawn)
               : 0;
}

// The earliest deadline that lawn_settle() has found, and how many timers it
// may still look at.
struct Search {
    lawn_time_t earliest;
    size_t left;
};

// Returns false if `left` is too low for the list. A queue is searched up to
// its first timer that is not paused, which has its earliest deadline.
bool search(const lawn_link_t *list, Search *found, bool is_queue)
{
    for (const lawn_link_t *i = list->next; i != list; i = i->next) {
        const lawn_timer_t *const timer = timer_of(i);
        __builtin_prefetch(i->next->next);
        if (found->left == 0) {
            return false;
        }
        --found->left;
        if (!is_alarm(timer)) {
            found->earliest = earlier_of(found->earliest, timer->deadline);
        } else if (!search(&queue_of(timer)->timers, found, true)) {
            return false;
        }
        if (is_queue && !is_paused(timer)) {
            break;
        }
    }
    return true;
}

} // namespace

bool touch_rest(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->deadline <= lawn->time) {
        end_run(lawn, timer);
        if (!is_alarm(timer)) {
            if (!inner_of(lawn, timer)) {
                note_late(lawn, lawn->time - timer->check);
            }
            report(lawn, LAWN_EVENT_FIRE, timer, lawn->time, 0);
        }
        call_back(lawn, timer);
    } else {
        ++lawn->moved;
        if (is_paused(timer)) {
            timer->link.next = nullptr;
        } else {
            LAWN_PROBE(move, timer, lawn, lawn->time);
            file(lawn, timer);
        }
    }
    return --lawn->left != 0;
}

void reopen(Lawn *lawn)
{
    lawn->busy = false;
    lawn->limit = lawn->observer ? 0 : open_limit;
    set_wake(lawn, deadline_bound(lawn));
}

void enter(Lawn *lawn)
{
    ++lawn->due_check;
    lawn->busy = true;
    lawn->limit = 0;
}

Work advance_rest(lawn_t *handle, lawn_time_t now, unsigned budget)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return {0, 0};
    }
    report(lawn, LAWN_EVENT_ADVANCE, nullptr, lawn->now, 0);
    const size_t most = budget != 0 ? budget : SIZE_MAX;
    enter(lawn);
    lawn->time = earlier_of(now, never - 1);
    lawn->plain = lawn->late || lawn->observer ? 0 : lawn->time + 1;
    lawn->left = most;
    lawn->moved = 0;
    // First the rest of a round that an earlier advance has begun, then a new
    // round.
    if (lawn->until == lawn->seen || work_round(lawn)) {
        lawn->until = later_of(lawn->seen, lawn->time);
        lawn->round = lawn->due_check;
        work_round(lawn);
    }
    reopen(lawn);
    const size_t touched = most - lawn->left;
    return {static_cast<unsigned>(touched - lawn->moved), touched};
}

} // namespace lawn

using namespace lawn;

unsigned lawn_advance_rest(lawn_t *lawn, unsigned budget)
{
    return advance_rest(lawn, lawn->now, budget).fired;
}

lawn_time_t lawn_next(const lawn_t *handle)
{
    const Lawn *const lawn = impl_of(handle);
    const bool is_never = lawn->running == 0 || lawn->wake >= never;
    return is_never ? LAWN_TIME_INFINITY : lawn->wake;
}

bool lawn_settle(lawn_t *handle, unsigned max_touches)
{
    Lawn *const lawn = impl_of(handle);
    if (lawn->busy) {
        return false;
    }
    Search found = {LAWN_TIME_INFINITY, max_touches ? max_touches : SIZE_MAX};
    const auto look = [&](lawn_time_t, const lawn_link_t *slot) {
        return search(slot, &found, false);
    };
    if (!search(&lawn->due, &found, false) ||
        !each_slot(lawn, found.earliest, look) ||
        (found.earliest <= lawn->now && found.earliest < never)) {
        // Stops may have left the first slots empty.
        set_wake(lawn, later_of(lawn->wake, deadline_bound(lawn)));
        return false;
    }
    set_wake(lawn, found.earliest);
    lawn->limit = 0;
    return true;
}
