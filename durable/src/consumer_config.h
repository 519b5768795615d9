// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a program asks of a consumer.

#ifndef LAWN_SRC_DURABLE_CONSUMER_CONFIG_H
#define LAWN_SRC_DURABLE_CONSUMER_CONFIG_H

#include "src/link.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace lawn::durable
{

struct ConsumerConfig {
    std::string group;
    std::string name;
    Key stream = Key::out;
    bool no_answer = false;
    size_t max_in_flight = 0;
    uint64_t limit = 0;
    uint64_t lease_us = 0;
    lawn_durable_deliver_fn_t lost = nullptr;
};

// Expired leases are looked for twice in a lease.
constexpr uint64_t shortest_lease_us = 10000;
constexpr uint64_t longest_lease_us = 1000000000000; // 11 days

} // namespace lawn::durable

#endif
