// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A consumer has two connections, and their replies may come in any order.

#include "flow_fixture.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
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

// Between a client and a server. Other connections than the first are answered
// after the client has asked to take over. What it takes over arrives only
// after it has claimed what it was given before; and what it has claimed, only
// after its answers were acknowledged. None waits for long, as a client that is
// right does not claim what it is taking over.
class WorstOrder
{
public:
    explicit WorstOrder(const RedisServer &server)
        : server_(server.socket()), path_(server.directory() + "/order"),
          listener_(unix_socket(path_, true)), thread_([this] { run(); })
    {
    }
    ~WorstOrder()
    {
        is_ending_ = true;
        thread_.join();
        close(listener_);
    }
    WorstOrder(const WorstOrder &) = delete;
    WorstOrder &operator=(const WorstOrder &) = delete;

    std::string url() const
    {
        return "unix:" + path_;
    }

private:
    struct Peer {
        int client;
        int server;
        std::string replies; // that were not passed on
        bool is_first = false;
        bool takes = false;
        bool claims = false;
        bool answers = false;
        Clock::time_point since; // the latest request, until it takes or claims
    };

    bool is_held(const Peer &peer) const
    {
        const bool is_early = (!peer.is_first && !has_taken_) ||
                              (peer.takes && !has_claimed_) ||
                              (peer.claims && !has_answered_);
        return is_early && Clock::now() < peer.since + longest_hold;
    }

    // False: the connection is lost.
    bool pass_on(Peer *peer)
    {
        char buffer[65536];
        const ssize_t size =
            recv(peer->client, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (size == 0) {
            return false;
        }
        if (size > 0) {
            const std::string text(buffer, static_cast<size_t>(size));
            const bool had = peer->takes || peer->claims;
            peer->takes |= contains(text, "lawn_take");
            peer->claims |= contains(text, "XCLAIM");
            peer->answers |= contains(text, "lawn_answer");
            peer->since = had ? peer->since : Clock::now();
            send(peer->server, buffer, text.size(), MSG_NOSIGNAL);
        }
        const ssize_t got =
            recv(peer->server, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (got > 0) {
            peer->replies.append(buffer, static_cast<size_t>(got));
            has_taken_ |= peer->takes;
            has_claimed_ |= peer->claims;
        }
        if (!is_held(*peer) && !peer->replies.empty()) {
            send(peer->client, peer->replies.data(), peer->replies.size(),
                 MSG_NOSIGNAL);
            peer->replies.clear();
            has_answered_ |= peer->answers;
        }
        return got != 0;
    }

    void run()
    {
        std::list<Peer> peers;
        while (!is_ending_) {
            std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
            for (const Peer &peer : peers) {
                fds.push_back({peer.client, POLLIN, 0});
                fds.push_back({peer.server, POLLIN, 0});
            }
            ::poll(fds.data(), fds.size(), 5);
            peers.remove_if([this](Peer &peer) {
                const bool is_lost = !pass_on(&peer);
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

    static constexpr auto longest_hold = std::chrono::milliseconds(300);
    const std::string server_;
    const std::string path_;
    const int listener_;
    bool has_taken_ = false;
    bool has_claimed_ = false;
    bool has_answered_ = false;
    std::atomic<bool> is_ending_{false};
    std::thread thread_;
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
    WorstOrder order(*server);
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

} // namespace
