// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TTL classes partition the 64-bit numbers, in order.

#include "timer/ttl_class.h"

#include <gtest/gtest.h>

using namespace lawn;

namespace
{

TEST(TtlClass, EachClassBeginsWhereTheOneBeforeEnds)
{
    uint64_t next = 0;
    for (unsigned c = 0; c < class_count; ++c) {
        EXPECT_EQ(class_floor(c), next) << c;
        EXPECT_EQ(class_of(class_floor(c)), c);
        const uint64_t last = class_floor(c) + (class_width(c) - 1);
        EXPECT_EQ(class_of(last), c);
        next = last + 1;
    }
    EXPECT_EQ(next, 0U) << "the last class ends at 2^64 - 1";
}

TEST(TtlClass, IsNarrow)
{
    for (unsigned c = 0; c < class_count; ++c) {
        if (class_floor(c) >= classes_per_octave) {
            EXPECT_LE(class_width(c), class_floor(c) / classes_per_octave);
        } else {
            EXPECT_EQ(class_width(c), 1U);
        }
    }
}

} // namespace
