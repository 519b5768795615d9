// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The end of a program's output. A table that was cut short, for example by a
// full disk, is a failure.

#ifndef LAWN_BENCH_FINISH_H
#define LAWN_BENCH_FINISH_H

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bench
{

// Writes out what is buffered. Returns `status`, the program's exit status, or
// 1 instead of 0 if that or an earlier write failed; stderr has a line then.
inline int finish_output(int status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    // An earlier error is only known as such.
    fprintf(stderr, "%s: standard output: %s\n", program_invocation_short_name,
            errno != 0 ? strerror(errno) : "a write failed");
    return status != 0 ? status : 1;
}

} // namespace bench

#endif
