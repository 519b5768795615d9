// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The daemon's metrics, in the text format of Prometheus. Those that begin with
// lawn_durable_ are of the namespace, and the same from every daemon of it.
// Those that begin with lawn_durable_shard_ are of each shard that has
// answered; the others are there if all have. Those that begin with lawnd_ are
// of this daemon.
#ifndef LAWND_METRICS_H
#define LAWND_METRICS_H

#include <lawn/durable.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lawnd
{

struct Deliveries {
    uint64_t done = 0;
    uint64_t retried = 0;
    uint64_t deferred = 0;
    uint64_t failed = 0;
};

struct Shard {
    bool is_up = false; // it has answered
    lawn_durable_stats_t stats = {};
};

struct Metrics {
    std::string name_space;
    bool is_store_up = false;
    std::vector<Shard> shards; // none if the store was not asked
    lawn_durable_pump_stats_t pump = {};
    Deliveries http;
    Deliveries stream;
    uint64_t posting = 0;
    uint64_t waiting = 0; // in the queues of targets
    uint64_t silent = 0;  // targets
    uint64_t lost = 0;    // leases
    bool warns = false;   // the store is not what it should be
    bool has_losses = false;
};

std::string format_metrics(const Metrics &metrics);

} // namespace lawnd

#endif
