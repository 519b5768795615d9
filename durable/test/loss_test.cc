// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Keys of a namespace go without a call of ours: programs that have seen it
// before say so, and others after them, until an operator acknowledges it.

#include "flow_fixture.h"
#include "watch_fixture.h"

using namespace lawn_test;

namespace
{

std::string losses_of(const lawn_durable_t *client)
{
    const char *const losses = lawn_durable_losses(client);
    return losses ? losses : "";
}

void set_one_shard(lawn_durable_params_t *params)
{
    params->shards = 1;
}

class DurableLoss : public Watched
{
protected:
    void SetUp() override
    {
        open();
        lawn_durable_start_t start = {};
        start.id = "a";
        start.delay_us = 3600000000;
        lawn_durable_result_t result = {};
        ASSERT_EQ(lawn_durable_start_sync(client, &start, &result), LAWN_OK);
        EXPECT_EQ(losses_of(client), "");
    }

    // Passes the time after which the client looks, until it has.
    void expect_loss()
    {
        let_time_pass();
        poll_until([&] { return !losses_of(client).empty(); });
        EXPECT_EQ(losses_of(client).substr(0, 23), "test:0: timers were los");
    }

    void acknowledge()
    {
        bool is_done = false;
        const lawn_durable_fn_t done = [](void *arg,
                                          const lawn_durable_result_t *result) {
            EXPECT_EQ(result->status, LAWN_OK) << result->error;
            *static_cast<bool *>(arg) = true;
        };
        ASSERT_EQ(lawn_durable_acknowledge(client, done, &is_done), LAWN_OK);
        poll_until([&] { return is_done; });
        let_time_pass();
        poll_until([&] { return losses_of(client).empty(); });
    }
};

TEST_F(DurableLoss, AllIsGone)
{
    server.command({"FLUSHALL"});
    expect_loss();
    acknowledge();
}

// Also if another program has made the namespace anew, which knows nothing.
TEST_F(DurableLoss, OthersMakeItAnew)
{
    server.command({"FLUSHALL"});
    Client other(server.url(), set_one_shard);
    EXPECT_EQ(other.start("b").status, LAWN_OK);
    EXPECT_EQ(losses_of(other), "");
    expect_loss();
    Client later(server.url(), set_one_shard);
    EXPECT_EQ(later.start("c").status, LAWN_OK);
    later.run_until([&] { return !losses_of(later).empty(); });
    acknowledge();
}

TEST_F(DurableLoss, AServerComesBackEmpty)
{
    server.kill();
    server.start();
    poll_until([&] { return !losses_of(client).empty(); });
}

// What a program that waits for nothing else does not see, a pump does.
TEST_F(DurableLoss, APumpCounts)
{
    lawn_durable_pump_t *pump = nullptr;
    ASSERT_EQ(lawn_durable_pump_start(client, nullptr, &pump), LAWN_OK);
    let_time_pass();
    poll_until([&] {
        const Reply gap = server.command({"HGET", "{test:0}:meta", "gap"});
        return gap.string == "0";
    });
    EXPECT_EQ(losses_of(client), "");
    server.command({"DEL", "{test:0}:due"});
    expect_loss();
    acknowledge();
    lawn_durable_pump_close(pump);
}

// A pump that may not count says so, and fires all the same.
TEST_F(DurableLoss, ARightIsMissing)
{
    server.command({"ACL", "SETUSER", "default", "-zcard"});
    lawn_durable_pump_t *pump = nullptr;
    ASSERT_EQ(lawn_durable_pump_start(client, nullptr, &pump), LAWN_OK);
    poll_until([&] { return lawn_durable_warning(client) != nullptr; });
    EXPECT_TRUE(contains(lawn_durable_warning(client), "not seen whether"));
    EXPECT_EQ(lawn_durable_error(client), nullptr);
    server.command({"ACL", "SETUSER", "default", "+@all"});
    let_time_pass();
    poll_until([&] { return lawn_durable_warning(client) == nullptr; });
    lawn_durable_pump_close(pump);
}

} // namespace
