// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The deliveries of a consumer: what was read or taken over waits here, is
// given to the program, and stays until it is answered. Of each entry it knows
// that it is here, so that none is given twice.

#ifndef LAWN_SRC_DURABLE_DELIVERIES_H
#define LAWN_SRC_DURABLE_DELIVERIES_H

#include "src/answers.h"
#include "src/consumer_config.h"
#include "src/link.h"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lawn::durable
{

// What the program is given, and what is needed for its answer.
struct Delivery {
    lawn_durable_delivery_t view;
    unsigned shard;
    std::string entry; // its number in the stream
    std::string id;
    std::string identity;
    std::string target;
    std::string payload;
    lawn_time_t come; // here
    uint64_t backoff_min_us;
    uint64_t backoff_max_us;
};

// The program's answer to a delivery, for the store; whom to tell is left open.
// `random` spreads the delay of a backoff.
Verdict verdict_of(const Delivery &delivery, lawn_durable_answer_t answer,
                   uint64_t delay_us, const char *error, uint64_t random);

class Deliveries
{
public:
    using Name = std::pair<unsigned, std::string>; // shard and entry

    Deliveries(Link &link, const ConsumerConfig &config,
               lawn_durable_deliver_fn_t deliver, void *arg);

    // Puts an entry into the backlog, unless it is here; `deliveries` 0: the
    // reply has it. What nobody can read is buried.
    void add(unsigned shard, const redisReply *reply, unsigned deliveries);
    // The same for what lawn_take has answered. Returns whether the store has
    // more.
    bool add_taken(unsigned shard, const Answer &answer);

    // How many are not given.
    size_t backlog() const
    {
        return backlog_.size();
    }
    // When the first of them has come. There must be one.
    lawn_time_t backlog_since() const
    {
        return backlog_.front()->come;
    }
    // How many are given and not answered.
    size_t live() const
    {
        return live_.size();
    }
    // How many were ever given.
    uint64_t given() const
    {
        return given_;
    }

    // Gives the first of the backlog. The program may do anything to the
    // consumer.
    void give_one();
    // Given and not answered; or nullptr.
    const Delivery *find(const lawn_durable_delivery_t *view) const;
    // Such a one is answered.
    void end(const lawn_durable_delivery_t *view);
    // The store has its answer.
    void forget(unsigned shard, const std::string &entry);

    // Takes out of the backlog what has been there for so long: the entries of
    // each shard.
    std::map<unsigned, std::vector<std::string>> take_backlog(lawn_time_t age);

    // A program of the same name was given the entries.
    void inherit(unsigned shard, const std::vector<std::string> &entries);
    // And it was not given to this one.
    bool is_inherited(unsigned shard, const std::string &entry) const
    {
        return inherited_.count({shard, entry}) > 0;
    }
    // Those of an answer to pending_command() that are not here.
    std::vector<std::string> not_here(unsigned shard,
                                      const Answer &answer) const;
    // What is here, and what a program was given before.
    std::set<Name> kept() const;

private:
    void bury(const Name &name);

    Link &link_;
    const ConsumerConfig &config_;
    const lawn_durable_deliver_fn_t deliver_;
    void *const arg_;
    std::deque<std::unique_ptr<Delivery>> backlog_; // to be given
    std::unordered_map<const lawn_durable_delivery_t *,
                       std::unique_ptr<Delivery>>
        live_;            // given and not answered
    std::set<Name> held_; // entries that are here, until the store has answers
    // Entries that a program of the same name was given, and that have not been
    // given to this one. Each delivery of them has counted.
    std::set<Name> inherited_;
    uint64_t given_ = 0;
};

} // namespace lawn::durable

#endif
