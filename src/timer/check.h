// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What assertions ask of a lawn and of a timer.

#ifndef LAWN_SRC_TIMER_CHECK_H
#define LAWN_SRC_TIMER_CHECK_H

#include "timer/inside.h"

namespace lawn
{

// For assertions about a timer that should be idle or in this lawn. Returns
// false if the timer was not initialised, was moved or overwritten while it
// ran, or belongs to another lawn. A timer does not store its lawn, so the
// function only takes a short look.
bool may_hold(const lawn_t *lawn, const lawn_timer_t *timer);

inline void assert_usable(const lawn_t *lawn)
{
    assert_usable(static_cast<const LawnState *>(lawn)->usage);
}

inline void assert_own([[maybe_unused]] const lawn_t *lawn,
                       [[maybe_unused]] const lawn_timer_t *timer)
{
    assert_usable(lawn);
    LAWN_ASSERT(may_hold(lawn, timer) &&
                "the timer was initialised, is no other lawn's, and was "
                "neither moved nor overwritten while it ran");
}

} // namespace lawn

#endif
