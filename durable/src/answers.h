// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The answers of a consumer on their way to the store. Those of a shard travel
// in batches: while one is under way, further answers wait for the next, and
// after one of several for a moment longer. If it is unknown whether the store
// has taken a batch, it is sent again, which is harmless: the store takes the
// first answer to a delivery.

#ifndef LAWN_SRC_DURABLE_ANSWERS_H
#define LAWN_SRC_DURABLE_ANSWERS_H

#include "src/codec.h"
#include "src/link.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace lawn::durable
{

struct Verdict {
    std::string entry;    // of the stream
    std::string id;       // of the timer
    std::string identity; // generation, due time and attempt, as in the entry
    std::string text;     // for lawn_answer
    lawn_durable_state_t state = LAWN_DURABLE_UNKNOWN; // if the store takes it
    uint64_t generation = 0;
    int64_t due_us = 0;
    unsigned attempt = 0;
    lawn_durable_fn_t done = nullptr;
    void *arg = nullptr;
};

class Answers final : public std::enable_shared_from_this<Answers>,
                      private Watched
{
public:
    // `answered` is called for each answer that needs no further care, once,
    // also if it throws.
    // `in_flight` is the most that the consumer has in its hands.
    Answers(
        Link &link, Key stream, std::string group, size_t in_flight,
        std::function<void(unsigned shard, const std::string &entry)> answered);

    // The group only reads: its answers change no timer.
    void set_reader(bool is_reader)
    {
        is_reader_ = is_reader;
    }

    void add(unsigned shard, Verdict verdict);

    // How many are not acknowledged by the store.
    size_t size() const
    {
        return size_;
    }

    // Sends what the store has not acknowledged, once more and for the last
    // time, and tells those who wait for it that the end is unknown. Calls back
    // no more then.
    void close();
    bool is_closed() const
    {
        return is_closed_;
    }

private:
    struct Shard {
        std::vector<Verdict> waiting;
        std::deque<Verdict> sent;
        std::unique_ptr<Timer> pause; // before the batch, or the next, is sent
        lawn_time_t not_before = 0;   // the next batch, unless it is large
        unsigned failures = 0;        // in succession
        bool is_unknown = false;      // the store may have taken the batch
    };

    Shard *at(unsigned shard);
    void on_events(uint32_t) override
    {
    }
    void flush() override;
    void take_batch(Shard *shard);
    void send_soon(unsigned shard);
    void send(unsigned shard);
    Call call_for(unsigned shard) const;
    void on_answer(unsigned shard, const Answer &answer);
    void complete(unsigned shard, const Answer &answer);
    void finish_closed(unsigned shard, const Verdict &verdict);
    void finish(unsigned shard, const Verdict &verdict, lawn_status_t status,
                const char *error, Answered result, bool is_unknown);

    Link &link_;
    const Key stream_;
    const std::string group_;
    const size_t enough_; // to be sent at once
    std::function<void(unsigned, const std::string &)> answered_;
    std::vector<std::unique_ptr<Shard>> shards_;
    size_t size_ = 0;
    bool is_reader_ = false;
    bool is_closed_ = false;
};

} // namespace lawn::durable

#endif
