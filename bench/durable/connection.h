// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection to a Redis server on a Unix socket, with pipelining. What goes
// wrong ends the program with one line.

#ifndef LAWN_BENCH_DURABLE_CONNECTION_H
#define LAWN_BENCH_DURABLE_CONNECTION_H

#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

namespace known
{

[[noreturn]] void fail(const std::string &line);

class Connection
{
public:
    struct Free {
        void operator()(redisContext *context) const
        {
            redisFree(context);
        }
        void operator()(redisReply *reply) const
        {
            freeReplyObject(reply);
        }
    };
    using Reply = std::unique_ptr<redisReply, Free>;
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
    std::unique_ptr<redisContext, Free> context_;
    std::vector<const char *> pointers_;
    std::vector<size_t> sizes_;
};

} // namespace known

#endif
