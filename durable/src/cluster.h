// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a client of a Redis Cluster must know: the slot of a key, who has which
// slots, and where a redirection leads.

#ifndef LAWN_SRC_DURABLE_CLUSTER_H
#define LAWN_SRC_DURABLE_CLUSTER_H

#include "src/url.h"

#include <hiredis/hiredis.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace lawn::durable
{

constexpr unsigned cluster_slots = 16384;

// The slot of all keys with the hash tag `tag`, which is what is between the
// braces.
unsigned slot_of(std::string_view tag);

struct SlotRange {
    unsigned first;
    unsigned last;
    Endpoint master;
};

// Reads the reply to CLUSTER SLOTS. A host that is empty is that of `from`, or
// 127.0.0.1 if that is a unix socket.
// False: it is not such a reply.
bool read_slots(const redisReply *reply, const Endpoint &from,
                std::vector<SlotRange> *ranges_p);

// Reads "MOVED 3999 127.0.0.1:6381" and "ASK ...".
bool read_redirection(std::string_view error, const Endpoint &from,
                      unsigned *slot_p, Endpoint *endpoint_p);

} // namespace lawn::durable

#endif
