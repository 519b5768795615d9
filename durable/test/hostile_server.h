// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A server of the test's own, which answers as a store that is well does, or
// what the test wants.

#ifndef LAWN_TEST_DURABLE_HOSTILE_SERVER_H
#define LAWN_TEST_DURABLE_HOSTILE_SERVER_H

#include "resp.h"

#include "src/script.h"
#include "src/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lawn_test
{

using resp::bulk;
using resp::hello;

// Generation 1, due and now 2, not repeated, pending.
inline std::string good_start()
{
    const double numbers[] = {1, 2, 2};
    std::string text(sizeof(numbers), '\0');
    memcpy(&text[0], numbers, sizeof(numbers));
    return text + '\0' + '\1';
}

// What a server that is well answers, as far as these tests ask.
inline std::string good_reply(const std::vector<std::string> &words)
{
    const std::string name = words.size() > 1 ? words[1] : "";
    if (words[0] == "HELLO") {
        return hello("standalone");
    }
    if (words[0] == "TIME") {
        return "*2\r\n" + bulk("1700000000") + bulk("5");
    }
    if (name == "lawn_count") {
        return ":3\r\n";
    }
    if (name == "lawn_version") {
        return ":" + std::to_string(lawn::durable::script_version) + "\r\n";
    }
    if (name == "lawn_open") {
        return "*6\r\n:4\r\n:0\r\n:0\r\n:1\r\n:1\r\n" + bulk("");
    }
    if (name == "lawn_start") {
        const size_t starts = (words.size() - 4 - std::stoul(words[2])) / 3;
        std::string reply = "*" + std::to_string(starts) + "\r\n";
        for (size_t i = 0; i < starts; ++i) {
            reply += bulk(good_start());
        }
        return reply;
    }
    if (name == "lawn_stop") {
        return "*2\r\n:5\r\n:1\r\n";
    }
    if (name == "lawn_get") {
        return "*3\r\n:0\r\n:1700000000000000\r\n" + bulk("");
    }
    return ":1\r\n";
}

// "WAIT", "lawn_stop a": the first id only.
inline std::string in_short(const std::vector<std::string> &words)
{
    if (words.size() < 4 || words[0] != "FCALL") {
        return words[0];
    }
    // Behind the keys is the number of shards.
    const size_t id = 4 + std::stoul(words[2]);
    return words[1] + (id < words.size() ? " " + words[id] : "");
}

inline const std::string bad_replies[] = {
    "",
    "garbage\r\n",
    std::string("\0\0\0\0", 4),
    "*1000000000\r\n",
    "*2147483648\r\n",
    "*9223372036854775807\r\n",
    "*-2\r\n",
    "$9223372036854775807\r\n",
    "$99999999999999999999\r\n",
    "$-2\r\n",
    "$100000000\r\nshort",
    ":\r\n",
    ":99999999999999999999\r\n",
    ":-1\r\n",
    ":0\r\n",
    ":9223372036854775807\r\n",
    "+OK\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "*5\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
    "*5\r\n:-1\r\n:-1\r\n:-1\r\n:-1\r\n:-1\r\n",
    "*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n",
    "*5\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
    "*2\r\n:6\r\n:1\r\n",
    "*2\r\n:77\r\n:1\r\n",
    "*3\r\n:1\r\n:1\r\n$3\r\nabc\r\n",
    "*3\r\n:1\r\n:1\r\n" + bulk(std::string(30, '\xff')),
    "*3\r\n:3\r\n:1\r\n" + bulk(std::string(30, '\xff')),
    "-\r\n",
    "-ERR\r\n",
    "-ERR " + std::string(100000, 'x') + "\r\n",
    "-ERR \x01\x02\x7f\r\n",
    "-MOVED 1 nowhere:1\r\n",
    "-MOVED\r\n",
    "-ASK 99999 :\r\n",
    "-READONLY\r\n",
    "-LOADING\r\n",
    "-TRYAGAIN\r\n",
    "-LAWN\r\n",
    "-LAWN FULL\r\n",
    "-ERR Function not found\r\n",
    "-NOAUTH\r\n",
    "%1\r\n+a\r\n+b\r\n",
    "_\r\n",
    "#t\r\n",
    "$28\r\n# Cluster\r\ncluster_enabled:1\r\n",
    "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n",
    ":1\r\n:1\r\n:1\r\n",
    "*3\r\n$5\r\nslave\r\n:0\r\n:0\r\n",
};

// Serves all connections on a unix socket, or on a port of loopback.
class HostileServer
{
public:
    // May change the reply to a command; "" says nothing, until say(). Called
    // by the server's thread.
    using Change = std::function<void(const std::vector<std::string> &command,
                                      std::string *reply)>;

    explicit HostileServer(bool has_port = false)
    {
        if (has_port) {
            listen_on_port();
        } else {
            listen_on_path();
        }
        EXPECT_EQ(listen(fd_, 16), 0);
        thread_ = std::thread([this] { run(); });
    }
    ~HostileServer()
    {
        is_ending_ = true;
        thread_.join();
        close(fd_);
        if (port_ == 0) {
            unlink(path().c_str());
            rmdir(directory_.c_str());
        }
    }
    HostileServer(const HostileServer &) = delete;
    HostileServer &operator=(const HostileServer &) = delete;

    std::string path() const
    {
        return directory_ + "/socket";
    }
    // As redirections name it.
    std::string address() const
    {
        return "127.0.0.1:" + std::to_string(port_);
    }
    int port() const
    {
        return port_;
    }
    // From now on, about one of `period` answers is bad; 0: none.
    void set_period(unsigned period, unsigned seed)
    {
        seed_ = seed;
        period_ = period;
    }

    // What a start is answered; "": as it should be.
    void set_start(const std::string &reply)
    {
        set_change([reply](const auto &command, std::string *to) {
            if (!reply.empty() && command.size() > 1 &&
                command[1] == "lawn_start") {
                *to = reply;
            }
        });
    }

    // What the requests for pages of lists are answered in turn.
    void set_pages(const std::vector<std::string> &replies)
    {
        set_change([replies, next = size_t{0}](const auto &command,
                                               std::string *to) mutable {
            if (command[0] == "XRANGE" || command[0] == "XREVRANGE" ||
                (command.size() > 1 && command[1] == "lawn_list")) {
                *to = replies.at(next++ % replies.size());
            }
        });
    }

    // One at a time, those of set_start() and set_pages() included.
    void set_change(const Change &change)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        change_ = change;
    }

    // Says this to whom it has said nothing.
    void say(const std::string &reply)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        saying_ = reply;
    }

    // From now on, what it answers waits for the end of this.
    void park()
    {
        is_parked_ = true;
    }
    void unpark()
    {
        is_parked_ = false;
    }

    // The commands that it was given, in short.
    std::vector<std::string> log() const
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return log_;
    }
    // Those about one timer.
    std::vector<std::string> log(const std::string &id) const
    {
        std::vector<std::string> result;
        for (const std::string &i : log()) {
            if (i == "lawn_start " + id || i == "lawn_stop " + id) {
                result.push_back(i);
            }
        }
        return result;
    }
    long count(const std::string &entry) const
    {
        const std::vector<std::string> all = log();
        return std::count(all.begin(), all.end(), entry);
    }

private:
    struct Peer {
        redisReader *reader = redisReaderCreate();
        std::string out;
        bool is_silent = false; // until say()
        std::string behind;     // what comes then
        Peer() = default;
        Peer(const Peer &) = delete;
        Peer &operator=(const Peer &) = delete;
        ~Peer()
        {
            redisReaderFree(reader);
        }
    };

    void listen_on_path()
    {
        char directory[] = "/tmp/lawn-hostile-XXXXXX";
        EXPECT_NE(mkdtemp(directory), nullptr);
        directory_ = directory;
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path().copy(address.sun_path, sizeof(address.sun_path) - 1);
        fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(
            bind(fd_, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
            0);
    }

    void listen_on_port()
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr *>(&address), size), 0);
        EXPECT_EQ(
            getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
    }

    void say_to(std::map<int, std::unique_ptr<Peer>> *peers)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto peer = peers->find(silent_to_);
        if (!saying_.empty() && peer != peers->end()) {
            peer->second->out += std::exchange(saying_, "") +
                                 std::exchange(peer->second->behind, "");
            peer->second->is_silent = false;
        }
    }

    static bool flush(int fd, Peer *peer)
    {
        const std::string out = std::exchange(peer->out, "");
        return out.empty() ||
               send(fd, out.data(), out.size(), MSG_NOSIGNAL) >= 0;
    }

    void run()
    {
        std::map<int, std::unique_ptr<Peer>> peers;
        while (!is_ending_) {
            std::vector<pollfd> fds = {{fd_, POLLIN, 0}};
            for (const auto &i : peers) {
                fds.push_back({i.first, POLLIN, 0});
            }
            ::poll(fds.data(), fds.size(), 10);
            for (const pollfd &i : fds) {
                if (i.revents != 0 && i.fd == fd_) {
                    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
                    peers[fd] = std::make_unique<Peer>();
                } else if (i.revents != 0 && !serve(i.fd, peers[i.fd].get())) {
                    close(i.fd);
                    peers.erase(i.fd);
                }
            }
            say_to(&peers);
            for (const auto &i : peers) {
                if (!is_parked_) {
                    flush(i.first, i.second.get()); // or its end is noticed
                }
            }
        }
        for (const auto &i : peers) {
            close(i.first);
        }
    }

    // The reader of replies also reads commands, which are arrays.
    bool serve(int fd, Peer *peer)
    {
        char buffer[65536];
        const ssize_t size = read(fd, buffer, sizeof(buffer));
        if (size <= 0) {
            return false;
        }
        redisReaderFeed(peer->reader, buffer, static_cast<size_t>(size));
        for (;;) {
            void *object = nullptr;
            EXPECT_EQ(redisReaderGetReply(peer->reader, &object), REDIS_OK);
            if (!object) {
                return true;
            }
            const lawn::durable::ReplyPtr command(
                static_cast<redisReply *>(object));
            std::vector<std::string> words;
            for (size_t i = 0; i < command->elements; ++i) {
                words.emplace_back(command->element[i]->str,
                                   command->element[i]->len);
            }
            std::string reply = good_reply(words);
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                log_.push_back(in_short(words));
                if (change_) {
                    change_(words, &reply);
                }
                if (reply.empty()) {
                    silent_to_ = fd;
                    peer->is_silent = true;
                }
            }
            const unsigned period = period_;
            random_.seed(seed_ += 7919);
            const bool is_bad = period != 0 && random_() % period == 0;
            if (is_bad) {
                reply = bad_replies[random_() % std::size(bad_replies)];
            }
            (peer->is_silent ? peer->behind : peer->out) += reply;
            if ((!is_parked_ && !flush(fd, peer)) ||
                (is_bad && random_() % 4 == 0)) {
                return false;
            }
        }
    }

    std::string directory_;
    int port_ = 0;
    int fd_ = -1;
    std::atomic<bool> is_parked_{false};
    std::atomic<bool> is_ending_{false};
    std::atomic<unsigned> period_{0};
    std::atomic<unsigned> seed_{0};
    std::mt19937 random_;
    mutable std::mutex mutex_;
    Change change_;
    std::vector<std::string> log_;
    std::string saying_;
    int silent_to_ = -1;
    std::thread thread_;
};

} // namespace lawn_test

#endif
