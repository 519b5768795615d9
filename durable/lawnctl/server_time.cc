// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See server_time.h.

#include "server_time.h"

#include "arguments.h"

#include "src/url.h"

#include <cstdlib>
#include <cstring>

namespace lawnctl
{

using lawn::durable::ReplyPtr;

ServerTime::ServerTime(const std::string &text)
{
    lawn::durable::Url url;
    std::string error;
    const std::string full = text.empty() ? "redis://127.0.0.1:6379" : text;
    if (!lawn::durable::parse_url(full, &url, &error)) {
        fail(error);
    }
    if (!url.master.empty()) {
        return;
    }
    const timeval limit = {5, 0};
    const lawn::durable::Endpoint &at = url.endpoints.front();
    context_.reset(
        at.port == 0 ? redisConnectUnixWithTimeout(at.host.c_str(), limit)
                     : redisConnectWithTimeout(
                           at.host.c_str(), static_cast<int>(at.port), limit));
    if (!context_ || context_->err != 0) {
        context_.reset();
        return;
    }
    redisSetTimeout(context_.get(), limit);
    if (!url.password.empty()) {
        command({"AUTH", url.user.empty() ? "default" : url.user.c_str(),
                 url.password.c_str()});
    }
}

int64_t ServerTime::used_us()
{
    const ReplyPtr reply = command({"INFO", "cpu"});
    if (!reply || reply->type != REDIS_REPLY_STRING) {
        return -1;
    }
    double sum = 0;
    for (const char *name : {"used_cpu_sys:", "used_cpu_user:"}) {
        const char *line = strstr(reply->str, name);
        sum += line == nullptr ? 0 : strtod(line + strlen(name), nullptr);
    }
    return static_cast<int64_t>(sum * 1e6);
}

ReplyPtr ServerTime::command(std::vector<const char *> words)
{
    return ReplyPtr(context_
                        ? static_cast<redisReply *>(redisCommandArgv(
                              context_.get(), static_cast<int>(words.size()),
                              words.data(), nullptr))
                        : nullptr);
}

} // namespace lawnctl
