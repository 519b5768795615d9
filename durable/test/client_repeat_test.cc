// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Starts that are repeated until their answer is certain.

#include "client_fixture.h"
#include "redis_server.h"

namespace
{

using namespace lawn_test;

void be_hasty(lawn_durable_params_t *params)
{
    params->request_timeout_us = 100000;
    params->connect_timeout_us = 100000;
}

class DurableRepeat : public testing::Test
{
protected:
    static lawn_durable_start_t until_known(const char *id)
    {
        lawn_durable_start_t start = Client::in_an_hour(id);
        start.token = 7;
        start.until_known = true;
        return start;
    }

    // Until others have waited in vain for as long.
    void let_others_time_out()
    {
        for (int i = 0; i < 3; ++i) {
            EXPECT_NE(client.start("other").status, LAWN_OK);
        }
    }

    RedisServer server;
    Client client{server.url(), be_hasty};
};

TEST_F(DurableRepeat, NeedsAToken)
{
    lawn_durable_start_t start = until_known("a");
    start.token = 0;
    EXPECT_EQ(lawn_durable_start(client, &start, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_STREQ(lawn_durable_refusal(), "until_known needs a token");
}

TEST_F(DurableRepeat, GoesOnUntilTheServerAnswers)
{
    client.run_until([&] { return client.start("a").status == LAWN_OK; });
    server.pause();
    const Result *const result = client.begin_start(until_known("b"));
    let_others_time_out();
    EXPECT_FALSE(result->is_answered);
    server.resume();
    client.run_until([&] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK) << result->error;
    EXPECT_EQ(result->state, LAWN_DURABLE_PENDING);
    client.run_until(
        [&] { return client.get("b").generation == result->generation; });
}

TEST_F(DurableRepeat, GoesOnWithoutAServer)
{
    server.kill();
    const Result *const result = client.begin_start(until_known("b"));
    let_others_time_out();
    EXPECT_FALSE(result->is_answered);
    server.start();
    client.run_until([&] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK) << result->error;
}

// A refusal is certain.
TEST_F(DurableRepeat, EndsWithWhatIsCertain)
{
    for (int shard = 0; shard < 4; ++shard) {
        server.command(
            {"SET", "{test:" + std::to_string(shard) + "}:due", "text"});
    }
    const Result *const result = client.begin_start(until_known("b"));
    client.run_until([&] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_ERR_CORRUPT) << result->error;
}

TEST_F(DurableRepeat, EndsWithTheClient)
{
    server.kill();
    const Result *const under_way = client.begin_start(until_known("a"));
    let_others_time_out();
    const Result *const fresh = client.begin_start(until_known("b"));
    client.close();
    for (const Result *const result : {under_way, fresh}) {
        EXPECT_TRUE(result->is_answered);
        EXPECT_NE(result->status, LAWN_OK);
        EXPECT_NE(result->error, "");
    }
}

// Also between two repeats.
TEST_F(DurableRepeat, EndsWithTheClientWhileItWaits)
{
    server.kill();
    Client impatient(server.url(), [](lawn_durable_params_t *params) {
        params->fail_fast = true;
    });
    const Result *const result = impatient.begin_start(until_known("a"));
    EXPECT_EQ(impatient.start("other").status, LAWN_ERR_IO);
    EXPECT_FALSE(result->is_answered);
    impatient.close();
    EXPECT_TRUE(result->is_answered);
    EXPECT_EQ(result->status, LAWN_ERR_IO);
}

} // namespace
