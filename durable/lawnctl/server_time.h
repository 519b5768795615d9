// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How much processor time the server has used.

#ifndef LAWN_LAWNCTL_SERVER_TIME_H
#define LAWN_LAWNCTL_SERVER_TIME_H

#include "src/hiredis_ptr.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lawnctl
{

class ServerTime
{
public:
    // Connects to the server of the URL; empty: the library's default. Fails if
    // the URL is none.
    explicit ServerTime(const std::string &text);

    // Microseconds; negative if the server cannot be asked, or if the URL may
    // stand for several servers.
    int64_t used_us();

private:
    lawn::durable::ReplyPtr command(std::vector<const char *> words);

    lawn::durable::ContextPtr context_;
};

} // namespace lawnctl

#endif
