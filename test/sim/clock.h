// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A host's clock: a line from a point of the world's time, with a slope that
// is not quite what the host was told, drifts, and may be 0; and steps.

#ifndef LAWN_TEST_SIM_CLOCK_H
#define LAWN_TEST_SIM_CLOCK_H

#include "units.h"

#include <lawn/time.h>

namespace sim
{

class Clock
{
public:
    Clock() = default;

    // `rate` is ticks per second.
    Clock(Nsec at, lawn_time_t ticks, uint64_t rate) : from_(at), base_(ticks)
    {
        set_rate(at, rate);
    }

    // Not for a time before the latest change.
    lawn_time_t read(Nsec at) const
    {
        return base_ +
               static_cast<lawn_time_t>(uint128{at - from_} * slope_ >> shift);
    }

    // The first time, `at` or later, when the clock shows `ticks` or more, as
    // far as is known now.
    Nsec when(lawn_time_t ticks, Nsec at) const
    {
        if (read(at) >= ticks) {
            return at;
        }
        if (slope_ == 0 || ticks == LAWN_TIME_INFINITY) {
            return never;
        }
        const uint128 span = uint128{ticks - base_} << shift;
        const uint128 after = (span + slope_ - 1) / slope_;
        return after < never - from_ ? from_ + static_cast<Nsec>(after) : never;
    }

    void set_rate(Nsec at, uint64_t rate)
    {
        rebase(at);
        rate_ = rate;
        slope_ = static_cast<uint64_t>((uint128{rate} << shift) / sec);
    }

    void freeze(Nsec at)
    {
        rebase(at);
        slope_ = 0;
    }

    void thaw(Nsec at)
    {
        set_rate(at, rate_);
    }

    void step_forward(Nsec at, lawn_time_t ticks)
    {
        rebase(at);
        base_ += ticks;
    }

    void step_back(Nsec at, lawn_time_t ticks)
    {
        rebase(at);
        base_ -= ticks < base_ ? ticks : base_;
    }

private:
    static constexpr unsigned shift = 32;

    void rebase(Nsec at)
    {
        base_ = read(at);
        from_ = at;
    }

    Nsec from_ = 0;
    lawn_time_t base_ = 0;
    uint64_t rate_ = 0;
    uint64_t slope_ = 0; // ticks per nanosecond, times 2^32
};

} // namespace sim

#endif
