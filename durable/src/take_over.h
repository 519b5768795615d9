// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What others have left unanswered for longer than the lease a consumer takes
// over: twice in a lease it looks at all shards, in turn, and goes on as long
// as there is room.

#ifndef LAWN_SRC_DURABLE_TAKE_OVER_H
#define LAWN_SRC_DURABLE_TAKE_OVER_H

#include "src/consumer_config.h"
#include "src/link.h"
#include "src/loop.h"

#include <cstddef>
#include <vector>

namespace lawn::durable
{

class TakeOver
{
public:
    class Owner
    {
    public:
        // How many more may be taken over.
        virtual size_t room() const = 0;
        virtual bool may_take_from(unsigned shard) const = 0;
        // The answer to a call. Returns whether the store has more.
        virtual bool on_taken(unsigned shard, const Answer &answer) = 0;
        // What waits for an answer may go on.
        virtual void go_on() = 0;
        // A function that calls `done`, unless the consumer has stopped.
        virtual Done if_running(Done done) = 0;

    protected:
        ~Owner() = default;
    };

    TakeOver(Link &link, const ConsumerConfig &config, Owner &owner);

    void start(unsigned shards);
    void stop();
    // Looks at all shards when the poll has done what is under way.
    void soon();
    // Looks at the next shards, for as long as there is room.
    void go_on();

    // How many may come in answers.
    size_t asked() const
    {
        return asked_;
    }
    // What is taken of a shard is on its way: here, or by a reader that says so
    // by set_busy(). Nobody else takes anything meanwhile.
    bool is_busy(unsigned shard) const
    {
        return is_busy_[shard];
    }
    void set_busy(unsigned shard, bool busy)
    {
        is_busy_[shard] = busy;
    }
    // Takes at most `count` whose lease is over, or those whose entries are
    // added to its arguments.
    Call call_for(unsigned shard, size_t count) const;

private:
    void look_at_all();
    void take_from(unsigned shard);
    void on_taken(unsigned shard, size_t count, const Answer &answer);

    Link &link_;
    const ConsumerConfig &config_;
    Owner &owner_;
    std::vector<bool> is_busy_; // by the shard
    Timer timer_;
    size_t asked_ = 0;      // and not answered
    size_t to_look_at_ = 0; // shards
    size_t next_ = 0;       // the one before the next
};

} // namespace lawn::durable

#endif
