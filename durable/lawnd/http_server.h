// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The small HTTP/1.1 server for metrics and health, on the loop of the daemon.
//
//     HttpServer server(loop, "127.0.0.1:9464", answer);
//
// It answers GET and HEAD, one request for each connection. It is for a network
// that one trusts: there is no TLS and no password. Still no client can harm
// the daemon: a request has 4 KiB at most, a client has five seconds for all of
// it, and when there are too many clients, the oldest is dropped.
#ifndef LAWND_HTTP_SERVER_H
#define LAWND_HTTP_SERVER_H

#include "src/loop.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lawnd
{

struct HttpAnswer {
    unsigned status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body;
};

// Answers a request, now or later, once. If the client is gone meanwhile, the
// answer goes nowhere. Not after the server has been destroyed.
using HttpReply = std::function<void(const HttpAnswer &)>;

// Is given a path, which begins with '/', without its query.
using HttpHandler = std::function<void(std::string_view path, HttpReply reply)>;

struct HttpLimits {
    unsigned clients = 32;
    size_t request_bytes = 4096;
    uint64_t timeout_us = 5000000;
};

class HttpServer final : private lawn::durable::Watched
{
public:
    // Listens on "host:port", "[IPv6 address]:port" or ":port", which is the
    // port of all addresses. Port 0 is any that is free. `loop` must
    // outlive the server. Throws std::runtime_error with one line.
    HttpServer(lawn::durable::Loop &loop, const std::string &address,
               HttpHandler handler, const HttpLimits &limits = HttpLimits());
    ~HttpServer();
    HttpServer(const HttpServer &) = delete;
    HttpServer &operator=(const HttpServer &) = delete;

    // The address that it listens on, as "127.0.0.1:9464".
    const std::string &address() const
    {
        return address_;
    }

    size_t clients() const
    {
        return clients_.size();
    }

private:
    class Client;

    void on_events(uint32_t events) override;
    void flush() override;
    void answer(uint64_t number, const HttpAnswer &answer);
    void drop(uint64_t number);

    lawn::durable::Loop &loop_;
    HttpHandler handler_;
    HttpLimits limits_;
    int fd_ = -1;
    lawn::durable::Timer resume_; // accepting, after a pause
    std::string address_;
    uint64_t next_number_ = 0;
    std::map<uint64_t, std::unique_ptr<Client>> clients_; // the oldest first
    std::map<uint64_t, std::unique_ptr<Client>> dropped_; // until the flush
};

} // namespace lawnd

#endif
