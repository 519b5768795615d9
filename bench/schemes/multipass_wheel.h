// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The multi-pass hashing wheel, Algorithm 2 of the Lawn paper: a wheel of fixed
// size. Each timer carries the number of revolutions that it still has to wait.
// A tick visits one slot, counts down each of its timers, and fires those whose
// count has ended.
//
// This is scheme 6 of Varghese and Lauck in its first form. It stores to every
// timer once per revolution, and hashed_wheel.h only compares. Start and stop
// are O(1). A tick is O(n / slots) on average and O(n) at worst. The paper's
// pseudo-code computes the count from the absolute time, so every timer would
// be later the longer the program runs. Here the count is computed from the
// present time.
//
// A jump over several revolutions counts down by the number of visits that each
// slot has missed. Timers fire in the order of slots and not in the order of
// time.

#ifndef LAWN_BENCH_SCHEMES_MULTIPASS_WHEEL_H
#define LAWN_BENCH_SCHEMES_MULTIPASS_WHEEL_H

#include "list.h"
#include "ticks.h"

#include <vector>

namespace bench
{

class MultipassWheel
{
public:
    static constexpr Traits traits{
        "multipass-wheel",         "Lev-Libfeld, Lawn, algorithm 2",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time cycles = 0; // visits that will pass this timer over
    };

    explicit MultipassWheel(const Config &config)
        : ticks_(config.tick),
          slots_(power_of_two(config.capacity, 512, size_t{1} << 16)),
          shift_(static_cast<unsigned>(__builtin_ctzll(slots_.size())))
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        const Time tick = ticks_.deadline(now, ttl);
        if (tick <= position_) {
            due_.add_for_next_pass(node);
            return;
        }
        node.cycles = (tick - position_ - 1) >> shift_;
        slot_of(tick).push_back(node);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    // Every slot is visited before anything fires: a callback's timer must not
    // be counted down by a visit that belongs to the time before its start.
    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        due_.begin_pass(budget);
        const Time from = position_;
        position_ = ticks_.present(now);
        const Time elapsed = position_ - from;
        const Time slots = std::min<Time>(elapsed, slots_.size());
        for (Time i = 1; i <= slots; ++i) {
            const Time visits = ((elapsed - i) >> shift_) + 1;
            visit(slot_of(from + i), visits);
        }
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    List<Node> &slot_of(Time tick)
    {
        return slots_[tick & (slots_.size() - 1)];
    }

    void visit(List<Node> &slot, Time visits)
    {
        slot.each([&](Node &node) {
            if (node.cycles < visits) {
                due_.add(node);
            } else {
                node.cycles -= visits;
            }
        });
    }

    Ticks ticks_;
    std::vector<List<Node>> slots_;
    unsigned shift_;    // the size is 2^shift
    Time position_ = 0; // ticks up to this one are over
    DueList<Node> due_;
};

} // namespace bench

#endif
