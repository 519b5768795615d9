// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The least of a fixed number of times: a tournament. Place i was won by the
// lesser of places 2i and 2i+1; the leaves come last, and place 1 is the least
// of all. A leaf whose time changes plays all its matches again, without a look
// at what they change: so the processor foresees every branch, which is worth
// more than the matches that could be left out.

#ifndef LAWN_SRC_TIMER_BOUNDS_H
#define LAWN_SRC_TIMER_BOUNDS_H

#include <lawn/time.h>

namespace lawn
{

template <unsigned Leaves> class Bounds
{
    static_assert((Leaves & (Leaves - 1)) == 0 && Leaves <= 1U << 16,
                  "a power of two, its numbers in 16 bits");

public:
    void clear()
    {
        for (unsigned i = 0; i < 2 * Leaves; ++i) {
            times_[i] = LAWN_TIME_INFINITY;
        }
        for (unsigned leaf = 0; leaf < Leaves; ++leaf) {
            winners_[Leaves + leaf] = static_cast<uint16_t>(leaf);
        }
        for (unsigned i = Leaves - 1; i > 0; --i) {
            winners_[i] = winners_[2 * i];
        }
    }

    lawn_time_t least() const
    {
        return times_[1];
    }

    unsigned leaf_of_least() const
    {
        return winners_[1];
    }

    lawn_time_t get(unsigned leaf) const
    {
        return times_[Leaves + leaf];
    }

    // Up to `room` leaves with times <= `limit`, the first of them that are not
    // before `from`, in order; how many.
    unsigned find(lawn_time_t limit, unsigned *leaves, unsigned room,
                  unsigned from = 0) const
    {
        unsigned count = 0;
        // Depth first, going up where all below is later.
        unsigned i = from == 0 ? 1 : Leaves + from;
        while (count < room) {
            if (times_[i] <= limit) {
                if (i < Leaves) {
                    i *= 2;
                    continue;
                }
                leaves[count++] = i - Leaves;
            }
            ++i; // the sibling, or up to the parent's sibling
            i >>= __builtin_ctz(i);
            if (i == 1) {
                break;
            }
        }
        return count;
    }

    void set(unsigned leaf, lawn_time_t time)
    {
        uint64_t winner = leaf;
        times_[Leaves + leaf] = time;
        for (unsigned i = Leaves + leaf; i > 1; i /= 2) {
            // Masks, since compilers would rather branch.
            const uint64_t is_beaten = -uint64_t{times_[i ^ 1] < time};
            time ^= (time ^ times_[i ^ 1]) & is_beaten;
            winner ^= (winner ^ winners_[i ^ 1]) & is_beaten;
            times_[i / 2] = time;
            winners_[i / 2] = static_cast<uint16_t>(winner);
        }
    }

    bool is_consistent() const
    {
        for (unsigned i = 1; i < Leaves; ++i) {
            const unsigned a = 2 * i;
            const unsigned b = 2 * i + 1;
            const unsigned better = winners_[i] == winners_[a] ? a : b;
            if (winners_[i] != winners_[better] ||
                times_[i] != times_[better] || times_[i] > times_[a] ||
                times_[i] > times_[b]) {
                return false;
            }
        }
        return true;
    }

private:
    lawn_time_t times_[2 * Leaves]; // from 1
    uint16_t winners_[2 * Leaves];  // leaves
};

} // namespace lawn

#endif
