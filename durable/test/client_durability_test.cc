// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the acknowledgement of a request promises: async, fsync, replicated:n.

#include "client_fixture.h"
#include "hostile_server.h"
#include "lawn-verify/server.h"
#include "redis_server.h"

#include <memory>
#include <string>

namespace
{

using namespace lawn_test;

void connect_to(RedisServer *replica, int port)
{
    replica->command({"REPLICAOF", "127.0.0.1", std::to_string(port)});
}

void wait_for_replicas(Client *client, RedisServer *master, const char *count)
{
    client->run_until([master, count] {
        return contains(master->command({"INFO", "replication"}).string,
                        (std::string("connected_slaves:") + count).c_str()) &&
               !contains(master->command({"INFO", "replication"}).string,
                         "state=wait") &&
               !contains(master->command({"INFO", "replication"}).string,
                         "state=send");
    });
}

TEST(DurableDurability, FsyncIsRefusedWithoutAFile)
{
    RedisServer server;
    Client client(server.url());
    const Result result = client.start(with(LAWN_DURABLE_FSYNC, "a"));
    EXPECT_EQ(result.status, LAWN_ERR_UNSUPPORTED);
    EXPECT_TRUE(contains(result.error, "appendonly")) << result.error;
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_UNKNOWN);
    EXPECT_EQ(client.stop("a", LAWN_DURABLE_FSYNC).status,
              LAWN_ERR_UNSUPPORTED);
}

TEST(DurableDurability, FsyncSurvivesAKill)
{
    RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
    Client client(server.url());
    EXPECT_EQ(client.start(with(LAWN_DURABLE_FSYNC, "a")).status, LAWN_OK);
    EXPECT_EQ(client.start(with(LAWN_DURABLE_FSYNC, "b")).status, LAWN_OK);
    EXPECT_EQ(client.stop("b", LAWN_DURABLE_FSYNC).state, LAWN_DURABLE_STOPPED);
    server.kill();
    server.start();
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_PENDING);
    EXPECT_EQ(client.get("b").state, LAWN_DURABLE_STOPPED);
}

// The settings of a server may change under a connection.
TEST(DurableDurability, FsyncIsNotAcknowledgedWhenTheServerStopsIt)
{
    struct Setting {
        const char *name;
        const char *on;
        const char *off;
    };
    for (const auto &[name, on, off] :
         {Setting{"appendfsync", "always", "no"},
          Setting{"appendonly", "yes", "no"},
          Setting{"no-appendfsync-on-rewrite", "no", "yes"}}) {
        RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
        const bool has_waitaof =
            server.command({"COMMAND", "INFO", "WAITAOF"})[0].type ==
            Reply::list;
        // Where there is WAITAOF, what is not synced is waited for in vain.
        Client client(server.url(),
                      [has_waitaof](lawn_durable_params_t *params) {
                          if (has_waitaof) {
                              params->request_timeout_us = 2000000;
                          }
                      });
        client.run_until([&] {
            return client.start(with(LAWN_DURABLE_FSYNC, "a")).status ==
                   LAWN_OK;
        });
        server.command({"CONFIG", "SET", name, off});
        const Result unknown = client.start(with(LAWN_DURABLE_FSYNC, "b"));
        EXPECT_EQ(unknown.status, LAWN_ERR_IO) << name;
        EXPECT_TRUE(contains(unknown.error, "unknown: ")) << unknown.error;
        EXPECT_TRUE(contains(unknown.error, "appendfsync")) << unknown.error;
        // Now it is known.
        const Result refused = client.start(with(LAWN_DURABLE_FSYNC, "c"));
        EXPECT_NE(refused.status, LAWN_OK);
        if (!has_waitaof) {
            EXPECT_EQ(refused.status, LAWN_ERR_UNSUPPORTED) << refused.error;
            EXPECT_EQ(client.get("c").state, LAWN_DURABLE_UNKNOWN);
        }
        EXPECT_EQ(client.start("d").status, LAWN_OK); // async
        server.command({"CONFIG", "SET", name, on});
        client.run_until([&] {
            return client.start(with(LAWN_DURABLE_FSYNC, "e")).status ==
                   LAWN_OK;
        });
    }
}

// Redis 7.0 has no WAITAOF, so everysec is not enough there.
TEST(DurableDurability, FsyncNeedsAlwaysOrWaitaof)
{
    RedisServer server({"--appendonly", "yes", "--appendfsync", "everysec"});
    Client client(server.url());
    const bool has_waitaof =
        server.command({"COMMAND", "INFO", "WAITAOF"})[0].type == Reply::list;
    EXPECT_EQ(client.start(with(LAWN_DURABLE_FSYNC, "a")).status,
              has_waitaof ? LAWN_OK : LAWN_ERR_UNSUPPORTED);
}

TEST(DurableDurability, TooFewReplicasAreSaid)
{
    RedisServer server;
    Client client(server.url(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 1000000;
    });
    client.run_until([&] { return client.start("z").status == LAWN_OK; });
    const Result *const one = client.begin_start(with(1, "a"));
    const Result *const two = client.begin_start(with(2, "b"));
    // Others do not wait for them.
    client.run_until([&] { return client.start("c").status == LAWN_OK; });
    for (const Result *const slow : {one, two}) {
        client.run_until([slow] { return slow->is_answered; });
        EXPECT_EQ(slow->status, LAWN_ERR_TIMED_OUT);
        EXPECT_EQ(slow->error.substr(0, 7), "unknown") << slow->error;
    }
}

// It was done before the server took no writes any more.
TEST(DurableDurability, SaysWhyItCannotWaitForReplicas)
{
    HostileServer server;
    server.set_change([](const auto &command, std::string *reply) {
        *reply = command[0] == "EVAL" ? "-NOREPLICAS too few\r\n" : *reply;
    });
    Client client("unix:" + server.path());
    const Result result = client.start(with(1, "a"));
    EXPECT_EQ(result.status, LAWN_ERR_IO);
    EXPECT_EQ(result.error, "unknown: NOREPLICAS too few");
}

class DurableReplicated : public testing::Test
{
protected:
    void SetUp() override
    {
        connect_to(&replica, port);
        wait_for_replicas(&client, &master, "1");
    }

    const int port = lawn_verify::free_port();
    RedisServer master{{"--port", std::to_string(port), "--bind", "127.0.0.1",
                        "--repl-diskless-sync-delay", "0"}};
    RedisServer replica;
    Client client{master.url()};
};

// A server at its maxmemory does stops, so it can acknowledge them, too.
TEST_F(DurableReplicated, AStopIsAcknowledgedAtMaxmemory)
{
    ASSERT_EQ(client.start(with(1, "a")).status, LAWN_OK);
    master.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    master.command({"CONFIG", "SET", "maxmemory", "1"});
    EXPECT_EQ(client.start(with(1, "b")).status, LAWN_ERR_NO_MEMORY);
    const Result result = client.stop("a", 1);
    EXPECT_EQ(result.status, LAWN_OK) << result.error;
    EXPECT_EQ(result.state, LAWN_DURABLE_STOPPED);
}

// What is acknowledged outlives the master.
TEST_F(DurableReplicated, OutlivesTheMaster)
{
    std::vector<Result *> results;
    for (unsigned i = 0; i < 200; ++i) {
        results.push_back(
            client.begin_start(with(1, std::to_string(i).c_str())));
    }
    client.run_until([&results] { return results[20]->is_answered; });
    master.kill();
    replica.command({"REPLICAOF", "NO", "ONE"});
    Client other(replica.url());
    unsigned acknowledged = 0;
    for (unsigned i = 0; i < results.size(); ++i) {
        if (results[i]->is_answered && results[i]->status == LAWN_OK) {
            ++acknowledged;
            EXPECT_EQ(other.get(std::to_string(i).c_str()).state,
                      LAWN_DURABLE_PENDING);
        }
    }
    EXPECT_GT(acknowledged, 0U);
}

// A repeat of what is in the store already writes nothing. It is acknowledged
// only when the replica has the first.
TEST_F(DurableReplicated, ARepeatWaitsForTheReplicaToo)
{
    lawn_durable_start_t start = with(LAWN_DURABLE_ASYNC, "a");
    start.token = 17;
    ASSERT_EQ(client.start(start).status, LAWN_OK);
    ASSERT_EQ(client.start(with(1, "b")).status, LAWN_OK);
    replica.pause();
    start.id = "c";
    ASSERT_EQ(client.start(start).status, LAWN_OK);
    start.durability = 1;
    Result *const repeat = client.begin_start(start);
    for (unsigned i = 0; i < 50; ++i) {
        lawn_durable_wait(client, 10000);
    }
    EXPECT_FALSE(repeat->is_answered);
    replica.resume();
    client.run_until([repeat] { return repeat->is_answered; });
    EXPECT_EQ(repeat->status, LAWN_OK) << repeat->error;
}

// One WAIT serves all requests that were sent before it.
TEST_F(DurableReplicated, WaitsOnceForMany)
{
    ASSERT_EQ(client.start(with(1, "a")).status, LAWN_OK);
    master.command({"CONFIG", "RESETSTAT"});
    std::vector<Result *> results;
    for (unsigned i = 0; i < 100; ++i) {
        results.push_back(
            client.begin_start(with(1, std::to_string(i).c_str())));
    }
    client.run_until([&results] { return results.back()->is_answered; });
    for (const Result *i : results) {
        EXPECT_EQ(i->status, LAWN_OK);
    }
    const unsigned long waits = master.calls("wait");
    EXPECT_GT(waits, 0U);
    EXPECT_LT(waits, 10U);
}

} // namespace
