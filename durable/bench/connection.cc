// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See connection.h.

#include "connection.h"

#include <cstdio>
#include <cstdlib>

namespace known
{

void fail(const std::string &line)
{
    fprintf(stderr, "known_design: %s\n", line.c_str());
    exit(1);
}

Connection::Connection(const std::string &path)
    : context_(redisConnectUnix(path.c_str()))
{
    if (!context_ || context_->err != 0) {
        fail(path + ": " + (context_ ? context_->errstr : "no memory"));
    }
}

void Connection::send(const Words &words)
{
    pointers_.clear();
    sizes_.clear();
    for (const std::string &word : words) {
        pointers_.push_back(word.data());
        sizes_.push_back(word.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()),
                           pointers_.data(), sizes_.data());
}

Connection::Reply Connection::receive()
{
    void *reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
        fail(context_->errstr);
    }
    Reply result(static_cast<redisReply *>(reply));
    if (result->type == REDIS_REPLY_ERROR) {
        fail(result->str);
    }
    return result;
}

} // namespace known
