// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TTL classes: 16 to the octave, so that 976 of them hold every 64-bit TTL and
// two TTLs of one class differ by less than a sixteenth. Below 32 ticks each
// TTL is a class of its own. The index is a count of leading zeros and a shift,
// as in an HDR histogram; there is nothing to hash and nothing to overflow.

#ifndef LAWN_SRC_TIMER_TTL_CLASS_H
#define LAWN_SRC_TIMER_TTL_CLASS_H

#include <stdint.h>

namespace lawn
{

constexpr unsigned class_bits = 4;
constexpr unsigned classes_per_octave = 1U << class_bits;
constexpr unsigned class_count = (64 - class_bits + 1) << class_bits;

constexpr unsigned class_of(uint64_t ttl)
{
    if (ttl < classes_per_octave) {
        return static_cast<unsigned>(ttl);
    }
    const unsigned shift =
        63U - static_cast<unsigned>(__builtin_clzll(ttl)) - class_bits;
    // ttl >> shift is 16 to 31: its high bit counts one octave more.
    return (shift << class_bits) + static_cast<unsigned>(ttl >> shift);
}

// TTLs of class `c` are class_floor(c) to class_floor(c) + class_width(c) - 1.
constexpr uint64_t class_width(unsigned c)
{
    return c < 2 * classes_per_octave ? 1
                                      : uint64_t{1} << ((c >> class_bits) - 1);
}

constexpr uint64_t class_floor(unsigned c)
{
    return c < 2 * classes_per_octave
               ? c
               : class_width(c) * (classes_per_octave + c % classes_per_octave);
}

static_assert(class_of(UINT64_MAX) == class_count - 1, "all TTLs have a class");
static_assert(class_floor(class_count - 1) +
                      (class_width(class_count - 1) - 1) ==
                  UINT64_MAX,
              "and the last class ends where they do");

} // namespace lawn

#endif
