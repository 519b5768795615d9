// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Scheme 7 of Varghese and Lauck: wheels of different speeds, like the hands of
// a clock. A deadline is a number of eight digits to the base 256. A timer
// waits on the level of the highest digit in which its deadline differs from
// the present time, in the slot of that digit. When the present time reaches a
// slot of a higher level, the timers of this slot migrate ("cascade") to the
// levels below.
//
// Start and stop are O(1). A timer that lives until its deadline migrates at
// most once per level. A tick is O(1) on average. But all timers of a slot
// migrate in one tick, and a slot of a high level can hold nearly every timer,
// so the worst tick is O(n). The wheels for the whole 64-bit range take 32 KiB.
// This is the best known of the exact classic schemes (Linux before 4.8, Kafka,
// wahern's timeout.c). It has bit maps of slots that may be filled, as
// timeout.c has. They make idle ticks and long jumps cheap.

#ifndef LAWN_BENCH_SCHEMES_HIERARCHICAL_WHEEL_H
#define LAWN_BENCH_SCHEMES_HIERARCHICAL_WHEEL_H

#include "list.h"
#include "ticks.h"

namespace bench
{

class HierarchicalWheel
{
public:
    static constexpr Traits traits{
        "hierarchical-wheel",      "Varghese & Lauck 1987, scheme 7",
        /* rounds_to_tick */ true,
        /* may_be_early */ false,
        /* any_order */ false,
        /* bounded_ttl */ false,
    };

    struct Node : Link {
        Time tick = 0;
    };

    explicit HierarchicalWheel(const Config &config) : ticks_(config.tick)
    {
    }

    void start(Node &node, Time now, Time ttl)
    {
        node.tick = ticks_.deadline(now, ttl);
        if (node.tick <= position_) {
            due_.add_for_next_pass(node);
        } else {
            file(node);
        }
    }

    bool stop(Node &node)
    {
        return unlink(node);
    }

    template <class Fired>
    unsigned advance(Time now, unsigned budget, Fired &&fired)
    {
        due_.begin_pass(budget);
        const Time present = ticks_.present(now);
        if (present > position_) {
            turn_to(present);
        }
        due_.fire(now, fired);
        return due_.fired();
    }

private:
    static constexpr unsigned digit_bits = 8;
    static constexpr unsigned levels = 64 / digit_bits;
    static constexpr unsigned slots = 1U << digit_bits;

    // One bit too many costs a look at an empty slot, so stop clears none.
    struct Level {
        List<Node> slot[slots];
        uint64_t filled[slots / 64] = {};
    };

    static unsigned level_of_difference(Time a, Time b)
    {
        return static_cast<unsigned>(63 - __builtin_clzll(a ^ b)) / digit_bits;
    }

    static unsigned digit(Time tick, unsigned level)
    {
        return static_cast<unsigned>(tick >> (level * digit_bits)) % slots;
    }

    // For a tick that is not over yet.
    void file(Node &node)
    {
        const unsigned level = level_of_difference(node.tick, position_);
        const unsigned at = digit(node.tick, level);
        level_[level].filled[at / 64] |= uint64_t{1} << (at % 64);
        level_[level].slot[at].push_back(node);
    }

    // Below the highest digit that changes, all that waits is due; on its
    // level, all up to the new digit. That one slot migrates. Slots between
    // would have migrated on the way, only to expire.
    void turn_to(Time present)
    {
        const unsigned top = level_of_difference(position_, present);
        for (unsigned level = 0; level < top; ++level) {
            expire(level_[level], digit(position_, level) + 1, slots);
        }
        const unsigned reached = digit(present, top);
        expire(level_[top], digit(position_, top) + 1, reached);
        position_ = present;
        migrate(level_[top].slot[reached]);
        level_[top].filled[reached / 64] &= ~(uint64_t{1} << (reached % 64));
    }

    void expire(Level &level, unsigned begin, unsigned end)
    {
        for (unsigned word = begin / 64; word * 64 < end; ++word) {
            uint64_t bits = level.filled[word];
            if (word == begin / 64) {
                bits &= UINT64_MAX << (begin % 64);
            }
            if (end - word * 64 < 64) {
                bits &= (uint64_t{1} << (end % 64)) - 1;
            }
            level.filled[word] &= ~bits;
            for (; bits != 0; bits &= bits - 1) {
                const auto bit = static_cast<unsigned>(__builtin_ctzll(bits));
                due_.add_all(level.slot[word * 64 + bit]);
            }
        }
    }

    void migrate(List<Node> &slot)
    {
        slot.each([&](Node &node) {
            if (node.tick <= position_) {
                due_.add(node);
            } else {
                file(node);
            }
        });
    }

    Ticks ticks_;
    Time position_ = 0; // ticks up to this one are over
    DueList<Node> due_;
    Level level_[levels];
};

} // namespace bench

#endif
