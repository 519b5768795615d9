// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The stores of `verify`, and the harm that is done to each: one redis-server,
// which everybody reaches through the proxy and which is killed and paused by
// the plan; a cluster, whose shards move from node to node; a primary with a
// replica and a sentinel, of which the primary is killed again and again.

#ifndef LAWN_VERIFY_STORE_H
#define LAWN_VERIFY_STORE_H

#include "history.h"
#include "plan.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lawn_verify
{

// The namespace of a run.
constexpr char verify_space[] = "verify";
// Enough that some of them move with each part of a cluster's slots.
constexpr unsigned verify_cluster_shards = 32;

class Store
{
public:
    virtual ~Store() = default;

    virtual std::string url() const = 0;
    // True: all but this program connect to the links of the proxy.
    virtual bool has_links() const
    {
        return false;
    }
    // 0: as many as the library makes.
    virtual unsigned shards() const
    {
        return 0;
    }
    // `replicated:1` can be had, but not `fsync`.
    virtual bool is_replicated() const
    {
        return false;
    }

    // What a plan may do to it.
    virtual FaultKinds kinds() const
    {
        return {};
    }
    virtual void strike(const Fault &)
    {
    }
    virtual void mend(const Fault &)
    {
    }

    // What is done to it without a plan goes on by a step, and with
    // `begins_more`, one thing follows the other. Does not wait. Returns what
    // is wrong with the store, or an empty string.
    virtual std::string advance(bool begins_more) = 0;
    // Nothing is done to it now.
    virtual bool is_whole() const
    {
        return true;
    }
    // What has been done and mended since the last call.
    std::vector<Event> take_faults()
    {
        return std::exchange(faults_, {});
    }
    // To be told in the end, by name.
    virtual std::map<std::string, uint64_t> figures() const
    {
        return {};
    }

protected:
    // `lost_us`: when an old primary was killed.
    void note(const char *word, int64_t begun_us, int64_t lost_us = 0)
    {
        Event event;
        event.kind = EventKind::fault;
        event.time_us = begun_us;
        event.due_us = history_now();
        event.fired_us = lost_us;
        event.word = word;
        faults_.push_back(event);
    }

private:
    std::vector<Event> faults_;
};

// Each is started, and answers.
std::unique_ptr<Store> make_one_server(const std::string &directory);
std::unique_ptr<Store> make_cluster(const std::string &directory,
                                    uint64_t seed);
std::unique_ptr<Store> make_failover(const std::string &directory,
                                     uint64_t seed);

} // namespace lawn_verify

#endif
