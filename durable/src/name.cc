// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Names for consumers and pumps.

#include "src/name.h"

#include <limits.h>
#include <unistd.h>

#include <random>

namespace lawn::durable
{

std::string unique_name()
{
    char host[HOST_NAME_MAX + 1] = "";
    gethostname(host, sizeof(host) - 1);
    std::string name;
    for (const char *c = host; *c && name.size() < 64; ++c) {
        name += *c > ' ' && *c != 0x7f ? *c : '_';
    }
    std::random_device random;
    return name + ":" + std::to_string(getpid()) + ":" +
           std::to_string(uint64_t{random()} << 32 | random());
}

} // namespace lawn::durable
