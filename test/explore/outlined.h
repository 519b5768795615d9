// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The library's own copies of its inline functions. What is inlined into a
// program is not compiled for the explorer, which would not see its accesses.

#ifndef LAWN_TEST_EXPLORE_OUTLINED_H
#define LAWN_TEST_EXPLORE_OUTLINED_H

#include <lawn/shared.h>

namespace explore::outlined
{

unsigned advance(lawn_t *lawn, lawn_time_t now,
                 unsigned budget) __asm__("lawn_advance");
bool start_local(lawn_shared_t *timer,
                 lawn_time_t deadline) __asm__("lawn_shared_start_local");
void start_at(lawn_t *lawn, lawn_timer_t *timer, lawn_time_t now,
              lawn_time_t deadline) __asm__("lawn_timer_start_at");

} // namespace explore::outlined

#endif
