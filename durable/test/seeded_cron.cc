// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers of cron whose next times are sought (seeded_model.h).

#include "seeded_model.h"

namespace lawn_test
{

using namespace resp;

namespace
{

constexpr int64_t minute_us = 60000000;
constexpr int64_t after_us = 1700000040000000; // a full minute

} // namespace

void SeededModel::seek(size_t shard, uint64_t gone)
{
    const uint64_t generation = ++generation_;
    Shard *const of = &shards_.at(shard % shards_.size());
    of->sought["cron-" + std::to_string(generation)] = generation;
    of->gone += gone;
    wake(of, owner_.time_us());
}

// count
std::string SeededModel::cron(Shard *shard, const Words &args)
{
    const auto most = static_cast<uint64_t>(integer(args[0]));
    const uint64_t removed = std::min(shard->gone, most);
    shard->gone -= removed;
    std::vector<std::string> timers;
    for (const auto &[id, generation] : shard->sought) {
        if (timers.size() + removed < most) {
            timers.push_back(
                list({bulk(id), number(static_cast<int64_t>(generation)),
                      number(after_us), bulk("* * * * *"), bulk("")}));
        }
    }
    return list({number(static_cast<int64_t>(removed)), list(timers)});
}

// id, generation, next, ..
std::string SeededModel::renew(Shard *shard, const Words &args)
{
    int64_t renewed = 0;
    for (size_t i = 0; i + 2 < args.size(); i += 3) {
        const auto found = shard->sought.find(args[i]);
        if (found != shard->sought.end() &&
            integer(args[i + 1]) == static_cast<long long>(found->second) &&
            integer(args[i + 2]) == after_us + minute_us) {
            shard->sought.erase(found);
            ++renewed;
        }
    }
    return number(renewed);
}

} // namespace lawn_test
