// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The least of a fixed number of times: a tournament. Match i was won by leaf
// winner_[i], against the winners of matches 2i and 2i+1, and match 1 by the
// least of all. A leaf whose time changes plays its matches again, as far up as
// something changes.

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
        for (lawn_time_t &time : times_) {
            time = LAWN_TIME_INFINITY;
        }
        for (unsigned i = Leaves - 1; i > 0; --i) {
            winner_[i] = static_cast<uint16_t>(contestant(2 * i));
        }
        least_ = LAWN_TIME_INFINITY;
    }

    lawn_time_t least() const
    {
        return least_;
    }

    unsigned leaf_of_least() const
    {
        return winner_[1];
    }

    lawn_time_t get(unsigned leaf) const
    {
        return times_[leaf];
    }

    // Up to `room` leaves with times <= `limit`, in no order; how many.
    unsigned find(lawn_time_t limit, unsigned *leaves, unsigned room) const
    {
        unsigned count = 0;
        unsigned i = 1; // depth first, going up where all below is later
        while (count < room) {
            const unsigned leaf = contestant(i);
            if (times_[leaf] <= limit) {
                if (i < Leaves) {
                    i *= 2;
                    continue;
                }
                leaves[count++] = leaf;
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
        times_[leaf] = time;
        unsigned best = leaf;
        for (unsigned i = Leaves + leaf; i > 1; i /= 2) {
            const unsigned rival = contestant(i ^ 1);
            best = times_[rival] < times_[best] ? rival : best;
            if (winner_[i / 2] == best && best != leaf) {
                break;
            }
            winner_[i / 2] = static_cast<uint16_t>(best);
        }
        least_ = times_[winner_[1]];
    }

    bool is_consistent() const
    {
        for (unsigned i = 1; i < Leaves; ++i) {
            const unsigned a = contestant(2 * i);
            const unsigned b = contestant(2 * i + 1);
            const unsigned loser = winner_[i] == a ? b : a;
            if ((winner_[i] != a && winner_[i] != b) ||
                times_[loser] < times_[winner_[i]]) {
                return false;
            }
        }
        return least_ == times_[winner_[1]];
    }

private:
    // Who comes from place `i`: the winner of a match, or a leaf.
    unsigned contestant(unsigned i) const
    {
        return i < Leaves ? winner_[i] : i - Leaves;
    }

    lawn_time_t least_;
    lawn_time_t times_[Leaves];
    uint16_t winner_[Leaves]; // from 1
};

} // namespace lawn

#endif
