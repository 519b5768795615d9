// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Delivery by HTTP: posts payloads to targets with libcurl, on the loop of the
// daemon. A target is a scheme, a host and a port. Each has a limit of posts at
// the same time and a short queue. All targets together have a limit of each,
// too, and one may have a quarter of what is left of it at most: those that
// hang leave room for the others. What finds no room, or waits for too long, is
// deferred. So a slow target holds up nobody else.
//
// The answer of the target decides what becomes of the timer:
//   2xx                       done
//   408, 425, 429, 5xx        again; after Retry-After where 429 and 503 have
//                             it, a day at most
//   other 4xx                 fail: the target has refused the payload
//   3xx                       again: redirects are not followed
//   no answer, a broken one   again
//   no descriptor or memory   deferred: it is not the target's fault
//   no URL of http or https   fail

#ifndef LAWND_DELIVERY_H
#define LAWND_DELIVERY_H

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

enum class Verdict {
    done,
    again, // counts as an attempt
    defer, // was not tried
    fail
};

struct Outcome {
    Verdict verdict;
    int64_t delay_us;  // of again and defer; -1: as the timer's backoff says
    std::string error; // one printable line; empty if done
};

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

struct DeliveryLimits {
    unsigned posts_per_target = 16;
    unsigned queue_per_target = 64;
    unsigned posts = 1024; // of all targets
    unsigned queued = 512;
    uint64_t connect_timeout_us = 5000000;
    uint64_t timeout_us = 30000000; // of a post, connecting included
    uint64_t queue_timeout_us = 10000000;
    size_t answer_bytes = 65536; // of headers and body, each; more is cut off
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
    size_t targets() const
    {
        return targets_.size();
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

    bool may_post(const Target &target) const;
    bool may_wait(const Target &target) const;
    void begin(Post post, Target *target);
    void end(CURL *easy, CURLcode code);
    Outcome judge(Active &active, CURLcode code);
    void answer_later(Finished finished, Outcome outcome);
    void answer_all();
    Outcome deferred(const char *why);
    void release(Target *target);
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
    std::map<std::string, std::unique_ptr<Target>> targets_; // with work only
    std::map<CURL *, std::unique_ptr<Active>> active_;
    std::deque<std::pair<Finished, Outcome>> answers_;
    size_t waiting_ = 0;
    bool is_draining_ = false;
    std::minstd_rand random_{std::random_device{}()};
};

} // namespace lawnd

#endif
