// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the environment says of how much a test is to do.

#ifndef LAWN_TEST_ENVIRONMENT_H
#define LAWN_TEST_ENVIRONMENT_H

#include <cstdint>
#include <cstdlib>

namespace lawn_test
{

inline uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *const text = getenv(name);
    return text ? strtoull(text, nullptr, 0) : otherwise;
}

// The share of the work, in per cent, that an instrument wants.
inline uint64_t scaled(uint64_t count)
{
    return count * environment("LAWN_TEST_SCALE", 100) / 100;
}

} // namespace lawn_test

#endif
