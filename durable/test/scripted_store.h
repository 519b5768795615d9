// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A store on virtual time, of one shard. It does with the entries of its stream
// what store/lawn.lua does, as far as consumers see that, and answers in the
// next poll. Nothing sleeps, and nothing goes over a network.
//
//     ScriptedStore *const store = new ScriptedStore; // lives in the client
//     lawn_durable_consume(store->client(), &params, deliver, arg, &consumer);
//     store->add("t1");
//     store->run_for(30000000);
//     lawn_durable_close(store->client());

#ifndef LAWN_TEST_DURABLE_SCRIPTED_STORE_H
#define LAWN_TEST_DURABLE_SCRIPTED_STORE_H

#include "src/handle.h"

#include <gtest/gtest.h>
#include <lawn/durable.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lawn_test
{

class ScriptedStore final : public lawn::durable::Link
{
public:
    using Answer = lawn::durable::Answer;
    using Args = lawn::durable::Args;
    using Done = lawn::durable::Done;

    struct Entry {
        std::string id;
        std::string consumer; // "": not read
        lawn_time_t given;
        long long deliveries;
    };

    ScriptedStore();

    lawn_durable_t *client()
    {
        return durable_;
    }
    // Adds an entry of a timer to the stream.
    void add(const std::string &id);
    // Polls each `step_us`, until so much time has passed.
    void run_for(uint64_t usec, uint64_t step_us = 10000);
    // The connection of the consumer is lost, and made anew.
    void cut();
    // Another consumer takes what this one has.
    void steal();
    // Answers of the program wait, or are carried out.
    void hold_answers(bool holds);
    // All leases are over, by the store's clock.
    void end_leases();

    // What is in the stream, by its number.
    const std::map<unsigned, Entry> &entries() const
    {
        return entries_;
    }
    unsigned answered() const
    {
        return answered_;
    }
    unsigned buried() const
    {
        return buried_;
    }

    // What the client sees.
    lawn::durable::Loop &loop() const override
    {
        return durable_->loop;
    }
    void call(lawn::durable::Call call, Done done) override;
    void command(unsigned shard, const Args &command, Done done) override;
    size_t requests() const override
    {
        return requests_;
    }
    std::unique_ptr<lawn::durable::Channel>
    open_channel(unsigned shard, std::vector<std::string> subscribe,
                 lawn::durable::Channel::Events events) override;
    void when_open(const void *, std::function<void()> fn) override
    {
        loop().defer(std::move(fn));
    }
    void forget(const void *) override
    {
    }
    unsigned shards() const override
    {
        return 1;
    }
    unsigned shard_of(std::string_view) const override
    {
        return 0;
    }
    bool is_cluster() const override
    {
        return false;
    }
    std::string key(unsigned, lawn::durable::Key key) const override
    {
        return std::to_string(static_cast<int>(key));
    }
    std::string wake_channel(unsigned) const override
    {
        return "wake";
    }
    void note_time(unsigned, lawn_time_t, int64_t) override
    {
    }
    int64_t store_time(unsigned, lawn_time_t) const override
    {
        return 0;
    }
    lawn_time_t send_time(unsigned, int64_t) const override
    {
        return LAWN_TIME_INFINITY;
    }
    const char *error() const override
    {
        return nullptr;
    }

private:
    class Line; // the consumer's connection for reading

    struct Reply;
    Reply carry_out(const std::string &function, const Args &args);
    Reply read(const Args &command);
    Reply take(const Args &args);
    Reply answer(const Args &args);
    Reply extend(const Args &args);
    Reply release(const Args &args);
    Reply pending(const std::string &consumer) const;
    Entry *own(const std::string &number, const std::string &consumer);
    long long idle_ms(const Entry &entry) const;

    lawn_durable_t *const durable_;
    Line *line_ = nullptr;
    std::map<unsigned, Entry> entries_;
    unsigned next_ = 1;
    unsigned answered_ = 0;
    unsigned buried_ = 0;
    size_t requests_ = 0;
    bool holds_answers_ = false;
    std::vector<std::pair<lawn::durable::Call, Done>> held_;
};

} // namespace lawn_test

#endif
