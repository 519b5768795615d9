// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks to run functions on, in turn, within one thread. What runs on one may
// be given up in the middle: whatever it holds is then not destroyed.
//
// Only the first switch to a stack is by its context: that saves the signal
// mask, by a system call.

#ifndef LAWN_TEST_EXPLORE_FIBER_H
#define LAWN_TEST_EXPLORE_FIBER_H

#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace explore
{

// _longjmp() as it is: with _FORTIFY_SOURCE, its name means a function that
// takes a jump to another stack for a mistake.
[[noreturn]] void jump(jmp_buf state, int value) __asm__("_longjmp");

class Fiber
{
public:
    // Without a stack of its own: what runs already.
    Fiber() = default;

    ~Fiber()
    {
        if (stack_) {
            munmap(stack_, size);
        }
    }

    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // Has the next switch to it call `entry`, which must not return. What was
    // running on it before is given up.
    void prepare(void (*entry)())
    {
        if (!stack_) {
            stack_ = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack_ == MAP_FAILED) {
                abort();
            }
        }
        context_ = {};
        getcontext(&context_);
        context_.uc_stack.ss_sp = stack_;
        context_.uc_stack.ss_size = size;
        context_.uc_link = nullptr;
        makecontext(&context_, entry, 0);
        has_begun_ = false;
    }

    // From this one, which runs, to another; returns when something switches
    // back.
    void switch_to(Fiber *other)
    {
        has_begun_ = true;
        if (_setjmp(state_) == 0) {
            if (other->has_begun_) {
                jump(other->state_, 1);
            }
            other->has_begun_ = true;
            setcontext(&other->context_);
        }
    }

private:
    static constexpr size_t size = size_t{256} << 10;

    ucontext_t context_ = {};
    jmp_buf state_;
    bool has_begun_ = false;
    void *stack_ = nullptr;
};

} // namespace explore

#endif
