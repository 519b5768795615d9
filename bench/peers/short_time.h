// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Time for a library whose clock does not go as far as ours: it begins at 0
// and, where nothing is left to expire, stands still. A jump over everything
// thus takes it no further than to the last deadline, which fires all the
// same. A TTL beyond `longest` is never reached.

#ifndef LAWN_BENCH_PEERS_SHORT_TIME_H
#define LAWN_BENCH_PEERS_SHORT_TIME_H

#include "schemes/scheme.h"

#include <algorithm>

namespace bench
{

class ShortTime
{
public:
    static constexpr Time unreachable = Time{1} << 62;

    explicit ShortTime(Time longest) : longest_(longest)
    {
    }

    // All in the library's time, but for what is passed in.
    Time at(Time now)
    {
        if (now > last_) {
            origin_ += now - last_;
            last_ = now;
        }
        return now - origin_;
    }

    Time deadline(Time now, Time ttl)
    {
        const Time start = at(now);
        if (ttl > longest_ || ttl > never - now) {
            return unreachable;
        }
        last_ = std::max(last_, now + ttl);
        return start + ttl;
    }

    // Takes the library's clock back to 0; its timers are the caller's affair.
    void rewind(Time now)
    {
        origin_ = now;
    }

private:
    const Time longest_;
    Time origin_ = 0;
    Time last_ = 0; // no deadline is later
};

} // namespace bench

#endif
