// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// For assertions: whether an object that one thread at a time may use was
// destroyed, and which thread is inside of it now.
//
// An object may go from thread to thread, so a call of another thread is wrong
// only while the one before has not come back. In release builds nothing is
// stored, and nothing is known.

#ifndef LAWN_SRC_BASE_USAGE_H
#define LAWN_SRC_BASE_USAGE_H

#include "base/base.h"
#include "base/forks.h"

#include <pthread.h>

namespace lawn
{

inline uintptr_t this_thread()
{
    return static_cast<uintptr_t>(pthread_self());
}

// In release builds, nothing sets it.
struct Usage {
    uintptr_t thread; // 0: none
    unsigned forks;   // lawn::forks when it came
    unsigned life;
};

#ifdef NDEBUG

inline void begin_life(Usage *)
{
}
inline void end_life(Usage *)
{
}
inline void enter_usage(Usage *)
{
}
inline void leave_usage(Usage *)
{
}

#else

constexpr unsigned alive = 0x4c41574e; // no likely content of freed memory

inline void begin_life(Usage *usage)
{
    usage->life = alive;
}

// Volatile, as the compiler knows that nobody may read what is freed next.
inline void end_life(Usage *usage)
{
    *const_cast<volatile unsigned *>(&usage->life) = ~alive;
}

inline void enter_usage(Usage *usage)
{
    usage->thread = this_thread();
    usage->forks = forks;
}

inline void leave_usage(Usage *usage)
{
    usage->thread = 0;
}

// False if the object was destroyed, as long as its memory still shows that.
inline bool lives(const Usage &usage)
{
    return usage.life == alive;
}

// False if another thread is inside. In the child of a fork there is none.
inline bool is_for_this_thread(const Usage &usage)
{
    return usage.thread == 0 || usage.thread == this_thread() ||
           usage.forks != forks;
}

#endif

inline void assert_usable([[maybe_unused]] const Usage &usage)
{
    LAWN_ASSERT(lives(usage) && "it was not destroyed before");
    LAWN_ASSERT(is_for_this_thread(usage) &&
                "no other thread is in a pass or a wait of it");
}

} // namespace lawn

#endif
