// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Exceptions end here: none leaves a function of the C API.

#ifndef LAWN_SRC_DURABLE_GUARD_H
#define LAWN_SRC_DURABLE_GUARD_H

#include <lawn/base.h>

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

} // namespace lawn::durable

#endif
