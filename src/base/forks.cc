// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See forks.h.

#include "base/forks.h"

#include <errno.h>
#include <pthread.h>

namespace lawn
{

unsigned forks;

namespace
{

void count_fork()
{
    ++forks;
}

} // namespace

// If several threads come here at once, each fork counts more than once. That
// does no harm.
bool count_forks()
{
    static bool are_counted;
    if (!__atomic_load_n(&are_counted, __ATOMIC_RELAXED)) {
        const int error = pthread_atfork(nullptr, nullptr, count_fork);
        if (error != 0) {
            errno = error;
            return false;
        }
        __atomic_store_n(&are_counted, true, __ATOMIC_RELAXED);
    }
    return true;
}

} // namespace lawn
