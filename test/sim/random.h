// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// All chance in a run: splitmix64 (Steele, Lea and Flood, 2014), and what is
// drawn from it in integers, so that a seed is the same run on every machine.

#ifndef LAWN_TEST_SIM_RANDOM_H
#define LAWN_TEST_SIM_RANDOM_H

#include "units.h"

#include "base/mix.h"

namespace sim
{

class Random
{
public:
    explicit Random(uint64_t seed) : state_(seed)
    {
    }

    // A generator of its own for one part of the world, so that a draw more in
    // one does not change the others.
    Random split()
    {
        return Random(next());
    }

    uint64_t next()
    {
        return lawn::mix64(state_ += 0x9e3779b97f4a7c15U);
    }

    uint64_t below(uint64_t bound)
    {
        return static_cast<uint64_t>(uint128{next()} * bound >> 64);
    }

    // Both ends included.
    uint64_t between(uint64_t low, uint64_t high)
    {
        return low + below(high - low + 1);
    }

    bool one_in(uint64_t count)
    {
        return below(count) == 0;
    }

    bool chance_ppm(uint32_t ppm)
    {
        return below(1000000) < ppm;
    }

    // Evenly around a mean, from a fifth of it to nine.
    uint64_t around(uint64_t mean)
    {
        return between(mean / 5, mean / 5 * 9);
    }

    // Each power of two from `low` to `high` as likely as the others.
    uint64_t magnitude(uint64_t low, uint64_t high)
    {
        unsigned octaves = 0;
        while (high >> octaves >= 2 * low) {
            ++octaves;
        }
        const uint64_t from = low << below(octaves + 1);
        const uint64_t value = between(from, 2 * from);
        return value < high ? value : high;
    }

private:
    uint64_t state_;
};

} // namespace sim

#endif
