// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Arguments that are wrong, keys of wrong types, and a clock that steps back.

#include "store_fixture.h"

#include <string.h>

#include <cmath>
#include <limits>

namespace
{

using namespace lawn_test;

const char *const ops = "due body meta ended0 ended1";
const char *const answer_keys = "due body meta out ended0 ended1 dead";
const char *const fire_keys = "due body meta out push ended0 ended1 cron";

class DurableHostile : public Store
{
public:
    // Everything but what the fixture has made.
    std::string contents()
    {
        std::string all;
        for (const char *name : {"due", "body", "out", "push", "dead", "ended0",
                                 "ended1", "cron"}) {
            all += to_string(server.command({"DUMP", key(name)}));
        }
        return all;
    }

    // One line, of the library's own or of Redis; nothing has changed.
    void refused(const std::string &function, const std::string &keys,
                 const Words &args, const std::string &begin = "LAWN INVALID")
    {
        const std::string before = contents();
        const bool is_start = function == "lawn_start" && args.size() == 3;
        const Reply reply =
            is_start ? start_reply(args, keys) : call(function, keys, args);
        EXPECT_TRUE(reply.is_error()) << function << to_string(reply);
        EXPECT_EQ(reply.string.substr(0, begin.size()), begin) << function;
        EXPECT_EQ(reply.string.find('\n'), std::string::npos);
        EXPECT_EQ(contents(), before) << function;
    }
};

TEST_F(DurableHostile, TheNumberOfKeysAndArguments)
{
    const struct {
        const char *function;
        const char *keys;
        size_t args;
    } functions[] = {
        {"lawn_open", "config meta", 6},
        {"lawn_prepare", "due body meta", 6},
        {"lawn_start", ops, 3},
        {"lawn_stop", ops, 1},
        {"lawn_update", ops, 3},
        {"lawn_get", ops, 1},
        {"lawn_fire", fire_keys, 3},
        {"lawn_answer", answer_keys, 5},
        {"lawn_take", answer_keys, 4},
        {"lawn_extend", "out", 3},
        {"lawn_release", "out", 3},
        {"lawn_bury", answer_keys, 2},
        {"lawn_join", "meta out", 1},
        {"lawn_cron", "body cron", 1},
        {"lawn_beat", "pumps", 3},
        {"lawn_drain", "meta", 1},
        {"lawn_list", list_keys, 3},
        {"lawn_replay", "due body meta dead", 2},
    };
    for (const auto &f : functions) {
        refused(f.function, "", Words(f.args, "1"));
        refused(f.function, f.keys, Words(f.args - 1, "1"));
        refused(f.function, f.keys, Words(9999, "1"));
    }
    refused("lawn_renew", "due body meta cron", {"a", "1"});
    refused("lawn_stats", "due", {});
    refused("lawn_count", "due body", {});
    refused("lawn_count", "due body cron", {"1"});
    refused("lawn_answer", answer_keys, Words(6, "1"));
    refused("lawn_start", ops, Words(4, "1"));
}

TEST_F(DurableHostile, NumbersAndTimes)
{
    for (const char *time :
         {"", "x", "-1", "nan", "inf", "-inf", "1.5", "9000000000000001",
          "+9000000000000000", "1e300", "+", "++1", "1 2"}) {
        refused("lawn_start", ops, {"a", time, std::string(1, '\0')});
        refused("lawn_fire", fire_keys, {time, "0", "1"});
    }
    refused("lawn_fire", fire_keys, {"1", "-1", "1"});
    refused("lawn_fire", fire_keys, {"1", "nan", "1"});
    refused("lawn_fire", fire_keys, {"501", "0", "1"});
    refused("lawn_fire", fire_keys, {"0", "0", "1"});
    refused("lawn_fire", fire_keys, {"1", "0", "65"});
    refused("lawn_open", "config meta", {"1025", "0", "0", "0", "0", "1"});
    refused("lawn_open", "config meta", {"nan", "0", "0", "0", "0", "1"});
    refused("lawn_list", list_keys, {"7", "0", "10"});
    refused("lawn_list", list_keys, {"1", "x", "10"});
    refused("lawn_list", list_keys, {"3", "c0", "10"});
    refused("lawn_list", list_keys, {"1", "c", "10"});
    refused("lawn_list", list_keys, {"1", "c0x", "10"});
    refused("lawn_take", answer_keys, {group, "", "1", "1"});
    refused("lawn_replay", "due body meta dead", {"-", "a"});
    refused("lawn_renew", "due body meta cron", {"a", "nan", "1"});
}

TEST_F(DurableHostile, Ids)
{
    const std::string tail(1, '\0');
    for (const std::string &id :
         {std::string(), std::string(256, 'a'), std::string("a b"),
          std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f")}) {
        refused("lawn_start", ops, {id, "+1", tail});
        EXPECT_FALSE(id_is_valid(id));
    }
    for (const std::string &id :
         {std::string(255, 'a'), std::string("\xff\x80")}) {
        EXPECT_FALSE(start_reply({id, "+1", tail}).is_error());
        EXPECT_TRUE(id_is_valid(id));
    }
}

TEST_F(DurableHostile, TailsThatAreCutShort)
{
    Options o;
    o.token = 1;
    o.max_attempts = 1;
    o.misfire = 1;
    o.cron = "* * * * *";
    o.zone = "UTC";
    o.next_us = 5;
    o.target = "http://x/";
    const std::string tail = encode_tail(o, "");
    for (size_t size = 0; size < tail.size(); ++size) {
        refused("lawn_start", ops, {"a", "+1", tail.substr(0, size)});
    }
    EXPECT_FALSE(start_reply({"a", "+1", tail}).is_error());
    Options often;
    often.every_us = 9999;
    refused("lawn_start", ops, start_args("a", "+1", "", often),
            "LAWN INVALID a period of less than 10 ms");
    refused("lawn_start", ops, {"a", "+1", "\x80replayed"});
    refused("lawn_start", ops, {"a", "+1", "\x80"});
    refused("lawn_start", ops,
            {"a", "+1", std::string("\x08\0\0\0\0\0\0\0\x80", 9)}); // -0.0
    refused("lawn_start", ops,
            {"a", "+1",
             "\x08\xff\xff\xff\xff\xff\xff\xff"
             "\xff"}); // NaN
    refused("lawn_start", ops, {"a", "+1", "\x04\x03\x01\x01\x01\x01"});
    refused("lawn_start", ops,
            {"a", "+1", "\x40\x01\x08" + std::string(max_target + 1, 'x')});
    refused("lawn_start", ops,
            {"a", "+1", '\0' + std::string(max_payload + 1, 'x')});
    EXPECT_FALSE(start_reply({"a", "+1", '\0' + std::string(max_payload, 'x')})
                     .is_error());
}

TEST_F(DurableHostile, Answers)
{
    join();
    start("a", ago(1));
    fire();
    const Delivery d = read().at(0);
    for (const char *verdict :
         {"", "x", "dd", "r", "r1", "r-1 1 ", "rx 1 ", "r1 65536 ",
          "r99999999999999999999 1 ", "w", "w-1"}) {
        EXPECT_EQ(answer(d, verdict), Answered::refused) << verdict;
        EXPECT_EQ(state("a"), delivered);
    }
    Delivery other = d;
    other.identity += "x";
    EXPECT_EQ(answer(other, done_verdict()), Answered::refused);
    EXPECT_EQ(server.command({"XPENDING", key("out"), group})[0].integer, 1);
    refused("lawn_answer", answer_keys,
            {group, "no entry", d.id, d.identity, "d"}, "ERR");
    Delivery forged = d;
    forged.identity = unreadable_identity();
    EXPECT_EQ(answer(forged, done_verdict()), Answered::too_late);
    EXPECT_EQ(state("a"), delivered);
}

TEST_F(DurableHostile, AnAnswerThatIsNoneDoesNotKeepTheOthers)
{
    join();
    start("a", ago(1));
    start("b", ago(1));
    fire();
    const std::vector<Delivery> both = read();
    EXPECT_EQ(results({{both.at(0), "nonsense"}, {both.at(1), "d"}}),
              (std::vector<Answered>{Answered::refused, Answered::taken}));
    EXPECT_EQ(state("b"), success);
    EXPECT_EQ(take(0).at(0).id, "a");
}

// Of numbers that a timer cannot have, a list shows the nearest that it can, so
// that its id is seen.
TEST_F(DurableHostile, ATimerOfAnyNumbersIsListed)
{
    start("good", "+1000000");
    const double infinity = std::numeric_limits<double>::infinity();
    std::string body(19, '\0');
    memcpy(&body[0], &infinity, sizeof(infinity));
    body[16] = 1;
    for (const char *const due : {"+inf", "-inf", "1.5", "1e300"}) {
        server.command({"ZADD", key("due"), due, due});
        server.command({"HSET", key("body"), due, body});
    }
    Listed listed = {};
    const Reply reply = call("lawn_list", "due body meta ended0 ended1 cron",
                             {std::to_string(pending), "0", "100"});
    const Tree tree(reply);
    ASSERT_TRUE(decode(tree.get(), &listed)) << to_string(reply);
    std::map<std::string_view, int64_t> due;
    for (const Listed::Timer &timer : listed.timers) {
        due[timer.id] = timer.due_us;
    }
    EXPECT_EQ(due.size(), 5U);
    EXPECT_EQ(due["+inf"], 9000000000000000);
    EXPECT_EQ(due["-inf"], 0);
    EXPECT_EQ(due["1.5"], 1);
    EXPECT_EQ(stats()["next"], 0);
    for (const char *const id : {"+inf", "-inf", "1.5", "1e300"}) {
        EXPECT_EQ(stop(id).state, stopped);
    }
    EXPECT_EQ(stop("good").state, stopped);
}

TEST_F(DurableHostile, KeysOfAnotherType)
{
    for (const char *name : {"due", "body", "meta"}) {
        forget_shard();
        if (name == std::string("meta")) {
            server.command({"DEL", key(name)});
        }
        server.command({"SET", key(name), "text"});
        refused("lawn_start", ops, start_args("a", "+1"),
                "WRONGTYPE " + key(name) + " is a string, not a " +
                    (name == std::string("due") ? "zset" : "hash"));
        if (name != std::string("body")) { // nothing is due
            refused("lawn_fire", fire_keys, {"1", "0", "1"}, "WRONGTYPE");
        }
        server.command({"DEL", key(name)});
        prepare("0", "0");
        EXPECT_FALSE(start_reply(start_args("b", "+1000000")).is_error())
            << name;
        EXPECT_EQ(stop("b").state, stopped);
    }
}

// As when all was deleted, and another program has made the namespace anew.
TEST_F(DurableHostile, AShardOfAnotherNamespaceTakesNothing)
{
    const Started known = start("a", ago(1));
    const std::string generation = std::to_string(known.generation);
    for (const char *const shards : {"", "2"}) {
        server.command({"HDEL", key("meta"), "shards"});
        if (*shards != 0) {
            server.command({"HSET", key("meta"), "shards", shards});
        }
        const char *const wanted = "LAWN REOPEN ";
        refused("lawn_start", ops, start_args("b", "+1"), wanted);
        refused("lawn_stop", ops, {"a"}, wanted);
        refused("lawn_update", ops, {"a", generation, "+1"}, wanted);
        refused("lawn_get", ops, {"a"}, wanted);
        refused("lawn_replay", "due body meta dead", {"", "a"}, wanted);
        refused("lawn_fire", fire_keys, {"1", "0", "1"}, wanted);
    }
    prepare("0", "0");
    EXPECT_EQ(fire().fired(), 1U);
}

TEST_F(DurableHostile, AStreamOfAnotherTypeLosesNothing)
{
    start("a", ago(2));
    start("b", ago(1));
    server.command({"SET", key("out"), "text"});
    refused("lawn_fire", fire_keys, {"100", "0", "1"},
            "WRONGTYPE {test:0}:out is a string, not a stream");
    EXPECT_EQ(state("a"), pending);
    server.command({"DEL", key("out")});
    EXPECT_EQ(fire().fired(), 2U);
}

TEST_F(DurableHostile, EntriesThatAreNotOursAreBuried)
{
    join();
    server.command({"XADD", key("out"), "*", "what", "ever"});
    server.command(
        {"XREADGROUP", "GROUP", group, consumer, "STREAMS", key("out"), ">"});
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(stats()["corrupt"], 1);
    EXPECT_EQ(stats()["dead_letters"], 1);
    EXPECT_EQ(server.command({"XPENDING", key("out"), group})[0].integer, 0);
}

TEST_F(DurableHostile, ADueTimeThatIsNoneIsNotLate)
{
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double due :
         {std::nan(""), infinity, -infinity, 1e300, -1e300}) {
        char bytes[sizeof(due)];
        memcpy(bytes, &due, sizeof(due));
        const std::string body = std::string(8, '\0') +
                                 std::string(bytes, sizeof(bytes)) + "\1" +
                                 std::string(2, '\0') + "x";
        server.command({"HSET", key("body"), "a", body});
        server.command({"ZADD", key("due"), "1", "a"});
        const Fired fired = fire();
        ASSERT_EQ(fired.fired(), 1U) << due;
        EXPECT_EQ(fired.late_us[0], due < 0 ? fired.now_us : 0) << due;
    }
}

// Nothing could be computed from it, and what is behind it must go on.
TEST_F(DurableHostile, APeriodicTimerWithoutADueTimeStopsNobody)
{
    const double infinity = std::numeric_limits<double>::infinity();
    const char *const names[] = {"0", "1", "2", "3", "4", "5"};
    Options options;
    options.every_us = hour;
    size_t at = 0;
    for (const double due :
         {std::nan(""), infinity, -infinity, 1e300, -1e300, 0.5}) {
        const Started started = start(names[at], ago(1), "x", options);
        std::string body =
            server.command({"HGET", key("body"), names[at]}).string;
        memcpy(&body[8], &due, sizeof(due));
        server.command({"HSET", key("body"), names[at], body});
        server.command({"ZADD", key("due"), "1", names[at]});
        const std::string generation = std::to_string(started.generation);
        EXPECT_EQ(call("lawn_update", ops, {names[at], generation, "", "y"})[0]
                      .integer,
                  0)
            << due;
        ++at;
    }
    start("good", ago(1), "x", options);
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(stats()["corrupt"], 6);
    EXPECT_EQ(stats()["pending"], 1);
    EXPECT_EQ(server.command({"ZCARD", key("due")}).integer, 1);
    EXPECT_EQ(state("0"), 0);
}

TEST_F(DurableHostile, AnUpdateBringsBackAPeriodicTimerThatOthersTookOut)
{
    Options every;
    every.every_us = hour;
    Options cron;
    cron.cron = "0 0 1 1 *";
    cron.next_us = max_time - 1;
    for (const auto &[id, options] :
         {std::pair("every", every), {"cron", cron}}) {
        const Started started = start(id, ago(1), "x", options);
        server.command({"ZREM", key("due"), id});
        EXPECT_TRUE(decoded<Updated>(
                        call("lawn_update", ops,
                             {id, std::to_string(started.generation), "", "y"}))
                        .updated)
            << id;
    }
    EXPECT_EQ(fire().fired(), 2U);
}

// Such as one that only the consumers find to be no timer.
TEST_F(DurableHostile, WhatAConsumerCannotReadIsBuriedWithItsTimer)
{
    join();
    join("reader");
    start("a", "+1000000000");
    const std::string body(18, '\xff'); // its generation is no number
    server.command({"HSET", key("body"), "a", body + '\0' + "x"});
    server.command({"ZADD", key("due"), "1", "a"});
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(stats()["out_in_flight"], 1);
    const auto bury = [&](const char *name) {
        const Reply read =
            server.command({"XREADGROUP", "GROUP", name, consumer, "STREAMS",
                            key("out"), ">"});
        const std::string entry = read[0][1][0][0].string;
        return call("lawn_bury", answer_keys, {name, entry, entry, "9-9"})
            .integer;
    };
    EXPECT_EQ(bury("reader"), 1);
    EXPECT_EQ(stats()["corrupt"], 0);
    EXPECT_EQ(bury(group), 1);
    const auto s = stats();
    EXPECT_EQ(s.at("corrupt"), 1);
    EXPECT_EQ(s.at("dead_letters"), 1);
    EXPECT_EQ(s.at("out_in_flight"), 0);
    EXPECT_EQ(state("a"), 0);
    for (const char *name : {group, "reader"}) {
        EXPECT_EQ(server.command({"XPENDING", key("out"), name})[0].integer, 0);
    }
}

// A foreign entry takes no timer with it that waits, or is another.
TEST_F(DurableHostile, AnEntryThatIsBuriedTakesNoOtherTimerWithIt)
{
    join();
    start("a", "+1000000000");
    const std::string body = server.command({"HGET", key("body"), "a"}).string;
    for (const std::string &text :
         {body, std::string(18, '\xff') + '\0', std::string("short")}) {
        server.command({"XADD", key("out"), "*", "i", "a", "b",
                        std::string(8, '\xff') + text});
    }
    const Reply read = server.command(
        {"XREADGROUP", "GROUP", group, consumer, "STREAMS", key("out"), ">"});
    for (const Reply &entry : read[0][1].elements) {
        EXPECT_EQ(
            call("lawn_bury", answer_keys, {group, entry[0].string}).integer,
            1);
    }
    EXPECT_EQ(stats()["corrupt"], 3);
    EXPECT_EQ(state("a"), pending);
}

TEST_F(DurableHostile, AnEndThatCannotBeWrittenIsAllThatIsLost)
{
    join();
    for (const char *id : {"a", "b"}) {
        start(id, ago(1));
    }
    fire();
    const std::vector<Delivery> both = read();
    EXPECT_EQ(answer(both.at(0), done_verdict()), Answered::taken);
    server.command({"DEL", key("ended0")});
    server.command({"SET", key("ended0"), "text"});
    const bool is_refused =
        answer_reply({{both.at(1), done_verdict()}}).is_error();
    server.command({"DEL", key("ended0")});
    EXPECT_EQ(state("b"), is_refused ? delivered : 0);
    EXPECT_EQ(server.command({"XPENDING", key("out"), group})[0].integer,
              is_refused ? 1 : 0);
}

TEST_F(DurableHostile, AnEntryOfManyFieldsIsBuriedWithTheOthers)
{
    join();
    Options once;
    once.max_attempts = 1;
    start("a", ago(1), "", once);
    fire();
    Words add = {"XADD", key("out"), "*"};
    add.resize(20003, "x");
    server.command(add);
    server.command(
        {"XREADGROUP", "GROUP", group, consumer, "STREAMS", key("out"), ">"});
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(state("a"), dead);
    EXPECT_EQ(stats()["dead_letters"], 2);
}

TEST_F(DurableHostile, WithoutGenerationsAPeriodicTimerStays)
{
    Options periodic;
    periodic.every_us = 1000000;
    start("a", ago(1), "", periodic);
    server.command({"HSET", key("meta"), "gen", "text"});
    refused("lawn_fire", fire_keys, {"1", "0", "1"}, "LAWN CORRUPT");
    EXPECT_EQ(state("a"), pending);
    server.command({"HSET", key("meta"), "gen", "7"});
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(state("a"), pending);
}

// So it is by default for a user that is made with ACL SETUSER.
TEST_F(DurableHostile, WhoMayNotPublishAnswersNoLess)
{
    join();
    for (const char *id : {"a", "b", "c"}) {
        start(id, ago(1));
    }
    fire();
    std::vector<std::pair<Delivery, std::string>> answers;
    for (const Delivery &d : read()) {
        answers.emplace_back(d, d.id == "b" ? done_verdict()
                                            : retry_verdict(1000000000, 1, ""));
    }
    forget_shard(); // and at what time the pumps call
    server.command({"ACL", "SETUSER", "default", "resetchannels"});
    const Reply reply = answer_reply(answers);
    EXPECT_FALSE(reply.is_error()) << to_string(reply);
    EXPECT_EQ(state("a"), pending);
    EXPECT_EQ(state("b"), success);
    EXPECT_EQ(state("c"), pending);
}

TEST_F(DurableHostile, WhoMayNotPublishStartsNoLess)
{
    join();
    Options once;
    once.max_attempts = 1;
    start("dead", ago(2), "", once);
    Options cron;
    cron.cron = "0 0 1 1 *";
    cron.next_us = max_time - 1;
    start("cron", ago(1), "", cron);
    EXPECT_EQ(fire().fired(), 2U);
    const Delivery fired = read().at(0);
    EXPECT_EQ(answer(fired, retry_verdict(0, 1, "")), Answered::dead);
    forget_shard(); // and at what time the pumps call
    server.command({"ACL", "SETUSER", "default", "resetchannels"});
    const Started a = start("a", "+1000000000");
    EXPECT_EQ(state("a"), pending);
    EXPECT_TRUE(decoded<Updated>(
                    call("lawn_update", "due body meta",
                         {"a", std::to_string(a.generation), "+900000000"}))
                    .updated);
    EXPECT_TRUE(decoded<Replayed>(call("lawn_replay", "due body meta dead",
                                       {entries("dead").at(0).entry, "dead"}))
                    .replayed);
    const Got next = decoded<Got>(get_reply("cron"));
    EXPECT_EQ(call("lawn_renew", "due body meta cron",
                   {"cron", std::to_string(next.body.generation),
                    std::to_string(max_time)})
                  .integer,
              1);
}

TEST_F(DurableHostile, AFullServerStillFires)
{
    join();
    start("a", ago(1));
    start("b", "+1000000000");
    server.command({"CONFIG", "SET", "maxmemory", "1"});
    refused("lawn_start", ops, start_args("c", "+1"), "OOM");
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(answer(read().at(0), done_verdict()), Answered::taken);
    EXPECT_EQ(stop("b").state, stopped);
    server.command({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_EQ(start("c", "+1").state, pending);
}

using DurableClock = SteppedStore;

// A server from which the shard was away cannot know what has changed.
TEST_F(DurableClock, WhatIsRememberedLastsForASecond)
{
    start("a", "+1000000000");
    server.command({"HSET", key("meta"), "draining", "1"});
    step("1");
    EXPECT_EQ(start_reply(start_args("b", "+1")).string,
              "LAWN FULL the namespace is being drained");
}

TEST_F(DurableClock, ThatStepsBackDelaysAndNeverRepeats)
{
    join();
    const int64_t before = now();
    start("a", ago(1));
    start("b", "+60000000");
    EXPECT_EQ(fire().fired(), 1U);
    step("-3600");
    ASSERT_LT(now(), before - 1000000000);
    EXPECT_EQ(fire().fired(), 0U);
    start("c", "+0");
    EXPECT_EQ(fire().fired(), 1U);
    const std::vector<Delivery> all = read();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_GT(all[1].generation, all[0].generation);
    EXPECT_EQ(all[0].id, "a");
    EXPECT_EQ(all[1].id, "c");
    for (const Delivery &d : all) {
        EXPECT_GE(d.fired_us, d.due_us);
        EXPECT_EQ(answer(d, done_verdict()), Answered::taken);
    }
    step("3600");
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(read().at(0).id, "b");
    EXPECT_EQ(fire().fired(), 0U);
}

} // namespace
