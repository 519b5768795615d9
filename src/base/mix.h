// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// mix64() makes counters and addresses look random, for hashes. It is the
// finaliser of splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom
// Number Generators", 2014). It is one to one, so distinct numbers stay
// distinct.

#ifndef LAWN_SRC_BASE_MIX_H
#define LAWN_SRC_BASE_MIX_H

#include <stdint.h>

namespace lawn
{

inline uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

} // namespace lawn

#endif
