// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection to a Redis server on a Unix socket, with pipelining. What goes
// wrong ends the program with one line.

#ifndef LAWN_BENCH_DURABLE_CONNECTION_H
#define LAWN_BENCH_DURABLE_CONNECTION_H

#include "src/hiredis_ptr.h"

#include <string>
#include <vector>

namespace known
{

[[noreturn]] void fail(const std::string &line);

class Connection
{
public:
    using Reply = lawn::durable::ReplyPtr;
    using Words = std::vector<std::string>;

    explicit Connection(const std::string &path);

    // Sent by the next receive().
    void send(const Words &words);
    // The reply to the first command that has none yet.
    Reply receive();

    Reply call(const Words &words)
    {
        send(words);
        return receive();
    }

private:
    lawn::durable::ContextPtr context_;
    std::vector<const char *> pointers_;
    std::vector<size_t> sizes_;
};

} // namespace known

#endif
