// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An estimate of the clock of a Redis server (store_clock.h).

#include "src/store_clock.h"

#include <algorithm>

namespace lawn::durable
{

namespace
{

// The clocks of two machines differ by at most some 100 us a second. So
// samples of the latest few seconds agree within a fraction of a millisecond.
constexpr double window_s = 2;

int64_t local_us(lawn_time_t time)
{
    return static_cast<int64_t>(lawn_time_to_usec(time));
}

} // namespace

void StoreClock::add(lawn_time_t sent, lawn_time_t received, int64_t store_us)
{
    const int64_t sample = store_us - local_us(sent);
    const int64_t least = store_us - local_us(received);
    const lawn_time_t window = lawn_time_from_sec(window_s);
    if (!is_known_ || offset() < least - 1 || received - window_ > 2 * window) {
        // No older sample is right: the store's clock has been set forward, or
        // they are too old.
        recent_ = older_ = sample;
        window_ = received;
    } else if (received - window_ > window) {
        older_ = recent_;
        recent_ = sample;
        window_ = received;
    } else {
        recent_ = std::min(recent_, sample);
    }
    is_known_ = true;
}

int64_t StoreClock::store(lawn_time_t now) const
{
    return local_us(now) + offset();
}

lawn_time_t StoreClock::local(int64_t store_us) const
{
    if (store_us == INT64_MAX) {
        return LAWN_TIME_INFINITY;
    }
    // The microsecond makes up for what local_us() has cut off.
    const int64_t us = store_us - offset() + 1;
    return us > 0 ? lawn_time_from_usec(static_cast<double>(us)) : 0;
}

} // namespace lawn::durable
