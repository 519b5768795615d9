// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Delivery by HTTP: posts payloads to targets with libcurl, on the loop of the
// daemon. A target is a scheme, a host and a port. Each has a share of the
// posts that are made at the same time (share.h), and a short queue. What finds
// no room, or waits for too long, is deferred. So a target that is slow or
// hangs holds up nobody else.

#ifndef LAWND_DELIVERY_H
#define LAWND_DELIVERY_H

#include "outcome.h"
#include "share.h"
#include "src/loop.h"

#include <curl/curl.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>

namespace lawnd
{

using Finished = std::function<void(const Outcome &)>;

struct Post {
    std::string url;
    std::string id;
    uint64_t generation;
    unsigned attempt;
    int64_t due_us;
    std::string_view payload; // the caller's, until `finished` is called
    Finished finished;        // called once, never from within submit()
};

class Delivery final : private lawn::durable::Watched
{
public:
    // `loop` must outlive it. Throws std::runtime_error.
    Delivery(lawn::durable::Loop &loop, const DeliveryLimits &limits);
    // Forgets what is under way without calling anybody.
    ~Delivery();
    Delivery(const Delivery &) = delete;
    Delivery &operator=(const Delivery &) = delete;

    void submit(Post post);

    // Is called when a target has had no answer in time, and when it has again.
    std::function<void(const std::string &target, bool is_silent)> told;

    // Defers what waits, and what is submitted from now on. Posts under way go
    // on to their end.
    void drain();

    size_t posting() const
    {
        return active_.size();
    }
    size_t waiting() const
    {
        return waiting_;
    }
    size_t targets() const // with work
    {
        return targets_.size() - idle_.size();
    }
    size_t silent() const // targets
    {
        return silent_;
    }

private:
    struct Target;
    struct Active;
    struct Queued {
        Post post;
        lawn_time_t since;
    };

    void on_events(uint32_t events) override;
    void flush() override
    {
    }

    Target *target_of_name(const std::string &name);
    bool may_post(const Target &target) const;
    void begin(Post post, Target *target);
    void end(CURL *easy, CURLcode code);
    Outcome judge(Active &active, CURLcode code);
    void answer_later(Finished finished, Outcome outcome);
    void answer_all();
    Outcome deferred(const char *why, Target *target = nullptr);
    void note_end(Target *target, CURLcode code, const Outcome &outcome);
    void release(Target *target);
    void forget(Target *target);
    void advance();
    void defer_old();
    void defer_queue(Target *target, lawn_time_t before);
    void act(curl_socket_t fd, int mask);
    static int on_socket(CURL *easy, curl_socket_t fd, int what, void *self,
                         void *socket);
    static int on_timer(CURLM *multi, long msec, void *self);
    static size_t on_answer(char *data, size_t size, size_t count, void *room);
    static int on_request(void *active, char *to, char *from, int to_port,
                          int from_port);
    static curl_socket_t on_open_socket(void *active, curlsocktype purpose,
                                        curl_sockaddr *address);

    lawn::durable::Loop &loop_;
    DeliveryLimits limits_;
    CURLM *multi_ = nullptr;
    int epoll_fd_ = -1; // has the sockets of libcurl
    lawn::durable::Timer timer_;
    lawn::durable::Timer sweep_;
    lawn::durable::Timer answer_timer_;
    std::map<std::string, std::unique_ptr<Target>> targets_;
    std::list<Target *> idle_; // those without work, the oldest first
    Posts posts_;
    size_t silent_ = 0;
    std::map<CURL *, std::unique_ptr<Active>> active_;
    std::deque<std::pair<Finished, Outcome>> answers_;
    size_t waiting_ = 0;
    bool is_draining_ = false;
    std::minstd_rand random_{std::random_device{}()};
};

} // namespace lawnd

#endif
