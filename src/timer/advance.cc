// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Advance: touches every timer whose slot has begun, and fires those that are
// due.
//
// Expiry of many timers is bound by cache misses, one per timer. So they are
// taken from both ends of up to 16 slots in turn, and what comes next at each
// end is asked for beforehand: the misses overlap.

#include "timer/advance.h"

#include "timer/lawn_impl.h"
#include "timer/queue.h"

#include <stdint.h>

namespace lawn
{

namespace
{

constexpr unsigned most_lanes = 16;

// The slots that begin after `seen` and no later than `until`, one by one.
class BegunSlots
{
public:
    explicit BegunSlots(Lawn *lawn) : lawn_(lawn)
    {
        // Where the time has changed in no bit above a class's shift, the class
        // is still in the same slot.
        const unsigned top = class_of(lawn->seen ^ lawn->until) + 1;
        classes_ = lawn->occupied & ((uint64_t{2} << top) - 1);
    }

    // nullptr at the end.
    lawn_link_t *next()
    {
        while (bits_ == 0) {
            if (classes_ == 0) {
                return nullptr;
            }
            c_ = static_cast<unsigned>(__builtin_ctzll(classes_));
            classes_ &= classes_ - 1;
            bits_ =
                lawn_->filled[c_] & begun_bits(c_, lawn_->seen, lawn_->until);
        }
        lawn_link_t *const slot = &lawn_->slots[c_][__builtin_ctzll(bits_)];
        bits_ &= bits_ - 1;
        return slot;
    }

private:
    Lawn *lawn_;
    uint64_t classes_;
    uint64_t bits_ = 0;
    unsigned c_ = 0;
};

// The bits of a slot that is done with.
void clear_if_empty(Lawn *lawn, const lawn_link_t *slot)
{
    if (list_is_empty(slot)) {
        const size_t index = static_cast<size_t>(slot - lawn->slots[0]);
        const size_t c = index / slot_count;
        lawn->filled[c] &= ~bit_of(index);
        lawn->occupied &= ~(uint64_t{lawn->filled[c] == 0} << c);
    }
}

// Behind the first timer of a slot that is not up, none is.
bool is_up(const Lawn *lawn, const lawn_link_t *slot, const lawn_link_t *link)
{
    return link != slot && timer_of(link)->check <= lawn->until;
}

// The slots that are worked on, in turn.
struct Lanes {
    lawn_link_t *slots[most_lanes];
    unsigned count;
};

// Replaces what is done, and asks for what comes next.
void refill(Lawn *lawn, BegunSlots *begun, Lanes *lanes)
{
    unsigned count = 0;
    for (unsigned i = 0; i < lanes->count; ++i) {
        lawn_link_t *const slot = lanes->slots[i];
        if (is_up(lawn, slot, slot->next)) {
            __builtin_prefetch(slot->next->next);
            __builtin_prefetch(slot->prev->prev);
            lanes->slots[count++] = slot;
        } else {
            clear_if_empty(lawn, slot);
        }
    }
    while (count < most_lanes) {
        lawn_link_t *const slot = begun->next();
        if (!slot) {
            break;
        }
        if (is_up(lawn, slot, slot->next)) {
            lanes->slots[count++] = slot;
        } else {
            clear_if_empty(lawn, slot);
        }
    }
    lanes->count = count;
}

// Works on a round until it is done, or the budget gone (false).
bool work_round(Lawn *lawn, Pass *pass)
{
    BegunSlots begun(lawn);
    Lanes lanes;
    lanes.count = 0;
    refill(lawn, &begun, &lanes);
    while (lanes.count != 0 && pass->left != 0) {
        for (unsigned i = 0; i < lanes.count; ++i) {
            lawn_link_t *const slot = lanes.slots[i];
            // A callback may have stopped what was up.
            if (pass->left != 0 && is_up(lawn, slot, slot->next)) {
                touch(lawn, pass, timer_of(slot->next));
            }
            if (pass->left != 0 && is_up(lawn, slot, slot->prev)) {
                touch(lawn, pass, timer_of(slot->prev));
            }
        }
        refill(lawn, &begun, &lanes);
    }
    return lanes.count == 0;
}

void work_slots(Lawn *lawn, Pass *pass)
{
    // The rest of a round that an advance before has begun, then a new one.
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
    while (pass->left != 0 && !list_is_empty(&lawn->due)) {
        __builtin_prefetch(lawn->due.next->next);
        touch(lawn, pass, timer_of(lawn->due.next));
    }
}

} // namespace

lawn_time_t first_slot(const Lawn *lawn)
{
    lawn_time_t first = LAWN_TIME_INFINITY;
    for (uint64_t classes = lawn->occupied; classes; classes &= classes - 1) {
        const unsigned c = static_cast<unsigned>(__builtin_ctzll(classes));
        // No slot of this class or a higher one begins before.
        if ((slot_of(c, lawn->seen) + 1) << shift_of(c) >= first) {
            break;
        }
        first = earlier_of(first, first_begin(c, lawn->filled[c], lawn->seen));
    }
    return first;
}

void open(Lawn *lawn)
{
    lawn->is_settled = false;
    lawn->limit = lawn->observer ? 0 : open_limit;
    // What is left of a round or of `due` may have any deadline.
    const bool is_done = lawn->until == lawn->seen && list_is_empty(&lawn->due);
    set_wake(lawn, is_done ? first_slot(lawn) : 0);
}

void enter(Lawn *lawn)
{
    lawn->busy = true;
    lawn->is_settled = false;
    lawn->limit = 0;
}

void leave(Lawn *lawn)
{
    lawn->busy = false;
    list_splice(&lawn->due, &lawn->deferred);
    if (LAWN_UNLIKELY(lawn->deferred_queues != nullptr)) {
        end_deferral(lawn);
    }
    open(lawn);
}

Work advance_rest(lawn_t *handle, lawn_time_t now, unsigned budget)
{
    Lawn *const lawn = impl_of(handle);
    LAWN_ASSERT(!lawn->busy);
    if (lawn->busy) {
        return {0, 0};
    }
    report(lawn, Event::advance, nullptr, lawn->now, 0);
    const size_t most = budget != 0 ? budget : SIZE_MAX;
    Pass pass = {earlier_of(now, last_time), most, 0};
    enter(lawn);
    lawn->pass = &pass;
    // Where the budget ends first, the other begins the next time.
    const bool slots_first = lawn->slots_first;
    if (slots_first) {
        work_slots(lawn, &pass);
        work_due(lawn, &pass);
    } else {
        work_due(lawn, &pass);
        work_slots(lawn, &pass);
    }
    lawn->slots_first = slots_first != (pass.left == 0);
    leave(lawn);
    const size_t touched = most - pass.left;
    return {static_cast<unsigned>(touched - pass.moved), touched};
}

} // namespace lawn

unsigned lawn_advance_rest(lawn_t *lawn, unsigned budget)
{
    return lawn::advance_rest(lawn, lawn->now, budget).fired;
}
