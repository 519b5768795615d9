// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The program's own thread-local variables: fibers share a thread, and have
// each their own.

#ifndef LAWN_TEST_EXPLORE_THREAD_LOCALS_H
#define LAWN_TEST_EXPLORE_THREAD_LOCALS_H

#include <stddef.h>

#include <vector>

namespace explore
{

struct ThreadLocals {
    char *at = nullptr;
    size_t size = 0;
    std::vector<char> at_first;
};

const ThreadLocals &thread_locals();

} // namespace explore

#endif
