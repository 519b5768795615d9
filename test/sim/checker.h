// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Where what must not happen is reported, and everything that happens is
// summed up in a digest, by which two runs are compared.

#ifndef LAWN_TEST_SIM_CHECKER_H
#define LAWN_TEST_SIM_CHECKER_H

#include "random.h"
#include "units.h"

namespace sim
{

constexpr uint32_t no_end = UINT32_MAX;

class Checker
{
public:
    explicit Checker(uint64_t seed) : seed_(seed), digest_(lawn::mix64(seed))
    {
    }

    // Says what, where and when, and counts; after some twenty it only counts.
    __attribute__((format(printf, 4, 5))) void
    violation(Nsec at, uint32_t end, const char *format, ...);

    void note(Nsec at, unsigned what, uint64_t subject, uint64_t value)
    {
        const uint64_t event = at ^ uint64_t { what } << 56 ^ subject << 24;
        digest_ = (digest_ ^ event) * 0x9e3779b97f4a7c15U;
        digest_ =
            ((digest_ << 29 | digest_ >> 35) ^ value) * 0xff51afd7ed558ccdU;
    }

    uint64_t violations() const
    {
        return violations_;
    }

    uint64_t digest() const
    {
        return lawn::mix64(digest_);
    }

private:
    uint64_t seed_;
    uint64_t digest_;
    uint64_t violations_ = 0;
};

} // namespace sim

#endif
