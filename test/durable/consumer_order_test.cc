// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer has two connections. Their replies may come in any order, and the
// server may learn late that one of them is closed.

#include "consumer_fixture.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <thread>

namespace
{

using namespace lawn_test;
using Clock = std::chrono::steady_clock;

int unix_socket(const std::string &path, bool is_server)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto *const name = reinterpret_cast<const sockaddr *>(&address);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(is_server ? bind(fd, name, sizeof(address))
                        : connect(fd, name, sizeof(address)),
              0);
    EXPECT_TRUE(!is_server || listen(fd, 16) == 0);
    return fd;
}

// Passes on what a client and a server say to each other.
class Between
{
public:
    struct Peer {
        int client;
        int server;
        std::string replies; // that were not passed on
        bool is_first = false;
        bool is_closed = false; // by the client
        bool takes = false;
        bool claims = false;
        bool answers = false;
        Clock::time_point since; // the latest request, until it takes or claims
    };

    // `pass_on` is called again and again for each connection, in the order in
    // which they were made, until it returns false: then the connection is
    // closed.
    Between(const RedisServer &server, std::function<bool(Peer *)> pass_on)
        : server_(server.socket()), path_(server.directory() + "/between"),
          pass_on_(std::move(pass_on)), listener_(unix_socket(path_, true)),
          thread_([this] { run(); })
    {
    }
    ~Between()
    {
        is_ending_ = true;
        thread_.join();
        close(listener_);
        unlink(path_.c_str());
    }
    Between(const Between &) = delete;
    Between &operator=(const Between &) = delete;

    std::string url() const
    {
        return "unix:" + path_;
    }

    // The requests of the client. It has closed the connection, or not.
    static std::string requests(Peer *peer)
    {
        char buffer[65536];
        const ssize_t size =
            recv(peer->client, buffer, sizeof(buffer), MSG_DONTWAIT);
        peer->is_closed |= size == 0;
        const size_t count = size > 0 ? static_cast<size_t>(size) : 0;
        send(peer->server, buffer, count, MSG_NOSIGNAL);
        return {buffer, count};
    }

    // Keeps what the server replies; how much it is, 0 if it has closed.
    static ssize_t keep_replies(Peer *peer)
    {
        char buffer[65536];
        const ssize_t size =
            recv(peer->server, buffer, sizeof(buffer), MSG_DONTWAIT);
        peer->replies.append(buffer, size > 0 ? static_cast<size_t>(size) : 0);
        return size;
    }

    static void pass_replies(Peer *peer)
    {
        send(peer->client, peer->replies.data(), peer->replies.size(),
             MSG_NOSIGNAL);
        peer->replies.clear();
    }

private:
    void run()
    {
        std::list<Peer> peers;
        while (!is_ending_) {
            std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
            for (const Peer &peer : peers) {
                if (!peer.is_closed) {
                    fds.push_back({peer.client, POLLIN, 0});
                }
                fds.push_back({peer.server, POLLIN, 0});
            }
            ::poll(fds.data(), fds.size(), 5);
            peers.remove_if([this](Peer &peer) {
                const bool is_lost = !pass_on_(&peer);
                if (is_lost) {
                    close(peer.client);
                    close(peer.server);
                }
                return is_lost;
            });
            if (fds[0].revents != 0) {
                peers.emplace_back();
                peers.back().is_first = peers.size() == 1;
                peers.back().client =
                    accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
                peers.back().server = unix_socket(server_, false);
            }
        }
        for (const Peer &peer : peers) {
            close(peer.client);
            close(peer.server);
        }
    }

    const std::string server_;
    const std::string path_;
    const std::function<bool(Peer *)> pass_on_;
    const int listener_;
    std::atomic<bool> is_ending_{false};
    std::thread thread_;
};

using Peer = Between::Peer;

// Other connections than the first are answered after the client has asked to
// take over. What it takes over arrives only after it has claimed what it was
// given before; and what it has claimed, only after its answers were
// acknowledged. None waits for long, as a client that is right does not claim
// what it is taking over.
class WorstOrder
{
public:
    bool operator()(Peer *peer)
    {
        const std::string text = Between::requests(peer);
        if (peer->is_closed) {
            return false;
        }
        if (!text.empty()) {
            const bool had = peer->takes || peer->claims;
            peer->takes |= contains(text, "lawn_take");
            peer->claims |= contains(text, "XCLAIM");
            peer->answers |= contains(text, "lawn_answer");
            peer->since = had ? peer->since : Clock::now();
        }
        const ssize_t got = Between::keep_replies(peer);
        if (got > 0) {
            has_taken_ |= peer->takes;
            has_claimed_ |= peer->claims;
        }
        if (!is_held(*peer) && !peer->replies.empty()) {
            Between::pass_replies(peer);
            has_answered_ |= peer->answers;
        }
        return got != 0;
    }

private:
    bool is_held(const Peer &peer) const
    {
        const bool is_early = (!peer.is_first && !has_taken_) ||
                              (peer.takes && !has_claimed_) ||
                              (peer.claims && !has_answered_);
        return is_early && Clock::now() < peer.since + longest_hold;
    }

    static constexpr auto longest_hold = std::chrono::milliseconds(300);
    bool has_taken_ = false;
    bool has_claimed_ = false;
    bool has_answered_ = false;
};

size_t count_of(const std::string &text, const std::string &word)
{
    size_t count = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
        ++count;
    }
    return count;
}

// While the client stops, the server learns that a connection is closed after
// it has sent something more to it. Until then the client gets no answer to
// XPENDING. `empty` counts the answers that show nothing.
class LateClose
{
public:
    LateClose(const std::atomic<bool> &stops, std::atomic<size_t> *empty)
        : stops_(stops), empty_(empty)
    {
    }

    bool operator()(Peer *peer)
    {
        has_asked_ |= contains(Between::requests(peer), "XPENDING") && stops_;
        const ssize_t got = Between::keep_replies(peer);
        if (peer->is_first && has_asked_ && !has_come_) {
            *empty_ = count_of(peer->replies, "*0\r\n");
        }
        if (peer->is_closed && !peer->is_first) {
            has_come_ |= got > 0;
            return got < 0; // nothing yet
        }
        if (!has_asked_ || has_come_) {
            Between::pass_replies(peer);
        }
        return got != 0 && !peer->is_closed;
    }

private:
    const std::atomic<bool> &stops_;
    std::atomic<size_t> *const empty_;
    bool has_asked_ = false;
    bool has_come_ = false;
};

class DurableOrder : public Flow
{
protected:
    void end_leases()
    {
        for (int shard = 0; shard < 4; ++shard) {
            const std::string key = "{test:" + std::to_string(shard) + "}:out";
            const Reply all =
                server->command({"XPENDING", key, "lawn", "-", "+", "9"});
            for (const Reply &one : all.elements) {
                server->command({"XCLAIM", key, "lawn", one[1].string, "0",
                                 one[0].string, "IDLE", "1000000000",
                                 "JUSTID"});
            }
        }
    }
};

// While it opens, it asks for what it was given before, and takes over what
// others have left. Neither may find what the other has on its way.
TEST_F(DurableOrder, WhatAConsumerTakesOverComesOnce)
{
    add_pump(client);
    {
        Taker dead(client);
        dead.answer = nullptr;
        dead.open();
        start("left", 0);
        run_until([&] { return dead.given.size() == 1; });
    }
    end_leases();
    const Between order(*server, WorstOrder());
    clients.push_back(std::make_unique<Client>(order.url()));
    Taker taker(clients.back().get());
    taker.open();
    run_until([&] { return taker.count("left") > 0; });
    // It reads no new one before it has what it asked for.
    start("last", 0);
    run_until([&] { return taker.count("last") > 0; });
    EXPECT_EQ(taker.taken.size(), 2U);
    taker.close();
    clients.pop_back();
}

// It is given back like all that the consumer has not given to its program.
TEST_F(DurableConsumer, WhatFiresWhileItClosesWaitsForNoLease)
{
    std::atomic<bool> stops{false};
    std::atomic<size_t> empty{0};
    const Between order(*server, LateClose(stops, &empty));
    clients.push_back(std::make_unique<Client>(order.url()));
    Taker closing(clients.back().get());
    closing.open();
    start("first", 0);
    run_until([&] { return closing.answered == 1; });
    stops = true;
    lawn_durable_consumer_stop(closing.consumer);
    run_until([&] { return empty == 4; }); // of each shard
    start("late", 0);
    run_until([&] { return unacknowledged("lawn") == 1 && is_given_back(); });
    EXPECT_EQ(pending(3), 0); // times that it was delivered
    EXPECT_EQ(closing.taken.size(), 1U);
    closing.close();
    clients.pop_back();
}

} // namespace
