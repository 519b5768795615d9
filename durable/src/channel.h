// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Channels (link.h). The session belongs to the link; what the caller owns is
// only a handle, so that it may be destroyed in a callback of the session.

#ifndef LAWN_SRC_DURABLE_CHANNEL_H
#define LAWN_SRC_DURABLE_CHANNEL_H

#include "src/link.h"
#include "src/session.h"

#include <map>
#include <memory>

namespace lawn::durable
{

class Channels;
class Routes;

class ChannelSession final : public Session
{
public:
    ChannelSession(Setup &setup, Routes &routes, unsigned shard,
                   Words subscribe, Channel::Events events);

    void send_command(const Args &command, uint64_t timeout_us, Done done);
    // No event is told any more.
    void mute();
    // The shard may have moved.
    void check_endpoint();
    const std::string &error() const
    {
        return error_;
    }

private:
    bool find(Endpoint *endpoint_p) override;
    void greet() override;
    void on_ready() override;
    void on_failed(const Failure &failure) override;
    void on_message(const redisReply &reply) override;
    void on_answer(const Done &done, const redisReply *reply, lawn_time_t sent);
    void reject();

    Routes &routes_;
    unsigned shard_;
    Words subscribe_;
    Channel::Events events_;
    bool is_muted_ = false;
    bool was_ready_ = false;
    std::string error_;
    Timer restart_; // not from within an answer
    std::vector<Done> rejected_;
    Timer rejecting_;
};

class ChannelHandle final : public Channel
{
public:
    ChannelHandle(Channels &channels, ChannelSession *session);
    ~ChannelHandle() override;
    bool is_connected() const override;
    const std::string &error() const override;
    void send(const Args &command, uint64_t timeout_us, Done done) override;

private:
    Channels &channels_;
    ChannelSession *session_;
};

// The channels of a link.
class Channels
{
public:
    Channels(Setup &setup, Routes &routes);

    std::unique_ptr<Channel> open(unsigned shard,
                                  std::vector<std::string> subscribe,
                                  Channel::Events events);
    // By its handle. The session is freed a little later, since one of its
    // callbacks may be running.
    void remove(ChannelSession *channel);
    // Shards may have moved.
    void check_endpoints();

private:
    using Sessions =
        std::map<ChannelSession *, std::unique_ptr<ChannelSession>>;

    Setup &setup_;
    Routes &routes_;
    Sessions sessions_;
    Sessions removed_;
    Timer sweep_timer_;
};

} // namespace lawn::durable

#endif
