// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Work in a child of this process: with a heap that nobody has used since.

#ifndef LAWN_BENCH_CHILD_H
#define LAWN_BENCH_CHILD_H

#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <type_traits>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench
{

// What `work` returns. Nothing if the child cannot be made, or fails.
template <class Work> auto in_child(Work &&work)
{
    using Answer = decltype(work());
    static_assert(std::is_trivially_copyable_v<Answer>);
    std::optional<Answer> answer;
    int ends[2];
    if (pipe(ends) != 0) {
        return answer;
    }
    malloc_trim(0); // what the child would copy the tables of
    const pid_t child = fork();
    if (child == 0) {
        bool is_told = false;
        try {
            const Answer own = work();
            is_told = write(ends[1], &own, sizeof(own)) == sizeof(own);
        } catch (const std::exception &error) {
            fprintf(stderr, "%s: %s\n", program_invocation_short_name,
                    error.what());
        }
        _exit(is_told ? 0 : 1);
    }
    close(ends[1]);
    Answer read_back;
    if (read(ends[0], &read_back, sizeof(read_back)) == sizeof(read_back)) {
        answer = read_back;
    }
    close(ends[0]);
    if (child > 0) {
        waitpid(child, nullptr, 0);
    }
    return answer;
}

} // namespace bench

#endif
