// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Nichols' variant of scheme 7, described in Varghese and Lauck: a hierarchical
// wheel without migration. A timer stays on the level where it was put and
// fires there. It is only as precise as the slots of that level, so a farther
// deadline is less precise. This is the timer wheel of Linux since 4.8
// (Gleixner 2016). The argument there is that most timers are timeouts, which
// are stopped, and that the timers that fire need no precision.
//
// Start, stop and tick are O(1), and no timer ever migrates, so this is the
// cheapest wheel. Each level has 64 slots. A slot is eight times as long as a
// slot of the level below, so a timer is late by up to 1/7 of its TTL.
// Deadlines are rounded up, never down. Linux has 8 or 9 levels, and fires
// timers beyond its range early, at the end of the range. Here 21 levels cover
// 64 bits, in 22 KiB.
//
// The level of a timer is chosen by the time since the last advance, not since
// the `now` of the start. So a wheel that is not advanced for long is less
// precise. Linux first forwards such a wheel.

#ifndef LAWN_BENCH_SCHEMES_HIERARCHICAL_WHEEL_NOMIGRATION_H
#define LAWN_BENCH_SCHEMES_HIERARCHICAL_WHEEL_NOMIGRATION_H

#include "list.h"
#include "ticks.h"

namespace bench
{

class NoMigrationWheel
{
public:
    static constexpr Traits traits{
        "nomigration-wheel",
        "Nichols, in Varghese & Lauck 1987; Linux 4.8",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ true,
        /* bounded_ttl */ false,
        /* late_divisor */ 7,
    };

    struct Node : Link {
    };

    explicit NoMigrationWheel(const Config &config) : ticks_(config.tick)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        if (!is_turning_) {
            turn_first(now);
        }
        const Time tick = ticks_.deadline(now, ttl);
        if (tick <= position_) {
            due_.add_for_next_pass(node);
            return;
        }
        unsigned level = level_for(tick - position_);
        Time slot = slot_at(level, tick);
        if (slot - (position_ >> shift(level)) > slots) {
            slot = slot_at(++level, tick);
        }
        level_[level].filled |= uint64_t{1} << (slot % slots);
        level_[level].slot[slot % slots].push_back(node);
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        if (!is_turning_) {
            turn_first(now);
        }
        due_.begin_pass(budget);
        const Time from = position_;
        position_ = ticks_.present(now);
        for (unsigned level = 0; level < levels; ++level) {
            const Time first = from >> shift(level);
            const Time last = position_ >> shift(level);
            if (first == last) {
                break; // nor has any level above moved
            }
            expire(level_[level], first + 1, last - first);
        }
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    static constexpr unsigned slots = 64;
    static constexpr unsigned levels = 21;

    // One bit too many costs a look at an empty slot, so stop clears none.
    struct Level {
        List<Node> slot[slots];
        uint64_t filled = 0;
    };

    static unsigned shift(unsigned level)
    {
        return 3 * level;
    }

    // The lowest level with 64 slots of 8^level ticks up to that distance.
    static unsigned level_for(Time distance)
    {
        const auto bits = static_cast<unsigned>(64 - __builtin_clzll(distance));
        return bits <= 6 ? 0 : (bits - 6 + 2) / 3;
    }

    // The first slot of a level that begins at the tick or after it.
    static Time slot_at(unsigned level, Time tick)
    {
        const Time slot = tick >> shift(level);
        return slot << shift(level) == tick ? slot : slot + 1;
    }

    // Before its first use the wheel stands at no time in particular.
    void turn_first(Time now)
    {
        is_turning_ = true;
        position_ = ticks_.present(now);
    }

    void expire(Level &level, Time first, Time count)
    {
        const auto turn = static_cast<unsigned>(first % slots);
        uint64_t bits = level.filled >> turn;
        bits |= turn == 0 ? 0 : level.filled << (slots - turn);
        if (count < slots) {
            bits &= (uint64_t{1} << count) - 1;
        }
        for (; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<unsigned>(__builtin_ctzll(bits));
            const unsigned at = (turn + bit) % slots;
            level.filled &= ~(uint64_t{1} << at);
            due_.add_all(level.slot[at]);
        }
    }

    Ticks ticks_;
    bool is_turning_ = false;
    Time position_ = 0; // ticks up to this one are over
    DueList<Node> due_;
    Level level_[levels];
};

} // namespace bench

#endif
