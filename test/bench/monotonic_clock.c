// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// To be preloaded: CLOCK_MONOTONIC goes on by $LAWN_CLOCK_STEP nanoseconds with
// each reading, and not in between. All other clocks are as they are.

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                         struct timespec *now)
{
    static long long nsec = 1000000000;
    const char *const step = getenv("LAWN_CLOCK_STEP");
    if (id != CLOCK_MONOTONIC || !step) {
        return (int)syscall(SYS_clock_gettime, id, now);
    }
    nsec += strtoll(step, NULL, 10);
    now->tv_sec = (time_t)(nsec / 1000000000);
    now->tv_nsec = (long)(nsec % 1000000000);
    return 0;
}
