// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The names of what a namespace has in Redis (keys.h).

#include "src/keys.h"

#include <utility>

namespace lawn::durable
{

namespace
{

const char *name_of(Key key)
{
    switch (key) {
    case Key::due:
        return "due";
    case Key::body:
        return "body";
    case Key::meta:
        return "meta";
    case Key::out:
        return "out";
    case Key::push:
        return "push";
    case Key::dead:
        return "dead";
    case Key::ended0:
        return "ended0";
    case Key::ended1:
        return "ended1";
    case Key::cron:
        return "cron";
    case Key::config:
        return "config";
    case Key::pumps:
        return "pumps";
    }
    return "";
}

} // namespace

Keys::Keys(std::string name_space, unsigned db)
    : name_space_(std::move(name_space)), db_(db)
{
}

std::string Keys::key(unsigned shard, Key key) const
{
    return head(shard) + name_of(key);
}

std::string Keys::wake_channel(unsigned shard) const
{
    return head(shard) + "wake";
}

std::string Keys::tag(unsigned shard) const
{
    return name_space_ + ":" + std::to_string(shard);
}

// The server's library knows a shard by the names of its keys, and cannot see
// in which database they are; nor can those who listen to a channel.
std::string Keys::head(unsigned shard) const
{
    return (db_ != 0 ? std::to_string(db_) : "") + "{" + tag(shard) + "}:";
}

} // namespace lawn::durable
