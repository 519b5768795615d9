// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the engine needs of a lawn in its pass: whether the lawn runs callbacks,
// and the advance to a given time. The pass reads its time first. While it
// polls, its sources may show the lawn a later time. Timers that are due only
// by the later time wait for the next pass.

#ifndef LAWN_SRC_TIMER_ADVANCE_H
#define LAWN_SRC_TIMER_ADVANCE_H

#include <lawn/timer.h>

namespace lawn
{

// True in the callbacks of an advance or a drain.
bool is_busy(const lawn_t *lawn);

// What an advance has done. `touched` includes `fired`.
struct Work {
    unsigned fired;
    size_t touched;
};

// Like lawn_advance_rest(), but to `now`, which is no later than the latest
// time seen. Timers that are due between these two times wait for the next
// advance.
Work advance_rest(lawn_t *lawn, lawn_time_t now, unsigned budget);

// Like lawn_advance(), but to `now`, as advance_rest().
inline Work advance_as_of(lawn_t *lawn, lawn_time_t now, unsigned budget)
{
    lawn_see(lawn, now);
    return LAWN_LIKELY(now < lawn->next) ? Work{0, 0}
                                         : advance_rest(lawn, now, budget);
}

} // namespace lawn

#endif
