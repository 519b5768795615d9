// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See http_target.h.

#include "http_target.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace lawn_test
{

void forget_proxies()
{
    for (const char *const name : {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                   "all_proxy", "ALL_PROXY"}) {
        unsetenv(name);
    }
}

HttpTarget::HttpTarget(Handler handler) : handler_(std::move(handler))
{
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto *const generic = reinterpret_cast<sockaddr *>(&address);
    listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listen_fd_, generic, length), 0);
    EXPECT_EQ(listen(listen_fd_, 256), 0);
    EXPECT_EQ(getsockname(listen_fd_, generic, &length), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
}

HttpTarget::~HttpTarget()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        has_ended_ = true;
        shutdown(listen_fd_, SHUT_RDWR);
        for (const int fd : fds_) {
            shutdown(fd, SHUT_RDWR);
        }
    }
    changed_.notify_all();
    acceptor_.join();
    for (std::thread &thread : threads_) {
        thread.join();
    }
    close(listen_fd_);
}

HttpReaction HttpTarget::status(unsigned status, const std::string &headers)
{
    return {"HTTP/1.1 " + std::to_string(status) + " Text\r\n" + headers +
                "Content-Length: 2\r\n\r\nok",
            false, false};
}

std::string HttpTarget::url(const std::string &path) const
{
    return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<HttpRequest> HttpTarget::requests()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
}

unsigned HttpTarget::connections()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return connections_;
}

unsigned HttpTarget::most_at_once()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return most_at_once_;
}

void HttpTarget::hold()
{
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_released_ || has_ended_; });
}

void HttpTarget::release()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_released_ = true;
    }
    changed_.notify_all();
}

void HttpTarget::accept_all()
{
    for (;;) {
        const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
        const int error = errno;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (fd < 0 && error == EMFILE && !has_ended_) {
            continue; // a test has the process do without descriptors
        }
        if (has_ended_ || fd < 0) {
            if (fd >= 0) {
                close(fd);
            }
            return;
        }
        ++connections_;
        fds_.insert(fd);
        threads_.emplace_back([this, fd] { serve(fd); });
    }
}

void HttpTarget::serve(int fd)
{
    std::string buffer;
    HttpRequest request;
    bool is_open = true;
    while (is_open && read_request(fd, &buffer, &request)) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            requests_.push_back(request);
            most_at_once_ = std::max(most_at_once_, ++at_once_);
        }
        const HttpReaction reaction = handler_(request);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            --at_once_;
        }
        is_open = react(fd, reaction);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    fds_.erase(fd);
    close(fd);
}

bool HttpTarget::read_request(int fd, std::string *buffer, HttpRequest *request)
{
    *request = {};
    size_t body_begin = std::string::npos;
    size_t body_size = 0;
    for (;;) {
        const size_t end = buffer->find("\r\n\r\n");
        if (body_begin == std::string::npos && end != std::string::npos) {
            body_begin = end + 4;
            size_t begin = buffer->find("\r\n");
            request->line = buffer->substr(0, begin);
            while (begin < end) {
                begin += 2;
                const size_t next = buffer->find("\r\n", begin);
                const std::string line = buffer->substr(begin, next - begin);
                const size_t colon = line.find(": ");
                std::string name = line.substr(0, colon);
                std::transform(
                    name.begin(), name.end(), name.begin(), [](char c) {
                        return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32)
                                                    : c;
                    });
                request->headers[name] =
                    colon == std::string::npos ? "" : line.substr(colon + 2);
                begin = next;
            }
            body_size = strtoul(request->headers["content-length"].c_str(),
                                nullptr, 10);
        }
        if (body_begin != std::string::npos &&
            buffer->size() >= body_begin + body_size) {
            request->body = buffer->substr(body_begin, body_size);
            buffer->erase(0, body_begin + body_size);
            return true;
        }
        char bytes[4096];
        const ssize_t count = recv(fd, bytes, sizeof(bytes), 0);
        if (count <= 0) {
            return false;
        }
        buffer->append(bytes, static_cast<size_t>(count));
    }
}

// False: the connection is to be closed.
bool HttpTarget::react(int fd, const HttpReaction &reaction)
{
    do {
        size_t sent = 0;
        while (sent < reaction.bytes.size()) {
            const ssize_t count =
                send(fd, reaction.bytes.data() + sent,
                     reaction.bytes.size() - sent, MSG_NOSIGNAL);
            if (count <= 0) {
                return false;
            }
            sent += static_cast<size_t>(count);
        }
    } while (reaction.for_ever);
    return !reaction.then_close;
}

} // namespace lawn_test
