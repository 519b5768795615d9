// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Namespaces, and operations on timers.

#include "store_fixture.h"

#include <algorithm>

namespace
{

using namespace lawn_test;

class DurableStore : public Store
{
};

TEST_F(DurableStore, IsOfTheVersionThatTheProgramWants)
{
    EXPECT_EQ(call("lawn_version", "", {}).integer, script_version);
}

TEST_F(DurableStore, TheFirstToOpenRecords)
{
    const Opened first = decoded<Opened>(call(
        "lawn_open", "config none", {"4", "100", "200", "300", "400", "1"}));
    EXPECT_EQ(first.shards, 4U);
    const Opened second = decoded<Opened>(
        call("lawn_open", "config none", {"0", "1", "2", "3", "4", "1"}));
    EXPECT_EQ(second.shards, 4U);
    EXPECT_EQ(second.max_pending, 100U);
    EXPECT_EQ(second.max_bytes, 200U);
    EXPECT_EQ(second.keep_us, 300U);
    EXPECT_EQ(second.keep_count, 400U);
    EXPECT_EQ(decoded<Opened>(call("lawn_open", "config none",
                                   {"4", "0", "0", "0", "0", "1"}))
                  .shards,
              4U);
    EXPECT_EQ(
        call("lawn_open", "config none", {"5", "0", "0", "0", "0", "1"}).string,
        "LAWN SHARDS the namespace has 4 shards, not 5");
}

TEST_F(DurableStore, ANewNamespaceHasDefaults)
{
    const Opened opened = decoded<Opened>(
        call("lawn_open", "config none", {"0", "0", "0", "0", "0", "1"}));
    EXPECT_EQ(opened.shards, 1U);
    EXPECT_EQ(opened.max_pending, 0U);
    EXPECT_EQ(opened.keep_us, 3600000000U);
    EXPECT_EQ(opened.keep_count, 100000U);
}

TEST_F(DurableStore, AnotherFormatIsRefused)
{
    server.command({"HSET", key("config"), "format", "2"});
    const Reply reply =
        call("lawn_open", "config none", {"0", "0", "0", "0", "0", "1"});
    EXPECT_EQ(reply.string, "LAWN VERSION the namespace has format 2, this "
                            "library knows 1");
}

TEST_F(DurableStore, ANumberOfShardsThatIsNoneIsNotReplaced)
{
    call("lawn_open", "config none", {"4", "0", "0", "0", "0", "1"});
    server.command({"HSET", key("config"), "shards", "text"});
    const Reply reply =
        call("lawn_open", "config none", {"4", "0", "0", "0", "0", "1"});
    EXPECT_EQ(reply.string.substr(0, 12), "LAWN CORRUPT") << to_string(reply);
}

TEST_F(DurableStore, AStartTellsItsTime)
{
    const int64_t before = now();
    const Started one = start("a", "+5000000", "x");
    EXPECT_GT(one.generation, 0U);
    EXPECT_FALSE(one.repeated);
    EXPECT_EQ(one.state, pending);
    EXPECT_GE(one.now_us, before);
    EXPECT_EQ(one.due_us, one.now_us + 5000000);
    const Started two = start("b", "1234567890123456");
    EXPECT_GT(two.generation, one.generation);
    EXPECT_EQ(two.due_us, 1234567890123456);
    const Started last = start("c", std::to_string(max_time));
    EXPECT_EQ(last.due_us, max_time);
    const Got got = decoded<Got>(get_reply("c"));
    EXPECT_EQ(got.body.due_us, max_time);
}

TEST_F(DurableStore, WhatWasStartedCanBeAskedFor)
{
    std::string payload;
    for (int i = 0; i < 512; ++i) {
        payload += static_cast<char>(i);
    }
    Options options;
    options.max_attempts = 3;
    options.backoff_min_ms = 5;
    options.backoff_max_ms = 4000000000;
    options.misfire = 1;
    options.misfire_ms = 9;
    options.every_us = 10000;
    options.target = "http://localhost/";
    options.token = 0x8070605040302010;
    const Started s = start("a", "+1000000", payload, options);
    const Reply reply = get_reply("a");
    const Tree tree(reply);
    Got got;
    ASSERT_TRUE(decode(tree.get(), &got)) << to_string(reply);
    EXPECT_EQ(got.state, pending);
    EXPECT_GE(got.now_us, s.now_us);
    EXPECT_EQ(got.body.generation, s.generation);
    EXPECT_EQ(got.body.due_us, s.due_us);
    EXPECT_EQ(got.body.attempt, 1U);
    EXPECT_EQ(got.body.payload, payload);
    EXPECT_EQ(got.body.options.max_attempts, 3U);
    EXPECT_EQ(got.body.options.backoff_min_ms, 5U);
    EXPECT_EQ(got.body.options.backoff_max_ms, 4000000000U);
    EXPECT_EQ(got.body.options.misfire, 1U);
    EXPECT_EQ(got.body.options.misfire_ms, 9U);
    EXPECT_EQ(got.body.options.every_us, 10000);
    EXPECT_EQ(got.body.options.target, options.target);
    EXPECT_EQ(got.body.options.token, options.token);
    EXPECT_EQ(state("b"), 0);
}

TEST_F(DurableStore, AnIdStartedAgainIsArmedAnew)
{
    const Started first = start("a", "+1000000", "first");
    const Started again = start("a", "+9000000", "second payload");
    EXPECT_GT(again.generation, first.generation);
    EXPECT_EQ(stats()["pending"], 1);
    EXPECT_EQ(stats()["bytes"], 14);
    EXPECT_EQ(server.command({"ZSCORE", key("due"), "a"}).string,
              std::to_string(again.due_us));
}

// As after a failover to a replica that has not got the latest starts.
TEST_F(DurableStore, AGenerationIsNotGivenAgainWhenStartsAreLost)
{
    start("a", "+1000000");
    const std::string kept =
        server.command({"HGET", key("meta"), "gen"}).string;
    const uint64_t lost = start("b", "+1000000").generation;
    server.command({"HSET", key("meta"), "gen", kept});
    load(); // a server that remembers nothing of the shard
    EXPECT_GT(start("b", "+1000000").generation, lost);
    EXPECT_EQ(stats()["started"], 2); // of which the server knows
}

TEST_F(DurableStore, ARepeatedStartIsKnownByItsToken)
{
    Options options;
    options.token = 7;
    const Started first = start("a", "+100", "x", options);
    const Started again = start("a", "+999999", "y", options);
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.generation, first.generation);
    EXPECT_EQ(again.due_us, first.due_us);
    EXPECT_EQ(again.state, pending);
    while (fire().fired() == 0) {
    }
    EXPECT_EQ(start("a", "+0", "z", options).state, delivered);
    join();
    answer(read().at(0), done_verdict());
    const Started late = start("a", "+0", "z", options);
    EXPECT_TRUE(late.repeated);
    EXPECT_EQ(late.state, success);
    EXPECT_EQ(late.generation, first.generation);
    EXPECT_EQ(late.due_us, first.due_us);
    EXPECT_EQ(fire().fired(), 0U);
    options.token = 8;
    EXPECT_FALSE(start("a", "+100", "z", options).repeated);
}

TEST_F(DurableStore, AStopIsAnsweredTheSameAgain)
{
    const Started s = start("a", "+1000000", "payload");
    for (int i = 0; i < 3; ++i) {
        const Stopped answer = stop("a");
        EXPECT_EQ(answer.state, stopped);
        EXPECT_EQ(answer.generation, s.generation);
    }
    EXPECT_EQ(stop("b").state, 0);
    EXPECT_EQ(state("a"), stopped);
    EXPECT_EQ(stats()["pending"], 0);
    EXPECT_EQ(stats()["bytes"], 0);
    EXPECT_EQ(stats()["stopped"], 1);
    EXPECT_EQ(server.command({"HLEN", key("body")}).integer, 0);
}

TEST_F(DurableStore, AStopOfAnotherGenerationIsNone)
{
    const Started first = start("a", "+1000000");
    const Started s = start("a", "+1000000");
    const std::string keys = "due body meta ended0 ended1";
    const auto stop_generation = [&](uint64_t generation) {
        return decoded<Stopped>(
                   call("lawn_stop", keys, {"a", std::to_string(generation)}))
            .state;
    };
    EXPECT_EQ(stop_generation(first.generation), pending);
    EXPECT_EQ(stop_generation(s.generation), stopped);
}

TEST_F(DurableStore, AStopCanBeTooLate)
{
    start("a", "+0");
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(stop("a").state, delivered);
    join();
    const Delivery delivery = read().at(0);
    EXPECT_EQ(answer(delivery, reject_verdict("no")), Answered::taken);
    EXPECT_EQ(stop("a").state, fail);
}

TEST_F(DurableStore, AnUpdateWantsTheGenerationThatItSaw)
{
    Options options;
    options.max_attempts = 3;
    options.target = "stream:x";
    const std::string keys = "due body meta";
    const Started s = start("a", "+1000000", "one", options);
    const std::string first = std::to_string(s.generation);
    const Updated moved =
        decoded<Updated>(call("lawn_update", keys, {"a", first, "+2000000"}));
    EXPECT_TRUE(moved.updated);
    EXPECT_GT(moved.generation, s.generation);
    const std::string second = std::to_string(moved.generation);
    EXPECT_GT(moved.due_us, s.due_us);
    EXPECT_EQ(moved.due_us, moved.now_us + 2000000);
    const Updated refused =
        decoded<Updated>(call("lawn_update", keys, {"a", first, "+1"}));
    EXPECT_FALSE(refused.updated);
    EXPECT_EQ(refused.generation, moved.generation);
    EXPECT_EQ(refused.state, pending);
    const Updated changed =
        decoded<Updated>(call("lawn_update", keys, {"a", second, "", "three"}));
    EXPECT_TRUE(changed.updated);
    EXPECT_EQ(changed.due_us, moved.due_us);
    const Reply reply = get_reply("a");
    const Tree tree(reply);
    Got got;
    ASSERT_TRUE(decode(tree.get(), &got));
    EXPECT_EQ(got.body.payload, "three");
    EXPECT_EQ(got.body.generation, changed.generation);
    EXPECT_GT(changed.generation, moved.generation);
    EXPECT_EQ(got.body.options.max_attempts, 3U);
    EXPECT_EQ(got.body.options.target, "stream:x");
    EXPECT_FALSE(
        decoded<Updated>(call("lawn_update", keys, {"b", "1", "+1"})).updated);
    const Updated last = decoded<Updated>(call(
        "lawn_update", keys, {"a", std::to_string(changed.generation), "+0"}));
    EXPECT_TRUE(last.updated);
    fire();
    const Updated late = decoded<Updated>(call(
        "lawn_update", keys, {"a", std::to_string(last.generation), "+0"}));
    EXPECT_FALSE(late.updated);
    EXPECT_EQ(late.state, delivered);
}

// It may be that the first answer was lost.
TEST_F(DurableStore, ARepeatedUpdateIsAnsweredLikeTheFirst)
{
    const std::string keys = "due body meta";
    const std::string seen =
        std::to_string(start("a", "+1000000", "one").generation);
    const auto update = [&](const std::string &when,
                            const std::string &payload) {
        return decoded<Updated>(
            call("lawn_update", keys, {"a", seen, when, payload}));
    };
    const Updated first = update("+0", "two");
    ASSERT_TRUE(first.updated);
    for (int i = 0; i < 3; ++i) {
        const Updated again = update("+0", "two");
        EXPECT_TRUE(again.updated);
        EXPECT_EQ(again.generation, first.generation);
        EXPECT_EQ(again.due_us, first.due_us);
        if (i == 1) {
            EXPECT_EQ(fire().fired(), 1U); // it stays so
        }
    }
    EXPECT_FALSE(update("+1", "two").updated);
    EXPECT_FALSE(update("+0", "three").updated);
    EXPECT_FALSE(
        decoded<Updated>(call("lawn_update", keys, {"a", seen, "+0"})).updated);
    start("a", "+1000000");
    EXPECT_FALSE(update("+0", "two").updated);
}

// Each is carried out as if it came alone, in their order.
TEST_F(DurableStore, StartsOfOneCall)
{
    Options repeated;
    repeated.token = 7;
    const Started first = start("a", "+1000000", "", repeated);
    Words args;
    for (const Words &i :
         {start_args("a", "+1", "", repeated),
          start_args("b", "+2000000", "", repeated),
          start_args("b", "+1", "", repeated), start_args("c d", "+1"),
          start_args("c", "+3000000", "1"), start_args("c", "+4000000", "2"),
          start_args("d", "never")}) {
        args.insert(args.end(), i.begin(), i.end());
    }
    const Reply reply = call("lawn_start", "due body meta ended0 ended1", args);
    ASSERT_EQ(reply.size(), 7U) << to_string(reply);
    const Started again = decoded<Started>(reply[0]);
    EXPECT_TRUE(again.repeated);
    EXPECT_EQ(again.generation, first.generation);
    EXPECT_EQ(again.due_us, first.due_us);
    const Started b = decoded<Started>(reply[1]);
    EXPECT_FALSE(b.repeated);
    EXPECT_GT(b.generation, first.generation);
    const Started b_again = decoded<Started>(reply[2]);
    EXPECT_TRUE(b_again.repeated);
    EXPECT_EQ(b_again.generation, b.generation);
    EXPECT_EQ(b_again.due_us, b.due_us);
    EXPECT_EQ(reply[3].string, "LAWN INVALID id");
    const Started c = decoded<Started>(reply[4]);
    const Started c_anew = decoded<Started>(reply[5]);
    EXPECT_GT(c_anew.generation, c.generation);
    const Tree tree(get_reply("c")); // the payload is in it
    Got got;
    ASSERT_TRUE(decode(tree.get(), &got));
    EXPECT_EQ(got.body.due_us, c_anew.due_us);
    EXPECT_EQ(got.body.payload, "2");
    EXPECT_EQ(reply[6].string, "LAWN INVALID time");
    EXPECT_EQ(server.command({"ZCARD", key("due")}).integer, 3);
}

TEST_F(DurableStore, StartsOfOneCallCountForTheBounds)
{
    prepare("2", "5", "1000", "1000");
    Words args;
    for (const Words &i :
         {start_args("a", "+1000000", "123"),
          start_args("b", "+1000000", "456"), start_args("b", "+1000000", "45"),
          start_args("c", "+1000000"), start_args("a", "+1000000", "1234"),
          start_args("a", "+2000000", "12")}) {
        args.insert(args.end(), i.begin(), i.end());
    }
    const Reply reply = call("lawn_start", "due body meta ended0 ended1", args);
    ASSERT_EQ(reply.size(), 6U) << to_string(reply);
    for (const size_t i : {1U, 3U, 4U}) {
        EXPECT_EQ(reply[i].string.substr(0, 9), "LAWN FULL") << i;
    }
    for (const size_t i : {0U, 2U, 5U}) {
        EXPECT_FALSE(reply[i].is_error()) << i;
    }
    EXPECT_EQ(stats()["bytes"], 4);
    EXPECT_EQ(stats()["pending"], 2);
}

TEST_F(DurableStore, NoMoreTimersThanTheBound)
{
    prepare("2", "0", "1000", "1000");
    start("a", "+1000000");
    start("b", "+1000000");
    const auto start_c = [this] {
        return start_reply(start_args("c", "+1"), "due body meta");
    };
    EXPECT_EQ(start_c().string,
              "LAWN FULL as many timers are pending as the namespace may have");
    EXPECT_EQ(state("c"), 0);
    start("a", "+2000000"); // none more than before
    stop("b");
    EXPECT_FALSE(start_c().is_error());
    prepare("0", "0", "1000", "1000");
    start("d", "+2000000");
}

TEST_F(DurableStore, NoMoreBytesThanTheBound)
{
    prepare("0", "10", "1000", "1000");
    const std::string generation =
        std::to_string(start("a", "+1000000", "123456").generation);
    start("b", "+1000000", "1234");
    EXPECT_EQ(start_reply(start_args("c", "+1", "1"), "due body meta").string,
              "LAWN FULL the payloads have as many bytes as the namespace may "
              "have");
    start("c", "+1");
    EXPECT_TRUE(
        call("lawn_update", "due body meta", {"a", generation, "", "1234567"})
            .is_error());
    EXPECT_FALSE(
        call("lawn_update", "due body meta", {"a", generation, "+2000000"})
            .is_error());
    start("a", "+1000000", "12345"); // fewer than before
    start("b", "+1000000", "12345");
    EXPECT_EQ(stats()["bytes"], 10);
}

TEST_F(DurableStore, WithoutBoundsNothingIsCounted)
{
    prepare("0", "0", "3600000000", "100000");
    start("a", "+1000000", "123456");
    start("a", "+1000000", "1234567");
    EXPECT_EQ(stats()["bytes"], 0);
    EXPECT_EQ(stats()["started"], 2);
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableStore, WhileItIsDrainedNothingIsStarted)
{
    Options known;
    known.token = 7;
    const Started a = start("a", "+1000000", "", known);
    EXPECT_EQ(call("lawn_drain", "meta", {"1"}).integer, 1);
    for (const char *const id : {"a", "b"}) {
        EXPECT_EQ(start_reply(start_args(id, "+1"), "due body meta").string,
                  "LAWN FULL the namespace is being drained");
    }
    EXPECT_TRUE(start("a", "+1000000", "", known).repeated);
    EXPECT_TRUE(
        decoded<Updated>(call("lawn_update", "due body meta",
                              {"a", std::to_string(a.generation), "+1000000"}))
            .updated);
    EXPECT_EQ(stop("a").state, stopped);
    call("lawn_drain", "meta", {"0"});
    start("b", "+1");
}

TEST_F(DurableStore, PumpsHearOfTheEarliest)
{
    redisContext *const listener = redisConnectUnix(server.socket().c_str());
    ASSERT_TRUE(listener && !listener->err);
    freeReplyObject(
        redisCommand(listener, "SUBSCRIBE %s", key("wake").c_str()));
    const Started first = start("a", "+5000000000");
    start("b", "+6000000000");
    const Started earlier = start("c", "+1000000000");
    server.command({"PUBLISH", key("wake"), "end"});
    std::vector<std::string> heard;
    while (heard.empty() || heard.back() != "end") {
        void *answer = nullptr;
        ASSERT_EQ(redisGetReply(listener, &answer), REDIS_OK);
        const redisReply *const reply = static_cast<redisReply *>(answer);
        heard.emplace_back(reply->element[2]->str);
        freeReplyObject(answer);
    }
    redisFree(listener);
    // On a slow machine they hear of the other one, too.
    EXPECT_EQ(heard.front(), std::to_string(first.due_us));
    EXPECT_EQ(
        std::count(heard.begin(), heard.end(), std::to_string(earlier.due_us)),
        1);
}

// When the time has come at which all pumps call, they will hear of later
// timers from that call. What is remembered of it is forgotten now and then, so
// one try is not enough.
TEST_F(DurableStore, PumpsHearOfNothingThatTheyAreAboutToBeTold)
{
    redisContext *const listener = redisConnectUnix(server.socket().c_str());
    ASSERT_TRUE(listener && !listener->err);
    freeReplyObject(
        redisCommand(listener, "SUBSCRIBE %s", key("wake").c_str()));
    bool is_heard = true;
    for (int i = 0; i < 20 && is_heard; ++i) {
        start("a", "+1");
        const std::string later = std::to_string(start("b", "+9000000").due_us);
        server.command({"PUBLISH", key("wake"), "end"});
        is_heard = false;
        for (std::string heard; heard != "end";) {
            void *answer = nullptr;
            ASSERT_EQ(redisGetReply(listener, &answer), REDIS_OK);
            heard = static_cast<redisReply *>(answer)->element[2]->str;
            freeReplyObject(answer);
            is_heard = is_heard || heard == later;
        }
    }
    redisFree(listener);
    EXPECT_FALSE(is_heard);
}

TEST_F(DurableStore, PumpsKnowOfEachOther)
{
    const auto beat = [this](const char *pump, const char *stay) {
        Words names;
        for (const Reply &r :
             call("lawn_beat", "pumps", {pump, stay, "60000000"}).elements) {
            names.push_back(r.string);
        }
        std::sort(names.begin(), names.end());
        return names;
    };
    EXPECT_EQ(beat("a", "1"), Words{"a"});
    EXPECT_EQ(beat("b", "1"), (Words{"a", "b"}));
    EXPECT_EQ(beat("a", "0"), Words{"b"});
    server.command({"ZADD", key("pumps"), ago(70000000), "old"});
    server.command({"ZADD", key("pumps"), ago(-70000000), "of the future"});
    EXPECT_EQ(beat("b", "1"), Words{"b"});
}

} // namespace
