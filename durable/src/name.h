// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Names for consumers and pumps that have not been given one.

#ifndef LAWN_SRC_DURABLE_NAME_H
#define LAWN_SRC_DURABLE_NAME_H

#include <string>

namespace lawn::durable
{

// Host, process, and a random number: no other has it.
std::string unique_name();

} // namespace lawn::durable

#endif
