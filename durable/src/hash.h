// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which shard of a namespace a timer is in.

#ifndef LAWN_SRC_DURABLE_HASH_H
#define LAWN_SRC_DURABLE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <string_view>

namespace lawn::durable
{

// A hash of 64 bits of any bytes. It is part of the store's format: the same on
// every machine, and in every version that opens the same namespace.
uint64_t hash64(std::string_view bytes);

// The shard, less than `shards`, which is not 0, of the timer `id`. When there
// is one shard more, one id in `shards` + 1 moves, and it moves to the new one.
uint32_t shard_of(std::string_view id, uint32_t shards);

} // namespace lawn::durable

#endif
