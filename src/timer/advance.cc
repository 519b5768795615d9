// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The advance: it touches every timer whose slot has begun, and fires those
// that are due.
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

// Returns true if `link` is a timer that the round must touch. Checks
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
    const lawn_time_t until = lawn->round_time;
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
    while (!list_is_empty(due) &&
           timer_of(due->next)->check < lawn->round_check) {
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
        return !is_up(slot, slot->next, lawn->round_time);
    };
    const lawn_time_t end = lawn->round_time + 1;
    // The last timer of the budget may have been the last in the slots. What is
    // left in `due` is the first that the next round touches.
    const bool is_done =
        (lawn->budget_left != 0 && work_due(lawn) &&
         each_slot(lawn, end, add) && work_lanes(lawn, &lanes, 0)) ||
        each_slot(lawn, end, is_over);
    if (is_done) {
        lawn->done = lawn->round_time;
    }
    return is_done;
}

} // namespace

bool touch_slow(Lawn *lawn, lawn_timer_t *timer)
{
    if (timer->deadline <= lawn->pass_time) {
        end_run(lawn, timer);
        const Kind *const kind = kind_of(lawn, timer);
        if (!kind || kind->is_shown) {
            note_late(lawn, lawn->pass_time - timer->check);
        }
        if (!is_alarm(timer)) {
            report(lawn, LAWN_EVENT_FIRE, timer, lawn->pass_time, 0);
        }
        call_back(lawn, timer);
    } else {
        ++lawn->unfired;
        if (is_paused(timer)) {
            timer->link.next = nullptr;
        } else {
            LAWN_PROBE(move, timer, lawn, lawn->pass_time);
            file(lawn, timer);
        }
    }
    return --lawn->budget_left != 0;
}

void enter(Lawn *lawn)
{
    ++lawn->due_check;
    lawn->busy = true;
    lawn->inline_limit = 0;
    enter_usage(&lawn->usage);
}

Work advance_slow(lawn_t *handle, lawn_time_t now, unsigned budget)
{
    Lawn *const lawn = impl_of(handle);
    assert_usable(lawn);
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return {0, 0};
    }
    report(lawn, LAWN_EVENT_ADVANCE, nullptr, lawn->now, 0);
    const size_t most = budget != 0 ? budget : SIZE_MAX;
    enter(lawn);
    lawn->pass_time = earlier_of(now, never - 1);
    lawn->quiet_until = lawn->late || lawn->observer ? 0 : lawn->pass_time + 1;
    lawn->budget_left = most;
    lawn->unfired = 0;
    // First the rest of a round that an earlier advance has begun, then a new
    // round.
    if (lawn->round_time == lawn->done || work_round(lawn)) {
        lawn->round_time = later_of(lawn->done, lawn->pass_time);
        lawn->round_check = lawn->due_check;
        work_round(lawn);
    }
    reopen(lawn);
    const size_t touched = most - lawn->budget_left;
    return {static_cast<unsigned>(touched - lawn->unfired), touched};
}

} // namespace lawn

using namespace lawn;

unsigned lawn_advance_slow(lawn_t *lawn, unsigned budget)
{
    return advance_slow(lawn, lawn->now, budget).fired;
}
