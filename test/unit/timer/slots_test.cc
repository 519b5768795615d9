// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of classes and slots, each function against a loop that counts
// slot by slot.

#include "timer/slots.h"
#include "times.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace lawn;

namespace
{

using lawn_test::end_of_time;

// The lowest class that has the TTL within its circle of slots.
unsigned class_by_search(lawn_time_t ttl)
{
    unsigned c = 0;
    while (ttl >> shift_of(c) >= slot_count) {
        ++c;
    }
    return c;
}

// Places in time where something turns over in class c: at the beginning, at
// the ends of slots and circles, in the middle, at the end of time.
std::vector<lawn_time_t> places(unsigned c)
{
    std::vector<lawn_time_t> places;
    const lawn_time_t width = lawn_time_t{1} << shift_of(c);
    for (const lawn_time_t slot : {0, 1, 7, 62, 63, 64, 65, 127, 128, 1000}) {
        const lawn_time_t begin = slot * width;
        if (begin / width == slot) {
            places.insert(places.end(), {begin, begin + width - 1});
            places.push_back(begin + width / 2);
        }
    }
    const lawn_time_t half = lawn_time_t{1} << 63;
    const lawn_time_t last_begin = end_of_time - (width - 1);
    places.insert(places.end(), {half - 1, half, last_begin - 1, last_begin,
                                 end_of_time - 1, end_of_time});
    return places;
}

TEST(Slots, TheHighestBitIsFound)
{
    for (unsigned bit = 0; bit < 64; ++bit) {
        const uint64_t power = uint64_t{1} << bit;
        EXPECT_EQ(highest_bit(power), bit);
        EXPECT_EQ(highest_bit(power | (power - 1)), bit);
    }
}

// Every border of an octave with its neighbours.
TEST(Slots, ATtlIsInTheLowestClassWhoseSlotsReachIt)
{
    unsigned before = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
        const lawn_time_t power = lawn_time_t{1} << bit;
        const lawn_time_t last = power + (power - 1);
        for (const lawn_time_t ttl :
             {power, power + 1, power + power / 2, last - 1, last}) {
            if (ttl != 0) {
                ASSERT_EQ(class_of(ttl), class_by_search(ttl)) << ttl;
            }
        }
        EXPECT_TRUE(class_of(power) == before || class_of(power) == before + 1);
        before = class_of(power);
    }
    EXPECT_EQ(before, class_count - 1);
    EXPECT_EQ(class_of(end_of_time), class_count - 1);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
        const lawn_time_t ttl = (random() >> random() % 64) | 1;
        ASSERT_EQ(class_of(ttl), class_by_search(ttl)) << ttl;
    }
}

TEST(Slots, AClassIsThreeOctaves)
{
    lawn_time_t floor = slot_count; // of class 1
    for (unsigned c = 1; c < class_count; ++c) {
        EXPECT_EQ(shift_of(c), shift_of(c - 1) + 3);
        EXPECT_EQ(class_of(floor), c);
        EXPECT_EQ(class_of(floor - 1), c - 1);
        EXPECT_EQ(floor >> shift_of(c), slot_count / 8U);
        floor <<= 3;
    }
}

// Whatever the time, so that 64 slots in a circle are enough, and none is in
// the slot that has begun.
TEST(Slots, ATimerLiesAtMost64SlotsAhead)
{
    for (unsigned c = 0; c < class_count; ++c) {
        const lawn_time_t floor =
            c == 0 ? 1 : lawn_time_t{slot_count / 8} << shift_of(c);
        const lawn_time_t last =
            c + 1 == class_count ? end_of_time
                                 : (lawn_time_t{slot_count} << shift_of(c)) - 1;
        ASSERT_EQ(class_of(floor), c);
        ASSERT_EQ(class_of(last), c);
        for (const lawn_time_t now : places(c)) {
            for (const lawn_time_t ttl : {floor, floor + 1, last - 1, last}) {
                const lawn_time_t deadline = now + ttl;
                if (deadline < now) {
                    continue; // beyond the end of time
                }
                const lawn_time_t ahead =
                    slot_of(c, deadline) - slot_of(c, now);
                ASSERT_GE(ahead, c == 0 ? 1U : slot_count / 8) << c;
                ASSERT_LE(ahead, c == 0 ? slot_count - 1 : slot_count) << c;
            }
        }
    }
}

TEST(Slots, BitsGoRound)
{
    for (lawn_time_t slot = 0; slot < 200; ++slot) {
        EXPECT_EQ(bit_of(slot), uint64_t{1} << slot % 64);
    }
    EXPECT_EQ(bit_of(end_of_time), uint64_t{1} << 63);
    std::mt19937_64 random(2);
    for (unsigned by = 0; by < 200; ++by) {
        const uint64_t bits = random();
        uint64_t expected = bits;
        for (unsigned i = 0; i < by; ++i) {
            expected = expected >> 1 | expected << 63;
        }
        ASSERT_EQ(rotate_right(bits, by), expected) << by;
    }
    EXPECT_EQ(rotate_right(1, end_of_time), 2U);
}

// False where the slot lies beyond the end of time.
bool first_by_search(unsigned c, uint64_t bits, lawn_time_t from,
                     lawn_time_t *begin_p)
{
    lawn_time_t slot = slot_of(c, from);
    do {
        if (slot == slot_of(c, end_of_time)) {
            return false;
        }
        ++slot;
    } while ((bits & bit_of(slot)) == 0);
    *begin_p = slot << shift_of(c);
    return true;
}

TEST(Slots, TheFirstBeginIsTheNextSlotWithABit)
{
    std::mt19937_64 random(3);
    std::vector<uint64_t> bit_maps = {~uint64_t{0}};
    for (unsigned i = 0; i < slot_count; ++i) {
        bit_maps.push_back(uint64_t{1} << i);
        bit_maps.push_back(uint64_t{1} << i | 1);
        bit_maps.push_back(random() & random() & random());
    }
    for (unsigned c = 0; c < class_count; ++c) {
        unsigned found = 0;
        for (const lawn_time_t from : places(c)) {
            for (const uint64_t bits : bit_maps) {
                lawn_time_t begin = 0;
                if (bits == 0 || !first_by_search(c, bits, from, &begin)) {
                    continue;
                }
                ASSERT_EQ(first_begin(c, bits, from), begin)
                    << c << ' ' << bits << ' ' << from;
                ASSERT_GT(begin, from);
                ++found;
            }
        }
        EXPECT_GT(found, 100U) << c;
    }
}

} // namespace
