// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The advance of a pass: of the engine's, whose time is older than what its
// sources may have shown to the lawn meanwhile.

#ifndef LAWN_SRC_TIMER_ADVANCE_H
#define LAWN_SRC_TIMER_ADVANCE_H

#include <lawn/timer.h>

namespace lawn
{

// What an advance has done. Every timer fired was touched.
struct Work {
    unsigned fired;
    size_t touched;
};

// lawn_advance_rest() as of `now`, no later than the latest time seen: what is
// due between the two waits for the next advance.
Work advance_rest(lawn_t *lawn, lawn_time_t now, unsigned budget);

// lawn_advance(), likewise.
inline Work advance_as_of(lawn_t *lawn, lawn_time_t now, unsigned budget)
{
    lawn_see(lawn, now);
    return LAWN_LIKELY(now < lawn->next) ? Work{0, 0}
                                         : advance_rest(lawn, now, budget);
}

} // namespace lawn

#endif
