// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What clients, consumers and pumps send with one call. The pauses between
// calls are short: a machine that stands still just then lets one pass, so one
// try is not enough to see it.

#include "flow_fixture.h"

#include <algorithm>
#include <climits>
#include <string>

namespace
{

using namespace lawn_test;

constexpr int tries = 100;

class DurableBatches : public testing::Test
{
protected:
    static void set_one_shard(lawn_durable_params_t *params)
    {
        params->shards = 1;
    }

    Result *begin_start(const std::string &id)
    {
        return client.begin_start(Client::in_an_hour(id.c_str()));
    }

    // 0: the default.
    void start_pump(uint64_t coalesce_us)
    {
        lawn_durable_pump_t *pump = nullptr;
        lawn_durable_pump_params_t params = {};
        params.coalesce_us = coalesce_us;
        ASSERT_EQ(lawn_durable_pump_start(client, &params, &pump), LAWN_OK);
    }

    // By a pump that the client has.
    void fire_one()
    {
        lawn_durable_start_t start = {};
        start.id = "t";
        const Result *const started = client.begin_start(start);
        client.run_until([started] { return started->is_answered; });
        client.run_until([this] { return client.count().count == 0; });
    }

    RedisServer server;
    Client client{server.url(), set_one_shard};
};

TEST_F(DurableBatches, StartsThatComeTogetherAreOneCall)
{
    client.start("ready");
    const unsigned long before = server.calls("fcall");
    for (int i = 0; i < 199; ++i) {
        begin_start("t" + std::to_string(i));
    }
    Result *const last = begin_start("last");
    client.run_until([last] { return last->is_answered; });
    EXPECT_EQ(server.calls("fcall") - before, 1U);
    EXPECT_EQ(client.count().count, 201U);
}

TEST_F(DurableBatches, AfterManyStartsTheNextOnesWaitForEachOther)
{
    client.start("ready");
    unsigned long least = ULONG_MAX;
    for (int i = 0; i < tries && least > 1; ++i) {
        Result *last = nullptr;
        for (const char *const id : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
            last = begin_start(id);
        }
        client.run_until([last] { return last->is_answered; });
        const unsigned long before = server.calls("fcall");
        begin_start("i");
        lawn_durable_poll(client); // would send it
        last = begin_start("j");
        client.run_until([last] { return last->is_answered; });
        least = std::min(least, server.calls("fcall") - before);
    }
    EXPECT_EQ(least, 1U);
}

TEST_F(DurableBatches, AfterAnAnswerTheNextOnesWaitForEachOther)
{
    start_pump(0);
    Taker taker(&client);
    taker.answer = nullptr;
    taker.open();
    const auto answer = [&taker](size_t count) {
        for (; count > 0; --count) {
            taker.reply(taker.given.back(), LAWN_DURABLE_DONE);
            taker.given.pop_back();
        }
    };
    unsigned long least = ULONG_MAX;
    for (size_t i = 1; i <= tries && least > 1; ++i) {
        for (const char *const id : {"a", "b", "c"}) {
            lawn_durable_start_t start = {};
            start.id = id;
            EXPECT_EQ(lawn_durable_start(client, &start, nullptr, nullptr),
                      LAWN_OK);
        }
        client.run_until([&] { return taker.given.size() == 3; });
        answer(1);
        client.run_until([&] { return taker.answered == 3 * i - 2; });
        const unsigned long before = server.calls("xack");
        answer(1);
        lawn_durable_poll(client); // would send it
        answer(1);
        client.run_until([&] { return taker.answered == 3 * i; });
        least = std::min(least, server.calls("xack") - before);
    }
    EXPECT_EQ(least, 1U);
}

// How many due times the calls of pumps have asked for, the latest call first.
std::vector<std::string> due_times_asked_for(RedisServer *server)
{
    std::vector<std::string> counts;
    for (const Reply &entry :
         server->command({"SLOWLOG", "GET", "-1"}).elements) {
        const Reply &command = entry[3];
        if (command.size() > 1 && command[1].string == "lawn_fire") {
            counts.push_back(command.elements.back().string);
        }
    }
    return counts;
}

// Each costs the store some time. Where answers come before the next call may
// be made, one is enough.
TEST_F(DurableBatches, APumpAsksAServerThatIsNearForOneDueTime)
{
    server.command({"CONFIG", "SET", "slowlog-max-len", "100000"});
    server.command({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    start_pump(100000);
    std::vector<std::string> counts;
    for (int i = 0; i < 20 && (counts.size() < 2 || counts[0] != "1"); ++i) {
        fire_one();
        counts = due_times_asked_for(&server);
    }
    EXPECT_EQ(counts.front(), "1");
    EXPECT_EQ(counts.back(), "16"); // it was not known how near the server is
}

TEST_F(DurableBatches, APumpAsksAServerThatIsFarForTheTimesOfTheNextCalls)
{
    server.command({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
    start_pump(1); // no answer comes within it
    // The first call may come behind the first start, and fire it.
    std::vector<std::string> counts;
    for (int i = 0; i < 2; ++i) {
        fire_one();
        counts = due_times_asked_for(&server);
    }
    EXPECT_GE(counts.size(), 2U);
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(),
                            [](const auto &i) { return i == "16"; }));
}

} // namespace
