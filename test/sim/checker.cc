// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The words of a violation; see checker.h.

#include "checker.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

namespace sim
{

void Checker::violation(Nsec at, uint32_t end, const char *format, ...)
{
    constexpr uint64_t most_told = 20;
    if (++violations_ > most_told) {
        return;
    }
    printf("VIOLATION: seed %" PRIu64 ", %" PRIu64 ".%09" PRIu64 " s, ", seed_,
           at / sec, at % sec);
    if (end != no_end) {
        printf("connection %u, end %u: ", end / 2, end % 2);
    }
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    fflush(stdout);
}

} // namespace sim
