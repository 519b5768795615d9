// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// TTLs by the queue that they take first in an empty lawn: such as never come,
// to keep the queue from others; and such as compete for it.

#ifndef LAWN_TEST_MODEL_EXHAUSTIVE_BLOCKERS_H
#define LAWN_TEST_MODEL_EXHAUSTIVE_BLOCKERS_H

#include "timer/lawn_impl.h"

#include <vector>

namespace exhaustive
{

// Started when the time is least_blocker_clock or later, the TTLs end at never.
constexpr lawn_time_t least_blocker_clock = 1 << 16;

// The queue that a TTL takes if all are free; a lawn that nothing is started
// on is asked.
class FirstPlaces
{
public:
    FirstPlaces()
    {
        if (lawn_create(nullptr, &lawn_) != LAWN_OK) {
            abort();
        }
    }

    ~FirstPlaces()
    {
        lawn_destroy(lawn_);
    }

    FirstPlaces(const FirstPlaces &) = delete;
    FirstPlaces &operator=(const FirstPlaces &) = delete;

    unsigned of(lawn_time_t ttl) const
    {
        lawn::Queue *const queues = lawn::impl_of(lawn_)->queues;
        return static_cast<unsigned>(lawn::single_queue(queues, ttl) - queues);
    }

    // The next above `ttl` with the same first place.
    lawn_time_t rival(lawn_time_t ttl) const
    {
        lawn_time_t other = ttl + 1;
        while (of(other) != of(ttl)) {
            ++other;
        }
        return other;
    }

private:
    lawn_t *lawn_ = nullptr;
};

class Blockers
{
public:
    Blockers() : ttls_(lawn::queue_count)
    {
        const FirstPlaces places;
        for (lawn_time_t back = 0; back < least_blocker_clock; ++back) {
            ttls_[places.of(LAWN_TIME_INFINITY - back)] =
                LAWN_TIME_INFINITY - back;
        }
    }

    lawn_time_t ttl_for(unsigned q) const
    {
        return ttls_[q];
    }

private:
    std::vector<lawn_time_t> ttls_;
};

} // namespace exhaustive

#endif
