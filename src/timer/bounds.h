// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The least of a fixed number of times: a tournament of minima. Entry i of
// `least_` is the lesser of entries 2i and 2i+1, entry 1 the least of all, and
// the leaves are the queues'. An idle poll reads entry 1; a queue whose head
// has changed walks up, and only as far as something changes.

#ifndef LAWN_SRC_TIMER_BOUNDS_H
#define LAWN_SRC_TIMER_BOUNDS_H

#include <lawn/time.h>

namespace lawn
{

template <unsigned Leaves> class Bounds
{
    static_assert((Leaves & (Leaves - 1)) == 0, "a power of two");

public:
    void clear()
    {
        for (lawn_time_t &time : least_) {
            time = LAWN_TIME_INFINITY;
        }
    }

    lawn_time_t least() const
    {
        return least_[1];
    }

    lawn_time_t get(unsigned leaf) const
    {
        return least_[Leaves + leaf];
    }

    unsigned leaf_of_least() const
    {
        unsigned i = 1;
        while (i < Leaves) {
            i = 2 * i + (least_[2 * i] != least_[i]);
        }
        return i - Leaves;
    }

    // Up to `room` leaves with times <= `limit`, in no order; how many.
    unsigned find(lawn_time_t limit, unsigned *leaves, unsigned room) const
    {
        unsigned count = 0;
        unsigned i = 1; // depth first, going up where all below is later
        while (count < room) {
            if (least_[i] <= limit && i < Leaves) {
                i *= 2;
                continue;
            }
            if (least_[i] <= limit) {
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
        unsigned i = Leaves + leaf;
        least_[i] = time;
        while (i > 1) {
            const lawn_time_t a = least_[i];
            const lawn_time_t b = least_[i ^ 1];
            const lawn_time_t least = a < b ? a : b;
            i /= 2;
            if (least_[i] == least) {
                break;
            }
            least_[i] = least;
        }
    }

    bool is_consistent() const
    {
        for (unsigned i = 1; i < Leaves; ++i) {
            const lawn_time_t a = least_[2 * i];
            const lawn_time_t b = least_[2 * i + 1];
            if (least_[i] != (a < b ? a : b)) {
                return false;
            }
        }
        return true;
    }

private:
    lawn_time_t least_[2 * Leaves];
};

} // namespace lawn

#endif
