// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a pacer should do, told another way: a bucket that leaks. Its level is
// what was taken and is not paid for, in 2^-32 ticks, at the latest time at
// which somebody looked (the continuous-state leaky bucket of ITU-T I.371).

#ifndef LAWN_TEST_UNIT_PACER_BUCKET_H
#define LAWN_TEST_UNIT_PACER_BUCKET_H

#include <lawn/time.h>

#include <algorithm>
#include <cmath>

namespace lawn_test
{

__extension__ typedef __int128 int128;

class Bucket
{
public:
    // With one tick a nanosecond.
    void set_rate(lawn_time_t now, double rate, uint64_t burst)
    {
        const uint64_t byte_ticks = static_cast<uint64_t>(
            std::ceil(static_cast<long double>(1e9 / rate) * 4294967296.0L));
        const int128 level = level_at(now);
        if (byte_ticks_ != 0) {
            // No product of these tests has more than 127 bits.
            level_ = (level * byte_ticks + byte_ticks_ - 1) / byte_ticks_;
            looked_at_ = now;
        }
        byte_ticks_ = byte_ticks;
        burst_ = burst;
    }

    // The earliest time, from `now` on, at which so much may be taken.
    lawn_time_t next(lawn_time_t now, uint64_t bytes) const
    {
        const int128 rest = burst_ > bytes ? burst_ - bytes : 0;
        const int128 above = level_at(now) - rest * byte_ticks_;
        return above > 0
                   ? now + static_cast<lawn_time_t>((above + 0xffffffff) >> 32)
                   : now;
    }

    void take(lawn_time_t now, uint64_t bytes)
    {
        level_ = level_at(now) + int128{byte_ticks_} * bytes;
        looked_at_ = now;
    }

    // Of the burst, in bytes, rounded down.
    uint64_t left(lawn_time_t now) const
    {
        const int128 bytes =
            (level_at(now) + byte_ticks_ - 1) / int128{byte_ticks_};
        return bytes < burst_ ? burst_ - static_cast<uint64_t>(bytes) : 0;
    }

private:
    int128 level_at(lawn_time_t now) const
    {
        const int128 leaked = int128{now - looked_at_} << 32;
        return std::max(level_ - leaked, int128{0});
    }

    uint64_t byte_ticks_ = 0;
    uint64_t burst_ = 0;
    int128 level_ = 0;
    lawn_time_t looked_at_ = 0;
};

} // namespace lawn_test

#endif
