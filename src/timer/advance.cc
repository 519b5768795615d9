// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The advance: it touches every timer whose slot has begun, and fires those
// that are due. lawn_next() and lawn_settle(), which tell when to advance next,
// are here too.
//
// If many timers expire, cache misses limit the speed: one miss per timer. So
// an advance takes timers from both ends of up to 16 slots in turn. It
// prefetches the next timer at each end, so that the misses overlap.

#include "timer/advance.h"

#include "timer/queue.h"

#include <stdint.h>

namespace lawn
{

namespace
{

constexpr unsigned most_lanes = 16;

// The slots that are worked on in turn.
struct Lanes {
    lawn_link_t *slots[most_lanes];
    unsigned count;
};

// Clears the bits of a slot that has become empty.
void clear_if_empty(Lawn *lawn, const lawn_link_t *slot)
{
    if (list_is_empty(slot)) {
        const size_t index = static_cast<size_t>(slot - lawn->slots[0]);
        const size_t c = index / slot_count;
        lawn->filled[c] &= ~bit_of(index);
        lawn->occupied &= ~(uint64_t{lawn->filled[c] == 0} << c);
    }
}

// Returns true if `link` is a timer that this round must touch. Checks do not
// decrease in a slot: if a timer is not up, the timers behind it are not up
// either.
bool is_up(const Lawn *lawn, const lawn_link_t *slot, const lawn_link_t *link)
{
    LAWN_ASSERT(is_in_place(slot) && "no timer was lost while it ran");
    return link != slot && timer_of(link)->check <= lawn->until;
}

// Works until at most `most` lanes have timers left. Returns false if the
// budget ends before that.
bool work_lanes(Lawn *lawn, Pass *pass, Lanes *lanes, unsigned most)
{
    while (lanes->count > most) {
        for (unsigned i = 0; i < lanes->count;) {
            lawn_link_t *const slot = lanes->slots[i];
            // A callback may have stopped the timers that were up.
            if (pass->left != 0 && is_up(lawn, slot, slot->next)) {
                touch(lawn, pass, timer_of(slot->next));
            }
            if (pass->left != 0 && is_up(lawn, slot, slot->prev)) {
                touch(lawn, pass, timer_of(slot->prev));
            }
            if (is_up(lawn, slot, slot->next)) {
                __builtin_prefetch(slot->next->next);
                __builtin_prefetch(slot->prev->prev);
                ++i;
            } else {
                clear_if_empty(lawn, slot);
                lanes->slots[i] = lanes->slots[--lanes->count];
            }
        }
        if (pass->left == 0) {
            return lanes->count <= most;
        }
    }
    return true;
}

// Works on a round. Returns false if the budget ends before the round is done.
bool work_round(Lawn *lawn, Pass *pass)
{
    Lanes lanes;
    lanes.count = 0;
    // If no bit of the time at or above a class's shift has changed, no slot of
    // the class has begun.
    const unsigned top = class_of(lawn->seen ^ lawn->until) + 1;
    uint64_t classes = lawn->occupied & ((uint64_t{2} << top) - 1);
    for (; classes != 0; classes &= classes - 1) {
        const unsigned c = lowest_bit(classes);
        uint64_t bits =
            lawn->filled[c] & begun_bits(c, lawn->seen, lawn->until);
        for (; bits != 0; bits &= bits - 1) {
            lawn_link_t *const slot = &lawn->slots[c][lowest_bit(bits)];
            if (!is_up(lawn, slot, slot->next)) {
                clear_if_empty(lawn, slot);
                continue;
            }
            lanes.slots[lanes.count++] = slot;
            if (lanes.count == most_lanes &&
                !work_lanes(lawn, pass, &lanes, most_lanes - 1)) {
                return false;
            }
        }
    }
    return work_lanes(lawn, pass, &lanes, 0);
}

void work_slots(Lawn *lawn, Pass *pass)
{
    // First the rest of a round that an earlier advance has begun, then a new
    // round.
    while (lawn->seen < pass->now) {
        if (lawn->until <= lawn->seen) {
            lawn->until = pass->now;
        }
        if (!work_round(lawn, pass)) {
            return;
        }
        lawn->seen = lawn->until;
    }
}

void work_due(Lawn *lawn, Pass *pass)
{
    const lawn_link_t *const due = &lawn->due;
    while (pass->left != 0 && due->next != due &&
           timer_of(due->next)->check != due_check(lawn)) {
        __builtin_prefetch(due->next->next);
        touch(lawn, pass, timer_of(due->next));
    }
}

// Returns the beginning of the first slot that has a bit and begins after
// `seen`, or INFINITY if there is none.
lawn_time_t first_slot(const Lawn *lawn)
{
    lawn_time_t first = LAWN_TIME_INFINITY;
    for (uint64_t classes = lawn->occupied; classes; classes &= classes - 1) {
        const unsigned c = lowest_bit(classes);
        // Slots of this class and of higher classes begin at `first` or later.
        if ((slot_of(c, lawn->seen) + 1) << shift_of(c) >= first) {
            break;
        }
        first = earlier_of(first, first_begin(c, lawn->filled[c], lawn->seen));
    }
    return first;
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

void open(Lawn *lawn)
{
    lawn->busy = false;
    lawn->is_settled = false;
    lawn->limit = lawn->observer ? 0 : open_limit;
    // Timers that are left of a round or in `due` may have any deadline.
    const bool is_done = lawn->until == lawn->seen && list_is_empty(&lawn->due);
    set_wake(lawn, is_done ? first_slot(lawn) : 0);
}

void enter(Lawn *lawn)
{
    ++lawn->passes;
    lawn->busy = true;
    lawn->is_settled = false;
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
    Pass pass = {earlier_of(now, never - 1), most, 0};
    enter(lawn);
    lawn->pass = &pass;
    // If the budget ends here, the other of the two goes first in the next
    // advance.
    const bool slots_first = lawn->slots_first;
    if (slots_first) {
        work_slots(lawn, &pass);
    }
    work_due(lawn, &pass);
    if (!slots_first) {
        work_slots(lawn, &pass);
    }
    lawn->slots_first = slots_first != (pass.left == 0);
    open(lawn);
    const size_t touched = most - pass.left;
    return {static_cast<unsigned>(touched - pass.moved), touched};
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
    Search found = {LAWN_TIME_INFINITY, max_touches ? max_touches : SIZE_MAX};
    if (lawn->busy || !search(&lawn->due, &found, false)) {
        return false;
    }
    for (unsigned c = 0; c < class_count; ++c) {
        for (uint64_t bits = lawn->filled[c]; bits != 0;) {
            const lawn_time_t begin = first_begin(c, bits, lawn->seen);
            const lawn_time_t slot = slot_of(c, begin);
            if (begin >= found.earliest) {
                break;
            }
            if (!search(&lawn->slots[c][slot % slot_count], &found, false)) {
                return false;
            }
            bits &= ~bit_of(slot);
        }
    }
    if (found.earliest <= lawn->now && found.earliest < never) {
        return false;
    }
    set_wake(lawn, found.earliest);
    lawn->is_settled = true;
    lawn->limit = 0;
    return true;
}
