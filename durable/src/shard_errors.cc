// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a consumer tells of its shards (shard_errors.h).

#include "src/shard_errors.h"

#include "src/handle.h"

namespace lawn::durable
{

ShardErrors::ShardErrors(const Link &link, Key stream)
    : link_(link), stream_(stream)
{
}

void ShardErrors::start(unsigned shards)
{
    errors_.assign(shards, Errors());
}

void ShardErrors::tell(unsigned shard, const char *why)
{
    std::string &error = errors_[shard].read;
    if (error.empty()) {
        error = "cannot read " + link_.key(shard, stream_) + ": " + why;
    }
}

void ShardErrors::note(unsigned shard, const Answer &answer)
{
    if (is_lasting(answer)) {
        tell(shard, answer.error);
    }
}

void ShardErrors::note_take(unsigned shard, const Answer &answer)
{
    std::string &error = errors_[shard].take;
    if (answer.status == LAWN_OK) {
        error.clear();
    } else if (is_lasting(answer)) {
        error = "cannot take over from " + link_.key(shard, stream_) + ": " +
                answer.error;
    }
}

void ShardErrors::clear(unsigned shard)
{
    errors_[shard].read.clear();
}

std::string ShardErrors::first() const
{
    for (const Errors &i : errors_) {
        const std::string &error = i.read.empty() ? i.take : i.read;
        if (!error.empty()) {
            return error;
        }
    }
    return "";
}

} // namespace lawn::durable
