// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A Redis Cluster of three masters on loopback: requests find their node, and
// follow the slots that move while they are under way.

#include "client_fixture.h"
#include "redis_server.h"

#include "lawn-verify/server.h"
#include "src/cluster.h"

#include <hiredis/hiredis.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using namespace lawn_test;
using lawn::durable::cluster_slots;
using lawn::durable::slot_of;

constexpr unsigned nodes = 3;
constexpr unsigned shards = 4;

// All tests have one cluster, as a new one takes two seconds until it takes
// writes. It is empty when a test begins, and made anew after one that has
// failed.
class DurableCluster : public testing::Test
{
protected:
    void SetUp() override
    {
        if (servers.empty()) {
            make();
        }
        wait_until_well();
        for (const auto &server : servers) {
            server->command({"FLUSHALL"});
            server->command({"FUNCTION", "FLUSH"});
        }
    }

    void TearDown() override
    {
        if (HasFailure()) {
            end();
        }
    }

    static void TearDownTestSuite()
    {
        end();
    }

    static void end()
    {
        servers.clear();
        ports.clear();
        ids.clear();
    }

    static void make()
    {
        for (unsigned i = 0; i < nodes; ++i) {
            ports.push_back(lawn_verify::free_port());
            servers.push_back(std::make_unique<RedisServer>(Words{
                "--port", std::to_string(ports[i]), "--bind", "127.0.0.1",
                "--cluster-enabled", "yes", "--cluster-node-timeout", "5000"}));
        }
        for (unsigned i = 0; i < nodes; ++i) {
            servers[i]->command(
                {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
            servers[i]->command(
                {"CLUSTER", "ADDSLOTSRANGE",
                 std::to_string(i * cluster_slots / nodes),
                 std::to_string((i + 1) * cluster_slots / nodes - 1)});
            ids.push_back(servers[i]->command({"CLUSTER", "MYID"}).string);
        }
        for (unsigned i = 1; i < nodes; ++i) {
            servers[0]->command(
                {"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports[i])});
        }
    }

    void wait_until_well()
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(2);
        for (unsigned i = 0; i < nodes;) {
            const std::string info =
                servers[i]->command({"CLUSTER", "INFO"}).string;
            const bool is_well =
                info.find("cluster_state:ok") != info.npos &&
                info.find("cluster_known_nodes:3") != info.npos &&
                info.find("cluster_slots_ok:16384") != info.npos;
            if (is_well) {
                ++i;
            } else {
                usleep(1000);
            }
            ASSERT_LT(std::chrono::steady_clock::now(), end) << info;
        }
    }

    // The epochs of all nodes as this one knows them.
    std::set<std::string> epochs_at(unsigned node)
    {
        std::istringstream lines(
            servers[node]->command({"CLUSTER", "NODES"}).string);
        std::set<std::string> epochs;
        std::string line;
        while (std::getline(lines, line)) {
            std::istringstream words(line);
            std::string id;
            std::string epoch;
            words >> id;
            for (unsigned i = 0; i < 6; ++i) {
                words >> epoch;
            }
            epochs.insert(id + " " + epoch);
        }
        return epochs;
    }

    // A node that gets a slot takes the next epoch after those it has heard of,
    // and asks nobody. If another node has just taken that one, one of the two
    // takes a later epoch still, and with it the slots that it believes it has.
    // So a slot may not move until all have heard of the move before.
    void wait_until_agreed()
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(2);
        for (unsigned i = 1; i < nodes;) {
            if (epochs_at(i) == epochs_at(0)) {
                ++i;
            } else {
                usleep(1000);
            }
            ASSERT_LT(std::chrono::steady_clock::now(), end);
        }
    }

    std::string url() const
    {
        return "redis://127.0.0.1:" + std::to_string(ports[0]);
    }

    unsigned owner_of(unsigned slot)
    {
        for (unsigned i = 0; i < nodes; ++i) {
            const Reply ranges = servers[i]->command({"CLUSTER", "SLOTS"});
            for (const Reply &range : ranges.elements) {
                if (range[0].integer <= slot && slot <= range[1].integer &&
                    range[2][1].integer == ports[i]) {
                    return i;
                }
            }
        }
        ADD_FAILURE() << "nobody has slot " << slot;
        return 0;
    }

    void begin_move(unsigned slot, unsigned from, unsigned to)
    {
        const std::string text = std::to_string(slot);
        servers[to]->command(
            {"CLUSTER", "SETSLOT", text, "IMPORTING", ids[from]});
        servers[from]->command(
            {"CLUSTER", "SETSLOT", text, "MIGRATING", ids[to]});
    }

    // One key; false if there is none.
    bool move_key(unsigned slot, unsigned from, unsigned to)
    {
        const Reply keys = servers[from]->command(
            {"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "1"});
        if (keys.size() == 0) {
            return false;
        }
        const Reply moved = servers[from]->command(
            {"MIGRATE", "127.0.0.1", std::to_string(ports[to]), keys[0].string,
             "0", "60000"});
        EXPECT_FALSE(moved.is_error()) << moved.string;
        return true;
    }

    void end_move(unsigned slot, unsigned to)
    {
        servers[to]->command(
            {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", ids[to]});
        for (unsigned i = 0; i < nodes; ++i) {
            servers[i]->command(
                {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", ids[to]});
        }
        wait_until_agreed();
    }

    inline static std::vector<int> ports;
    inline static std::vector<std::unique_ptr<RedisServer>> servers;
    inline static std::vector<std::string> ids;
};

// A node that has met no other one does not know its own address.
TEST(DurableClusterReplies, AnEmptyHostIsTheOneThatWasAsked)
{
    const lawn::durable::Endpoint by_name = {"there", 7000};
    const lawn::durable::Endpoint by_path = {"/run/redis.sock", 0};
    const std::string slots =
        "*1\r\n*3\r\n:0\r\n:5\r\n*2\r\n$0\r\n\r\n:7001\r\n";
    redisReader *const reader = redisReaderCreate();
    redisReaderFeed(reader, slots.data(), slots.size());
    void *reply = nullptr;
    ASSERT_EQ(redisReaderGetReply(reader, &reply), REDIS_OK);
    for (const auto &[from, host] :
         {std::pair(by_name, "there"), std::pair(by_path, "127.0.0.1")}) {
        std::vector<lawn::durable::SlotRange> ranges;
        ASSERT_TRUE(lawn::durable::read_slots(static_cast<redisReply *>(reply),
                                              from, &ranges));
        EXPECT_EQ(ranges.at(0).master.host, host);
        EXPECT_EQ(ranges.at(0).master.port, 7001U);
        lawn::durable::Endpoint endpoint;
        unsigned slot = 0;
        ASSERT_TRUE(lawn::durable::read_redirection("MOVED 5 :7002", from,
                                                    &slot, &endpoint));
        EXPECT_EQ(endpoint.host, host);
        EXPECT_EQ(endpoint.port, 7002U);
    }
    freeReplyObject(reply);
    redisReaderFree(reader);
}

TEST_F(DurableCluster, SlotsAreThoseOfRedis)
{
    for (const std::string tag : {"", "123456789", "lawn:0", "lawn:1023"}) {
        EXPECT_EQ(static_cast<long long>(slot_of(tag)),
                  servers[0]->command({"CLUSTER", "KEYSLOT", tag}).integer)
            << tag;
    }
}

TEST_F(DurableCluster, EachShardIsAtItsNode)
{
    Client client(url());
    for (unsigned i = 0; i < 200; ++i) {
        ASSERT_EQ(client.start(std::to_string(i).c_str()).status, LAWN_OK);
    }
    EXPECT_EQ(client.count().count, 200U);
    unsigned used = 0;
    for (const auto &server : servers) {
        used += server->command({"DBSIZE"}).integer > 0;
    }
    EXPECT_GT(used, 1U);
    for (unsigned i = 0; i < 200; ++i) {
        EXPECT_EQ(client.stop(std::to_string(i).c_str()).state,
                  LAWN_DURABLE_STOPPED);
    }
    EXPECT_EQ(client.count().count, 0U);
    EXPECT_EQ(lawn_durable_error(client), nullptr);
}

TEST_F(DurableCluster, HasNoOtherDatabase)
{
    Client client(url() + "/1");
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_NE(result.error.find("SELECT"), std::string::npos) << result.error;
}

// Every slot of the namespace moves to the next node, again and again, while
// timers are started. All that was acknowledged is there, once.
TEST_F(DurableCluster, FollowsSlotsThatMove)
{
    Client client(url());
    ASSERT_EQ(client.start("first").status, LAWN_OK);
    std::vector<std::pair<std::string, Result *>> started;
    unsigned next = 0;
    const auto load = [&] {
        for (unsigned i = 0; i < 20; ++i) {
            const std::string id = "id-" + std::to_string(next++);
            started.emplace_back(
                id, client.begin_start(Client::in_an_hour(id.c_str())));
        }
        lawn_durable_wait(client, 1000);
    };
    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned shard = 0; shard < shards; ++shard) {
            const unsigned slot = slot_of("test:" + std::to_string(shard));
            const unsigned from = owner_of(slot);
            const unsigned to = (from + 1) % nodes;
            load();
            begin_move(slot, from, to);
            load();
            while (move_key(slot, from, to)) {
                load();
            }
            end_move(slot, to);
            load();
        }
    }
    for (const auto &i : started) {
        client.run_until([&i] { return i.second->is_answered; });
        EXPECT_EQ(i.second->status, LAWN_OK) << i.first << i.second->error;
        EXPECT_EQ(i.second->answers, 1U);
    }
    EXPECT_EQ(client.count().count, started.size() + 1);
    for (const auto &i : started) {
        const Result got = client.get(i.first.c_str());
        EXPECT_EQ(got.state, LAWN_DURABLE_PENDING) << i.first;
        EXPECT_EQ(got.generation, i.second->generation) << i.first;
    }
}

// Counts the deliveries of each timer, and answers them.
struct Consumer {
    lawn_durable_consumer_t *consumer = nullptr;
    std::map<std::string, unsigned> delivered;
    unsigned early = 0;

    static void deliver(void *arg, const lawn_durable_delivery_t *delivery)
    {
        Consumer *const self = static_cast<Consumer *>(arg);
        ++self->delivered[delivery->id];
        self->early += delivery->fired_us < delivery->due_us;
        EXPECT_EQ(lawn_durable_answer(self->consumer, delivery,
                                      LAWN_DURABLE_DONE, 0, nullptr, nullptr,
                                      nullptr),
                  LAWN_OK);
    }
};

// The pump and the consumer follow, too: nothing is lost.
TEST_F(DurableCluster, FiresAndDeliversWhileSlotsMove)
{
    Client client(url());
    const lawn_durable_pump_params_t pump_params = {};
    lawn_durable_pump_t *pump;
    ASSERT_EQ(lawn_durable_pump_start(client, &pump_params, &pump), LAWN_OK);
    Consumer consumer;
    lawn_durable_consume_t consume = {};
    consume.lease_us = 5000000;
    ASSERT_EQ(lawn_durable_consume(client, &consume, Consumer::deliver,
                                   &consumer, &consumer.consumer),
              LAWN_OK);
    std::vector<Result *> started;
    const auto load = [&] {
        for (unsigned i = 0; i < 10; ++i) {
            const std::string id = "id-" + std::to_string(started.size());
            lawn_durable_start_t start = {};
            start.id = id.c_str();
            start.delay_us = 1000 * (started.size() % 500);
            started.push_back(client.begin_start(start));
        }
        lawn_durable_wait(client, 1000);
    };
    for (unsigned shard = 0; shard < shards; ++shard) {
        const unsigned slot = slot_of("test:" + std::to_string(shard));
        const unsigned from = owner_of(slot);
        const unsigned to = (from + 1) % nodes;
        load();
        begin_move(slot, from, to);
        while (move_key(slot, from, to)) {
            load();
        }
        end_move(slot, to);
        load();
    }
    for (const Result *i : started) {
        client.run_until([i] { return i->is_answered; });
        EXPECT_EQ(i->status, LAWN_OK) << i->error;
    }
    client.run_until(
        [&] { return consumer.delivered.size() == started.size(); });
    EXPECT_EQ(consumer.early, 0U);
    client.run_until(
        [&] { return client.get("id-0").state == LAWN_DURABLE_SUCCESS; });
}

TEST_F(DurableCluster, WaitsForANodeThatWasKilled)
{
    Client client(url());
    for (unsigned i = 0; i < 50; ++i) {
        ASSERT_EQ(client.start(std::to_string(i).c_str()).status, LAWN_OK);
    }
    servers[1]->kill();
    std::vector<Result *> results;
    for (unsigned i = 0; i < 50; ++i) {
        const std::string id = "again-" + std::to_string(i);
        results.push_back(client.begin_start(Client::in_an_hour(id.c_str())));
    }
    for (unsigned i = 0; i < 20; ++i) {
        lawn_durable_wait(client, 5000);
    }
    servers[1]->start();
    for (const Result *i : results) {
        client.run_until([i] { return i->is_answered; });
    }
    client.run_until(
        [&client] { return lawn_durable_error(client) == nullptr; });
    EXPECT_EQ(client.start("last").status, LAWN_OK);
}

} // namespace
