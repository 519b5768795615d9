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
            peer->claims |= contains(text, "lawn_release");
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

// The connection that reads is cut while what was taken over is on its way.
// That arrives after the client has given it back, or after a while, as a
// client that is right does not.
class CutWhileItTakes
{
public:
    CutWhileItTakes(std::atomic<bool> *is_cut, std::atomic<bool> *is_given_back)
        : is_cut_(*is_cut), is_given_back_(*is_given_back)
    {
    }

    bool operator()(Peer *peer)
    {
        if (contains(Between::requests(peer), "lawn_release")) {
            is_given_back_ = true;
        }
        if (peer->is_closed || (is_taken_ && !peer->is_first && !is_cut_)) {
            is_cut_ = true;
            return false;
        }
        const ssize_t got = Between::keep_replies(peer);
        if (!is_taken_ && contains(peer->replies, "left")) {
            is_taken_ = true;
            peer->takes = true;
            peer->since = Clock::now();
        }
        const bool is_held = peer->takes && !is_given_back_ &&
                             Clock::now() < peer->since + longest_hold;
        if (!is_held) {
            Between::pass_replies(peer);
        }
        return got != 0;
    }

private:
    static constexpr auto longest_hold = std::chrono::milliseconds(300);
    bool is_taken_ = false;
    std::atomic<bool> &is_cut_;
    std::atomic<bool> &is_given_back_;
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
// it has sent the entry of "late" to it. Until then the client gets no answer
// to XPENDING. `empty` counts the answers that show nothing.
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
        // It may also get the reply to what it asked before it was closed.
        if (peer->is_closed && !peer->is_first) {
            has_come_ |= contains(peer->replies, "late");
            return got != 0 && !has_come_;
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

// Passes on an error of a read when it is told to. Redis before 7.2 says
// UNBLOCKED to a blocked reader where later ones say WRONGTYPE.
class LateError
{
public:
    LateError(std::atomic<bool> *is_held, const std::atomic<bool> &may_pass)
        : is_held_(is_held), may_pass_(may_pass)
    {
    }

    bool operator()(Peer *peer)
    {
        Between::requests(peer);
        const ssize_t got = Between::keep_replies(peer);
        const std::string old = "-UNBLOCKED the stream key no longer exists";
        const std::string error = "-WRONGTYPE a key of another type";
        const size_t at = peer->replies.find(old);
        if (at != std::string::npos) {
            peer->replies.replace(at, old.size(), error);
        }
        const bool is_error = !peer->is_first && !may_pass_ &&
                              contains(peer->replies, "-WRONGTYPE");
        *is_held_ = *is_held_ || is_error;
        if (!is_error) {
            Between::pass_replies(peer);
        }
        return got != 0 && !peer->is_closed;
    }

private:
    std::atomic<bool> *const is_held_;
    const std::atomic<bool> &may_pass_;
};

// While it opens, it asks for what it was given before, and takes over what
// others have left. Neither may find what the other has on its way.
TEST_F(DurableConsumer, WhatAConsumerTakesOverComesOnce)
{
    leave("left");
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

TEST_F(DurableConsumer, WhatIsBeingTakenOverIsNotGivenBack)
{
    leave("left");
    std::atomic<bool> is_cut{false};
    std::atomic<bool> is_given_back{false};
    const Between order(*server, CutWhileItTakes(&is_cut, &is_given_back));
    clients.push_back(std::make_unique<Client>(order.url()));
    Taker taker(clients.back().get());
    taker.answer = nullptr;
    taker.open();
    run_until([&] { return taker.count("left") > 0; });
    start("last", 0);
    run_until([&] { return taker.count("last") > 0; });
    EXPECT_EQ(taker.taken.size(), 2U);
    EXPECT_TRUE(is_cut);
    EXPECT_FALSE(is_given_back) << "and another consumer could have got it";
    taker.close();
    clients.pop_back();
}

// Shard 1 is joined late, and must be asked what it has for the consumer. Just
// then a read of the others fails.
TEST_F(DurableConsumer, AReadThatFailsWhenAShardIsJoinedLateIsNotTheLast)
{
    start_many(1); // makes the namespace
    server->command({"DEL", "{test:1}:out"});
    server->command({"SET", "{test:1}:out", "text"});
    std::atomic<bool> is_held{false};
    std::atomic<bool> may_pass{false};
    const Between order(*server, LateError(&is_held, may_pass));
    clients.push_back(std::make_unique<Client>(order.url()));
    Taker late(clients.back().get());
    late.open();
    run_until([&] { return lawn_durable_error(*clients.back()) != nullptr; });
    const auto blocked = [&] {
        return contains(server->command({"CLIENT", "LIST"}).string,
                        "cmd=xreadgroup");
    };
    run_until(blocked);
    server->command({"DEL", "{test:1}:out"});
    run_until([&] {
        return server->command({"EXISTS", "{test:1}:out"}).integer == 1;
    });
    server->command({"DEL", "{test:0}:out"});
    server->command({"SET", "{test:0}:out", "text"});
    run_until([&] { return is_held.load(); });
    run_for(std::chrono::milliseconds(20));
    may_pass = true;
    server->command({"DEL", "{test:0}:out"});
    start_many(60);
    run_until([&] { return late.count_ids() == 60; });
    late.close();
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
    run_until([&] { return empty >= 4; }); // of each shard; and earlier ones
    start("late", 0);
    run_until([&] { return unacknowledged("lawn") == 1 && is_given_back(); });
    EXPECT_EQ(pending(3), 0); // times that it was delivered
    EXPECT_EQ(closing.taken.size(), 1U);
    closing.close();
    clients.pop_back();
}

} // namespace
