// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// All that is in the server is deleted while programs are connected to it.

#include "client_fixture.h"
#include "redis_server.h"

#include <string>
#include <vector>

namespace
{

using namespace lawn_test;

constexpr int many = 20; // so that each shard has some

std::string nth(int i)
{
    return "id-" + std::to_string(i);
}

void set_one_shard(lawn_durable_params_t *params)
{
    params->shards = 1;
}

class DurableReopen : public DurableClient
{
protected:
    DurableReopen()
    {
        EXPECT_EQ(client.start("before").status, LAWN_OK);
        server.command({"FLUSHALL"});
    }
};

TEST_F(DurableReopen, MakesTheNamespaceAnew)
{
    for (int i = 0; i < many; ++i) {
        EXPECT_EQ(client.start(nth(i).c_str()).status, LAWN_OK);
    }
    EXPECT_EQ(client.count().count, uint64_t{many});
    EXPECT_EQ(server.command({"HGET", "{test:0}:config", "shards"}).string,
              "4");
    EXPECT_EQ(client.get("before").state, LAWN_DURABLE_UNKNOWN);
}

TEST_F(DurableReopen, AcknowledgesNothingThatNobodyWouldFire)
{
    Client other(server.url(), set_one_shard);
    EXPECT_EQ(other.start("other").status, LAWN_OK);
    std::vector<Result *> results;
    for (int i = 0; i < many; ++i) {
        results.push_back(
            client.begin_start(Client::in_an_hour(nth(i).c_str())));
    }
    for (const Result *const refused : results) {
        client.run_until([refused] { return refused->is_answered; });
        EXPECT_EQ(refused->status, LAWN_ERR_INVALID_PARAM);
        EXPECT_TRUE(contains(refused->error, "has 1 shards, not 4"))
            << refused->error;
    }
    EXPECT_EQ(client.stop("other").status, LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(other.count().count, 1U);
    EXPECT_EQ(other.get("other").state, LAWN_DURABLE_PENDING);
}

TEST_F(DurableReopen, APumpSaysThatTheShardsAreOthers)
{
    Client other(server.url(), set_one_shard);
    EXPECT_EQ(other.start("other").status, LAWN_OK);
    lawn_durable_pump_t *pump = nullptr;
    ASSERT_EQ(lawn_durable_pump_start(client, nullptr, &pump), LAWN_OK);
    client.run_until([this] {
        const char *const error = lawn_durable_error(client);
        return error && contains(error, "has 1 shards, not 4");
    });
    lawn_durable_pump_close(pump);
}

} // namespace
