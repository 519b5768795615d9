// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A call that is refused has changed nothing, and what others have written
// under our keys keeps no other timer from its work.

#include "store_fixture.h"

#include <string.h>

#include <cmath>

namespace
{

using namespace lawn_test;

class DurableError : public AnsweredStore
{
public:
    std::string contents(const char *name)
    {
        return to_string(server.command({"DUMP", key(name)}));
    }

    // Refuses the arguments, and leaves the key as it was.
    void refused(const char *name, const std::string &function,
                 const std::string &keys, const Words &args)
    {
        const std::string before = contents(name);
        const Reply reply = call(function, keys, args);
        EXPECT_TRUE(reply.is_error()) << function << to_string(reply);
        EXPECT_EQ(reply.string.substr(0, 12), "LAWN INVALID") << function;
        EXPECT_EQ(contents(name), before) << function;
    }

    static Options cron()
    {
        Options options;
        options.cron = "0 * * * *";
        options.zone = "UTC";
        options.next_us = 1;
        return options;
    }
};

// The first of several is right.
TEST_F(DurableError, AllArgumentsAreLookedAtBeforeAnythingIsDone)
{
    refused("meta", "lawn_prepare", "due body meta",
            {"5", "x", "0", "0", "1", "0"});
    refused("meta", "lawn_drain", "meta", {"yes"});
    const Delivery d = deliver("a");
    refused("out", "lawn_release", "out", {group, consumer, d.entry, "x"});
    refused("out", "lawn_extend", "out", {group, consumer, d.entry, "x"});
    refused("out", "lawn_take", "due body meta out ended0 ended1 dead",
            {group, consumer, "0", "1", d.entry, "x"});
    EXPECT_EQ(server.command({"XPENDING", key("out"), group, "-", "+", "9"})
                  .elements.at(0)[3]
                  .integer,
              1);
    const std::string generation =
        std::to_string(start("c", ago(1), "", cron()).generation + 1);
    fire();
    refused("body", "lawn_renew", "due body meta cron",
            {"c", generation, std::to_string(now() + hour), "d", "0", "0"});
    refused("body", "lawn_renew", "due body meta cron",
            {"c", generation, std::to_string(now() + hour), "d", "1", "x"});
    refused("body", "lawn_update", "due body meta", {"c", "x", ""});
    refused("due", "lawn_stop", "due body meta ended0 ended1", {"c", "x"});
}

TEST_F(DurableError, ADrainIsEndedByItsArgumentAlone)
{
    EXPECT_EQ(call("lawn_drain", "meta", {"1"}).integer, 1);
    EXPECT_TRUE(call("lawn_drain", "meta", {"2"}).is_error());
    EXPECT_TRUE(start_reply(start_args("a", "+1")).is_error());
    EXPECT_EQ(call("lawn_drain", "meta", {"0"}).integer, 1);
    EXPECT_FALSE(start_reply(start_args("a", "+1")).is_error());
}

// What has been written counts, whatever has become of the counter.
TEST_F(DurableError, ACounterThatIsNoNumberBeginsAnew)
{
    for (const char *name : {"stopped", "taken", "success", "bytes"}) {
        server.command({"HSET", key("meta"), name, "text"});
    }
    start("a", "+1000000000", "12345");
    EXPECT_EQ(stats()["bytes"], 5);
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(stats()["stopped"], 1);
    EXPECT_EQ(stats()["bytes"], 0);
    deliver("b");
    const std::vector<Delivery> taken = take(0);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(stats()["taken"], 1);
    EXPECT_EQ(answer(taken[0], done_verdict()), Answered::taken);
    EXPECT_EQ(stats()["success"], 1);
}

// Nothing has been done, and the message names the key.
TEST_F(DurableError, GenerationsThatAreNoNumbersAreNamed)
{
    Options periodic;
    periodic.every_us = hour;
    start("tick", ago(1), "", periodic);
    const Started a = start("a", "+1000000000");
    const std::string line = "LAWN CORRUPT " + key("meta") + ", field gen: ";
    const auto expect_named = [&](const Reply &reply) {
        EXPECT_EQ(reply.string.substr(0, line.size()), line)
            << to_string(reply);
    };
    for (const char *gen : {"text", "1.5e17", "9223372036854775807", ""}) {
        server.command({"HSET", key("meta"), "gen", gen});
        forget_shard();
        expect_named(start_reply(start_args("b", "+1000000000")));
        expect_named(call("lawn_update", "due body meta",
                          {"a", std::to_string(a.generation), "+5"}));
        expect_named(fire_reply());
        EXPECT_EQ(state("b"), 0);
        EXPECT_EQ(state("tick"), pending);
        EXPECT_EQ(server.command({"XLEN", key("out")}).integer, 0);
    }
    server.command({"HSET", key("meta"), "gen", "7"});
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(start("b", "+1000000000").state, pending);
}

// Of a server that looks at the shard for the first time.
TEST_F(DurableError, WhatIsCountedOfGenerationsIsNoReasonToRefuseAStart)
{
    server.command({"HSET", key("meta"), "gen", "7", "raised", "text"});
    forget_shard();
    const int64_t before = now();
    EXPECT_GE(start("a", "+1000000000").generation,
              static_cast<uint64_t>(before));
    EXPECT_EQ(stats()["pending"], 1);
}

TEST_F(DurableError, AStreamThatTakesNoMoreIsNamedAndLosesNothing)
{
    Options target;
    target.target = "http://x/";
    for (const char *const name : {"out", "push"}) {
        server.command({"RENAME", key("out"), key("kept")});
        server.command({"XADD", key(name),
                        "18446744073709551615-18446744073709551615", "x", "y"});
        start("a", ago(1), "", *name == 'p' ? target : Options());
        const Reply reply = fire_reply();
        const std::string line = "LAWN CORRUPT " + key(name) + ": ";
        EXPECT_EQ(reply.string.substr(0, line.size()), line)
            << to_string(reply);
        EXPECT_EQ(state("a"), pending);
        EXPECT_EQ(server.command({"XLEN", key(name)}).integer, 1);
        server.command({"DEL", key(name)});
        server.command({"RENAME", key("kept"), key("out")});
        EXPECT_EQ(fire().fired(), 1U);
        EXPECT_EQ(state("a"), delivered);
    }
    // What the user may not do is no fault of the key.
    start("b", ago(1));
    server.command({"ACL", "SETUSER", "default", "-xadd"});
    const Reply reply = fire_reply();
    EXPECT_TRUE(reply.is_error()) << to_string(reply);
    EXPECT_EQ(reply.string.find("CORRUPT"), std::string::npos)
        << to_string(reply);
    server.command({"ACL", "SETUSER", "default", "+xadd"});
    EXPECT_EQ(fire().fired(), 1U);
}

// The pump takes whole microseconds of our time only.
TEST_F(DurableError, DueTimesThatAreNoneAreNotToldToThePump)
{
    for (const char *score : {"+inf", "9.1e15", "8e15", "7999999999999999.5",
                              "7999999999999999.2", "-inf"}) {
        server.command({"ZADD", key("due"), score, score});
    }
    const Fired fired = fire(500, 9000000000000000);
    EXPECT_EQ(fired.fired(), 0U);
    EXPECT_EQ(fired.due_us,
              (std::vector<int64_t>{7999999999999999, 8000000000000000,
                                    8000000000000000}));
    EXPECT_EQ(stats()["corrupt"], 1) << "the one that was due";
}

// One that the pump cannot read would keep it from all others.
TEST_F(DurableError, WhatIsNoCronTimerIsTakenOutOfTheSet)
{
    start("good", ago(1), "", cron());
    fire();
    const std::string body =
        server.command({"HGET", key("body"), "good"}).string;
    const auto put = [&](const std::string &id, size_t at, double number) {
        std::string changed = body;
        memcpy(&changed[at], &number, sizeof(number));
        server.command({"HSET", key("body"), id, changed});
        server.command({"SADD", key("cron"), id});
    };
    put("no id", 0, 7);
    put("negative", 0, -1);
    put("zero", 0, 0);
    put("fraction", 0, 1.5);
    put("nan", 0, NAN);
    put("never", 8, -1);
    const Reply timers = call("lawn_cron", "body cron", {"100"});
    EXPECT_EQ(timers[0].integer, 6) << to_string(timers);
    ASSERT_EQ(timers[1].size(), 1U) << to_string(timers);
    EXPECT_EQ(timers[1][0][0].string, "good");
    EXPECT_EQ(server.command({"SCARD", key("cron")}).integer, 1);
}

// Its body is that of the occurrence to come.
TEST_F(DurableError, OccurrencesThatWaitForAnswersAreInFlight)
{
    Options options;
    options.every_us = hour;
    start("a", ago(2 * hour + 1000), "", options);
    fire();
    fire();
    fire();
    EXPECT_EQ(stats()["out_in_flight"], 3);
    const std::vector<Delivery> all = read();
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(answer(all[0], done_verdict()), Answered::taken);
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(stats()["pending"], 0);
    EXPECT_EQ(stats()["out_in_flight"], 2);
}

TEST_F(DurableError, OnlyStartsAreCountedAsSuch)
{
    Options options;
    options.every_us = hour;
    options.max_attempts = 1;
    start("a", ago(hour + second), "", options);
    fire();
    fire();
    const Delivery d = deliver("b", options);
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "")), Answered::dead);
    const auto generation =
        static_cast<long long>(start("c", "+1000000000").generation);
    EXPECT_EQ(call("lawn_update", "due body meta",
                   {"c", std::to_string(generation), "+5"})[0]
                  .integer,
              1);
    EXPECT_EQ(stats()["started"], 3);
}

// Its next time is not known yet, so it is in no list of due times.
TEST_F(DurableError, ACronTimerWhoseTimeIsSoughtIsPending)
{
    start("a", ago(1), "", cron());
    fire();
    fire();
    for (const Delivery &d : read()) {
        EXPECT_EQ(answer(d, done_verdict()), Answered::taken);
    }
    EXPECT_EQ(server.command({"ZCARD", key("due")}).integer, 0);
    server.command({"SADD", key("cron"), "stranger"});
    EXPECT_EQ(stats()["pending"], 1);
    EXPECT_EQ(stats()["out_in_flight"], 0);
    stop("a");
    EXPECT_EQ(stats()["pending"], 0);
}

// Redis does not tell any more how many the group has not read.
TEST_F(DurableError, EntriesThatOthersDeleteDoNotHideTheRest)
{
    for (const char *id : {"a", "b", "c", "d"}) {
        start(id, ago(1));
    }
    fire();
    const Reply entries = server.command({"XRANGE", key("out"), "-", "+"});
    ASSERT_EQ(entries.size(), 4U);
    server.command({"XDEL", key("out"), entries[2][0].string});
    EXPECT_EQ(stats()["out_in_flight"], 3);
}

TEST_F(DurableError, AStartThatIsRefusedLeavesTheTimerThatThereIs)
{
    const Started a = start("a", "+1000000000");
    server.command({"RENAME", key("body"), key("saved")});
    server.command({"SET", key("body"), "text"});
    EXPECT_TRUE(start_reply(start_args("a", "+1")).is_error());
    server.command({"RENAME", key("saved"), key("body")});
    EXPECT_EQ(state("a"), pending);
    EXPECT_EQ(std::stoll(server.command({"ZSCORE", key("due"), "a"}).string),
              a.due_us);
    EXPECT_EQ(stats()["started"], 1);
    // The same if it is found when the due time is written.
    server.command({"ACL", "SETUSER", "default", "-hset"});
    EXPECT_TRUE(start_reply(start_args("a", "+2000000000")).is_error());
    EXPECT_TRUE(start_reply(start_args("b", "+2000000000")).is_error());
    server.command({"ACL", "SETUSER", "default", "+hset"});
    EXPECT_EQ(state("a"), pending);
    EXPECT_EQ(stats()["pending"], 1);
}

TEST_F(DurableError, WithoutRoomForItsLetterATimerIsDeadAllTheSame)
{
    server.command({"XADD", key("dead"),
                    "18446744073709551615-18446744073709551615", "x", "y"});
    Options options;
    options.max_attempts = 1;
    deliver("a", options);
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(state("a"), dead);
    const Delivery b = deliver("b", options);
    EXPECT_EQ(answer(b, retry_verdict(0, 1, "")), Answered::dead);
    EXPECT_EQ(state("b"), dead);
    server.command({"XADD", key("out"), "*", "what", "is this"});
    server.command(
        {"XREADGROUP", "GROUP", group, consumer, "STREAMS", key("out"), ">"});
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(stats()["corrupt"], 1);
    EXPECT_EQ(stats()["out_in_flight"], 0);
}

// The store remembers the shard for a second.
TEST_F(DurableError, CountersThatAreGoneDoNotUndoAnAnswer)
{
    const Delivery a = deliver("a");
    const Delivery b = deliver("b");
    EXPECT_EQ(answer(b, done_verdict()), Answered::taken);
    server.command({"RENAME", key("meta"), key("saved")});
    server.command({"SET", key("meta"), "text"});
    EXPECT_EQ(answer(a, done_verdict()), Answered::taken);
    server.command({"RENAME", key("saved"), key("meta")});
    EXPECT_EQ(state("a"), success);
}

} // namespace
