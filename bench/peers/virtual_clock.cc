// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The program's own clock_gettime and gettimeofday; see virtual_clock.h.

#include "peers/virtual_clock.h"

#include <dlfcn.h>
#include <sys/time.h>

namespace
{

template <class Function> Function *next(const char *name)
{
    return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

} // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec *now) noexcept
{
    if (bench::virtual_now) {
        *now = *bench::virtual_now;
        return 0;
    }
    static const auto real =
        next<int(clockid_t, struct timespec *)>("clock_gettime");
    return real(clock, now);
}

extern "C" int gettimeofday(struct timeval *now, void *zone) noexcept
{
    if (bench::virtual_now) {
        now->tv_sec = bench::virtual_now->tv_sec;
        now->tv_usec = bench::virtual_now->tv_nsec / 1000;
        return 0;
    }
    static const auto real =
        next<int(struct timeval *, void *)>("gettimeofday");
    return real(now, zone);
}
