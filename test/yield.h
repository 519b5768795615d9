// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Lets a test do something where a thread waits for another: for a program that
// is linked with --wrap=sched_yield.

#ifndef LAWN_TEST_YIELD_H
#define LAWN_TEST_YIELD_H

#include <functional>

// Called instead of each sched_yield(), if there is one.
inline thread_local std::function<void()> on_yield;

extern "C" {

int __real_sched_yield();

// Not called by its name, so it has to be said that it is used.
__attribute__((used)) inline int __wrap_sched_yield()
{
    if (!on_yield) {
        return __real_sched_yield();
    }
    on_yield();
    return 0;
}
}

#endif
