// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What an explored thread does to memory (explorer.h).

#include "explorer.h"

#include <string.h>

#include <algorithm>

namespace explore
{

namespace
{

bool acquires(Order order)
{
    return order == Order::acquire || order == Order::acq_rel ||
           order == Order::seq_cst;
}

bool releases(Order order)
{
    return order == Order::release || order == Order::acq_rel ||
           order == Order::seq_cst;
}

bool is_sc(Order order)
{
    return order == Order::seq_cst;
}

} // namespace

// A thread that loads at the same place the same value again, and has stored
// nothing since, spins.
void Explorer::note_load(const Location &location, const void *pc)
{
    Thread &thread = *threads_[current_];
    const uint32_t age = memory_.view_of(current_).oldest_of(location.number);
    const bool is_again = std::any_of(
        thread.polled.begin(), thread.polled.end(), [&](const Polled &i) {
            return i.location == location.number && i.age == age && i.pc == pc;
        });
    if (is_again) {
        pause();
    } else {
        thread.polled.push_back({location.number, age, pc});
    }
}

void Explorer::check(const void *at, size_t size, bool writes, bool is_atomic,
                     const void *pc)
{
    const char *const wrong =
        memory_.check(current_, at, size, writes, is_atomic);
    if (wrong) {
        note(writes ? "writes" : "reads", at, 0, pc, 0);
        violate(wrong);
    }
}

bool Explorer::has_fault(Fault::Kind kind, const void *pc) const
{
    return fault_.kind == kind && fault_.places.count(pc) > 0;
}

// The order of an access at this place, which is noted.
Order Explorer::order_of(Order order, const void *pc)
{
    if (!has_fault(Fault::weaker, pc)) {
        return order;
    }
    return order == Order::seq_cst ? Order::acq_rel : Order::relaxed;
}

uint64_t Explorer::load(void *at, unsigned size, Order order, const void *pc)
{
    if (!memory_.has(at)) { // of the library's own, set once
        uint64_t value = 0;
        memcpy(&value, at, size);
        return value;
    }
    store_due();
    if (threads_[current_]->delayed.at == at) {
        store_delayed();
    }
    sites_[pc] = {true, false, order};
    order = order_of(order, pc);
    arrive("load", at, pc);
    check(at, size, false, true, pc);
    Location &location = memory_.location(at, size);
    const uint32_t count = memory_.choices(current_, location, is_sc(order));
    result_.stale += count > 1;
    const unsigned back =
        has_fault(Fault::stale, pc)
            ? std::min<unsigned>(memory_.newest(location.number), 1)
            : choose_value(count);
    const uint64_t value =
        memory_.load(current_, location, back, acquires(order));
    learned(value);
    note("load", at, value, pc, back);
    note_load(location, pc);
    return value;
}

void Explorer::store(void *at, unsigned size, uint64_t value, Order order,
                     const void *pc)
{
    store_due();
    sites_[pc] = {false, true, order};
    if (has_fault(Fault::left_out, pc)) {
        step("left out");
    } else if (has_fault(Fault::later, pc)) {
        store_delayed();
        threads_[current_]->delayed = {at, size, value, order, pc, false};
    } else {
        store_now(at, size, value, order_of(order, pc), pc);
        store_delayed();
    }
}

void Explorer::has_stored(const void *at, uint64_t value)
{
    threads_[current_]->polled.clear();
    threads_[current_]->rounds = 0;
    program_->on_store(at, value);
}

void Explorer::store_delayed()
{
    Delayed &delayed = threads_[current_]->delayed;
    const Delayed now = delayed;
    delayed = {};
    if (now.at) {
        store_now(now.at, now.size, now.value, now.order, now.pc);
    }
}

void Explorer::store_due()
{
    if (threads_[current_]->delayed.is_due) {
        store_delayed();
    }
}

void Explorer::store_now(void *at, unsigned size, uint64_t value, Order order,
                         const void *pc)
{
    memory_.keep(at, size);
    arrive("store", at, pc);
    check(at, size, true, true, pc);
    Location &location = memory_.location(at, size);
    memory_.store(current_, location, value, releases(order), is_sc(order));
    has_stored(at, value);
    note("store", at, value, pc, 0);
}

uint64_t Explorer::modify(void *at, unsigned size, Order order, const void *pc,
                          uint64_t (*make)(uint64_t, uint64_t),
                          uint64_t operand)
{
    store_due();
    sites_[pc] = {true, true, order};
    order = order_of(order, pc);
    memory_.keep(at, size);
    arrive("modify", at, pc);
    check(at, size, true, true, pc);
    Location &location = memory_.location(at, size);
    const uint64_t was = memory_.load(current_, location, 0, acquires(order));
    const uint64_t bits =
        size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
    const uint64_t value = make(was, operand) & bits;
    if (!has_fault(Fault::left_out, pc)) {
        memory_.store_after(current_, location, value, releases(order),
                            is_sc(order));
        has_stored(at, value);
    }
    learned(was);
    note("modify", at, value, pc, 0);
    store_delayed();
    return was;
}

// What fails is a load, of any value that it may load but the expected one.
bool Explorer::swap(void *at, unsigned size, uint64_t *expected, uint64_t value,
                    Order order, Order failure, bool is_weak, const void *pc)
{
    store_due();
    sites_[pc] = {true, true, order};
    order = order_of(order, pc);
    memory_.keep(at, size);
    arrive("swap", at, pc);
    Location &location = memory_.location(at, size);
    const uint32_t count = memory_.choices(current_, location, is_sc(failure));
    std::vector<unsigned> ways;
    for (unsigned back = 0; back < count; ++back) {
        const uint64_t there = memory_.value_of(location, back);
        if (back == 0 || there != *expected) {
            ways.push_back(back);
        }
    }
    const bool may_fail_alone =
        is_weak && memory_.value_of(location, 0) == *expected;
    const unsigned chosen =
        choose_value(static_cast<unsigned>(ways.size()) + may_fail_alone);
    const unsigned back = chosen < ways.size() ? ways[chosen] : 0;
    const bool swaps =
        chosen < ways.size() && memory_.value_of(location, back) == *expected;
    check(at, size, swaps, true, pc);
    const uint64_t was = memory_.load(current_, location, back,
                                      acquires(swaps ? order : failure));
    learned(was * 2 + swaps);
    if (swaps) {
        if (!has_fault(Fault::left_out, pc)) {
            memory_.store_after(current_, location, value, releases(order),
                                is_sc(order));
            has_stored(at, value);
        }
    }
    note(swaps ? "swap" : "fail", at, swaps ? value : was, pc, back);
    if (swaps) {
        store_delayed();
    } else {
        *expected = was;
        note_load(location, pc);
    }
    return swaps;
}

void Explorer::read(const void *at, size_t size, const void *pc)
{
    if (!memory_.has(at)) {
        return;
    }
    check(at, size, false, false, pc);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t value = 0;
        memcpy(&value, static_cast<const char *>(at) + i,
               std::min<size_t>(size - i, 8));
        learned(value);
    }
}

void Explorer::write(const void *at, size_t size, const void *pc)
{
    if (memory_.has(at)) {
        check(at, size, true, false, pc);
    } else {
        memory_.keep(const_cast<void *>(at), size);
    }
}

} // namespace explore
