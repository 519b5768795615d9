// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The hash of ids is FNV-1a, mixed, so that ids that differ in one digit are
// far apart. The shard is chosen with the jump consistent hash (Lamping and
// Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014).

#include "src/hash.h"

#include "base/mix.h"

namespace lawn::durable
{

uint64_t hash64(std::string_view bytes)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : bytes) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
    return mix64(hash);
}

uint32_t shard_of(std::string_view id, uint32_t shards)
{
    uint64_t state = hash64(id);
    int64_t shard = -1;
    int64_t next = 0;
    while (next < static_cast<int64_t>(shards)) {
        shard = next;
        state = state * 2862933555777941757U + 1;
        next = static_cast<int64_t>(
            static_cast<double>(shard + 1) *
            (0x1p31 / static_cast<double>((state >> 33) + 1)));
    }
    return static_cast<uint32_t>(shard);
}

} // namespace lawn::durable
