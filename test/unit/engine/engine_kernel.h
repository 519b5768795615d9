// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the engine asks of the kernel, as its tests see it: its system calls go
// through engine_refusal_test.cc.

#ifndef LAWN_TEST_UNIT_ENGINE_KERNEL_H
#define LAWN_TEST_UNIT_ENGINE_KERNEL_H

#include <cstdint>
#include <functional>

namespace lawn_test
{

struct Kernel {
    // What the latest timerfd_settime() was about; nanoseconds from then.
    int set_fd = -1;
    uint64_t set_to = 0;
    int clock = -1; // of the latest timerfd_create()
    // Called before each epoll_wait().
    std::function<void()> on_epoll_wait;
};

extern Kernel kernel;

} // namespace lawn_test

#endif
