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
#include "src/shard_errors.h"
#include "src/take_over.h"

#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace lawn::durable
{

// What the consumer knows of a shard.
struct ConsumedShard {
    // A read of several shards has failed, or of this one: it is read alone
    // before it is read with others again.
    bool is_suspect = false;
    bool is_known = false; // what was inherited in it is known
};

class ConsumerCore;

// Reads the streams of some shards, on a connection of its own: of all shards,
// or in a Cluster of one.
class Reader
{
public:
    Reader(ConsumerCore &core, std::vector<unsigned> shards);

    void open();
    void close();
    // Reads, unless it does already or has no room. Without memory, a little
    // later.
    void read();
    // It recovers, or waits for what is being taken over to begin with it.
    bool wants_nothing_taken() const;

private:
    void on_connected();
    // Those to read now: one that must be read alone, or all that are joined.
    std::vector<unsigned> readable() const;
    bool must_recover() const;
    void read_next();
    void send_read(std::vector<unsigned> shards, size_t count,
                   bool is_blocking);
    Args command(const std::vector<unsigned> &shards, size_t count,
                 bool is_blocking) const;
    void on_read(const std::vector<unsigned> &shards, const Answer &answer);
    void on_refused(const std::vector<unsigned> &shards, const Answer &answer);
    // The same of the whole server: told when it has not passed for as long as
    // a request may take.
    void on_busy(const std::vector<unsigned> &shards, const Answer &answer);
    void recover();
    void recover_one();
    void ask(unsigned shard, const Args &command, Done done);
    void on_pending(unsigned shard, const Answer &answer);
    // Has the store give this consumer the entries again that it has given
    // before, the last one first.
    void regain(unsigned shard, std::vector<std::string> entries);
    void on_regained(unsigned shard, std::vector<std::string> left,
                     const Answer &answer);
    void on_recovered();
    // Hands what a reply of XREADGROUP has to the core, and returns how many
    // entries that is.
    size_t take_entries(const redisReply *reply);

    ConsumerCore &core_;
    const std::vector<unsigned> shards_;
    std::unordered_map<std::string, unsigned> keys_; // the shards of them
    std::unique_ptr<Channel> channel_;
    Timer pause_;
    // By the server, and without an answer to a read since then; or infinity.
    lawn_time_t refused_since_ = LAWN_TIME_INFINITY;
    size_t next_ = 0;    // where to look next, when there is little room
    size_t in_vain_ = 0; // how many in succession had nothing
    size_t round_ = 0;   // how many there are to look at; 0: one is read alone
    std::vector<unsigned> to_recover_; // shards, the last one first
    bool is_busy_ = true;              // reads, pauses, or is not connected
    bool is_recovered_ = false;
};

class ConsumerCore final : public Attachable<ConsumerCore>,
                           private Joining::Owner,
                           private TakeOver::Owner
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
    std::string trouble() const;
    size_t in_flight() const
    {
        return deliveries_.live() + answers_->size();
    }

private:
    friend class Reader;

    void start();
    void on_first(bool is_ours) override;
    void on_joined() override;
    void on_not_joined(unsigned shard, const Answer &answer) override;
    Done if_running(Done done) override;

    bool may_take_from(unsigned shard) const override;
    bool on_taken(unsigned shard, const Answer &answer) override;
    void on_answered(unsigned shard, const std::string &entry);
    // The one that reads the stream of the shard.
    Reader &reader_of(unsigned shard) const
    {
        return *readers_[readers_.size() == 1 ? 0 : shard];
    }

    // How many more entries may be read.
    size_t room() const override;
    // Gives what was read, and reads on.
    void go_on() override;
    void give_back();
    // What has waited for room for half of its lease goes to others.
    void release_backlog();
    lawn_time_t half_lease() const
    {
        const double usec = static_cast<double>(config_.lease_us) / 2;
        return lawn_time_from_usec(usec);
    }

    lawn_durable_t *const durable_;
    Link &link_;
    const ConsumerConfig config_;
    Deliveries deliveries_;
    ShardErrors errors_;
    Joining joining_;
    TakeOver take_over_;
    std::shared_ptr<Answers> answers_;
    std::vector<std::unique_ptr<Reader>> readers_;
    std::vector<ConsumedShard> shards_;
    Timer give_timer_;    // for want of memory
    Timer backlog_timer_; // the first of the backlog has waited too long
    std::mt19937_64 random_;
    bool is_giving_ = false;
    bool is_stopped_ = false;
};

} // namespace lawn::durable

#endif
