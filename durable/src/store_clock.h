// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An estimate of the clock of a Redis server.

#ifndef LAWN_SRC_DURABLE_STORE_CLOCK_H
#define LAWN_SRC_DURABLE_STORE_CLOCK_H

#include <lawn/time.h>

#include <cstdint>

namespace lawn::durable
{

// Estimates the clock of a store by the times that its answers carry. The
// estimate is of the time when a call that is sent now arrives. It is the
// smallest of recent samples, so a call that is sent at `local(due)` arrives
// when the store's clock shows `due`, or later.
class StoreClock
{
public:
    // A call was sent at `sent`, found `store_us` on the store's clock, and
    // its answer came at `received`.
    void add(lawn_time_t sent, lawn_time_t received, int64_t store_us);

    bool is_known() const
    {
        return is_known_;
    }

    // The store's clock when a call that is sent at `now` arrives.
    int64_t store(lawn_time_t now) const;

    // When to send a call that shall arrive at `store_us`.
    lawn_time_t local(int64_t store_us) const;

private:
    int64_t offset() const
    {
        return recent_ < older_ ? recent_ : older_;
    }

    bool is_known_ = false;
    int64_t recent_ = INT64_MAX; // the smallest of this window
    int64_t older_ = INT64_MAX;  // the smallest of the window before
    lawn_time_t window_ = 0;     // when this window began
};

} // namespace lawn::durable

#endif
