// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The end of a program's output. A table that was cut short, for example by a
// full disk, is a failure.

#ifndef LAWN_BENCH_FINISH_H
#define LAWN_BENCH_FINISH_H

#include "../tools/finish.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace bench
{

// Writes out what is buffered. Returns `status`, the program's exit status, or
// 1 instead of 0 if that or an earlier write failed; stderr has a line then.
inline int finish_output(int status)
{
    const int written = ::finish_output(program_invocation_short_name);
    return status != 0 ? status : written;
}

// For programs of few arguments. Returns whether the help was asked for, and
// prints it then.
inline bool print_usage(int argc, char **argv, const char *usage)
{
    const bool is_asked = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (is_asked) {
        puts(usage);
    }
    return is_asked;
}

} // namespace bench

#endif
