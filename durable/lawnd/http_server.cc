// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Reads until the empty line that ends the head of a request, answers, and
// closes. A body is not read.

#include "http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace lawnd
{

using lawn::durable::Loop;
using lawn::durable::Timer;

namespace
{

constexpr uint64_t accept_pause_us = 100000;

const char *reason_of(unsigned status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    default:
        return "Unknown";
    }
}

std::string response_of(const HttpAnswer &answer, bool has_body)
{
    std::string text =
        "HTTP/1.1 " + std::to_string(answer.status) + " " +
        reason_of(answer.status) + "\r\nContent-Type: " + answer.type +
        "\r\nContent-Length: " + std::to_string(answer.body.size()) +
        "\r\nConnection: close\r\n";
    text += answer.status == 405 ? "Allow: GET, HEAD\r\n\r\n" : "\r\n";
    return has_body ? text + answer.body : text;
}

HttpAnswer refusal(unsigned status)
{
    return {status, HttpAnswer().type, std::string(reason_of(status)) + "\n"};
}

struct Request {
    unsigned refusal = 0; // a status, or 0
    bool has_body = true; // not for HEAD
    std::string_view path;
};

Request parse(std::string_view head)
{
    const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
    const size_t method_end = line.find(' ');
    const size_t target_end = line.rfind(' ');
    if (method_end == std::string_view::npos || method_end == target_end ||
        line.substr(target_end + 1, 7) != "HTTP/1.") {
        return {400, true, {}};
    }
    const std::string_view method = line.substr(0, method_end);
    std::string_view path =
        line.substr(method_end + 1, target_end - method_end - 1);
    path = path.substr(0, path.find('?'));
    if (method != "GET" && method != "HEAD") {
        return {405, true, {}};
    }
    const bool is_path = !path.empty() && path.front() == '/' &&
                         path.find(' ') == std::string_view::npos;
    return {is_path ? 0U : 400U, method == "GET", path};
}

struct AddressList {
    ~AddressList()
    {
        if (first) {
            freeaddrinfo(first);
        }
    }
    addrinfo *first = nullptr;
};

std::string text_of(const sockaddr *address, socklen_t length)
{
    char host[NI_MAXHOST];
    char port[NI_MAXSERV];
    if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return "an unknown address";
    }
    return strchr(host, ':') ? "[" + std::string(host) + "]:" + port
                             : std::string(host) + ":" + port;
}

std::string bound_address(int fd)
{
    sockaddr_storage storage = {};
    socklen_t length = sizeof(storage);
    auto *const address = reinterpret_cast<sockaddr *>(&storage);
    getsockname(fd, address, &length);
    return text_of(address, length);
}

// A socket, or -1 and errno.
int listen_at(const sockaddr *address, socklen_t length)
{
    const int fd = socket(address->sa_family,
                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    const int no = 0;
    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
        (address->sa_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) == 0) &&
        bind(fd, address, length) == 0 && listen(fd, 64) == 0) {
        return fd;
    }
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return -1;
}

// -1: the machine has no IPv6.
int listen_on_any(uint16_t port)
{
    sockaddr_in6 any = {};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    return listen_at(reinterpret_cast<const sockaddr *>(&any), sizeof(any));
}

int listen_on(const std::string &address)
{
    const size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    const std::string port =
        colon == std::string::npos ? "" : address.substr(colon + 1);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string::npos) {
        host = "["; // an IPv6 address needs brackets
    }
    if (port.empty() || port.size() > 5 || host == "[" ||
        port.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(port) > 65535) {
        throw std::runtime_error("not HOST:PORT: '" + address + "'");
    }
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    AddressList list;
    if (host.empty()) { // a socket for IPv6 takes IPv4, too
        const int fd = listen_on_any(static_cast<uint16_t>(std::stoul(port)));
        if (fd >= 0) {
            return fd;
        }
    }
    const int failure = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                    port.c_str(), &hints, &list.first);
    if (failure != 0) {
        throw std::runtime_error("cannot listen on '" + address +
                                 "': " + gai_strerror(failure));
    }
    int error = 0;
    for (const addrinfo *at = list.first; at; at = at->ai_next) {
        const int fd = listen_at(at->ai_addr, at->ai_addrlen);
        if (fd >= 0) {
            return fd;
        }
        error = errno;
    }
    throw std::runtime_error("cannot listen on '" + address +
                             "': " + strerror(error));
}

} // namespace

class HttpServer::Client final : private lawn::durable::Watched
{
public:
    Client(HttpServer &server, int fd, uint64_t number)
        : server_(server), fd_(fd), number_(number),
          timer_(server.loop_, [this] { server_.drop(number_); })
    {
        timer_.start_after(server.limits_.timeout_us);
    }

    ~Client()
    {
        stop();
    }

    bool start()
    {
        return server_.loop_.watch(fd_, this, EPOLLIN);
    }

    void answer(const HttpAnswer &answer)
    {
        if (fd_ >= 0 && out_.empty()) {
            out_ = response_of(answer, has_body_);
            if (!write()) {
                server_.drop(number_);
            }
        }
    }

    // Closes the connection. The object may be destroyed later.
    void stop()
    {
        if (fd_ >= 0) {
            server_.loop_.forget(fd_, this);
            close(fd_);
            fd_ = -1;
        }
        timer_.stop();
    }

private:
    void on_events(uint32_t /*events*/) override
    {
        if (fd_ >= 0 && !(out_.empty() ? read() : write())) {
            server_.drop(number_);
        }
    }

    void flush() override
    {
    }

    // False: the connection has ended.
    bool read()
    {
        char buffer[4096];
        const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
        if (count < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (count == 0) {
            // It may have sent all that it wants to, and still read. What comes
            // now is that it is gone.
            const bool may_read = is_asked_ && !has_ended_;
            has_ended_ = true;
            return may_read && server_.loop_.watch(fd_, this, 0);
        }
        if (is_asked_) {
            return true; // the answer is under way
        }
        in_.append(buffer, static_cast<size_t>(count));
        const size_t end = std::min(in_.find("\r\n\r\n"), in_.find("\n\n"));
        if (std::min(end, in_.size()) > server_.limits_.request_bytes) {
            answer(refusal(431));
        } else if (end != std::string::npos) {
            is_asked_ = true;
            const Request request = parse(std::string_view(in_).substr(0, end));
            has_body_ = request.has_body;
            if (request.refusal != 0) {
                answer(refusal(request.refusal));
            } else {
                server_.handler_(request.path,
                                 [server = &server_,
                                  number = number_](const HttpAnswer &given) {
                                     server->answer(number, given);
                                 });
            }
        }
        return true;
    }

    // False: all is sent, or cannot be sent.
    bool write()
    {
        while (sent_ < out_.size()) {
            const ssize_t count = send(fd_, out_.data() + sent_,
                                       out_.size() - sent_, MSG_NOSIGNAL);
            if (count < 0) {
                return (errno == EAGAIN || errno == EINTR) &&
                       server_.loop_.watch(fd_, this, EPOLLOUT);
            }
            sent_ += static_cast<size_t>(count);
        }
        // Without this, what the client has sent and nobody has read would
        // reset the connection, and the client might lose the answer.
        shutdown(fd_, SHUT_WR);
        // But a client must not keep the daemon by sending on and on.
        char rest[4096];
        for (int i = 0; i < 16 && recv(fd_, rest, sizeof(rest), 0) > 0; ++i) {
        }
        return false;
    }

    HttpServer &server_;
    int fd_;
    uint64_t number_;
    Timer timer_;
    bool is_asked_ = false;
    bool has_ended_ = false; // sends no more
    bool has_body_ = true;
    std::string in_;
    std::string out_;
    size_t sent_ = 0;
};

HttpServer::HttpServer(Loop &loop, const std::string &address,
                       HttpHandler handler, const HttpLimits &limits)
    : loop_(loop), handler_(std::move(handler)), limits_(limits),
      fd_(listen_on(address)),
      resume_(loop, [this] { loop_.watch(fd_, this, EPOLLIN); }),
      address_(bound_address(fd_))
{
    if (!loop_.watch(fd_, this, EPOLLIN)) {
        close(fd_);
        throw std::runtime_error("cannot watch the socket of '" + address +
                                 "'");
    }
}

HttpServer::~HttpServer()
{
    clients_.clear();
    dropped_.clear();
    loop_.forget(fd_, this);
    close(fd_);
}

void HttpServer::on_events(uint32_t /*events*/)
{
    for (;;) {
        const int fd =
            accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE) &&
            !clients_.empty()) {
            drop(clients_.begin()->first); // or the socket stays readable
            continue;
        }
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                errno == ENOMEM) {
                // The socket stays readable, so the loop would not sleep.
                loop_.watch(fd_, this, 0);
                resume_.start_after(accept_pause_us);
            }
            return;
        }
        if (clients_.size() >= limits_.clients) {
            drop(clients_.begin()->first);
        }
        const uint64_t number = next_number_++;
        const auto [at, is_new] = clients_.emplace(
            number, std::make_unique<Client>(*this, fd, number));
        if (!at->second->start()) {
            drop(number);
        }
    }
}

void HttpServer::answer(uint64_t number, const HttpAnswer &answer)
{
    const auto at = clients_.find(number);
    if (at != clients_.end()) {
        at->second->answer(answer);
    }
}

// The client may be the caller, so it is destroyed later.
void HttpServer::drop(uint64_t number)
{
    const auto at = clients_.find(number);
    if (at != clients_.end()) {
        at->second->stop();
        dropped_[number] = std::move(at->second);
        clients_.erase(at);
        loop_.mark(this);
    }
}

void HttpServer::flush()
{
    dropped_.clear();
}

} // namespace lawnd
