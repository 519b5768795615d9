// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Why calls of the C API return INVALID_PARAM (lawn_durable_refusal()).

#ifndef LAWN_SRC_DURABLE_REFUSAL_H
#define LAWN_SRC_DURABLE_REFUSAL_H

#include <lawn/base.h>

#include <string_view>

namespace lawn::durable
{

// Keeps a line for the calling thread, if there is memory.
void keep_refusal(std::string_view why);

inline lawn_status_t refuse(std::string_view why)
{
    keep_refusal(why);
    return LAWN_ERR_INVALID_PARAM;
}

} // namespace lawn::durable

#endif
