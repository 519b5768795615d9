// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What was given to a consumer and has not arrived, as the connection was lost,
// or the program was started anew with the same name. A reader has the store
// give it again before it reads. Nothing is read or taken over meanwhile, so
// nothing else is on its way: it would be given twice.

#ifndef LAWN_SRC_DURABLE_RECOVERY_H
#define LAWN_SRC_DURABLE_RECOVERY_H

#include "src/consumer_config.h"
#include "src/link.h"

#include <map>
#include <string>
#include <vector>

namespace lawn::durable
{

class Deliveries;
class Joining;
class ShardErrors;
class TakeOver;

// What the readers of a consumer have in common.
struct ReaderParts {
    Link &link;
    const ConsumerConfig &config;
    uint64_t request_timeout_us;
    Joining &joining;
    Deliveries &deliveries;
    TakeOver &take_over;
    ShardErrors &errors;
};

class Recovery
{
public:
    // A reader.
    class Owner
    {
    public:
        virtual bool has_room() const = 0;
        // Gives what has come. The program may stop or close the consumer,
        // which ends the recovery.
        virtual void go_on() = 0;
        // A function that calls `done`, unless the consumer has stopped.
        virtual Done if_running(Done done) = 0;
        // Sends a command on the reader's connection. `done` gets an answer
        // that is OK, and on_refused() the others.
        virtual void ask(unsigned shard, const Args &command, Done done) = 0;
        // `shards`: those that were asked for, of which one or more have
        // failed. Calls next() or end().
        virtual void on_refused(const std::vector<unsigned> &shards,
                                const Answer &answer) = 0;
        // It has failed and is over. The reader begins anew after a pause.
        virtual void on_failed() = 0;
        virtual void on_recovered() = 0;

    protected:
        ~Owner() = default;
    };

    Recovery(const ReaderParts &parts, const std::vector<unsigned> &shards,
             Owner &owner);

    // The connection is a new one: what was on its way is lost.
    void reset();
    // There may be something to recover: after reset(), or as a shard was
    // joined late.
    bool is_needed() const;
    bool is_running() const
    {
        return !to_recover_.empty();
    }
    // False: nothing can be done before an answer comes, after which the owner
    // is to read.
    bool begin();
    // Goes on with the next shard: this one is done, or left out.
    void next();
    void end();

    // What was inherited in the shard is known.
    bool is_known(unsigned shard) const
    {
        return is_known_.at(shard);
    }

private:
    void recover_one();
    void on_pending(unsigned shard, const Answer &answer);
    // Has the store give this consumer the entries again that it has given
    // before, the last one first.
    void regain(unsigned shard, std::vector<std::string> entries);
    void on_regained(unsigned shard, std::vector<std::string> left,
                     const Answer &answer);

    Link &link_;
    const ConsumerConfig &config_;
    Joining &joining_;
    Deliveries &deliveries_;
    TakeOver &take_over_;
    ShardErrors &errors_;
    Owner &owner_;
    std::map<unsigned, bool> is_known_; // of the reader's shards
    std::vector<unsigned> to_recover_;  // shards, the last one first
    bool is_recovered_ = false;
};

} // namespace lawn::durable

#endif
