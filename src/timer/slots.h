// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of classes and slots. A class covers three octaves of TTLs, so
// 21 classes cover all 64 bits. A slot is as wide as 1/8 of the least TTL of
// its class. So a timer lies 8 to 64 slots ahead (in the first class 1 to 63
// slots of a tick each), and 64 slots, used in a circle, are enough.

#ifndef LAWN_SRC_TIMER_SLOTS_H
#define LAWN_SRC_TIMER_SLOTS_H

#include <lawn/time.h>

namespace lawn
{

constexpr unsigned class_count = 21;
constexpr unsigned slot_count = 64; // per class; each has a bit
constexpr unsigned octaves = 3;     // per class

inline unsigned highest_bit(uint64_t x)
{
    return 63U - static_cast<unsigned>(__builtin_clzll(x));
}

inline unsigned lowest_bit(uint64_t x)
{
    return static_cast<unsigned>(__builtin_ctzll(x));
}

// Returns the class of a TTL above 0: 0 below 64, 1 below 512, ..., 20 from
// 2^63 on.
inline unsigned class_of(lawn_time_t ttl)
{
    return highest_bit(ttl | (slot_count - 1)) / octaves - 1;
}

inline unsigned shift_of(unsigned c)
{
    return octaves * c;
}

// Returns the number of the slot that `time` lies in, counted from time 0.
inline lawn_time_t slot_of(unsigned c, lawn_time_t time)
{
    return time >> shift_of(c);
}

// Returns the index of a slot in the array of all slots.
inline size_t index_of(size_t c, lawn_time_t slot)
{
    return c * slot_count + slot % slot_count;
}

inline uint64_t bit_of(lawn_time_t slot)
{
    return uint64_t{1} << slot % slot_count;
}

inline uint64_t rotate_right(uint64_t bits, lawn_time_t by)
{
    return bits >> by % 64 | bits << (64 - by % 64) % 64;
}

// Returns the beginning of the first slot of `bits` that begins after `from`.
// `bits` must not be 0.
inline lawn_time_t first_begin(unsigned c, uint64_t bits, lawn_time_t from)
{
    const lawn_time_t next = slot_of(c, from) + 1;
    return (next + lowest_bit(rotate_right(bits, next))) << shift_of(c);
}

} // namespace lawn

#endif
