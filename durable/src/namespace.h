// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The namespace as the store has recorded it: how many shards it has, the
// bounds of each, and whether what it had is still there. It is opened at the
// first connection, and again when a server is back or says that a shard is not
// as it was.

#ifndef LAWN_SRC_DURABLE_NAMESPACE_H
#define LAWN_SRC_DURABLE_NAMESPACE_H

#include "src/keys.h"
#include "src/routes.h"

#include <lawn/durable.h>

#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace lawn::durable
{

class Namespace
{
public:
    class Owner
    {
    public:
        // The number of shards, just before it is open. May throw: then it is
        // opened again a little later.
        virtual void on_shards(unsigned shards) = 0;
        // It is open, and those who waited for that have been called.
        virtual void on_open() = 0;
        virtual void on_refused(const Failure &failure) = 0;

    protected:
        ~Owner() = default;
    };

    Namespace(Setup &setup, const lawn_durable_params_t &params,
              const Keys &keys, Routes &routes, Owner &owner);

    bool is_open() const
    {
        return is_open_;
    }
    // 0 before it has been open for the first time.
    unsigned shards() const
    {
        return shards_;
    }
    // What keeps it from being opened; "" if nothing does.
    const std::string &error() const
    {
        return error_;
    }
    void clear_error()
    {
        error_.clear();
    }

    // Opens it, if the node of the first shard can be asked. Then tells the
    // shards their bounds.
    void open();
    // From now on, timers are counted, too, to see whether some are missing.
    void watch();

    // See link.h.
    void when_open(const void *owner, std::function<void()> fn);
    void forget(const void *owner);

private:
    using WhenOpen = std::list<std::pair<const void *, std::function<void()>>>;

    void on_reply(const redisReply *reply);
    static void look_at_refusal(Node *node, const redisReply *reply);
    void on_refused(const Failure &failure);
    void prepare_all();
    void prepare(Node &node, unsigned shard);
    void look(Node &node, unsigned shard);
    void reopen_later();
    void note_loss(unsigned shard, int64_t lost_us);
    void run_when_open();

    Setup &setup_;
    const lawn_durable_params_t &params_;
    const Keys &keys_;
    Routes &routes_;
    Owner &owner_;
    unsigned shards_ = 0;
    Words limits_;                // arguments of lawn_prepare
    std::vector<int64_t> births_; // of the shards, as they were seen last
    bool is_open_ = false;
    bool is_opening_ = false; // lawn_open is sent and not answered
    bool is_watching_ = false;
    std::string error_;
    WhenOpen when_open_;
    Timer open_timer_; // again, or to see whether all is there
    Timer when_open_timer_;
};

} // namespace lawn::durable

#endif
