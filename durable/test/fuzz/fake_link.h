// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A way to a store that is not there: requests wait until the fuzzer answers
// them, with what it wants.

#ifndef LAWN_TEST_FUZZ_FAKE_LINK_H
#define LAWN_TEST_FUZZ_FAKE_LINK_H

#include "src/link.h"

#include <algorithm>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fuzz
{

using lawn::durable::Answer;
using lawn::durable::Args;
using lawn::durable::Call;
using lawn::durable::Channel;
using lawn::durable::Done;
using lawn::durable::Key;
using lawn::durable::Link;
using lawn::durable::Loop;

inline Answer failure(lawn_status_t status)
{
    return {status, "NOGROUP or whatever", nullptr, 0};
}

class FakeLink;

class FakeChannel final : public Channel
{
public:
    FakeChannel(FakeLink &link, Events events)
        : link_(link), events_(std::move(events))
    {
    }
    ~FakeChannel() override;

    bool is_connected() const override
    {
        return is_connected_;
    }
    const std::string &error() const override
    {
        return error_;
    }

    void send(const Args &, uint64_t, Done done) override;

    // What happens to it. Each may be its end.
    void connect()
    {
        is_connected_ = true;
        const auto connected = events_.connected;
        connected();
    }

    void lose();

    void tell(const std::string &channel, const std::string &message)
    {
        const auto to = events_.message;
        if (to) {
            to(channel, message);
        }
    }

private:
    FakeLink &link_;
    const Events events_;
    bool is_connected_ = false;
    const std::string error_;
};

class FakeLink final : public Link
{
public:
    FakeLink(Loop &loop, unsigned shards, bool is_cluster)
        : loop_(loop), shards_(shards), is_cluster_(is_cluster)
    {
    }

    ~FakeLink() override
    {
        while (!waiting_.empty()) {
            answer(0, failure(LAWN_ERR_IO));
        }
    }

    // Of those that wait; false if there are none.
    bool answer(size_t index, const Answer &answer)
    {
        if (waiting_.empty()) {
            return false;
        }
        auto at = waiting_.begin();
        std::advance(at, index % waiting_.size());
        const Done done = std::move(at->done);
        waiting_.erase(at);
        done(answer);
        return true;
    }

    FakeChannel *channel(size_t index) const
    {
        return channels_.empty() ? nullptr
                                 : channels_[index % channels_.size()];
    }

    Loop &loop() const override
    {
        return loop_;
    }
    void call(Call, Done done) override
    {
        wait(nullptr, std::move(done));
    }
    void command(unsigned, const Args &, Done done) override
    {
        wait(nullptr, std::move(done));
    }
    size_t requests() const override
    {
        return waiting_.size();
    }
    std::unique_ptr<Channel> open_channel(unsigned, std::vector<std::string>,
                                          Channel::Events events) override
    {
        auto channel = std::make_unique<FakeChannel>(*this, std::move(events));
        channels_.push_back(channel.get());
        return channel;
    }
    void when_open(const void *owner, std::function<void()> fn) override
    {
        when_open_.emplace_back(owner, std::move(fn));
    }
    void forget(const void *owner) override
    {
        when_open_.remove_if(
            [owner](const auto &each) { return each.first == owner; });
    }
    unsigned shards() const override
    {
        return shards_;
    }
    unsigned shard_of(std::string_view id) const override
    {
        return static_cast<unsigned>(id.size()) % shards_;
    }
    bool is_cluster() const override
    {
        return is_cluster_;
    }
    std::string key(unsigned shard, Key key) const override
    {
        return std::to_string(shard) + ":" +
               std::to_string(static_cast<int>(key));
    }
    std::string wake_channel(unsigned shard) const override
    {
        return std::to_string(shard) + ":wake";
    }
    void note_time(unsigned, lawn_time_t, int64_t) override
    {
    }
    int64_t store_time(unsigned, lawn_time_t) const override
    {
        return 0;
    }
    lawn_time_t send_time(unsigned, int64_t store_us) const override
    {
        return store_us % 2 == 0 ? 0 : LAWN_TIME_INFINITY;
    }
    const char *error() const override
    {
        return nullptr;
    }

    void run_when_open()
    {
        while (!when_open_.empty()) {
            const auto fn = std::move(when_open_.front().second);
            when_open_.pop_front();
            fn();
        }
    }

    // Of channels. An answer of one that is gone is nobody's.
    void wait(FakeChannel *channel, Done done)
    {
        waiting_.push_back({channel, std::move(done)});
    }
    void drop(FakeChannel *channel)
    {
        channels_.erase(std::find(channels_.begin(), channels_.end(), channel));
        waiting_.remove_if(
            [channel](const auto &each) { return each.channel == channel; });
    }
    bool has(const FakeChannel *channel) const
    {
        return std::find(channels_.begin(), channels_.end(), channel) !=
               channels_.end();
    }
    void fail(const FakeChannel *channel)
    {
        std::list<Waiting> failed;
        for (auto at = waiting_.begin(); at != waiting_.end();) {
            const auto next = std::next(at);
            if (at->channel == channel) {
                failed.splice(failed.end(), waiting_, at);
            }
            at = next;
        }
        for (const Waiting &each : failed) {
            if (has(channel)) {
                each.done(failure(LAWN_ERR_IO));
            }
        }
    }

private:
    struct Waiting {
        FakeChannel *channel; // nullptr: of the link itself
        Done done;
    };

    Loop &loop_;
    const unsigned shards_;
    const bool is_cluster_;
    std::list<Waiting> waiting_;
    std::vector<FakeChannel *> channels_;
    std::list<std::pair<const void *, std::function<void()>>> when_open_;
};

inline FakeChannel::~FakeChannel()
{
    link_.drop(this);
}

inline void FakeChannel::send(const Args &, uint64_t, Done done)
{
    link_.wait(this, std::move(done));
}

inline void FakeChannel::lose()
{
    is_connected_ = false;
    const auto lost = events_.lost;
    FakeLink &link = link_;
    link.fail(this);
    if (link.has(this)) {
        lost("cut");
    }
}

} // namespace fuzz

#endif
