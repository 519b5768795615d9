// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The world's time, in nanoseconds since it began. The hosts' clocks count
// ticks, lawn_time_t, and know nothing of it.

#ifndef LAWN_TEST_SIM_UNITS_H
#define LAWN_TEST_SIM_UNITS_H

#include <cstdint>

namespace sim
{

using Nsec = uint64_t;

constexpr Nsec usec = 1000;
constexpr Nsec msec = 1000 * usec;
constexpr Nsec sec = 1000 * msec;
constexpr Nsec minute = 60 * sec;
constexpr Nsec hour = 60 * minute;
constexpr Nsec never = UINT64_MAX;

__extension__ typedef unsigned __int128 uint128;

} // namespace sim

#endif
