// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How long to wait before the next attempt: exponential backoff with full
// jitter. The delay is random between 0 and a limit that doubles with each
// attempt. So many timers that have failed together do not come back together.

#ifndef LAWN_SRC_DURABLE_BACKOFF_H
#define LAWN_SRC_DURABLE_BACKOFF_H

#include <cstdint>

namespace lawn::durable
{

// Returns the delay after attempt number `attempt`, which counts from 1. The
// limit is `least` after the first one, and never above `most`. `random` is
// uniform over all values.
inline uint64_t backoff(uint64_t least, uint64_t most, unsigned attempt,
                        uint64_t random)
{
    uint64_t limit = least < most ? least : most;
    for (unsigned i = 1; i < attempt && limit < most; ++i) {
        limit = limit > most / 2 ? most : limit * 2;
    }
    return limit == UINT64_MAX ? random : random % (limit + 1);
}

} // namespace lawn::durable

#endif
