// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Entries that the store has given to a consumer: it asks which these are, and
// has the store give them to others.

#ifndef LAWN_SRC_DURABLE_RELEASE_H
#define LAWN_SRC_DURABLE_RELEASE_H

#include "src/consumer_config.h"
#include "src/link.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lawn::durable
{

// Asks which entries the store has given to the consumer.
Args pending_command(const Link &link, const ConsumerConfig &config,
                     unsigned shard);
// The numbers of those, of the answer, that were given within the time. Not of
// the others, of which a program has lost the lease: none of them was on its
// way all this time.
std::vector<std::string> names_of(const Answer &answer, uint64_t within_us);

// Has the store give entries of the consumer to others.
void release(Link &link, const ConsumerConfig &config, unsigned shard,
             const std::vector<std::string> &names);
// The same for all that the consumer has in the shard, but what is kept: pairs
// of a shard and an entry.
void release_pending(Link &link, const ConsumerConfig &config, unsigned shard,
                     const std::set<std::pair<unsigned, std::string>> &kept);

} // namespace lawn::durable

#endif
