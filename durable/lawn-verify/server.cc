// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See server.h.

#include "server.h"

#include "common.h"

#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr int64_t patience_us = 300000000; // slow machines move slots slowly
constexpr useconds_t step_us = 10000;      // between two looks at something
constexpr int bus_above = 10000; // where a node of a cluster has its bus

sockaddr_in loopback(int port)
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
}

// Which is `port`, or any if that is 0; 0 if nobody may have it.
int try_port(int port)
{
    sockaddr_in address = loopback(port);
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto *generic = reinterpret_cast<sockaddr *>(&address);
    const bool is_free =
        bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
    close(fd);
    return is_free ? ntohs(address.sin_port) : 0;
}

} // namespace

int64_t patience_end()
{
    return monotonic_now() + patience_us;
}

void pause_between_looks()
{
    usleep(step_us);
}

std::string server_program()
{
    const char *path = getenv("LAWN_REDIS_SERVER");
    return path != nullptr && *path != '\0' ? path : "redis-server";
}

std::string cli_program()
{
    const std::string server = server_program();
    return server.substr(0, server.rfind('/') + 1) + "redis-cli";
}

// Below the ports that Linux gives to connections, which might take one before
// the server does. Runs at the same time begin at different ports, with some
// room: a port of another run may be free for as long as its server is killed.
int free_port()
{
    constexpr int first = 12000;
    constexpr int count = 10000;
    static int next = getpid() * 64 % count;
    for (int i = 0; i < count; ++i) {
        const int port = first + next;
        next = (next + 1) % count;
        if (try_port(port) != 0 && try_port(port + bus_above) != 0) {
            return port;
        }
    }
    fail("there are no free ports on 127.0.0.1");
}

Server::Server(const std::string &directory, const std::string &name, int port,
               const Words &options)
    : directory_(directory), name_(name), port_(port)
{
    const std::string own = directory + "/" + name;
    if (mkdir(own.c_str(), 0700) != 0) {
        fail("cannot make " + own + ": " + strerror(errno));
    }
    words_ = {server_program(), "--daemonize", "no", "--dir", own, "--save", "",
              "--port"};
    words_.push_back(std::to_string(port));
    if (port == 0) {
        words_.insert(words_.end(), {"--unixsocket", own + ".sock"});
    } else {
        words_.insert(words_.end(), {"--bind", "127.0.0.1"});
    }
    words_.insert(words_.end(), options.begin(), options.end());
}

void Server::start(const Words &more)
{
    Words words = words_;
    words.insert(words.end(), more.begin(), more.end());
    start_as(words);
}

void Server::start_as(const Words &words)
{
    process_.start(words, directory_ + "/" + name_ + ".log");
}

std::string Server::address() const
{
    return "127.0.0.1:" + std::to_string(port_);
}

lawn::durable::ReplyPtr Server::ask(const Words &command)
{
    const timeval limit = {1, 0};
    const std::string path = directory_ + "/" + name_ + ".sock";
    redisContext *context =
        port_ == 0 ? redisConnectUnixWithTimeout(path.c_str(), limit)
                   : redisConnectWithTimeout("127.0.0.1", port_, limit);
    if (context == nullptr) {
        return nullptr;
    }
    redisSetTimeout(context, limit);
    std::vector<const char *> words;
    std::vector<size_t> sizes;
    for (const std::string &word : command) {
        words.push_back(word.data());
        sizes.push_back(word.size());
    }
    lawn::durable::ReplyPtr reply;
    if (context->err == 0) {
        reply.reset(static_cast<redisReply *>(
            redisCommandArgv(context, static_cast<int>(words.size()),
                             words.data(), sizes.data())));
    }
    redisFree(context);
    if (reply != nullptr && reply->type == REDIS_REPLY_ERROR) {
        reply.reset();
    }
    return reply;
}

std::string Server::text_of(const Words &command)
{
    const auto reply = ask(command);
    return reply != nullptr && reply->str != nullptr
               ? std::string(reply->str, static_cast<size_t>(reply->len))
               : "";
}

bool Server::answers()
{
    return text_of({"PING"}) == "PONG";
}

void Server::await()
{
    const std::string log = directory_ + "/" + name_ + ".log";
    for (const int64_t until_us = patience_end(); !answers();) {
        if (!process_.is_running()) {
            fail("redis-server does not start; see " + log);
        }
        if (monotonic_now() > until_us) {
            fail("redis-server does not answer; see " + log);
        }
        pause_between_looks();
    }
}

std::string Server::find_ended()
{
    if (process_.is_running() || !process_.status()) {
        return "";
    }
    return name_ + " has ended with status " +
           std::to_string(*process_.status()) + "; see " + directory_ + "/" +
           name_ + ".log";
}

} // namespace lawn_verify
