// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer: it joins the group, reads the streams of all shards, gives what
// it has read to the program, and sends the answers. What others have left
// unanswered for longer than the lease it takes over.
//
// A shard that cannot be joined, or read, is left out and tried again now and
// then; the others are read meanwhile.

#ifndef LAWN_SRC_DURABLE_CONSUMER_H
#define LAWN_SRC_DURABLE_CONSUMER_H

#include "src/answers.h"
#include "src/consumer_config.h"
#include "src/deliveries.h"
#include "src/handle.h"
#include "src/joining.h"
#include "src/reader.h"
#include "src/shard_errors.h"
#include "src/take_over.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace lawn::durable
{

class ConsumerCore final : public Attachable<ConsumerCore>,
                           private Joining::Owner,
                           private TakeOver::Owner,
                           private Reader::Owner
{
public:
    ConsumerCore(lawn_durable_t *durable, ConsumerConfig config,
                 lawn_durable_deliver_fn_t deliver, void *arg);

    // Begins when the store is reached.
    void open();
    void stop();
    // No callbacks from now on.
    void close();

    lawn_status_t answer(const lawn_durable_delivery_t *delivery,
                         lawn_durable_answer_t answer, uint64_t delay_us,
                         const char *error, lawn_durable_fn_t done, void *arg);
    void extend(const lawn_durable_delivery_t *delivery);
    std::string error() const;
    size_t in_flight() const
    {
        return deliveries_.live() + answers_->size();
    }
    uint64_t lost() const
    {
        return deliveries_.lost();
    }

private:
    void start();
    void add_reader(std::vector<unsigned> shards);
    void on_first(bool is_ours) override;
    void on_joined() override;
    void on_not_joined(unsigned shard, const Answer &answer) override;
    Done if_running(Done done) override;

    bool may_take_from(unsigned shard) const override;
    bool on_taken(unsigned shard, const Answer &answer) override;
    void on_answered(unsigned shard, const std::string &entry);
    void on_lost();
    // The one that reads the stream of the shard.
    Reader &reader_of(unsigned shard) const
    {
        return *readers_[readers_.size() == 1 ? 0 : shard];
    }

    // How many more entries may be read.
    size_t room() const override;
    // Each reader's part of that.
    size_t share() const override;
    // Tells what is lost, gives what was read, and reads on.
    void go_on() override;
    void tell_lost();
    void give_back();
    // What has waited for room for half of its lease goes to others.
    void release_backlog();
    lawn_time_t half_lease() const
    {
        const double usec = static_cast<double>(config_.lease_us) / 2;
        return lawn_time_from_usec(usec);
    }

    Link &link_;
    const ConsumerConfig config_;
    const uint64_t request_timeout_us_;
    Deliveries deliveries_;
    ShardErrors errors_;
    Joining joining_;
    TakeOver take_over_;
    std::shared_ptr<Answers> answers_;
    std::vector<std::unique_ptr<Reader>> readers_;
    Timer give_timer_;    // for want of memory
    Timer backlog_timer_; // the first of the backlog has waited too long
    std::mt19937_64 random_;
    bool is_giving_ = false;
    bool is_stopped_ = false;
};

} // namespace lawn::durable

#endif
