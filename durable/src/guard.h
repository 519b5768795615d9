// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Exceptions end here: none leaves a function of the C API. Within the library,
// what could not be done for want of memory is done again a little later: by
// the loop, which calls timers and flush() again, and by the link, which tells
// the functions that get answers.

#ifndef LAWN_SRC_DURABLE_GUARD_H
#define LAWN_SRC_DURABLE_GUARD_H

#include <lawn/base.h>

#include <cstdint>
#include <exception>

namespace lawn::durable
{

// What the standard library throws is for want of memory, or of something else
// that the kernel gives, such as random numbers.
template <typename Fn> lawn_status_t guarded(const Fn &fn)
{
    try {
        return fn();
    } catch (const std::exception &) {
        return LAWN_ERR_NO_MEMORY;
    }
}

// For functions that cannot tell. False: only a part of it was done.
template <typename Fn> bool attempt(const Fn &fn)
{
    try {
        fn();
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

// Sets a flag for as long as it lives, also if an exception comes; within
// another one for the flag, it stays set.
class Within
{
public:
    explicit Within(bool *flag) : flag_(flag), was_(*flag)
    {
        *flag_ = true;
    }
    ~Within()
    {
        *flag_ = was_;
    }
    Within(const Within &) = delete;
    Within &operator=(const Within &) = delete;

private:
    bool *flag_;
    bool was_;
};

// When to do again what there was no memory for.
constexpr uint64_t retry_us = 10000;

// So short that std::string holds it without an allocation.
constexpr const char *no_memory = "no memory";

} // namespace lawn::durable

#endif
