// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The arena; see arena.h.

#include "arena.h"

#include <algorithm>
#include <map>

namespace bench
{

std::vector<void *> expired;

const std::vector<uint32_t> &shuffled(size_t count, uint64_t seed)
{
    // Those of one size at a time: a few hundred megabytes at most.
    static size_t kept_count = 0;
    static std::map<uint64_t, std::vector<uint32_t>> kept;
    if (count != kept_count) {
        kept.clear();
        kept_count = count;
    }
    std::vector<uint32_t> &order = kept[seed];
    if (order.empty()) {
        Random random(seed);
        order.resize(count);
        for (size_t i = 0; i < count; ++i) {
            order[i] = static_cast<uint32_t>(i);
        }
        for (size_t i = count; i > 1; --i) {
            std::swap(order[i - 1], order[random.below(i)]);
        }
    }
    return order;
}

double patience(const Load &load)
{
    return 4 * load.limit_sec + 4e-6 * static_cast<double>(load.timers);
}

Arena::Arena(const Contender &contender, const Load &load, size_t nodes,
             Time longest_ttl)
    : random(load.seed), contender_(contender), load_(load),
      patience_(patience(load)), order_(shuffled(nodes, load.seed)),
      nodes_(contender, nodes)
{
    Config config;
    config.tick = contender_tick;
    config.capacity = nodes;
    config.longest_ttl = longest_ttl;
    scheme_ = contender.create(config);
    if (!scheme_) {
        broken("cannot be created");
    }
    // Touched now, or the first contender to fill it pays the page faults.
    expired.assign(nodes, nullptr);
    expired.clear();
    // Some wheels stand at time 0 and turn from there.
    advance();
}

Arena::~Arena()
{
    contender_.destroy(scheme_);
}

void Arena::pass(Time time)
{
    now += time;
    if (contender_.wait) {
        contender_.wait(scheme_, time);
    }
}

} // namespace bench
