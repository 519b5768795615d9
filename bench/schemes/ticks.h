// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Arithmetic of time that the schemes share. Deadlines are rounded up to whole
// ticks and the present time is rounded down. So a timer is late by less than
// one tick, and never early. Nothing here overflows: a deadline that does not
// fit is `never`, and the present time never reaches it.

#ifndef LAWN_BENCH_SCHEMES_TICKS_H
#define LAWN_BENCH_SCHEMES_TICKS_H

#include "scheme.h"

#include <algorithm>

namespace bench
{

inline Time deadline_of(Time now, Time ttl)
{
    return ttl > never - now ? never : now + ttl;
}

inline Time before_never(Time now)
{
    return std::min(now, never - 1);
}

// A shift where the tick is a power of two: a division costs as much as the
// rest of a start.
class Ticks
{
public:
    explicit Ticks(Time tick) : tick_(std::max<Time>(tick, 1))
    {
        is_power_ = (tick_ & (tick_ - 1)) == 0;
        shift_ = static_cast<unsigned>(__builtin_ctzll(tick_));
    }

    Time deadline(Time now, Time ttl) const
    {
        const Time deadline = deadline_of(now, ttl);
        const Time whole = down(deadline);
        return whole * tick_ == deadline ? whole : whole + 1;
    }

    Time present(Time now) const
    {
        return down(before_never(now));
    }

private:
    Time down(Time time) const
    {
        return is_power_ ? time >> shift_ : time / tick_;
    }

    Time tick_;
    bool is_power_;
    unsigned shift_;
};

// The least power of two that is not below `wanted`, within two others.
inline size_t power_of_two(Time wanted, size_t least, size_t most)
{
    size_t size = least;
    while (size < wanted && size < most) {
        size *= 2;
    }
    return size;
}

} // namespace bench

#endif
