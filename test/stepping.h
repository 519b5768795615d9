// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A child process that does one instruction at a time, so that a test sees what
// others may see in between.

#ifndef LAWN_TEST_STEPPING_H
#define LAWN_TEST_STEPPING_H

#include <algorithm>
#include <csignal>
#include <functional>

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

// In programs that are built with gcov's counters.
extern "C" __attribute__((weak)) void __gcov_dump();

namespace lawn_test
{

// Has the child do `steps` instructions. False when it has ended before.
inline bool step(pid_t pid, unsigned steps)
{
    int status = 0;
    for (unsigned i = 0; i < steps; ++i) {
        if (ptrace(PTRACE_SINGLESTEP, pid, nullptr, nullptr) != 0 ||
            waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
            return false;
        }
    }
    return true;
}

// A child that waits before `work`, and ends behind it.
inline pid_t begin_stepping(const std::function<void()> &work)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) {
            raise(SIGSTOP);
            work();
        }
        if (__gcov_dump) {
            __gcov_dump(); // or what the child does is not in the coverage
        }
        _exit(0);
    }
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) ? pid : -1;
}

// Has the child do all that is left. It may have ended.
inline void end_stepping(pid_t pid)
{
    int status = 0;
    if (ptrace(PTRACE_CONT, pid, nullptr, nullptr) == 0) {
        waitpid(pid, &status, 0);
    }
}

// Some containers do not let a process be traced, and some processors do not do
// one instruction at a time.
inline bool can_trace()
{
    const pid_t pid = begin_stepping([] {});
    const bool can = pid > 0 && step(pid, 1);
    if (pid > 0) {
        end_stepping(pid);
    }
    return can;
}

// Memory that is the same in a child of this process.
inline void *allocate_shared(size_t size)
{
    void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : nullptr;
}

// While this lives, the process and its children have one processor. To hand
// over to a child on another one takes several times as long.
class OnOneProcessor
{
public:
    OnOneProcessor()
    {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
        is_set_ = sched_getaffinity(0, sizeof(before_), &before_) == 0 &&
                  sched_setaffinity(0, sizeof(one), &one) == 0;
    }
    ~OnOneProcessor()
    {
        if (is_set_) {
            sched_setaffinity(0, sizeof(before_), &before_);
        }
    }
    OnOneProcessor(const OnOneProcessor &) = delete;
    OnOneProcessor &operator=(const OnOneProcessor &) = delete;

private:
    cpu_set_t before_;
    bool is_set_;
};

} // namespace lawn_test

#endif
