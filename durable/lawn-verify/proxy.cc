// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawn-verify proxy: the connections between the store and the processes of
// `verify`. Link N is the socket link-N.sock in the directory; all lead to
// redis.sock. The standard input says what is to be done with a link, a line
// each: `N cut`, `N hold`, `N delay MICROSECONDS`, `N free`. Its end is the end
// of the program.

#include "commands.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr size_t chunk_size = 65536;
constexpr size_t most_chunks = 64; // more than this is not read ahead

struct Link {
    int listener = -1;
    int64_t delay_us = 0;
    bool is_held = false;
};

struct Chunk {
    int64_t release_us;
    std::string bytes;
};

// One direction of a connection.
struct Pipe {
    int from = -1;
    int to = -1;
    bool is_ended = false; // nothing more comes
    std::deque<Chunk> chunks;
};

struct Connection {
    size_t link = 0;
    Pipe up;   // to the store
    Pipe down; // from it
    bool is_broken = false;
};

sockaddr_un address_of(const std::string &path)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
        fail("the path " + path + " is too long for a socket");
    }
    memcpy(address.sun_path, path.c_str(), path.size());
    return address;
}

int make_socket()
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail(std::string("socket: ") + strerror(errno));
    }
    return fd;
}

class Proxy
{
public:
    Proxy(const std::string &directory, size_t links);
    void run();

private:
    bool obey(); // false: the input has ended
    void obey(const std::string &line);
    void accept_one(size_t link);
    void receive(Connection &connection, Pipe &pipe);
    void send(Connection &connection, Pipe &pipe, int64_t now_us);
    int watch(std::vector<pollfd> &fds, int64_t now_us);
    void serve(const std::vector<pollfd> &fds);
    void drop(Connection &connection);

    const std::string store_;
    std::vector<Link> links_;
    std::list<Connection> connections_;
    std::string input_;
};

Proxy::Proxy(const std::string &directory, size_t links)
    : store_(directory + "/redis.sock"), links_(links)
{
    for (size_t i = 0; i < links; ++i) {
        const sockaddr_un address =
            address_of(directory + "/link-" + std::to_string(i) + ".sock");
        const int fd = make_socket();
        if (bind(fd, reinterpret_cast<const sockaddr *>(&address),
                 sizeof(address)) != 0 ||
            listen(fd, 64) != 0) {
            fail(std::string(address.sun_path) + ": " + strerror(errno));
        }
        links_[i].listener = fd;
    }
}

void Proxy::drop(Connection &connection)
{
    connection.is_broken = true;
    close(connection.up.from);
    close(connection.up.to);
}

void Proxy::obey(const std::string &line)
{
    std::istringstream words(line);
    size_t number = 0;
    std::string what;
    if (!(words >> number >> what) || number >= links_.size()) {
        fail("the proxy does not understand '" + line + "'");
    }
    Link &link = links_[number];
    if (what == "hold") {
        link.is_held = true;
    } else if (what == "delay") {
        words >> link.delay_us;
    } else if (what == "free") {
        link.is_held = false;
        link.delay_us = 0;
    } else if (what == "cut") {
        for (auto i = connections_.begin(); i != connections_.end();) {
            if (i->link == number) {
                drop(*i);
                i = connections_.erase(i);
            } else {
                ++i;
            }
        }
    }
}

bool Proxy::obey()
{
    char text[256];
    const ssize_t size = read(STDIN_FILENO, text, sizeof(text));
    if (size <= 0) {
        return size < 0 && errno == EINTR;
    }
    input_.append(text, static_cast<size_t>(size));
    for (size_t end; (end = input_.find('\n')) != std::string::npos;) {
        obey(input_.substr(0, end));
        input_.erase(0, end + 1);
    }
    return true;
}

void Proxy::accept_one(size_t link)
{
    const int client =
        accept4(links_[link].listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
        return;
    }
    const sockaddr_un address = address_of(store_);
    const int server = make_socket();
    if (connect(server, reinterpret_cast<const sockaddr *>(&address),
                sizeof(address)) != 0) {
        close(client);
        close(server);
        return;
    }
    fcntl(client, F_SETFL, O_NONBLOCK);
    fcntl(server, F_SETFL, O_NONBLOCK);
    Connection connection;
    connection.link = link;
    connection.up = {client, server, false, {}};
    connection.down = {server, client, false, {}};
    connections_.push_back(connection);
}

void Proxy::receive(Connection &connection, Pipe &pipe)
{
    char bytes[chunk_size];
    const ssize_t size = recv(pipe.from, bytes, sizeof(bytes), 0);
    if (size > 0) {
        pipe.chunks.push_back(
            {monotonic_now() + links_[connection.link].delay_us,
             std::string(bytes, static_cast<size_t>(size))});
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        pipe.is_ended = true;
    }
}

void Proxy::send(Connection &connection, Pipe &pipe, int64_t now_us)
{
    while (!pipe.chunks.empty() && pipe.chunks.front().release_us <= now_us) {
        std::string &bytes = pipe.chunks.front().bytes;
        const ssize_t size =
            ::send(pipe.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (size < 0) {
            connection.is_broken =
                connection.is_broken || (errno != EAGAIN && errno != EINTR);
            return;
        }
        bytes.erase(0, static_cast<size_t>(size));
        if (bytes.empty()) {
            pipe.chunks.pop_front();
        }
    }
    connection.is_broken =
        connection.is_broken || (pipe.is_ended && pipe.chunks.empty());
}

// Fills in what to wait for, in the order in which serve() looks at it. Returns
// for how long to wait at most, in milliseconds.
int Proxy::watch(std::vector<pollfd> &fds, int64_t now_us)
{
    int64_t wait_us = 1000000;
    fds.assign(1, {STDIN_FILENO, POLLIN, 0});
    for (const Link &link : links_) {
        fds.push_back({link.listener, POLLIN, 0});
    }
    const auto events = [&](const Pipe &in, const Pipe &out) {
        const bool reads = !in.is_ended && in.chunks.size() < most_chunks;
        int what = reads ? POLLIN : 0;
        if (!out.chunks.empty()) {
            const int64_t left_us = out.chunks.front().release_us - now_us;
            what |= left_us <= 0 ? POLLOUT : 0;
            wait_us = left_us > 0 ? std::min(wait_us, left_us) : wait_us;
        }
        return static_cast<short>(what);
    };
    for (const Connection &each : connections_) {
        const bool is_held = links_[each.link].is_held;
        // poll() ignores negative descriptors.
        fds.push_back({is_held ? -1 : each.up.from,
                       is_held ? short() : events(each.up, each.down), 0});
        fds.push_back({is_held ? -1 : each.down.from,
                       is_held ? short() : events(each.down, each.up), 0});
    }
    return static_cast<int>((wait_us + 999) / 1000);
}

void Proxy::serve(const std::vector<pollfd> &fds)
{
    const int64_t now_us = monotonic_now();
    size_t i = 1 + links_.size();
    for (Connection &each : connections_) {
        const short up = fds[i++].revents;
        const short down = fds[i++].revents;
        if (links_[each.link].is_held) {
            continue;
        }
        if ((up & (POLLIN | POLLHUP | POLLERR)) != 0) {
            receive(each, each.up);
        }
        if ((down & (POLLIN | POLLHUP | POLLERR)) != 0) {
            receive(each, each.down);
        }
        send(each, each.up, now_us);
        send(each, each.down, now_us);
    }
    for (auto each = connections_.begin(); each != connections_.end();) {
        if (each->is_broken) {
            drop(*each);
            each = connections_.erase(each);
        } else {
            ++each;
        }
    }
}

void Proxy::run()
{
    std::vector<pollfd> fds;
    for (;;) {
        const int wait_ms = watch(fds, monotonic_now());
        if (poll(fds.data(), fds.size(), wait_ms) < 0) {
            continue;
        }
        // The connections come first, as `fds` has them.
        serve(fds);
        for (size_t i = 0; i < links_.size(); ++i) {
            if (fds[1 + i].revents != 0) {
                accept_one(i);
            }
        }
        if (fds[0].revents != 0 && !obey()) {
            return;
        }
    }
}

} // namespace

int run_proxy(const Settings &, Arguments &arguments)
{
    const auto directory = arguments.take_text("--directory");
    const auto links = arguments.take_number("--links", 1, 100);
    arguments.finish();
    if (!directory || !links) {
        fail("proxy needs --directory and --links");
    }
    Proxy(*directory, *links).run();
    return 0;
}

} // namespace lawn_verify
