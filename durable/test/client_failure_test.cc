// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a client does when the store fails: one clear error, nothing lost that
// was acknowledged, and recovery without a restart of the client.

#include "client_fixture.h"
#include "redis_server.h"

#include "lawn-verify/server.h"
#include "src/script.h"
#include "src/socket.h"

#include <sys/stat.h>

#include <string>

namespace
{

using namespace lawn_test;
using lawn::durable::ContextPtr;
using lawn::durable::ReplyPtr;

const uint64_t short_us = 1000000;

// Requests of such a client do not wait for long.
void be_quick(lawn_durable_params_t *params)
{
    params->request_timeout_us = short_us;
    params->connect_timeout_us = short_us;
}

std::string error_of(Client *client)
{
    const char *const error = lawn_durable_error(*client);
    return error ? error : "";
}

// A connection of the test's own, for what the fixture's cannot do.
ContextPtr connect(const RedisServer &server)
{
    return ContextPtr(redisConnectUnix(server.socket().c_str()));
}

void run(const ContextPtr &context, const Words &words)
{
    std::vector<const char *> arguments;
    std::vector<size_t> sizes;
    for (const std::string &word : words) {
        arguments.push_back(word.data());
        sizes.push_back(word.size());
    }
    const ReplyPtr reply(static_cast<redisReply *>(
        redisCommandArgv(context.get(), static_cast<int>(words.size()),
                         arguments.data(), sizes.data())));
    ASSERT_TRUE(reply);
    EXPECT_NE(reply->type, REDIS_REPLY_ERROR) << reply->str;
}

TEST(DurableFailure, NoServerIsSaidAtOnceToWhoWantsThat)
{
    Client client(
        "unix:/nowhere/redis.sock",
        [](lawn_durable_params_t *params) { params->fail_fast = true; });
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_IO);
    EXPECT_EQ(result.error,
              "the store at /nowhere/redis.sock: No such file or directory");
    EXPECT_EQ(error_of(&client), result.error);
    EXPECT_EQ(lawn_durable_now(client), 0);
    EXPECT_EQ(lawn_durable_shards(client), 0U);
}

TEST(DurableFailure, ARequestWaitsForTheServer)
{
    RedisServer server;
    server.stop();
    Client client(server.url());
    Result *const result = client.begin_start(Client::in_an_hour("a"));
    client.run_until([&client] { return !error_of(&client).empty(); });
    EXPECT_FALSE(result->is_answered);
    server.start();
    client.run_until([result] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK) << result->error;
    EXPECT_EQ(error_of(&client), "");
}

TEST(DurableFailure, ARequestThatWaitsInVainTimesOut)
{
    Client client("unix:/nowhere/redis.sock", be_quick);
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_TIMED_OUT);
    EXPECT_TRUE(contains(result.error, "/nowhere/redis.sock")) << result.error;
}

TEST(DurableFailure, AHostThatDoesNotExistIsNamed)
{
    Client client("redis://no-such-host.invalid",
                  [](auto *params) { params->fail_fast = true; });
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_IO);
    EXPECT_TRUE(contains(result.error, "no-such-host.invalid")) << result.error;
}

// What was acknowledged is there when the server is back.
TEST(DurableFailure, AServerIsKilledAgainAndAgain)
{
    RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
    Client client(server.url());
    unsigned acknowledged = 0;
    for (unsigned round = 0; round < 5; ++round) {
        std::vector<Result *> results;
        for (unsigned i = 0; i < 500; ++i) {
            const std::string id =
                std::to_string(round) + "-" + std::to_string(i);
            results.push_back(
                client.begin_start(Client::in_an_hour(id.c_str())));
        }
        client.run_until([&results] { return results[50]->is_answered; });
        server.kill();
        server.start();
        client.run_until([&results] {
            for (const Result *i : results) {
                if (!i->is_answered) {
                    return false;
                }
            }
            return true;
        });
        for (unsigned i = 0; i < results.size(); ++i) {
            const std::string id =
                std::to_string(round) + "-" + std::to_string(i);
            EXPECT_EQ(results[i]->answers, 1U);
            if (results[i]->status == LAWN_OK) {
                ++acknowledged;
                EXPECT_EQ(client.get(id.c_str()).state, LAWN_DURABLE_PENDING);
            } else {
                EXPECT_EQ(results[i]->status, LAWN_ERR_IO);
                EXPECT_TRUE(contains(results[i]->error, "unknown"))
                    << results[i]->error;
            }
        }
    }
    EXPECT_GT(acknowledged, 250U);
}

TEST(DurableFailure, AServerThatHangsIsLeft)
{
    RedisServer server;
    Client client(server.url(), be_quick);
    // The answer may come late on a slow machine.
    client.run_until([&] { return client.start("a").status == LAWN_OK; });
    server.pause();
    // The request and its connection have the same limit, and either may be
    // found first.
    const Result result = client.start("b");
    EXPECT_TRUE(result.status == LAWN_ERR_TIMED_OUT ||
                result.status == LAWN_ERR_IO)
        << lawn_status_string(result.status);
    EXPECT_TRUE(contains(result.error, "unknown") ||
                contains(result.error, "not done"))
        << result.error;
    client.run_until([&client] { return !error_of(&client).empty(); });
    server.resume();
    client.run_until([&] { return client.start("b").status == LAWN_OK; });
    client.run_until([&client] { return error_of(&client).empty(); });
}

TEST(DurableFailure, AWrongPasswordIsSaid)
{
    RedisServer server({"--requirepass", "secret"});
    const int port = lawn_verify::free_port();
    server.set_options({"--requirepass", "secret", "--port",
                        std::to_string(port), "--bind", "127.0.0.1"});
    server.stop();
    server.start();
    const std::string host = "127.0.0.1:" + std::to_string(port);

    Client without(server.url());
    const Result missing = without.start("a");
    EXPECT_EQ(missing.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(missing.error, "NOAUTH")) << missing.error;

    Client wrong("redis://:wrong@" + host);
    const Result refused = wrong.start("a");
    EXPECT_EQ(refused.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(refused.error, "WRONGPASS")) << refused.error;
    EXPECT_FALSE(contains(refused.error, "wrong@")) << refused.error;

    Client right("redis://:secret@" + host + "/3");
    EXPECT_EQ(right.start("a").status, LAWN_OK);

    // It is tried again, so that nobody needs to restart programs.
    const ContextPtr admin = connect(server);
    run(admin, {"AUTH", "secret"});
    run(admin, {"CONFIG", "SET", "requirepass", "wrong"});
    wrong.run_until([&wrong] { return wrong.start("a").status == LAWN_OK; });
}

TEST(DurableFailure, AUserOfTheServerNeedsTheRights)
{
    const int port = lawn_verify::free_port();
    RedisServer server({"--port", std::to_string(port), "--bind", "127.0.0.1"});
    server.command({"ACL", "SETUSER", "me", "on", ">secret", "~*", "&*",
                    "+@all", "-fcall"});
    const std::string url =
        "redis://me:secret@127.0.0.1:" + std::to_string(port);
    Client client(url);
    const Result refused = client.start("a");
    EXPECT_EQ(refused.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(refused.error, "NOPERM")) << refused.error;
    server.command({"ACL", "SETUSER", "me", "+fcall"});
    client.run_until([&client] { return client.start("a").status == LAWN_OK; });
}

TEST(DurableFailure, ADatabaseThatDoesNotExistIsSaid)
{
    RedisServer server;
    Client client(server.url() + "?db=16");
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(result.error, "DB index")) << result.error;
}

// Its library remembers what it last read of a shard.
TEST(DurableFailure, DatabasesOfOneServerHaveNothingInCommon)
{
    RedisServer server;
    Client first(server.url(), [](lawn_durable_params_t *params) {
        params->shards = 1;
        params->max_pending = 1;
    });
    Client second(server.url() + "?db=1",
                  [](lawn_durable_params_t *params) { params->shards = 1; });
    ASSERT_EQ(second.start("a").status, LAWN_OK);
    ASSERT_EQ(first.start("a").status, LAWN_OK);
    EXPECT_EQ(first.start("b").status, LAWN_ERR_BUSY);
    EXPECT_EQ(second.start("b").status, LAWN_OK);
    EXPECT_EQ(first.start("b").status, LAWN_ERR_BUSY);
}

TEST(DurableFailure, AKeyOfAWrongTypeIsCorrupt)
{
    RedisServer server;
    Client client(server.url(),
                  [](lawn_durable_params_t *params) { params->shards = 1; });
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.command({"RENAME", "{test:0}:due", "{test:0}:kept"});
    server.command({"SET", "{test:0}:due", "text"});
    const Result result = client.start("b");
    EXPECT_EQ(result.status, LAWN_ERR_CORRUPT);
    EXPECT_TRUE(contains(result.error, "WRONGTYPE {test:0}:due is a string"))
        << result.error;
    const Result count = client.count();
    EXPECT_EQ(count.status, LAWN_ERR_CORRUPT);
    EXPECT_TRUE(contains(count.error, "WRONGTYPE")) << count.error;
    EXPECT_TRUE(contains(count.error, "{test:0}:due")) << count.error;
    server.command({"RENAME", "{test:0}:kept", "{test:0}:due"});
    EXPECT_EQ(client.start("b").status, LAWN_OK);
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_PENDING);

    server.command({"RENAME", "{test:0}:config", "{test:0}:kept"});
    server.command({"SET", "{test:0}:config", "text"});
    Client other(server.url());
    EXPECT_EQ(other.start("b").status, LAWN_ERR_CORRUPT);
    server.command({"RENAME", "{test:0}:kept", "{test:0}:config"});
    EXPECT_EQ(client.start("b").status, LAWN_OK);
}

// The bounds of a shard are recorded when that can be done.
TEST(DurableFailure, AShardThatWasMendedHasItsBounds)
{
    RedisServer server;
    server.command({"SET", "{test:0}:meta", "text"});
    Client client(server.url(), [](lawn_durable_params_t *params) {
        params->shards = 1;
        params->max_pending = 1;
    });
    EXPECT_EQ(client.start("a").status, LAWN_ERR_CORRUPT);
    server.command({"DEL", "{test:0}:meta"});
    client.run_until([&server] {
        return server.command({"HGET", "{test:0}:meta", "max_pending"})
                   .string == "1";
    });
    EXPECT_EQ(client.start("a").status, LAWN_OK);
    EXPECT_EQ(client.start("b").status, LAWN_ERR_BUSY);
}

TEST(DurableFailure, AServerWithoutMemoryIsSaid)
{
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.command({"CONFIG", "SET", "maxmemory", "1mb"});
    const Result result = client.start("b");
    EXPECT_EQ(result.status, LAWN_ERR_NO_MEMORY);
    EXPECT_TRUE(contains(result.error, "OOM")) << result.error;
    EXPECT_EQ(client.get("b").state, LAWN_DURABLE_UNKNOWN);
    EXPECT_EQ(client.stop("a").state, LAWN_DURABLE_STOPPED);
    // A pump that is started now must be able to work.
    Client newcomer(server.url());
    const Result got = newcomer.get("a");
    EXPECT_EQ(got.status, LAWN_OK) << got.error;
    EXPECT_EQ(got.state, LAWN_DURABLE_STOPPED);
    server.command({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(client.start("b").status, LAWN_OK);
}

// Redis refuses writes as long as it cannot save.
TEST(DurableFailure, ADiskThatFailsIsSaid)
{
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    // A directory is where the file should be.
    const std::string file = server.directory() + "/dump.rdb";
    ASSERT_EQ(mkdir(file.c_str(), 0700), 0);
    server.command({"CONFIG", "SET", "save", "3600 1"});
    server.command({"BGSAVE"});
    Result result;
    client.run_until([&] {
        result = client.start("b");
        return result.status != LAWN_OK;
    });
    EXPECT_EQ(result.status, LAWN_ERR_IO);
    EXPECT_TRUE(contains(result.error, "MISCONF")) << result.error;
    ASSERT_EQ(rmdir(file.c_str()), 0);
    server.command({"SAVE"});
    EXPECT_EQ(client.start("b").status, LAWN_OK);
}

TEST(DurableFailure, AReplicaIsNotUsed)
{
    const int port = lawn_verify::free_port();
    RedisServer master({"--port", std::to_string(port), "--bind", "127.0.0.1"});
    RedisServer server;
    server.command({"REPLICAOF", "127.0.0.1", std::to_string(port)});
    Client client(server.url());
    Result *const result = client.begin_start(Client::in_an_hour("a"));
    client.run_until([&client] { return !error_of(&client).empty(); });
    EXPECT_TRUE(contains(error_of(&client), "it is a replica"))
        << error_of(&client);
    EXPECT_FALSE(result->is_answered);
    server.command({"REPLICAOF", "NO", "ONE"});
    client.run_until([result] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK);
}

TEST(DurableFailure, AMasterThatBecomesAReplicaIsLeft)
{
    const int port = lawn_verify::free_port();
    RedisServer master({"--port", std::to_string(port), "--bind", "127.0.0.1"});
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.command({"REPLICAOF", "127.0.0.1", std::to_string(port)});
    Result *const result = client.begin_start(Client::in_an_hour("b"));
    client.run_until([&client] { return !error_of(&client).empty(); });
    EXPECT_FALSE(result->is_answered);
    server.command({"REPLICAOF", "NO", "ONE"});
    client.run_until([result] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK) << result->error;
}

std::string library_of_version(const char *version)
{
    return std::string("#!lua name=lawn\nredis.register_function{"
                       "function_name='lawn_version', callback=function() "
                       "return ") +
           version + " end, flags={'no-writes'}}\n";
}

TEST(DurableFailure, AnotherVersionOfTheFunctionsIsRefused)
{
    RedisServer server;
    for (const char *const version : {"2", "0", "'x'", "false"}) {
        server.command(
            {"FUNCTION", "LOAD", "REPLACE", library_of_version(version)});
        Client client(server.url());
        const Result refused = client.start("a");
        EXPECT_EQ(refused.status, LAWN_ERR_UNSUPPORTED);
        EXPECT_TRUE(contains(refused.error, "its function library is version"))
            << refused.error;
        EXPECT_TRUE(contains(refused.error, "this program needs 5"))
            << refused.error;
        server.command({"FUNCTION", "DELETE", "lawn"});
        client.run_until(
            [&client] { return client.start("a").status == LAWN_OK; });
    }
}

TEST(DurableFailure, AForeignLibraryOfOurNameIsRefused)
{
    RedisServer server;
    server.command({"FUNCTION", "LOAD",
                    "#!lua name=lawn\nredis.register_function('mow', "
                    "function() return 1 end)\n"});
    Client client(server.url());
    const Result refused = client.start("a");
    EXPECT_EQ(refused.status, LAWN_ERR_UNSUPPORTED);
    EXPECT_TRUE(contains(refused.error, "not ours")) << refused.error;
}

TEST(DurableFailure, FunctionsThatAreFlushedAreLoadedAgain)
{
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.command({"FUNCTION", "FLUSH"});
    EXPECT_EQ(client.start("b").status, LAWN_OK);
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_PENDING);
}

TEST(DurableFailure, AServerThatCameBackEmptyIsUsed)
{
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.kill();
    server.start();
    client.run_until([&client] { return client.start("b").status == LAWN_OK; });
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_UNKNOWN);
    EXPECT_EQ(client.count().count, 1U);
    EXPECT_EQ(server.command({"HGET", "{test:0}:config", "shards"}).string,
              "4");
}

// A password keeps the client out until somebody else has made the namespace.
TEST(DurableFailure, ANamespaceThatWasMadeAnewWithOtherShardsIsRefused)
{
    RedisServer server;
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    server.kill();
    server.set_options({"--requirepass", "secret"});
    server.start();
    const ContextPtr admin = connect(server);
    run(admin, {"AUTH", "secret"});
    run(admin, {"FUNCTION", "LOAD", lawn::durable::script()});
    run(admin, {"FCALL", "lawn_open", "2", "{test:0}:config", "{test:0}:meta",
                "5", "0", "0", "0", "0", "1"});
    run(admin, {"CONFIG", "SET", "requirepass", ""});
    client.run_until(
        [&client] { return contains(error_of(&client), "5 shards"); });
    const Result refused = client.start("b");
    EXPECT_EQ(refused.status, LAWN_ERR_INVALID_PARAM) << refused.error;
    EXPECT_TRUE(contains(refused.error, "5 shards")) << refused.error;
    run(admin, {"DEL", "{test:0}:config"});
    client.run_until([&client] { return client.start("b").status == LAWN_OK; });
}

TEST(DurableFailure, AServerThatLoadsItsDataIsWaitedFor)
{
    // With `everysec`, it may answer before it writes, while the disk is slow.
    RedisServer server({"--appendonly", "yes", "--appendfsync", "no"});
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    std::vector<Words> fill;
    for (unsigned i = 0; i < 700; ++i) {
        fill.push_back({"SET", "key" + std::to_string(i), "value"});
    }
    server.pipeline(fill);
    server.kill();
    server.set_options({"--appendonly", "yes", "--key-load-delay", "1000"});
    Result *const result = client.begin_start(Client::in_an_hour("b"));
    server.start(true);
    client.run_until([result] { return result->is_answered; });
    // It was in flight when the server was killed, or waits until it is back.
    if (result->status != LAWN_OK) {
        EXPECT_EQ(result->status, LAWN_ERR_IO) << result->error;
    }
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_PENDING);
}

TEST(DurableFailure, AServerThatIsBusyIsWaitedFor)
{
    RedisServer server({"--busy-reply-threshold", "10"});
    Client client(server.url());
    ASSERT_EQ(client.start("a").status, LAWN_OK);
    const ContextPtr other = connect(server);
    redisAppendCommand(other.get(), "EVAL %s 0", "while true do end");
    int done = 0;
    while (!done) {
        ASSERT_EQ(redisBufferWrite(other.get(), &done), REDIS_OK);
    }
    client.run_until([&server] {
        return server.command({"PING"}).string.substr(0, 4) == "BUSY";
    });
    Result *const result = client.begin_start(Client::in_an_hour("b"));
    for (unsigned i = 0; i < 20; ++i) {
        lawn_durable_wait(client, 1000);
    }
    EXPECT_FALSE(result->is_answered);
    server.command({"SCRIPT", "KILL"});
    client.run_until([result] { return result->is_answered; });
    EXPECT_EQ(result->status, LAWN_OK) << result->error;
}

} // namespace
