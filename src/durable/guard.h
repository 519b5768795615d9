// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Exceptions end here: none leaves a function of the C API.

#ifndef LAWN_SRC_DURABLE_GUARD_H
#define LAWN_SRC_DURABLE_GUARD_H

#include <lawn/base.h>

#include <new>

namespace lawn::durable
{

template <typename Fn> lawn_status_t guarded(const Fn &fn)
{
    try {
        return fn();
    } catch (const std::bad_alloc &) {
        return LAWN_ERR_NO_MEMORY;
    }
}

} // namespace lawn::durable

#endif
