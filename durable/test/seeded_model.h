// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the functions of store/lawn.lua do, and what a stream of Redis does, as
// far as the clients of one group see it: timers that fire once, and their
// deliveries. What was done is remembered, for the judge.

#ifndef LAWN_TEST_DURABLE_SEEDED_MODEL_H
#define LAWN_TEST_DURABLE_SEEDED_MODEL_H

#include "resp.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lawn_test
{

class SeededModel
{
public:
    class Owner
    {
    public:
        virtual int64_t time_us() const = 0;
        // To all who listen.
        virtual void publish(const std::string &message) = 0;

    protected:
        ~Owner() = default;
    };

    struct Start {
        uint64_t generation;
        int64_t due_us;
        uint64_t write; // its number
    };

    // Where a write is safe.
    enum Place { disk, replica, places };

    SeededModel(Owner &owner, unsigned shards) : owner_(owner), shards_(shards)
    {
    }

    // The replies to commands. `key`: of the shard.
    std::string call(const std::string &function, const std::string &key,
                     const resp::Words &args);
    std::string pending(const std::string &key,
                        const std::string &consumer) const;
    std::string read(const resp::Words &words);

    // A timer of cron fires whose next time is not known, among `gone` others
    // that need none any more.
    void seek(size_t shard, uint64_t gone);

    // Timers that have not ended, or whose next times are sought.
    size_t timers() const;
    size_t entries() const;
    // The first start with the token; nullptr: there was none.
    const Start *start_of(uint64_t token) const;
    // The only update of a timer; nullptr: there was none.
    const Start *update_of(const std::string &id) const;
    // The number of the write that has stopped it; 0: there was none.
    uint64_t stop_of(const std::string &id) const;
    bool has_ended(const std::string &id) const;

    // Returns its number.
    uint64_t write();
    uint64_t writes() const
    {
        return writes_;
    }
    bool writes_through = false; // to the disk, at once
    // Together with all that was written before.
    void make_safe(uint64_t write, Place place)
    {
        safe_[place] = std::max(safe_[place], write);
    }
    bool is_safe(uint64_t write, Place place) const
    {
        return write <= safe_[place];
    }

private:
    struct Body {
        std::string head; // 18 bytes: the identity
        std::string tail;
        uint64_t token = 0;
        int64_t due_us = 0;
        std::string mark; // of its update
        bool is_pending = true;
    };

    struct End {
        int state;
        std::string head;
        uint64_t token;
    };

    struct Entry {
        std::string id;
        std::string body; // the store's time, and the body
        std::string consumer;
        int64_t given_us = 0;
        long long deliveries = 0;
    };

    struct Shard {
        std::map<std::string, Body> bodies;
        std::map<std::string, End> ends;
        std::map<unsigned, Entry> stream;
        std::map<std::string, uint64_t> sought; // generations
        uint64_t gone = 0;                      // beside those
        int64_t wake_us = INT64_MAX;
    };

    std::string start(Shard *shard, const resp::Words &args);
    std::string start_one(Shard *shard, const std::string &id,
                          const std::string &when, const std::string &tail);
    std::string stop(Shard *shard, const std::string &id);
    std::string update(Shard *shard, const resp::Words &args);
    std::string fire(Shard *shard, const resp::Words &args);
    std::string answer(Shard *shard, const resp::Words &args);
    int answer_one(Shard *shard, const std::string &entry,
                   const std::string &id, const std::string &identity,
                   const std::string &verdict);
    std::string take(Shard *shard, const resp::Words &args);
    static void bury(Shard *shard, unsigned entry);
    std::string extend(Shard *shard, const resp::Words &args);
    static std::string release(Shard *shard, const resp::Words &args);
    std::string read_shard(Shard *shard, const resp::Words &words);
    static std::string cron(Shard *shard, const resp::Words &args);
    static std::string renew(Shard *shard, const resp::Words &args);
    std::string beat(const resp::Words &args);
    void wake(Shard *shard, int64_t due_us);
    static size_t index_of(const std::string &key);
    static Entry *own(Shard *shard, const std::string &number,
                      const std::string &consumer);
    long long idle_ms(const Entry &entry) const;
    static void finish(Shard *shard, const std::string &id, int state);
    static uint64_t generation_of(std::string_view head);
    // The head of `body` is that of its due time, and of this generation.
    static void rename(Body *body, uint64_t generation);

    Owner &owner_;
    std::vector<Shard> shards_;
    unsigned next_entry_ = 1;
    uint64_t generation_ = 0;
    std::map<std::string, int64_t> pumps_;
    std::map<uint64_t, Start> starts_;
    std::map<std::string, Start> updates_;
    std::map<std::string, uint64_t> stops_; // the writes
    uint64_t writes_ = 0;
    uint64_t safe_[places] = {}; // the last write that is
};

} // namespace lawn_test

#endif
