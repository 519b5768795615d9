// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests about one timer are done in the order in which they were made, also
// when the store refuses some of them for a moment.

#include "client_fixture.h"
#include "hostile_server.h"

#include "src/cluster.h"
#include "src/hash.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace
{

using namespace lawn_test;

constexpr unsigned shards = 4; // of the server of these tests
using Log = std::vector<std::string>;

// What a client is told while a server loads its data.
const char *const loading = "-LOADING it loads\r\n";

void poll_for(Client *client, std::chrono::milliseconds time)
{
    const auto end = std::chrono::steady_clock::now() + time;
    client->run_until([end] { return std::chrono::steady_clock::now() > end; });
}

// An id that lies in the same shard as "a", or in another one.
std::string other_id(bool is_of_same_shard)
{
    const unsigned shard = lawn::durable::shard_of("a", shards);
    for (char c = 'b';; ++c) {
        const std::string id(1, c);
        if ((lawn::durable::shard_of(id, shards) == shard) ==
            is_of_same_shard) {
            return id;
        }
    }
}

void begin_stop(Client *client, const std::string &id, Result *result,
                int durability = LAWN_DURABLE_ASYNC)
{
    EXPECT_EQ(lawn_durable_stop(*client, id.c_str(), durability, Result::keep,
                                result),
              LAWN_OK);
}

bool is_start(const std::vector<std::string> &command, const std::string &id)
{
    return command.size() > 1 && command[1] == "lawn_start" &&
           std::find(command.begin(), command.end(), id) != command.end();
}

TEST_F(DurableClient, ARefusedStartComesBeforeALaterOne)
{
    client.start("other"); // it is connected
    server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    Result *const first = client.begin_start(Client::in_an_hour("a"));
    // Until the pauses between the trials are long.
    poll_for(&client, std::chrono::milliseconds(600));
    EXPECT_FALSE(first->is_answered);
    server.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    lawn_durable_start_t later = Client::in_an_hour("a");
    later.delay_us *= 2;
    Result *const second = client.begin_start(later);
    client.run_until([&] { return first->is_answered && second->is_answered; });
    EXPECT_EQ(first->status, LAWN_OK) << first->error;
    EXPECT_LT(first->generation, second->generation);
    EXPECT_EQ(client.get("a").due_us, second->due_us);
}

// Until the start "a" is sent again.
void run_until_refused(Client *client, const HostileServer &server)
{
    client->run_until([&] { return server.count("lawn_start a") > 1; });
}

TEST(DurableOrder, OnlyTheShardOfARefusedRequestWaits)
{
    HostileServer server;
    server.set_start(loading);
    Client client("unix:" + server.path());
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    run_until_refused(&client, server);
    Result near;
    Result far;
    begin_stop(&client, other_id(true), &near);
    begin_stop(&client, other_id(false), &far);
    client.run_until([&] { return far.is_answered; });
    poll_for(&client, std::chrono::milliseconds(50));
    EXPECT_FALSE(start->is_answered);
    EXPECT_FALSE(near.is_answered);
    server.set_start("");
    client.run_until([&] { return start->is_answered && near.is_answered; });
    EXPECT_EQ(start->status, LAWN_OK) << start->error;
}

// The stop was sent before the start was refused.
TEST(DurableOrder, AStartIsNotRepeatedAfterALaterStop)
{
    HostileServer server;
    Client client("unix:" + server.path());
    client.start("a"); // it is connected
    server.set_start(loading);
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    Result stop;
    begin_stop(&client, "a", &stop);
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(stop.status, LAWN_OK);
    EXPECT_EQ(start->status, LAWN_ERR_IO);
    EXPECT_EQ(start->error,
              "not done: a later request about the same timer was done, while "
              "the store refused this one: LOADING it loads");
}

TEST(DurableOrder, WhatIsHeldBackTimesOutAndSaysWhy)
{
    HostileServer server;
    server.set_start(loading);
    Client client("unix:" + server.path(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 500000;
    });
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    run_until_refused(&client, server);
    Result stop;
    begin_stop(&client, "a", &stop);
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    // The stop may have its turn just when the start's time is over.
    EXPECT_EQ(start->status, LAWN_ERR_TIMED_OUT);
    EXPECT_EQ(start->error, "not done in time: LOADING it loads");
    Result *const waits = client.begin_start(Client::in_an_hour("a"));
    Result *const last = client.begin_start(Client::in_an_hour("b"));
    client.close();
    EXPECT_EQ(waits->status, LAWN_ERR_IO);
    EXPECT_EQ(last->answers, 1U);
}

// Refuses the first start of each of these timers. The namespace has one shard.
HostileServer::Change refuse_once(std::vector<std::string> ids,
                                  const std::string &silent = "")
{
    return [ids, silent](const auto &command, std::string *reply) mutable {
        if (command.size() > 1 && command[1] == "lawn_open") {
            *reply = "*6\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n" + bulk("");
        }
        for (auto i = ids.begin(); i != ids.end(); ++i) {
            if (is_start(command, *i)) {
                ids.erase(i);
                *reply = loading;
                return;
            }
        }
        if (in_short(command) == silent) {
            reply->clear();
        }
    };
}

// As long as the stop "b" is not answered, the client asks again and again
// whether it may go on with what it holds, which is nothing at first.
TEST(DurableOrder, WhatIsQueuedIsHeldWithEachRequestThatIsRefused)
{
    HostileServer server;
    server.set_change(refuse_once({"a", "c"}, "lawn_stop b"));
    Client client("unix:" + server.path());
    client.start(with(2, "z")); // "b" goes at once
    const lawn_durable_start_t first = with(1, "a");
    const auto stop_b = [](void *arg, const lawn_durable_result_t *) {
        lawn_durable_stop(*static_cast<Client *>(arg), "b", 2, nullptr,
                          nullptr);
    };
    EXPECT_EQ(lawn_durable_start(client, &first, stop_b, &client), LAWN_OK);
    client.run_until([&] {
        const Log log = server.log();
        const auto stop = std::find(log.begin(), log.end(), "lawn_stop b");
        return std::find(stop, log.end(), "WAIT") != log.end();
    });
    const long waits = server.count("WAIT");
    server.park();
    Result *const start = client.begin_start(with(1, "c"));
    client.run_until([&] { return server.count("WAIT") > waits; });
    Result stop;
    begin_stop(&client, "c", &stop, 1); // is queued until the end of WAIT
    server.unpark();
    poll_for(&client, std::chrono::milliseconds(50));
    server.say("*2\r\n:5\r\n:1\r\n");
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(start->status, LAWN_OK) << start->error;
    EXPECT_EQ(server.log("c"),
              (Log{"lawn_start c", "lawn_start c", "lawn_stop c"}));
}

// A refused request of `replicated:1` waits for a WAIT that does not end.
TEST(DurableOrder, OnlyThoseThatWaitForReplicasWaitBehindOneOfThem)
{
    HostileServer server;
    server.set_change(refuse_once({"a"}, "WAIT"));
    Client client("unix:" + server.path());
    client.start("z"); // it is connected
    Result *const start = client.begin_start(with(1, "a"));
    client.run_until([&] { return server.count("WAIT") > 0; });
    poll_for(&client, std::chrono::milliseconds(20));
    Result *const near = client.begin_start(Client::in_an_hour("b"));
    client.run_until([&] { return near->is_answered; });
    EXPECT_EQ(near->status, LAWN_OK) << near->error;
    EXPECT_FALSE(start->is_answered);
}

// The WAIT behind a request that was done says nothing about the order.
TEST(DurableOrder, ARequestIsNotHeldForTheReplicasOfAnother)
{
    HostileServer server;
    server.set_change([change = refuse_once({"a"}), waits = 0](
                          const auto &command, std::string *reply) mutable {
        change(command, reply);
        if (command[0] == "WAIT" && ++waits > 1) {
            reply->clear();
        }
    });
    Client client("unix:" + server.path());
    client.start("z"); // it is connected
    Result *const start = client.begin_start(with(1, "a"));
    client.run_until([&] { return server.count("WAIT") > 1; });
    Result *const other = client.begin_start(with(2, "b"));
    client.run_until([&] { return server.count("lawn_start b") > 0; });
    EXPECT_FALSE(start->is_answered);
    EXPECT_FALSE(other->is_answered);
}

// Two servers of a Cluster. The second one has all shards but that of "a",
// which moves to it.
class DurableOrderInCluster : public testing::Test
{
protected:
    void SetUp() override
    {
        from.set_change([this](const auto &command, std::string *reply) {
            answer(command, reply);
            const bool is_asked =
                is_start(command, "a") || in_short(command) == "lawn_stop a";
            if (is_asked && is_moved) {
                *reply = redirection("MOVED", to.address());
            } else if (is_start(command, "a") && is_asking.exchange(false)) {
                *reply = redirection("ASK", other_address);
            }
        });
        to.set_change([this](const auto &command, std::string *reply) {
            answer(command, reply);
            if (is_start(command, "a") && !is_moved) {
                *reply = redirection("MOVED", from.address());
            } else if (is_start(command, other) && is_telling.exchange(false)) {
                *reply = redirection("MOVED", to.address());
            }
        });
        client.start("a");
        client.start(other.c_str());
    }

    static std::string redirection(const char *kind, const std::string &address)
    {
        return std::string("-") + kind + " " + std::to_string(slot) + " " +
               address + "\r\n";
    }

    void answer(const std::vector<std::string> &command, std::string *reply)
    {
        const auto range = [](unsigned first, unsigned last, int port) {
            return "*3\r\n:" + std::to_string(first) +
                   "\r\n:" + std::to_string(last) + "\r\n*2\r\n" +
                   bulk("127.0.0.1") + ":" + std::to_string(port) + "\r\n";
        };
        if (command[0] == "HELLO") {
            *reply = hello("cluster");
        } else if (command[0] == "CLUSTER") {
            *reply = "*2\r\n" +
                     range(0, lawn::durable::cluster_slots - 1, to.port()) +
                     range(slot, slot, is_moved ? to.port() : from.port());
        }
    }

    const std::string other = other_id(false);
    static const unsigned slot;
    std::atomic<bool> is_moved{false};
    std::atomic<bool> is_asking{false};  // the next start is redirected
    std::atomic<bool> is_telling{false}; // that the shard has moved
    std::string other_address;           // where ASK leads to
    HostileServer from{true};
    HostileServer to{true};
    Client client{"redis://" + from.address()};
    Result stop;
};

const unsigned DurableOrderInCluster::slot = lawn::durable::slot_of(
    "test:" + std::to_string(lawn::durable::shard_of("a", shards)));

// Before the answer to the start comes, the client hears that the shard has
// moved.
TEST_F(DurableOrderInCluster, ALaterRequestWaitsForWhatIsAtTheOldServer)
{
    const size_t before = from.log("a").size();
    from.park();
    is_moved = true;
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    client.run_until([&] { return from.log("a").size() > before; });
    is_telling = true;
    client.start(other.c_str());
    begin_stop(&client, "a", &stop);
    poll_for(&client, std::chrono::milliseconds(50));
    from.unpark();
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(start->status, LAWN_OK) << start->error;
    EXPECT_EQ(to.log("a"), (Log{"lawn_start a", "lawn_stop a"}));
}

TEST_F(DurableOrderInCluster, WhatIsQueuedBehindAMovedRequestComesAfterIt)
{
    client.start(with(1, "a"));
    client.start(with(1, other.c_str())); // both are connected for that
    const long waits = from.count("WAIT");
    from.park();
    is_moved = true;
    Result *const start = client.begin_start(with(1, "a"));
    client.run_until([&] { return from.count("WAIT") > waits; });
    begin_stop(&client, "a", &stop, 1); // is queued until the end of WAIT
    from.unpark();
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(start->status, LAWN_OK) << start->error;
    EXPECT_EQ(to.log("a"), (Log{"lawn_start a", "lawn_stop a"}));
}

// The shard is about to move, but then it stays.
TEST_F(DurableOrderInCluster, ALaterRequestWaitsForOneThatIsAsking)
{
    HostileServer third{true};
    third.set_change([this](const auto &command, std::string *reply) {
        answer(command, reply);
        if (is_start(command, "a")) {
            *reply = redirection("MOVED", from.address());
        }
    });
    third.park();
    other_address = third.address();
    is_asking = true;
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    client.run_until([&] { return third.count("HELLO") > 0; });
    begin_stop(&client, "a", &stop);
    poll_for(&client, std::chrono::milliseconds(50));
    third.unpark();
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(start->status, LAWN_OK) << start->error;
    EXPECT_EQ(third.log("a"), (Log{"lawn_start a"}));
    EXPECT_EQ(from.log("a"), (Log{"lawn_start a", "lawn_start a",
                                  "lawn_start a", "lawn_stop a"}));
}

// Both were sent together, and the shard stays between the two.
TEST_F(DurableOrderInCluster, OneThatIsAskingDoesNotUndoALaterOne)
{
    other_address = to.address();
    is_asking = true;
    from.park();
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    begin_stop(&client, "a", &stop);
    client.run_until([&] { return from.count("lawn_stop a") > 0; });
    from.unpark();
    client.run_until([&] { return start->is_answered && stop.is_answered; });
    EXPECT_EQ(stop.status, LAWN_OK) << stop.error;
    EXPECT_EQ(start->status, LAWN_ERR_IO);
    EXPECT_TRUE(contains(start->error, "not done: ")) << start->error;
    EXPECT_EQ(to.count("lawn_start a"), 0);
}

TEST_F(DurableOrderInCluster, OneThatIsAskingInVainComesBack)
{
    other_address = "127.0.0.1:1";
    is_asking = true;
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_OK) << result.error;
}

} // namespace
