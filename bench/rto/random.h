// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Random numbers that a seed repeats: xoshiro256++ (Blackman and Vigna, 2019),
// because the standard generators take most of a simulation's time.

#ifndef LAWN_BENCH_RTO_RANDOM_H
#define LAWN_BENCH_RTO_RANDOM_H

#include <cmath>
#include <cstdint>

namespace bench::rto
{

class Random
{
public:
    // The state is filled by splitmix64, as its authors advise.
    explicit Random(uint64_t seed)
    {
        for (uint64_t &word : state) {
            seed += 0x9e3779b97f4a7c15;
            uint64_t mixed = seed;
            mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
            mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
            word = mixed ^ (mixed >> 31);
        }
    }

    // From 0 to less than 1.
    double uniform()
    {
        return static_cast<double>(next() >> 11) * 0x1p-53;
    }

    bool happens(double probability)
    {
        return uniform() < probability;
    }

    double exponential(double mean)
    {
        return -mean * std::log(1 - uniform());
    }

private:
    uint64_t next()
    {
        const uint64_t result = rotate(state[0] + state[3], 23) + state[0];
        const uint64_t shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = rotate(state[3], 45);
        return result;
    }

    static uint64_t rotate(uint64_t word, int bits)
    {
        return (word << bits) | (word >> (64 - bits));
    }

    uint64_t state[4];
};

} // namespace bench::rto

#endif
