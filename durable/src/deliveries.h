// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The deliveries of a consumer: what was read or taken over waits here, is
// given to the program, and stays until it is answered. Of each entry it knows
// that it is here, so that none is given twice. A delivery whose lease is over
// is lost: it takes no place any more, the program is told, and the entry may
// come again, to this consumer, too.

#ifndef LAWN_SRC_DURABLE_DELIVERIES_H
#define LAWN_SRC_DURABLE_DELIVERIES_H

#include "src/answers.h"
#include "src/consumer_config.h"
#include "src/link.h"

#include <deque>
#include <functional>
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
    explicit Delivery(Loop &loop) : lease(loop, nullptr)
    {
    }

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
    Timer lease; // runs while the program has it
    bool is_lost = false;
};

// The program's answer to a delivery, for the store; whom to tell is left open.
// `random` spreads the delay of a backoff.
Verdict verdict_of(const Delivery &delivery, lawn_durable_answer_t answer,
                   uint64_t delay_us, const char *error, uint64_t random);

class Deliveries
{
public:
    using Name = std::pair<unsigned, std::string>; // shard and entry

    // `lost` is called when a lease has run out.
    Deliveries(Link &link, const ConsumerConfig &config,
               lawn_durable_deliver_fn_t deliver, void *arg,
               std::function<void()> lost);

    // Puts an entry into the backlog, unless it is here; `deliveries` 0: it was
    // taken over, and the reply has the number. If the program has it, its
    // lease is lost. What nobody can read is buried.
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
    // How many are given, not answered, and within their lease.
    size_t live() const
    {
        return live_.size() - live_lost_;
    }
    // How many leases were ever lost.
    uint64_t lost() const
    {
        return lost_;
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
    // Such a one has its lease anew.
    void extend(const lawn_durable_delivery_t *view);
    // The store has said that it is another consumer's.
    void note_taken(const lawn_durable_delivery_t *view,
                    const std::string &entry);
    // Tells the program of a lost one, which is gone then. False: there is
    // none. The program may do anything to the consumer.
    bool tell_lost();
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
    // Those of the entries that are not here.
    std::vector<std::string> not_here(unsigned shard,
                                      std::vector<std::string> entries) const;
    // What is here, and what a program was given before.
    std::set<Name> kept() const;

private:
    lawn_time_t lease() const
    {
        return lawn_time_from_usec(static_cast<double>(config_.lease_us));
    }
    void bury(const Name &name);
    // The consumer has the entry. Returns whether it may be given again.
    bool regive(Delivery *here, unsigned deliveries);
    void lose(Delivery *delivery);

    Link &link_;
    const ConsumerConfig &config_;
    const lawn_durable_deliver_fn_t deliver_;
    void *const arg_;
    const std::function<void()> on_lost_;
    std::deque<std::unique_ptr<Delivery>> backlog_; // to be given
    std::unordered_map<const lawn_durable_delivery_t *,
                       std::unique_ptr<Delivery>>
        live_; // given and not answered
    std::deque<const lawn_durable_delivery_t *> to_tell_; // lost, or answered
    // Entries that are here, until the lease is lost, or the store has the
    // answer: nullptr then, until that.
    std::map<Name, Delivery *> held_;
    // Entries that a program of the same name was given, and that have not been
    // given to this one. Each delivery of them has counted.
    std::set<Name> inherited_;
    uint64_t given_ = 0;
    uint64_t lost_ = 0;
    size_t live_lost_ = 0; // of `live_`
};

} // namespace lawn::durable

#endif
