// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The names of what a namespace has in Redis.

#ifndef LAWN_SRC_DURABLE_KEYS_H
#define LAWN_SRC_DURABLE_KEYS_H

#include <string>

namespace lawn::durable
{

// The keys of a shard; `config` and `pumps` are in shard 0 alone.
enum class Key {
    due,
    body,
    meta,
    out,
    push,
    dead,
    ended0,
    ended1,
    cron,
    config,
    pumps
};

class Keys
{
public:
    Keys(std::string name_space, unsigned db);

    std::string key(unsigned shard, Key key) const;
    std::string wake_channel(unsigned shard) const;
    // What is between the braces of the shard's keys, and decides their slot.
    std::string tag(unsigned shard) const;

private:
    std::string head(unsigned shard) const;

    const std::string name_space_;
    const unsigned db_;
};

} // namespace lawn::durable

#endif
