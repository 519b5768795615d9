// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How a consumer joins its group, shard by shard. One that cannot be joined is
// tried again now and then.
//
// Which group came first, and so whose answers count, one shard says, and the
// others are told. That is the first shard that can be joined: what keeps a
// shard from it, such as a key of a wrong type, keeps all consumers from it.

#ifndef LAWN_SRC_DURABLE_JOINING_H
#define LAWN_SRC_DURABLE_JOINING_H

#include "src/consumer_config.h"
#include "src/link.h"
#include "src/loop.h"

#include <string>
#include <vector>

namespace lawn::durable
{

class Joining
{
public:
    class Owner
    {
    public:
        // It is known which group came first; `is_ours`: this one.
        virtual void on_first(bool is_ours) = 0;
        // A shard was joined.
        virtual void on_joined() = 0;
        // It was not, and is tried again.
        virtual void on_not_joined(unsigned shard, const Answer &answer) = 0;
        // What waits for an answer may go on.
        virtual void go_on() = 0;
        // A function that calls `done`, unless the consumer has stopped.
        virtual Done if_running(Done done) = 0;

    protected:
        ~Owner() = default;
    };

    Joining(Link &link, const ConsumerConfig &config, Owner &owner);

    // Begins, anew after an exception.
    void start(unsigned shards);
    void stop();
    // The groups are gone: the server has come back without its data.
    void rejoin();
    // A shard cannot be read, and is joined again when that may have changed.
    void leave_out(unsigned shard, const Answer &answer);

    bool is_joined(unsigned shard) const
    {
        return shards_[shard].is_joined;
    }
    // All of them have been asked to be joined, and have answered.
    bool is_settled(const std::vector<unsigned> &shards) const;
    // The answers of this group count.
    bool is_first() const
    {
        return first_ == config_.group;
    }

private:
    struct Shard {
        bool is_joining = false; // asked, and not answered
        bool is_joined = false;
    };

    void join_all();
    void join(unsigned shard);
    void on_joined(unsigned shard, const Answer &answer);
    void on_not_joined(unsigned shard, const Answer &answer);
    void try_later(bool lasts);

    Link &link_;
    const ConsumerConfig &config_;
    Owner &owner_;
    std::vector<Shard> shards_;
    Timer pause_;
    std::string first_;   // the group whose answers count; "": not known
    unsigned leader_ = 0; // the shard that is asked for it
};

} // namespace lawn::durable

#endif
