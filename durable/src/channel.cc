// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Connections of one's own, for blocking reads and subscriptions (link.h).

#include "src/channel.h"

#include "src/guard.h"
#include "src/routes.h"

#include <utility>

namespace lawn::durable
{

namespace
{

// After these, another server has the shard, or this one is no master. Not so
// after ASK: the shard is about to move, and MOVED tells when it has.
bool is_misplaced(std::string_view error)
{
    return begins_with(error, "MOVED ") || begins_with(error, "UNBLOCKED") ||
           begins_with(error, "READONLY");
}

} // namespace

ChannelSession::ChannelSession(Setup &setup, Routes &routes, unsigned shard,
                               Words subscribe, Channel::Events events)
    : Session(setup, Kind::plain), routes_(routes), shard_(shard),
      subscribe_(std::move(subscribe)), events_(std::move(events)),
      restart_(*setup.loop, [this] { restart("the shard has moved"); }),
      rejecting_(*setup.loop, [this] { reject(); })
{
}

void ChannelSession::mute()
{
    events_ = {};
    is_muted_ = true;
}

void ChannelSession::check_endpoint()
{
    Endpoint now;
    // Sentinels know better than the URL.
    if (routes_.is_cluster() && is_ready() &&
        routes_.endpoint_of(shard_, &now) && !(now == endpoint())) {
        restart_.start_after(0);
    }
}

bool ChannelSession::find(Endpoint *endpoint_p)
{
    return routes_.endpoint_of(shard_, endpoint_p);
}

void ChannelSession::greet()
{
    subscribe(subscribe_);
}

void ChannelSession::on_ready()
{
    was_ready_ = true;
    error_.clear();
    if (events_.connected) {
        const std::function<void()> connected = events_.connected;
        connected();
    }
}

void ChannelSession::on_failed(const Failure &failure)
{
    const bool was_ready = was_ready_;
    was_ready_ = false;
    restart_.stop();
    if (failure.status != LAWN_ERR_IO) {
        error_ = failure.why;
    }
    if (was_ready && events_.lost) {
        const std::function<void(const char *)> lost = events_.lost;
        lost(failure.why.c_str());
    }
}

void ChannelSession::on_message(const redisReply &reply)
{
    if (events_.message) {
        const auto message = events_.message;
        message(text_of(reply.element[1]), text_of(reply.element[2]));
    }
}

void ChannelSession::send_command(const Args &command, uint64_t timeout_us,
                                  Done done)
{
    if (!is_ready()) {
        rejected_.push_back(std::move(done));
        rejecting_.start_after(0);
        return;
    }
    send(command, timeout_us,
         [this, answer = std::move(done)](ReplyPtr reply, lawn_time_t sent) {
             on_answer(answer, reply.get(), sent);
         });
}

void ChannelSession::reject()
{
    std::vector<Done> rejected;
    rejected.swap(rejected_);
    for (const Done &i : rejected) {
        if (!is_muted_) {
            attempt([&] {
                i({LAWN_ERR_IO, "the connection is lost", nullptr, 0});
            });
        }
    }
}

void ChannelSession::on_answer(const Done &done, const redisReply *reply,
                               lawn_time_t sent)
{
    Answer answer = {LAWN_OK, "", reply, sent};
    std::string error;
    if (!reply) {
        answer.status = LAWN_ERR_IO;
        answer.error = "the connection was lost";
    } else if (is_error(reply)) {
        error = line_of(text_of(reply));
        answer = {status_of_error(text_of(reply)), error.c_str(), nullptr,
                  sent};
        if (is_misplaced(error)) {
            routes_.on_moved(error, endpoint());
            restart_.start_after(0);
        }
    }
    if (!is_muted_) {
        done(answer);
    }
}

ChannelHandle::ChannelHandle(Channels &channels, ChannelSession *session)
    : channels_(channels), session_(session)
{
}

ChannelHandle::~ChannelHandle()
{
    channels_.remove(session_);
}

bool ChannelHandle::is_connected() const
{
    return session_->is_ready();
}

const std::string &ChannelHandle::error() const
{
    return session_->error();
}

void ChannelHandle::send(const Args &command, uint64_t timeout_us, Done done)
{
    session_->send_command(command, timeout_us, std::move(done));
}

Channels::Channels(Setup &setup, Routes &routes)
    : setup_(setup), routes_(routes),
      sweep_timer_(*setup.loop, [this] { removed_.clear(); })
{
}

std::unique_ptr<Channel> Channels::open(unsigned shard,
                                        std::vector<std::string> subscribe,
                                        Channel::Events events)
{
    auto session = std::make_unique<ChannelSession>(
        setup_, routes_, shard, std::move(subscribe), std::move(events));
    ChannelSession *const channel = session.get();
    auto handle = std::make_unique<ChannelHandle>(*this, channel);
    sessions_[channel] = std::move(session);
    channel->start();
    return handle;
}

void Channels::remove(ChannelSession *channel)
{
    const auto found = sessions_.find(channel);
    if (found == sessions_.end()) {
        return; // there was no memory to open it
    }
    channel->mute();
    removed_.insert(sessions_.extract(found)); // allocates nothing
    sweep_timer_.start_after(0);
}

void Channels::check_endpoints()
{
    for (const auto &i : sessions_) {
        i.first->check_endpoint();
    }
}

} // namespace lawn::durable
