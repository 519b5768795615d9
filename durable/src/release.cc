// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the store has given to a consumer goes to others (release.h).

#include "src/release.h"

#include <algorithm>
#include <cstddef>

namespace lawn::durable
{

namespace
{

constexpr size_t most_pending = 10000; // looked at in one answer
constexpr size_t most_released = 1000; // by one call

// Asks twice: timers that fire while the readers' connections are being closed
// may still come to this consumer after the first question. Before it reads the
// second one, the store has seen that they are closed.
void ask_and_release(Link &link, const ConsumerConfig &config, unsigned shard,
                     const std::set<std::pair<unsigned, std::string>> &kept,
                     bool is_second)
{
    const auto on_pending = [&link, config, shard, known = kept,
                             is_second](const Answer &answer) mutable {
        std::vector<std::string> names;
        for (const std::string &name : names_of(answer, config.lease_us)) {
            if (known.insert({shard, name}).second) {
                names.push_back(name);
            }
        }
        release(link, config, shard, names);
        if (!is_second) {
            ask_and_release(link, config, shard, known, true);
        }
    };
    link.command(shard, pending_command(link, config, shard), on_pending);
}

} // namespace

Args pending_command(const Link &link, const ConsumerConfig &config,
                     unsigned shard)
{
    return {"XPENDING", link.key(shard, config.stream), config.group, "-",
            "+",        std::to_string(most_pending),   config.name};
}

std::vector<std::string> names_of(const Answer &answer, uint64_t within_us)
{
    std::vector<std::string> names;
    const redisReply *const reply = answer.reply;
    if (answer.status != LAWN_OK || !reply ||
        reply->type != REDIS_REPLY_ARRAY) {
        return names;
    }
    for (size_t i = 0; i < reply->elements; ++i) {
        const redisReply *const one = reply->element[i];
        if (one->type == REDIS_REPLY_ARRAY && one->elements > 2 &&
            one->element[0]->type == REDIS_REPLY_STRING &&
            one->element[2]->type == REDIS_REPLY_INTEGER &&
            one->element[2]->integer < static_cast<int64_t>(within_us / 1000)) {
            names.emplace_back(one->element[0]->str, one->element[0]->len);
        }
    }
    return names;
}

void release(Link &link, const ConsumerConfig &config, unsigned shard,
             const std::vector<std::string> &names)
{
    for (size_t i = 0; i < names.size(); i += most_released) {
        const size_t count = std::min(names.size() - i, most_released);
        const auto first = names.begin() + static_cast<ptrdiff_t>(i);
        Call call;
        call.function = "lawn_release";
        call.keys = {config.stream};
        call.args = {config.group, config.name};
        call.args.insert(call.args.end(), first,
                         first + static_cast<ptrdiff_t>(count));
        call.shard = shard;
        link.call(std::move(call), [](const Answer &) {});
    }
}

void release_pending(Link &link, const ConsumerConfig &config, unsigned shard,
                     const std::set<std::pair<unsigned, std::string>> &kept)
{
    ask_and_release(link, config, shard, kept, false);
}

} // namespace lawn::durable
