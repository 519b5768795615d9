// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests about one timer are done in the order in which they were made, also
// when the store refuses some of them for a moment.

#include "client_fixture.h"
#include "hostile_server.h"

#include "durable/hash.h"

#include <string>

namespace
{

using namespace lawn_test;

constexpr unsigned shards = 4; // of the server of these tests

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

void begin_stop(Client *client, const std::string &id, Result *result)
{
    EXPECT_EQ(lawn_durable_stop(*client, id.c_str(), 0, Result::keep, result),
              LAWN_OK);
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

TEST(DurableOrder, OnlyTheShardOfARefusedRequestWaits)
{
    HostileServer server;
    server.set_start(loading);
    Client client("unix:" + server.path());
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    poll_for(&client, std::chrono::milliseconds(50));
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
    poll_for(&client, std::chrono::milliseconds(50));
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

} // namespace
