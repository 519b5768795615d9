// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks to run functions on, in turn, within one thread. What runs on one may
// be given up in the middle: whatever it holds is then not destroyed.
//
// The sanitizers are told of each switch. Valgrind finds out by itself, as the
// stacks lie far apart. Without a sanitizer, only the first switch to a stack
// is by its context: that saves the signal mask, by a system call.

#ifndef LAWN_TEST_MODEL_SHARED_EXPLORE_FIBER_H
#define LAWN_TEST_MODEL_SHARED_EXPLORE_FIBER_H

#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LAWN_FIBER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define LAWN_FIBER_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LAWN_FIBER_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define LAWN_FIBER_TSAN
#endif

#ifdef LAWN_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef LAWN_FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace shared_explore
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
#ifdef LAWN_FIBER_TSAN
            forget_tsan();
#endif
            munmap(stack_, spacing);
        }
    }

    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // Has the next switch to it call `entry`, which must not return. What was
    // running on it before is given up.
    void prepare(void (*entry)())
    {
        if (!stack_) {
            stack_ = mmap(nullptr, spacing, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack_ == MAP_FAILED) {
                abort();
            }
        }
#ifdef LAWN_FIBER_ASAN
        __asan_unpoison_memory_region(bottom(), size);
        asan_bottom_ = bottom();
        asan_size_ = size;
#endif
#ifdef LAWN_FIBER_TSAN
        forget_tsan();
        tsan_ = __tsan_create_fiber(0);
#endif
        context_ = {};
        getcontext(&context_);
        context_.uc_stack.ss_sp = bottom();
        context_.uc_stack.ss_size = size;
        context_.uc_link = nullptr;
        makecontext(&context_, entry, 0);
        has_begun_ = false;
    }

    // From this one, which runs, to another; returns when something switches
    // back.
    void switch_to(Fiber *other)
    {
#ifdef LAWN_FIBER_ASAN
        __sanitizer_start_switch_fiber(&asan_, other->asan_bottom_,
                                       other->asan_size_);
        came_from = this;
#endif
#ifdef LAWN_FIBER_TSAN
        tsan_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(other->tsan_, 0);
#endif
#if defined(LAWN_FIBER_ASAN) || defined(LAWN_FIBER_TSAN)
        swapcontext(&context_, &other->context_);
#else
        has_begun_ = true;
        if (_setjmp(state_) == 0) {
            if (other->has_begun_) {
                jump(other->state_, 1);
            }
            other->has_begun_ = true;
            setcontext(&other->context_);
        }
#endif
        arrived();
    }

    // The first thing that an entry does, on this fiber.
    void arrived()
    {
#ifdef LAWN_FIBER_ASAN
        // Tells where the stack that was left is, the thread's own above all.
        __sanitizer_finish_switch_fiber(asan_, &came_from->asan_bottom_,
                                        &came_from->asan_size_);
#endif
    }

private:
    static constexpr size_t size = size_t{256} << 10;
    // More than what valgrind takes for one frame.
    static constexpr size_t spacing = size_t{4} << 20;

    // The stack is the upper end.
    char *bottom() const
    {
        return static_cast<char *>(stack_) + spacing - size;
    }

    ucontext_t context_ = {};
    jmp_buf state_;
    bool has_begun_ = false;
    void *stack_ = nullptr;
#ifdef LAWN_FIBER_ASAN
    static inline Fiber *came_from = nullptr;
    void *asan_ = nullptr; // what is kept of it while it does not run
    const void *asan_bottom_ = nullptr;
    size_t asan_size_ = 0;
#endif
#ifdef LAWN_FIBER_TSAN
    void forget_tsan()
    {
        if (tsan_) {
            __tsan_destroy_fiber(tsan_);
        }
    }

    void *tsan_ = nullptr;
#endif
};

} // namespace shared_explore

#endif
