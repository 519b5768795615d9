// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How lawnd ends, and what it does when the store does.

#include "lawnd_fixture.h"

#include <atomic>

#include "src/script.h"

namespace
{

using namespace lawn_test;

TEST_F(Lawnd, EndsWhenWhatIsPostedHasEnded)
{
    std::atomic<bool> holds{false};
    HttpTarget target([&](const HttpRequest &) {
        if (holds) {
            target.hold();
        }
        return HttpTarget::status(200);
    });
    start();
    start_timer("first", target.url());
    expect_state("first", "success"); // so it may have many posts at a time
    holds = true;
    for (unsigned i = 0; i < 30; ++i) {
        start_timer("id" + std::to_string(i), target.url());
    }
    EXPECT_TRUE(becomes([&] { return target.requests().size() == 17; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] {
        return get(url("/healthz")) ==
               std::pair<long, std::string>(503, "ending\n");
    }));
    EXPECT_TRUE(lawnd_.is_running());
    target.release();
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(lawnd_.status().value_or(-1), 0);
    unsigned succeeded = 0;
    for (unsigned i = 0; i < 30; ++i) {
        succeeded += state_of("id" + std::to_string(i)) == "success";
    }
    EXPECT_EQ(succeeded, 16U);
    start(); // another daemon takes the rest
    for (unsigned i = 0; i < 30; ++i) {
        expect_state("id" + std::to_string(i), "success");
    }
}

TEST_F(Lawnd, EndsAlsoWhenTheStoreWasNeverReached)
{
    lawnd_.start({program_, "--redis",
                  "unix:" + server_.directory() + "/nobody", "--namespace",
                  name_space, "--http-listen", "127.0.0.1:0"},
                 log_path());
    EXPECT_TRUE(becomes([&] {
        return log().find("listens on ") != std::string::npos;
    })) << log();
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    // On a slow machine, it may have given up before.
    EXPECT_TRUE(lawnd_.status().has_value()) << log();
}

// The other pumps need not wait until they miss it.
TEST_F(Lawnd, TakesItsPumpOffTheListWhenItEnds)
{
    start();
    const auto pumps = [&] {
        return server_
            .command({"ZCARD", "{" + std::string(name_space) + ":0}:pumps"})
            .integer;
    };
    EXPECT_TRUE(becomes([&] { return pumps() == 1; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(pumps(), 0);
}

TEST_F(Lawnd, SecondSignalEndsItAtOnce)
{
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    start();
    start_timer("one", target.url());
    EXPECT_TRUE(becomes([&] { return target.requests().size() == 1; }));
    lawnd_.signal(SIGTERM);
    EXPECT_TRUE(becomes([&] {
        return log().find("ends; posts under way: 1\n") != std::string::npos;
    }));
    EXPECT_TRUE(lawnd_.is_running());
    lawnd_.signal(SIGINT);
    EXPECT_TRUE(becomes([&] { return !lawnd_.is_running(); })) << log();
    EXPECT_EQ(lawnd_.status().value_or(-1), 0);
}

TEST_F(Lawnd, CarriesOnWhenTheStoreIsBack)
{
    server_.stop();
    server_.set_options({"--appendonly", "yes", "--appendfsync", "always"});
    server_.start();
    start();
    EXPECT_EQ(get(url("/healthz")),
              (std::pair<long, std::string>(200, "ok\n")));
    EXPECT_EQ(get(url("/")).first, 404);
    server_.kill();
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 503; }));
    EXPECT_TRUE(becomes([&] { return metric("lawnd_store_up") == 0; }));
    EXPECT_EQ(metric("lawn_durable_pending"), -1);
    server_.start();
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 200; }))
        << log();
    EXPECT_NE(log().find("the store answers again"), std::string::npos);
    start_timer("after", "stream:events");
    expect_state("after", "success");
    EXPECT_TRUE(becomes([&] { return metric("lawn_durable_pending") == 0; }));
}

// It knew what the store had.
TEST_F(Lawnd, SaysThatTimersWereLost)
{
    start();
    EXPECT_EQ(metric("lawnd_store_lost_timers"), 0);
    server_.kill();
    server_.start();
    EXPECT_TRUE(becomes([&] { return metric("lawnd_store_lost_timers") == 1; }))
        << log();
    const auto health = get(url("/healthz"));
    EXPECT_EQ(health.first, 503);
    EXPECT_EQ(health.second.substr(0, 25), "test:0: timers were lost,");
    EXPECT_NE(log().find("; `lawnctl acknowledge` ends this error"),
              std::string::npos)
        << log();
    const Reply done = server_.command(
        {"FCALL", "lawn_acknowledge", "6", "{test:0}:due", "{test:0}:body",
         "{test:0}:meta", "{test:0}:out", "{test:0}:push", "{test:0}:cron"});
    EXPECT_EQ(done.integer, 1) << to_string(done);
    server_.command({"CLIENT", "KILL", "TYPE", "normal"}); // it looks again
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 200; }))
        << log();
    EXPECT_NE(log().find("the loss of timers was acknowledged"),
              std::string::npos);
}

// The store answers, and yet timers do not fire.
TEST_F(Lawnd, SaysWhenAShardCannotBeFired)
{
    start({"--shards", "2"});
    server_.command({"SET", "{test:1}:due", "text"});
    const auto look = [&] { // has the pump look at it
        server_.command({"PUBLISH", "{test:1}:wake", ""});
        return get(url("/healthz"));
    };
    EXPECT_TRUE(becomes([&] { return look().first == 503; })) << log();
    const std::string health = look().second;
    EXPECT_NE(health.find("{test:1}:due"), std::string::npos) << health;
    EXPECT_TRUE(becomes([&] {
        return log().find("{test:1}:due") != std::string::npos;
    })) << log();
    EXPECT_EQ(metric("lawnd_store_up"), 1);
    EXPECT_EQ(metric("lawn_durable_shard_up", ",shard=\"1\""), 0);
    EXPECT_EQ(metric("lawn_durable_shard_pending", ",shard=\"0\""), 0);
    EXPECT_EQ(metric("lawn_durable_pending"), -1);
    server_.command({"DEL", "{test:1}:due"});
    EXPECT_TRUE(becomes([&] { return look().first == 200; })) << log();
    EXPECT_NE(log().find("the trouble is over"), std::string::npos) << log();
}

// As long as a script of somebody else runs.
TEST_F(Lawnd, SaysOnceThatTheServerIsBusy)
{
    start({"--shards", "2"});
    const std::string begin = "local limit = integer(args[1], 1, 500)";
    std::string script = lawn::durable::script();
    const size_t at = script.find(begin);
    ASSERT_NE(at, std::string::npos);
    script.insert(at, "do return redis.error_reply('BUSY a script') end ");
    server_.command({"FUNCTION", "LOAD", "REPLACE", script});
    const auto look = [&] { // has the pump look at both
        server_.command({"PUBLISH", "{test:0}:wake", ""});
        server_.command({"PUBLISH", "{test:1}:wake", ""});
        return get(url("/healthz"));
    };
    EXPECT_TRUE(becomes([&] { return look().first == 503; })) << log();
    const std::string health = look().second;
    EXPECT_NE(health.find("BUSY a script"), std::string::npos) << health;
    server_.command({"FUNCTION", "LOAD", "REPLACE", lawn::durable::script()});
    EXPECT_TRUE(becomes([&] { return look().first == 200; })) << log();
    EXPECT_TRUE(becomes([&] {
        return log().find("the trouble is over") != std::string::npos;
    })) << log();
    const std::string text = log();
    const size_t line = text.find("BUSY a script");
    ASSERT_NE(line, std::string::npos) << text;
    EXPECT_EQ(text.find("BUSY a script", line + 1), std::string::npos) << text;
}

TEST_F(Lawnd, SaysThatItMayNotListen)
{
    start({"--shards", "2"});
    server_.command({"ACL", "SETUSER", "default", "resetchannels"});
    server_.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 503; }));
    const std::string health = get(url("/healthz")).second;
    EXPECT_NE(health.find("NOPERM"), std::string::npos) << health;
    server_.command({"ACL", "SETUSER", "default", "&*"});
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 200; }));
}

// One broken shard keeps it from no other.
TEST_F(Lawnd, BeginsThoughAShardIsBroken)
{
    start({"--shards", "2"});
    lawnd_.kill();
    server_.command({"SET", "{test:0}:due", "text"});
    start();
    EXPECT_TRUE(becomes([&] { return get(url("/healthz")).first == 503; }));
    unsigned started = 0;
    for (unsigned i = 0; i < 20; ++i) {
        const std::string id = "id" + std::to_string(i);
        lawn_durable_start_t start = {};
        start.id = id.c_str();
        start.target = "stream:events";
        started +=
            lawn_durable_start_sync(client(), &start, nullptr) == LAWN_OK;
    }
    EXPECT_GT(started, 0U);
    EXPECT_TRUE(becomes([&] {
        return server_.command({"XLEN", "events"}).integer == started;
    })) << log();
}

} // namespace
