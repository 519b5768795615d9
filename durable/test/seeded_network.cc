// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sockets on virtual time (seeded_network.h).

#include "seeded_network.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace lawn_test
{

namespace
{

constexpr int first_fd = 1 << 20; // no descriptor of the process

} // namespace

SeededNetwork *SeededNetwork::current = nullptr;

SeededNetwork::SeededNetwork(uint64_t seed, Server &server)
    : random_(seed), server_(server), next_fd_(first_fd)
{
    assert(!current);
    current = this;
}

SeededNetwork::~SeededNetwork()
{
    current = nullptr;
}

void SeededNetwork::at(int64_t time_us, std::function<void()> fn)
{
    events_.push_back(
        {std::max(time_us, now_us_), ++events_made_, std::move(fn)});
    std::push_heap(events_.begin(), events_.end());
}

void SeededNetwork::step(int64_t until_us)
{
    now_us_ = std::max(now_us_, events_.empty()
                                    ? until_us
                                    : std::min(until_us, events_[0].time));
    while (!events_.empty() && events_[0].time <= now_us_) {
        std::pop_heap(events_.begin(), events_.end());
        const std::function<void()> fn = std::move(events_.back().fn);
        events_.pop_back();
        fn();
    }
}

SeededNetwork::Connection *SeededNetwork::find(Number number)
{
    for (auto &[fd, connection] : connections_) {
        if (connection.number == number) {
            return &connection;
        }
    }
    return nullptr;
}

// When what is sent now arrives: behind what was sent before.
int64_t SeededNetwork::travel(int64_t *last, int64_t delay_us)
{
    const int64_t arrival =
        now_us_ + 20 + static_cast<int64_t>(random(80)) + delay_us;
    *last = std::max(*last, arrival);
    return *last;
}

void SeededNetwork::send(Number number, std::string bytes, int64_t delay_us)
{
    Connection *const c = find(number);
    if (!c || mute_.count(number) != 0) {
        return;
    }
    at(travel(&c->last_down, delay_us),
       [this, number, bytes = std::move(bytes)] {
           Connection *const to = find(number);
           if (to) {
               to->in.append(bytes);
           }
       });
}

void SeededNetwork::reset(Number number)
{
    Connection *const c = find(number);
    if (!c) {
        return;
    }
    at(travel(&c->last_down, 0), [this, number] {
        Connection *const to = find(number);
        if (to) {
            to->is_reset = true;
        }
    });
    mute(number);
    server_.on_end(number);
}

void SeededNetwork::mute(Number number)
{
    mute_.insert(number);
}

void SeededNetwork::reset_all()
{
    std::vector<Number> all;
    for (const auto &[fd, connection] : connections_) {
        if (connection.is_established) {
            all.push_back(connection.number);
        }
    }
    for (const Number number : all) {
        reset(number);
    }
}

void SeededNetwork::cut_off(int epoll)
{
    for (const auto &[fd, connection] : connections_) {
        if (connection.epoll == epoll) {
            mute(connection.number);
        }
    }
}

void SeededNetwork::heal()
{
    faults_permille = 0;
    for (auto &[fd, connection] : connections_) {
        connection.is_reset |= mute_.count(connection.number) != 0;
    }
}

int SeededNetwork::add_descriptor()
{
    connections_[next_fd_].number = ++connections_made_;
    return next_fd_++;
}

int SeededNetwork::connect(int fd)
{
    Connection *const c = &connections_.at(fd);
    c->is_open = true;
    const uint64_t kind = happens(faults_permille) ? random(3) : 3;
    if (kind == 0) {
        errno = ECONNREFUSED;
        return -1;
    }
    if (kind == 1) {
        at(now_us_ + 1, [] {});
        errno = EINPROGRESS;
        return -1; // nobody answers
    }
    const bool is_refused = kind == 2;
    at(travel(&c->last_up, 0), [this, number = c->number, is_refused] {
        Connection *const to = find(number);
        if (to && is_refused) {
            to->error = ECONNREFUSED;
        } else if (to) {
            to->is_established = true;
        }
    });
    errno = EINPROGRESS;
    return -1;
}

int SeededNetwork::error_of(int fd)
{
    return connections_.at(fd).error;
}

bool SeededNetwork::is_established(int fd)
{
    return connections_.at(fd).is_established;
}

ssize_t SeededNetwork::write(int fd, const char *bytes, size_t size)
{
    Connection *const c = &connections_.at(fd);
    if (c->is_reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (now_us_ < c->blocked_until) {
        errno = EAGAIN;
        return -1;
    }
    size_t count = size;
    if (happens(faults_permille)) {
        count = 1 + random(size);
        c->blocked_until = now_us_ + 1000;
        at(c->blocked_until, [] {});
    }
    // It arrives even if the client closes the connection meanwhile.
    at(travel(&c->last_up, 0),
       [this, number = c->number, text = std::string(bytes, count)] {
           if (mute_.count(number) == 0) {
               server_.on_bytes(number, text);
           }
       });
    return static_cast<ssize_t>(count);
}

ssize_t SeededNetwork::read(int fd, char *bytes, size_t size)
{
    Connection *const c = &connections_.at(fd);
    const size_t left = c->in.size() - c->in_read;
    if (left > 0) {
        const size_t most = happens(faults_permille) ? 1 + random(left) : left;
        const size_t count = std::min(size, most);
        memcpy(bytes, c->in.data() + c->in_read, count);
        c->in_read += count;
        if (c->in_read == c->in.size()) {
            c->in.clear();
            c->in_read = 0;
        }
        return static_cast<ssize_t>(count);
    }
    errno = c->is_reset ? ECONNRESET : EAGAIN;
    return -1;
}

bool SeededNetwork::close(int fd)
{
    const auto found = connections_.find(fd);
    if (found == connections_.end()) {
        return false;
    }
    Connection *const c = &found->second;
    const Number number = c->number;
    if (c->is_established) {
        // What was written before arrives.
        at(travel(&c->last_up, 0), [this, number] { server_.on_end(number); });
    }
    connections_.erase(found);
    return true;
}

void SeededNetwork::watch(int epoll, int fd, uint32_t events)
{
    const auto found = connections_.find(fd);
    if (found != connections_.end()) {
        found->second.epoll = epoll;
        found->second.events = events;
    }
}

uint32_t SeededNetwork::readiness(const Connection &c, int64_t now_us)
{
    uint32_t events = 0;
    if (c.error != 0 || c.is_reset) {
        events |= EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP;
    }
    if (c.in_read < c.in.size()) {
        events |= EPOLLIN;
    }
    if (c.is_established && now_us >= c.blocked_until) {
        events |= EPOLLOUT;
    }
    return events & (c.events | EPOLLERR | EPOLLHUP);
}

bool SeededNetwork::is_ready(int epoll) const
{
    return std::any_of(connections_.begin(), connections_.end(),
                       [&](const auto &i) {
                           return i.second.epoll == epoll && i.second.is_open &&
                                  readiness(i.second, now_us_) != 0;
                       });
}

int SeededNetwork::ready(int epoll, std::pair<int, uint32_t> *found, int most)
{
    int count = 0;
    for (const auto &[fd, c] : connections_) {
        const uint32_t events =
            c.epoll == epoll && c.is_open ? readiness(c, now_us_) : 0;
        if (events != 0 && count < most) {
            found[count++] = {fd, events};
        }
    }
    return count;
}

} // namespace lawn_test

using lawn_test::SeededNetwork;

namespace
{

// What a name is looked up as.
sockaddr_in the_address;
addrinfo the_only;

SeededNetwork &network()
{
    return *SeededNetwork::current;
}

} // namespace

extern "C" {

int __real_close(int fd);

// Of std::random_device: a seed decides these numbers, too.

void __wrap__ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(
    void *, const void *)
{
}

void __wrap__ZNSt13random_device7_M_finiEv(void *)
{
}

unsigned __wrap__ZNSt13random_device9_M_getvalEv(void *)
{
    return static_cast<unsigned>(network().random(1U << 31));
}

int __wrap_getaddrinfo(const char *, const char *, const addrinfo *,
                       addrinfo **result)
{
    the_address.sin_family = AF_INET;
    the_only.ai_family = AF_INET;
    the_only.ai_addr = reinterpret_cast<sockaddr *>(&the_address);
    the_only.ai_addrlen = sizeof(the_address);
    *result = &the_only;
    return 0;
}

void __wrap_freeaddrinfo(addrinfo *)
{
}

int __wrap_socket(int, int, int)
{
    return network().add_descriptor();
}

int __wrap_connect(int fd, const sockaddr *, socklen_t)
{
    return network().connect(fd);
}

int __wrap_setsockopt(int, int, int, const void *, socklen_t)
{
    return 0;
}

int __wrap_getsockopt(int fd, int, int, void *value, socklen_t *)
{
    *static_cast<int *>(value) = network().error_of(fd);
    return 0;
}

int __wrap_getpeername(int fd, sockaddr *, socklen_t *)
{
    errno = ENOTCONN;
    return network().is_established(fd) ? 0 : -1;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int)
{
    return network().write(fd, static_cast<const char *>(bytes), size);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int)
{
    return network().read(fd, static_cast<char *>(bytes), size);
}

int __wrap_close(int fd)
{
    return SeededNetwork::current && network().close(fd) ? 0 : __real_close(fd);
}

int __wrap_epoll_create1(int)
{
    return network().add_descriptor();
}

int __wrap_timerfd_create(int, int)
{
    return network().add_descriptor();
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
{
    network().watch(epoll, fd, operation == EPOLL_CTL_DEL ? 0 : event->events);
    return 0;
}

int __wrap_epoll_wait(int epoll, epoll_event *events, int most, int)
{
    std::pair<int, uint32_t> found[64];
    const int count = network().ready(epoll, found, std::min(most, 64));
    for (int i = 0; i < count; ++i) {
        events[i].data.fd = found[i].first;
        events[i].events = found[i].second;
    }
    return count;
}
}
