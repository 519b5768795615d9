// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The way to the store: requests find the node that has their shard, are sent
// when it is connected, and sent again when the store says that it has not done
// them. Connections of one's own are for blocking reads and subscriptions.
//
// Everything is called from within lawn_durable_poll(), or by the thread that
// calls it. A function that completes a request is never called from within
// call() or command(), except by the destruction of the link.

#ifndef LAWN_SRC_DURABLE_LINK_H
#define LAWN_SRC_DURABLE_LINK_H

#include "src/keys.h"
#include "src/loop.h"
#include "src/url.h"

#include <hiredis/hiredis.h>
#include <lawn/durable.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lawn::durable
{

// Begins the line about a request that the store has refused, or that could not
// be sent, until its time was over. Behind it and ": " is why, if that is
// known.
constexpr char not_done_in_time[] = "not done in time";

struct Answer {
    lawn_status_t status;
    const char *error;       // one line; "" if the status is OK
    const redisReply *reply; // if the status is OK, and then no error reply
    lawn_time_t sent;        // when the request was written
};

using Done = std::function<void(const Answer &)>;
using Args = std::vector<std::string>;

// A call of a function of the library.
struct Call {
    const char *function; // a literal
    std::vector<Key> keys;
    Args args;
    unsigned shard = 0;
    std::string id; // not empty: the shard is that of the id
    int durability = LAWN_DURABLE_ASYNC;
    bool reads_only = false; // FCALL_RO
    // The number of shards is the first argument, before `args`.
    bool tells_shards = false;
    // Calls of the function for a shard may be sent as one, with the arguments
    // of all of them: the reply is a list of their replies.
    bool joins = false;
    uint64_t timeout_us = 0; // 0: that of the client
    // Completes the arguments when the shard is known, just before the call is
    // sent for the first time; may be empty.
    std::function<void(unsigned shard, Args *args)> prepare;
};

// A connection of one's own to the node that has `shard`. It connects, and
// connects again when it is lost or when the shard has moved.
class Channel
{
public:
    struct Events {
        // Connected, functions checked, and all channels subscribed to. Also
        // called after each reconnection: what was published, or asked for,
        // before is lost.
        std::function<void()> connected;
        // Lost; all requests of the channel have been answered with IO. It is
        // about to connect again.
        std::function<void(const char *why)> lost;
        // A message of a channel subscribed to.
        std::function<void(std::string_view channel, std::string_view message)>
            message;
    };

    virtual ~Channel() = default;
    virtual bool is_connected() const = 0;
    // Why the server refuses it now; "" if it does not, as far as is known.
    virtual const std::string &error() const = 0;
    // Sends a command. IO if the channel is not connected. `timeout_us`: the
    // connection is taken as lost if there is no answer within that time, or if
    // `done` throws. For XREADGROUP, take the BLOCK time and some seconds. Not
    // for a channel that has subscribed.
    virtual void send(const Args &command, uint64_t timeout_us, Done done) = 0;
};

class Link
{
public:
    virtual ~Link() = default;

    virtual Loop &loop() const = 0;

    // Sends a call when it can. `done` gets the answer, exactly once. If it
    // throws, it has not got it: a little later it is told NO_MEMORY instead.
    virtual void call(Call call, Done done) = 0;
    // The same for a command of Redis, to the node that has `shard`. Only after
    // the link is open.
    virtual void command(unsigned shard, const Args &command, Done done) = 0;

    // Requests that are not answered.
    virtual size_t requests() const = 0;

    // Channels to subscribe to may be empty. Only after the link is open. The
    // caller owns the channel, and may destroy it in a callback of it.
    virtual std::unique_ptr<Channel>
    open_channel(unsigned shard, std::vector<std::string> subscribe,
                 Channel::Events events) = 0;

    // Calls `fn` in a poll when the store is reached and checked for the first
    // time; in the next poll if it was. `owner` names it for forget().
    virtual void when_open(const void *owner, std::function<void()> fn) = 0;
    virtual void forget(const void *owner) = 0;

    // 0 before the link is open.
    virtual unsigned shards() const = 0;
    virtual unsigned shard_of(std::string_view id) const = 0;
    // True: each shard has a node of its own, so a command may name keys of one
    // shard only.
    virtual bool is_cluster() const = 0;

    virtual std::string key(unsigned shard, Key key) const = 0;
    virtual std::string wake_channel(unsigned shard) const = 0;

    // The estimate of the clock of the node that has `shard`. Everybody who
    // reads the store's time in an answer notes it, with Answer::sent.
    virtual void note_time(unsigned shard, lawn_time_t sent,
                           int64_t store_us) = 0;
    // What the store's clock shows when a request that is sent at `time`
    // arrives, at the earliest; 0 if it is not known.
    virtual int64_t store_time(unsigned shard, lawn_time_t time) const = 0;
    // When to send a request so that it arrives at `store_us` or just after.
    // LAWN_TIME_INFINITY if the store's clock is not known.
    virtual lawn_time_t send_time(unsigned shard, int64_t store_us) const = 0;

    // What keeps requests from being answered, or nullptr.
    virtual const char *error() const = 0;
    // What the store does not do although it answers, in a line; or "".
    virtual std::string warning() const
    {
        return "";
    }
    // Where timers were lost; or "".
    virtual std::string losses() const
    {
        return "";
    }
    // From now on, looks now and then whether timers are missing.
    virtual void watch()
    {
    }
};

} // namespace lawn::durable

#endif
