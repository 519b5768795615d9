// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A server may be hostile: a reply is limited in bytes and in elements, because
// hiredis allocates an array when it reads its length.

#include "src/socket.h"

#include "src/guard.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <new>

namespace lawn::durable
{

namespace
{

constexpr size_t max_reply_bytes = size_t{128} << 20;
constexpr size_t max_reply_elements = size_t{1} << 20;
constexpr size_t buffer_bytes = 64 << 10;
constexpr unsigned max_reads = 16; // in one poll, before others get their turn
constexpr size_t keep_out_bytes = 1 << 20;

void append_number(std::string *out, char mark, size_t number)
{
    char text[24];
    text[0] = mark;
    char *const end = std::to_chars(text + 1, text + 22, number).ptr;
    end[0] = '\r';
    end[1] = '\n';
    out->append(text, static_cast<size_t>(end + 2 - text));
}

// The functions that hiredis makes its replies with.
const redisReplyObjectFunctions &default_functions()
{
    static const redisReplyObjectFunctions functions = [] {
        redisReader *const reader = redisReaderCreate();
        if (!reader) {
            throw std::bad_alloc();
        }
        const redisReplyObjectFunctions result = *reader->fn;
        redisReaderFree(reader);
        return result;
    }();
    return functions;
}

void *create_array(const redisReadTask *task, int elements)
{
    size_t *const count = static_cast<size_t *>(task->privdata);
    if (elements < 0 ||
        static_cast<size_t>(elements) > max_reply_elements - *count) {
        return nullptr;
    }
    *count += static_cast<size_t>(elements);
    return default_functions().createArray(task, elements);
}

redisReader *create_reader(size_t *elements)
{
    static redisReplyObjectFunctions functions = [] {
        redisReplyObjectFunctions result = default_functions();
        result.createArray = create_array;
        return result;
    }();
    redisReader *const reader = redisReaderCreateWithFunctions(&functions);
    if (!reader) {
        throw std::bad_alloc();
    }
    reader->privdata = elements;
    return reader;
}

// A peer that has vanished without a word is noticed within half a minute, also
// on a connection that only listens.
void set_options(int fd)
{
    const int on = 1;
    const int idle_sec = 10;
    const int interval_sec = 5;
    const int probes = 4;
    const unsigned unanswered_msec = 30000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_sec, sizeof(idle_sec));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_sec,
               sizeof(interval_sec));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_msec,
               sizeof(unanswered_msec));
}

} // namespace

void append_count(std::string *out, size_t words)
{
    append_number(out, '*', words);
}

void append_words(std::string *out, const std::vector<std::string> &words)
{
    for (const std::string &word : words) {
        append_number(out, '$', word.size());
        out->append(word);
        out->append("\r\n", 2);
    }
}

void append_command(std::string *out, const std::vector<std::string> &words)
{
    append_count(out, words.size());
    append_words(out, words);
}

void Socket::FreeAddresses::operator()(addrinfo *addresses) const
{
    freeaddrinfo(addresses);
}

Socket::Socket(Loop &loop, Owner &owner)
    : loop_(loop), owner_(owner),
      failed_(loop, [this] { fail(LAWN_ERR_IO, failure_); })
{
}

Socket::~Socket()
{
    close();
}

void Socket::close()
{
    if (fd_ >= 0) {
        loop_.forget(fd_, this);
        ::close(fd_);
    }
    fd_ = -1;
    ++life_;
    failed_.stop();
    is_connected_ = false;
    events_ = 0;
    addresses_.reset();
    next_address_ = nullptr;
    out_.clear();
    written_ = 0;
}

void Socket::open(const Endpoint &endpoint)
{
    close();
    address_count_ = 1;
    std::string error;
    bool is_begun = false;
    if (!attempt([&] { is_begun = begin(endpoint, &error); })) {
        fail_later(no_memory);
    } else if (!is_begun) {
        fail_later(error);
    }
}

bool Socket::begin(const Endpoint &endpoint, std::string *error_p)
{
    return endpoint.port == 0
               ? connect_unix(endpoint.host, error_p)
               : look_up(endpoint, error_p) && connect_next(error_p);
}

void Socket::fail_later(std::string_view why)
{
    if (!attempt([&] { failure_ = why; })) {
        failure_ = no_memory;
    }
    failed_.start_after(0);
}

bool Socket::look_up(const Endpoint &endpoint, std::string *error_p)
{
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo *addresses = nullptr;
    const int error =
        getaddrinfo(endpoint.host.c_str(),
                    std::to_string(endpoint.port).c_str(), &hints, &addresses);
    if (error != 0) {
        *error_p = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
        return false;
    }
    addresses_.reset(addresses);
    next_address_ = addresses;
    address_count_ = 0;
    for (const addrinfo *i = addresses; i; i = i->ai_next) {
        ++address_count_;
    }
    return true;
}

bool Socket::connect_unix(const std::string &path, std::string *error_p)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        *error_p = "the path is too long";
        return false;
    }
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0 ||
        connect(fd_, reinterpret_cast<const sockaddr *>(&address),
                sizeof(address)) != 0 ||
        !watch(EPOLLIN | EPOLLOUT)) {
        *error_p = strerror(errno);
        return false;
    }
    return true;
}

bool Socket::open_next()
{
    std::string error;
    bool is_begun = false;
    return !is_connected_ && next_address_ &&
           attempt([&] { is_begun = connect_next(&error); }) && is_begun;
}

// A host may have several addresses, of which not all answer.
bool Socket::connect_next(std::string *error_p)
{
    for (; next_address_; next_address_ = next_address_->ai_next) {
        if (fd_ >= 0) {
            loop_.forget(fd_, this);
            ::close(fd_);
        }
        fd_ = socket(next_address_->ai_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd_ < 0) {
            *error_p = strerror(errno);
            continue;
        }
        set_options(fd_);
        if ((connect(fd_, next_address_->ai_addr, next_address_->ai_addrlen) ==
                 0 ||
             errno == EINPROGRESS) &&
            watch(EPOLLIN | EPOLLOUT)) {
            next_address_ = next_address_->ai_next;
            return true;
        }
        *error_p = strerror(errno);
    }
    return false;
}

bool Socket::watch(uint32_t events)
{
    events_ = events;
    return loop_.watch(fd_, this, events);
}

void Socket::fail(lawn_status_t status, std::string_view why)
{
    close();
    owner_.on_closed(status, why);
}

void Socket::send()
{
    if (is_connected_) {
        loop_.mark(this);
    }
}

void Socket::flush()
{
    while (written_ < out_.size()) {
        const ssize_t size = ::send(fd_, out_.data() + written_,
                                    out_.size() - written_, MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0 && errno != EAGAIN) {
            fail(LAWN_ERR_IO, strerror(errno));
            return;
        }
        if (size < 0) {
            break;
        }
        written_ += static_cast<size_t>(size);
    }
    const bool is_done = written_ == out_.size();
    if (is_done) {
        if (out_.capacity() > keep_out_bytes) {
            std::string().swap(out_);
        }
        out_.clear();
        written_ = 0;
    } else if (written_ > keep_out_bytes) {
        out_.erase(0, written_);
        written_ = 0;
    }
    const uint32_t events = is_done ? EPOLLIN : EPOLLIN | EPOLLOUT;
    if (events != events_ && !watch(events)) {
        fail(LAWN_ERR_IO, strerror(errno));
    }
}

void Socket::on_events(uint32_t events)
{
    const unsigned life = life_;
    try {
        if (!is_connected_) {
            on_writable();
        } else if ((events & EPOLLOUT) != 0) {
            loop_.mark(this);
        }
        if (life == life_ && is_connected_ &&
            (events & ~uint32_t{EPOLLOUT}) != 0) {
            on_readable();
        }
    } catch (const std::exception &) {
        // What was read is lost, so the order of the replies is, too.
        if (life == life_) {
            fail(LAWN_ERR_IO, no_memory);
        }
    }
}

void Socket::on_writable()
{
    int error = 0;
    socklen_t size = sizeof(error);
    sockaddr_storage address;
    socklen_t address_size = sizeof(address);
    if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        error = errno;
    }
    if (error == 0 && getpeername(fd_, reinterpret_cast<sockaddr *>(&address),
                                  &address_size) != 0) {
        if (errno == ENOTCONN) {
            return; // not yet
        }
        error = errno;
    }
    if (error != 0) {
        std::string text = strerror(error);
        if (!next_address_ || !connect_next(&text)) {
            fail(LAWN_ERR_IO, text);
        }
        return;
    }
    is_connected_ = true;
    addresses_.reset();
    next_address_ = nullptr;
    elements_ = 0;
    reply_bytes_ = 0;
    reader_.reset(create_reader(&elements_));
    loop_.mark(this); // stops waiting for EPOLLOUT
    owner_.on_connected();
}

void Socket::on_readable()
{
    static thread_local char buffer[buffer_bytes];
    const unsigned life = life_;
    for (unsigned i = 0; i < max_reads && life == life_; ++i) {
        const ssize_t size = recv(fd_, buffer, sizeof(buffer), 0);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (size < 0) {
            fail(LAWN_ERR_IO, strerror(errno));
            return;
        }
        if (size == 0) {
            fail(LAWN_ERR_IO, "the server has closed the connection");
            return;
        }
        reply_bytes_ += static_cast<size_t>(size);
        if (redisReaderFeed(reader_.get(), buffer, static_cast<size_t>(size)) !=
            REDIS_OK) {
            fail(LAWN_ERR_IO, no_memory);
            return;
        }
        if (!read_replies() || static_cast<size_t>(size) < sizeof(buffer)) {
            return;
        }
    }
}

// Returns false when the socket was closed.
bool Socket::read_replies()
{
    const unsigned life = life_;
    for (;;) {
        void *object = nullptr;
        if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
            fail(LAWN_ERR_CORRUPT, reader_->errstr);
            return false;
        }
        if (!object) {
            break;
        }
        elements_ = 0;
        reply_bytes_ = reader_->len - reader_->pos;
        owner_.on_reply(ReplyPtr(static_cast<redisReply *>(object)));
        if (life != life_) {
            return false;
        }
    }
    if (reply_bytes_ > max_reply_bytes) {
        fail(LAWN_ERR_CORRUPT, "a reply is too long");
        return false;
    }
    return true;
}

} // namespace lawn::durable
