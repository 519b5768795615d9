// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnd as its users have it: a process, with a server and targets of the
// test's own.

#include "lawnd_fixture.h"

#include "src/codec.h"

namespace
{

using namespace lawn_test;

TEST_F(Lawnd, RefusesBadCommandLinesWithOneLine)
{
    const Words cases[] = {
        {},
        {"--redis", server_.url()},
        {"--namespace", "test"},
        {"--redis", "", "--namespace", "test"},
        {"--redis", "http://x", "--namespace", "test"},
        {"--redis", "rediss://127.0.0.1", "--namespace", "test"},
        {"--redis", "redis://127.0.0.1:99999", "--namespace", "test"},
        {"--redis", server_.url(), "--namespace", ""},
        {"--redis", server_.url(), "--namespace", "a b"},
        {"--redis", server_.url(), "--namespace", std::string(65, 'a')},
        {"--redis", server_.url(), "--namespace", "test", "--shards", "0"},
        {"--redis", server_.url(), "--namespace", "test", "--shards", "1025"},
        {"--redis", server_.url(), "--namespace", "test", "--shards", "-1"},
        {"--redis", server_.url(), "--namespace", "test", "--shards", "x"},
        {"--redis", server_.url(), "--namespace", "test", "--prefetch", "0"},
        {"--redis", server_.url(), "--namespace", "test", "--prefetch", "1"},
        {"--redis", server_.url(), "--namespace", "test", "--prefetch", "11s"},
        {"--redis", server_.url(), "--namespace", "test", "--http-listen", ""},
        {"--redis", server_.url(), "--namespace", "test", "--http-listen", "x"},
        {"--redis", server_.url(), "--namespace", "test", "--http-listen",
         "127.0.0.1:65536"},
        {"--redis", server_.url(), "--namespace", "test", "--unknown"},
        {"--redis", server_.url(), "--namespace", "test", "-x"},
        {"--redis", server_.url(), "--namespace", "test", "more"},
        {"--redis", server_.url(), "--namespace", "test", "--shards"},
        {"--redis", "redis://a\nb", "--namespace", "test"},
        {"--redis", server_.url(), "--namespace", "a\nb"},
        {"--redis", server_.url(), "--namespace", "test", "--http-listen",
         "a\nb:0"},
        {"--redis", server_.url(), "--namespace", "test", "--http-listen",
         "a\nb"},
        {"--redis", server_.url(), "--namespace", "test", "a\nb"},
    };
    for (const Words &options : cases) {
        std::string line;
        for (const std::string &word : options) {
            line += word + " ";
        }
        int status = 0;
        const std::string text = run(options, &status);
        EXPECT_EQ(status, 1) << line;
        EXPECT_EQ(text.find("lawnd: "), 0U) << line << text;
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1)
            << line << text;
    }
}

TEST_F(Lawnd, HelpAndVersion)
{
    int status = -1;
    for (const char *const option : {"--help", "-h"}) {
        EXPECT_EQ(run({option}, &status).find("usage: lawnd "), 0U);
        EXPECT_EQ(status, 0);
    }
    for (const char *const option : {"--version", "-V"}) {
        EXPECT_EQ(run({option}, &status), "lawnd " LAWN_VERSION_STRING "\n");
        EXPECT_EQ(status, 0);
    }
}

TEST_F(Lawnd, TakesAsManyDescriptorsAsItMayHave)
{
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few = {64, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    start();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit raised;
    ASSERT_EQ(prlimit(lawnd_.pid(), RLIMIT_NOFILE, nullptr, &raised), 0);
    EXPECT_EQ(raised.rlim_cur, std::min<rlim_t>(before.rlim_max, 4096));
}

TEST_F(Lawnd, WarnsOfAStoreThatMayDropTimers)
{
    server_.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    start();
    EXPECT_TRUE(becomes([&] {
        return log().find("warning: ") != std::string::npos &&
               log().find("maxmemory-policy is allkeys-lru") !=
                   std::string::npos;
    })) << log();
    EXPECT_EQ(metric("lawnd_store_warning"), 1);
    int status = 0;
    std::string text = run({"--redis", server_.url(), "--namespace", name_space,
                            "--require-safe-store"},
                           &status);
    EXPECT_EQ(status, 1);
    EXPECT_NE(text.find("no safe store: "), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

TEST_F(Lawnd, StoreThatCannotBeReachedIsOneLine)
{
    int status = 0;
    std::string text =
        run({"--redis", "unix:" + server_.directory() + "/nobody",
             "--namespace", name_space},
            &status);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(text.find("lawnd: "), 0U) << text;
    EXPECT_NE(text.find("/nobody"), std::string::npos) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;

    start({"--shards", "4"});
    lawnd_.kill();
    text = run(
        {"--redis", server_.url(), "--namespace", name_space, "--shards", "5"},
        &status);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_NE(text.find("4"), std::string::npos) << text;
}

TEST_F(Lawnd, FiresForConsumers)
{
    start();
    struct Seen {
        lawn_durable_consumer_t *consumer = nullptr;
        bool is_done = false;
    } seen;
    lawn_durable_consume_t consume = {};
    ASSERT_EQ(lawn_durable_consume(
                  client(), &consume,
                  [](void *arg, const lawn_durable_delivery_t *delivery) {
                      auto *const s = static_cast<Seen *>(arg);
                      EXPECT_STREQ(delivery->id, "one");
                      EXPECT_GE(delivery->fired_us, delivery->due_us);
                      lawn_durable_answer(s->consumer, delivery,
                                          LAWN_DURABLE_DONE, 0, nullptr,
                                          nullptr, nullptr);
                      s->is_done = true;
                  },
                  &seen, &seen.consumer),
              LAWN_OK);
    start_timer("one", "");
    EXPECT_TRUE(becomes([&] {
        lawn_durable_wait(client(), 1000);
        return seen.is_done;
    }));
    expect_state("one", "success");
    EXPECT_TRUE(becomes([&] { return metric("lawnd_fired_total") == 1; }));
    EXPECT_EQ(metric("lawnd_lateness_seconds_count"), 1);
    EXPECT_EQ(metric("lawn_durable_superseded_total"), 0);
}

TEST_F(Lawnd, AnswersOfTargetsDecide)
{
    HttpTarget target([](const HttpRequest &request) {
        const std::string attempt = request.headers.at("lawn-attempt");
        if (request.line.find("/refuse") != std::string::npos) {
            return HttpTarget::status(404);
        }
        if (request.line.find("/second") != std::string::npos) {
            return HttpTarget::status(attempt == "2" ? 200 : 503);
        }
        return HttpTarget::status(
            request.line.find("/never") == std::string::npos ? 204 : 500);
    });
    start();
    start_timer("done", target.url("/done"));
    start_timer("refused", target.url("/refuse"));
    start_timer("second", target.url("/second"));
    start_timer("never", target.url("/never"), 3);
    start_timer("nobody", "http://127.0.0.1:1/", 2);
    expect_state("done", "success");
    expect_state("refused", "fail");
    EXPECT_NE(log().find("failed refused, target 127.0.0.1:"),
              std::string::npos)
        << log();
    EXPECT_NE(log().find(": HTTP status 404\n"), std::string::npos) << log();
    expect_state("second", "success");
    expect_state("never", "dead");
    expect_state("nobody", "dead");
    std::multiset<std::string> keys;
    for (HttpRequest request : target.requests()) {
        keys.insert(request.headers["idempotency-key"]);
        EXPECT_EQ(request.body, "payload");
    }
    EXPECT_EQ(keys.size(), 1U + 1 + 2 + 3);
    EXPECT_TRUE(becomes([&] {
        return metric("lawnd_deliveries_total",
                      ",via=\"http\",result=\"done\"") == 2;
    }));
    EXPECT_TRUE(becomes([&] {
        return metric("lawnd_deliveries_total",
                      ",via=\"http\",result=\"fail\"") == 1;
    }));
    EXPECT_EQ(metric("lawn_durable_dead_letters"), 2);
}

TEST_F(Lawnd, LogsNoPasswordOfWhatIsNoUrl)
{
    start();
    // No start lets it pass, but somebody else may have written it.
    lawn::durable::Options options;
    options.target = "http://user:password@ho!st/";
    server_.command({"FCALL", "lawn_start", "5", "{test:0}:due",
                     "{test:0}:body", "{test:0}:meta", "{test:0}:ended0",
                     "{test:0}:ended1", "1", "wrong", "+0",
                     lawn::durable::encode_tail(options, "payload")});
    expect_state("wrong", "fail");
    EXPECT_NE(log().find("failed wrong, target (no URL): not a URL"),
              std::string::npos)
        << log();
    EXPECT_EQ(log().find("password"), std::string::npos) << log();
}

// More than 16 posts and 64 places: the rest waits in the store, and uses up
// none of its attempts. So what was deferred is at its first attempt when it is
// posted. (On a slow machine, a post that is held may end by its time-out, and
// comes again.)
TEST_F(Lawnd, TargetWithTooMuchToDoLosesNothing)
{
    HttpTarget target([&target](const HttpRequest &) {
        target.hold();
        return HttpTarget::status(200);
    });
    start();
    for (unsigned i = 0; i < 100; ++i) {
        start_timer("id" + std::to_string(i), target.url(), 1000);
    }
    EXPECT_TRUE(becomes([&] {
        return metric("lawnd_deliveries_total",
                      ",via=\"http\",result=\"deferred\"") >= 20;
    }));
    EXPECT_LE(metric("lawnd_http_posting"), 16);
    target.release();
    for (unsigned i = 0; i < 100; ++i) {
        expect_state("id" + std::to_string(i), "success");
    }
    std::set<std::string> seen;
    for (HttpRequest request : target.requests()) {
        if (seen.insert(request.headers["idempotency-key"]).second) {
            EXPECT_EQ(request.headers["lawn-attempt"], "1");
        }
    }
    EXPECT_EQ(seen.size(), 100U);
}

TEST_F(Lawnd, AppendsToStreams)
{
    start();
    server_.command({"SET", "text", "is no stream"});
    start_timer("good", "stream:events");
    start_timer("wrong", "stream:text", 2);
    start_timer("own", "stream:{test:0}:out");
    expect_state("good", "success");
    expect_state("wrong", "dead");
    expect_state("own", "fail");
    const Reply entries = server_.command({"XRANGE", "events", "-", "+"});
    ASSERT_EQ(entries.size(), 1U) << to_string(entries);
    const Reply &fields = entries[0][1];
    ASSERT_EQ(fields.size(), 12U) << to_string(entries);
    EXPECT_EQ(fields[0].string + fields[1].string, "idgood");
    EXPECT_EQ(fields[2].string, "generation");
    EXPECT_EQ(fields[4].string, "due");
    EXPECT_EQ(fields[6].string, "fired");
    EXPECT_GE(std::stoll(fields[7].string), std::stoll(fields[5].string));
    EXPECT_EQ(fields[8].string + fields[9].string, "attempt1");
    EXPECT_EQ(fields[10].string + fields[11].string, "payloadpayload");
}

// A full store costs a timer no attempt, and a daemon can begin meanwhile.
TEST_F(Lawnd, AppendsWhenTheStoreHasRoomAgain)
{
    start_timer("one", "stream:events", 1);
    server_.command({"CONFIG", "SET", "maxmemory", "1mb"});
    start();
    EXPECT_TRUE(becomes([&] {
        return metric("lawnd_deliveries_total",
                      ",via=\"stream\",result=\"deferred\"") >= 1;
    }));
    server_.command({"CONFIG", "SET", "maxmemory", "0"});
    expect_state("one", "success");
}

} // namespace
