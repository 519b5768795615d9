// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How a consumer reads: the streams of all shards, or in a Cluster of one, on a
// connection of its own. First it recovers what has not arrived.
//
// COUNT of XREADGROUP is for each stream. So while there is room for fewer
// entries than there are shards, the reader looks at as many shards as there is
// room for, in turn and without blocking, and blocks on all when all were
// empty. More than there is room for may come only if entries of several shards
// arrive in the same moment. They wait in the backlog until they can be given.
//
// One key that cannot be read fails a read of several shards, and the server
// need not say which. So after a failure each of them is read alone once.

#ifndef LAWN_SRC_DURABLE_READER_H
#define LAWN_SRC_DURABLE_READER_H

#include "src/consumer_config.h"
#include "src/link.h"
#include "src/loop.h"
#include "src/recovery.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace lawn::durable
{

class Reader final : private Recovery::Owner
{
public:
    class Owner
    {
    public:
        // How many more entries one reader may read.
        virtual size_t share() const = 0;
        // There may be something to give, and then all readers are to read. The
        // program may stop or close the consumer, which closes the reader.
        virtual void go_on() = 0;
        // A function that calls `done`, unless the consumer has stopped.
        virtual Done if_running(Done done) = 0;

    protected:
        ~Owner() = default;
    };

    Reader(const ReaderParts &parts, std::vector<unsigned> shards,
           Owner &owner);

    void open();
    void close();
    // Reads, unless it does already or has no room. Without memory, a little
    // later.
    void read();
    // It recovers, or waits for what is being taken over to begin with it.
    bool wants_nothing_taken() const;
    // The shard could not be joined.
    void suspect(unsigned shard);
    const std::vector<unsigned> &shards() const
    {
        return shards_;
    }
    // What was inherited in the shard is known.
    bool is_known(unsigned shard) const
    {
        return recovery_.is_known(shard);
    }

private:
    void on_connected();
    // Those to read now: one that must be read alone, or all that are joined.
    std::vector<unsigned> readable() const;
    void read_next();
    void send_read(std::vector<unsigned> shards, size_t count,
                   bool is_blocking);
    Args command(const std::vector<unsigned> &shards, size_t count,
                 bool is_blocking) const;
    void on_read(const std::vector<unsigned> &shards, const Answer &answer);
    // Refusals of the whole server: told when it has not passed for as long as
    // a request may take.
    void on_busy(const std::vector<unsigned> &shards, const Answer &answer);
    // Puts what a reply of XREADGROUP has into the backlog, and returns how
    // many entries that is.
    size_t take_entries(const redisReply *reply);

    // For the recovery.
    bool has_room() const override;
    void go_on() override;
    Done if_running(Done done) override;
    void ask(unsigned shard, const Args &command, Done done) override;
    void on_refused(const std::vector<unsigned> &shards,
                    const Answer &answer) override;
    void on_failed() override;
    void on_recovered() override;

    Link &link_;
    const ConsumerConfig &config_;
    const uint64_t request_timeout_us_;
    Joining &joining_;
    Deliveries &deliveries_;
    TakeOver &take_over_;
    ShardErrors &errors_;
    const std::vector<unsigned> shards_;
    Owner &owner_;
    Recovery recovery_;
    // A read of several shards has failed, or of this one: it is read alone
    // before it is read with others again.
    std::map<unsigned, bool> is_suspect_;
    std::unordered_map<std::string, unsigned> keys_; // the shards of them
    std::unique_ptr<Channel> channel_;
    Timer pause_;
    // By the server, and without an answer to a read since then; or infinity.
    lawn_time_t refused_since_ = LAWN_TIME_INFINITY;
    size_t next_ = 0;     // where to look next, when there is little room
    size_t in_vain_ = 0;  // how many in succession had nothing
    size_t round_ = 0;    // how many there are to look at; 0: one is read alone
    bool is_busy_ = true; // reads, recovers, pauses, or is not connected
};

} // namespace lawn::durable

#endif
