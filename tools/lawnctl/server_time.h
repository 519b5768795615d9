// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How much processor time the server has used.

#ifndef LAWN_LAWNCTL_SERVER_TIME_H
#define LAWN_LAWNCTL_SERVER_TIME_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hiredis/hiredis.h>

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

    redisReply *command(std::vector<const char *> words);

    std::unique_ptr<redisContext, Free> context_;
};

} // namespace lawnctl

#endif
