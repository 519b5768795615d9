// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a server refuses a consumer for longer than a moment is told, until it
// is over.

#include "client_fixture.h"
#include "hostile_server.h"

#include <string.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

namespace
{

using namespace lawn_test;

const char *const busy = "-BUSY a script\r\n";
const char *const refused = "-ERR refused\r\n";

class DurableConsumerErrors : public testing::Test
{
protected:
    ~DurableConsumerErrors() override
    {
        close();
    }

    void close()
    {
        lawn_durable_consumer_close(consumer);
        consumer = nullptr;
    }

    // What commands and functions are answered, instead of what a server says
    // that is well and has nothing.
    void set(const std::map<std::string, std::string> &replies)
    {
        server.set_change(
            [this, replies](const auto &command, std::string *to) {
                static const std::map<std::string, std::string> well = {
                    {"XREADGROUP", "*-1\r\n"},
                    {"XPENDING", "*0\r\n"},
                    {"lawn_join", "$4\r\nlawn\r\n"},
                    {"lawn_take", "*2\r\n:0\r\n*0\r\n"},
                };
                const bool is_call = command[0] == "FCALL";
                const std::string &name = command[is_call ? 1 : 0];
                for (const auto *const some : {&well, &replies}) {
                    const auto found = some->find(name);
                    *to = found == some->end() ? *to : found->second;
                }
                const auto shard_bit = [&command](size_t key) {
                    return 1U << (command[key][strlen("{test:")] - '0');
                };
                if (name == "lawn_join") {
                    joining |= shard_bit(3);
                } else if (name == "XPENDING") {
                    recovering |= shard_bit(1);
                }
                // With an entry behind the usual arguments.
                if (name == "lawn_take" && command.size() > 14 &&
                    to->front() != '-') {
                    regained |= shard_bit(3);
                }
            });
    }

    void open(uint64_t request_timeout_us, uint64_t lease_us = 600000000)
    {
        client = std::make_unique<Client>(
            "unix:" + server.path(), [&](lawn_durable_params_t *params) {
                params->request_timeout_us = request_timeout_us;
            });
        lawn_durable_consume_t consume = {};
        consume.name = "worker";
        consume.lease_us = lease_us;
        const auto deliver = [](void *, const lawn_durable_delivery_t *) {};
        ASSERT_EQ(lawn_durable_consume(*client, &consume, deliver, nullptr,
                                       &consumer),
                  LAWN_OK);
    }

    std::string told()
    {
        const char *const error = lawn_durable_error(*client);
        return error ? error : "";
    }

    void run_until_told(const char *line)
    {
        client->run_until([&] { return contains(told(), line); });
    }

    void run_until_well()
    {
        client->run_until([&] { return told().empty(); });
    }

    static constexpr uint64_t short_us = 500000;
    // Shards, as bits: that it has asked to join, what it has of them, and for
    // that.
    std::atomic<unsigned> joining{0};
    std::atomic<unsigned> recovering{0};
    std::atomic<unsigned> regained{0};
    HostileServer server;
    std::unique_ptr<Client> client;
    lawn_durable_consumer_t *consumer = nullptr;
};

TEST_F(DurableConsumerErrors, AServerThatStaysBusyIsTold)
{
    set({});
    open(short_us);
    client->run_until([&] { return server.count("XREADGROUP") > 0; });
    for (const char *const error : {"BUSY a script", "NOREPLICAS too few"}) {
        set({{"XREADGROUP", "-" + std::string(error) + "\r\n"}});
        client->run_until([&] { return contains(told(), error); });
        EXPECT_TRUE(contains(told(), "cannot read {test:0}:out: ")) << told();
        set({});
        run_until_well();
    }
}

TEST_F(DurableConsumerErrors, AServerThatIsBusyForAMomentIsNotTold)
{
    set({{"XREADGROUP", busy}});
    open(Client::minute_us);
    client->run_until([&] {
        EXPECT_EQ(told(), "");
        return server.count("XREADGROUP") >= 4;
    });
    const long before = server.count("XREADGROUP");
    set({});
    client->run_until([&] {
        EXPECT_EQ(told(), "");
        return server.count("XREADGROUP") >= before + 4;
    });
}

TEST_F(DurableConsumerErrors, AnErrorThatStaysIsTold)
{
    set({{"XREADGROUP", refused}});
    open(Client::minute_us);
    run_until_told("cannot read {test:0}:out: ERR refused");
    set({});
    run_until_well();
}

TEST_F(DurableConsumerErrors, ThatItCannotJoinIsTold)
{
    set({{"lawn_join", refused}});
    open(short_us);
    run_until_told("cannot read {test:0}:out: ERR refused");
    set({});
    run_until_well();
    EXPECT_EQ(joining, 0xfU);
}

TEST_F(DurableConsumerErrors, EachShardIsJoinedOnce)
{
    set({});
    open(Client::minute_us);
    client->run_until([&] { return server.count("XREADGROUP") > 0; });
    EXPECT_EQ(joining, 0xfU);
    EXPECT_EQ(server.count("lawn_join"), 1);
    EXPECT_EQ(server.count("lawn_join lawn"), 3); // told which group is first
}

// Meanwhile no other shard says which group is the first one: if the first is
// there again for the next consumer, it may say another.
TEST_F(DurableConsumerErrors, ThatItCannotJoinYetIsTold)
{
    set({{"lawn_join", busy}});
    open(short_us);
    run_until_told("cannot read {test:0}:out: not done in time: BUSY a script");
    // One that was sent before may be on its way.
    const long before = server.count("lawn_join");
    client->run_until([&] { return server.count("lawn_join") >= before + 4; });
    EXPECT_EQ(joining, 1U);
    set({});
    run_until_well();
    client->run_until([&] { return joining == 0xfU; });
}

TEST_F(DurableConsumerErrors, ThatItCannotTakeOverIsTold)
{
    for (const char *const error : {refused, busy}) {
        set({{"lawn_take", error}});
        open(short_us, 200000);
        run_until_told("cannot take over from {test:0}:out: ");
        EXPECT_TRUE(contains(told(), error == busy ? ": not done in time: BUSY"
                                                   : ": ERR refused"))
            << told();
        set({});
        run_until_well();
        close();
    }
}

// An entry that a program of the same name was given. It is asked for again and
// again, and not left until its lease is over.
TEST_F(DurableConsumerErrors, ThatItCannotHaveItsOwnIsTold)
{
    const char *const own = "*1\r\n*4\r\n$3\r\n1-1\r\n$6\r\nworker\r\n:1\r\n:1"
                            "\r\n";
    set({{"XPENDING", own}, {"lawn_take", busy}});
    open(short_us);
    run_until_told("out: not done in time: BUSY a script");
    client->run_until([&] { return server.count("XPENDING") >= 3; });
    EXPECT_EQ(recovering, 8U); // the last, again and again, and then the others
    EXPECT_EQ(server.count("XREADGROUP"), 0);
    EXPECT_EQ(regained, 0U);
    set({{"XPENDING", own}});
    client->run_until([&] { return regained == 0xf; });
    run_until_well();
}

} // namespace
