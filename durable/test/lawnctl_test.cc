// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl as its users run it: what it prints, its exit status, and one line on
// stderr for what it does not take.

#include "lawn-verify/plan.h"
#include "lawnctl/output.h"
#include "lawnctl_fixture.h"

#include <chrono>
#include <list>
#include <thread>

namespace
{

using namespace lawn_test;

TEST(Lawnctl, ShowsItsCommands)
{
    Program run({"--help"});
    EXPECT_EQ(run.wait(), 0);
    EXPECT_EQ(run.err(), "");
    for (const char *command :
         {"start", "update", "stop", "get", "consume", "list", "dead", "stats",
          "load", "verify", "drain", "acknowledge"}) {
        EXPECT_NE(run.out().find(std::string("\n  ") + command + " "),
                  std::string::npos)
            << command;
    }
    Program version({"--version"});
    EXPECT_EQ(version.wait(), 0);
    EXPECT_EQ(version.out(), std::string("lawnctl ") + lawn_version() + "\n");
}

TEST(Lawnctl, HelpsWithOneCommand)
{
    for (const Words &words :
         {Words{"get", "--help"}, Words{"--help", "get"}}) {
        Program get(words);
        EXPECT_EQ(get.wait(), 0);
        EXPECT_EQ(get.out(), "usage: lawnctl [OPTION]... get ID          print "
                             "the state of a timer\n");
    }
    Program update({"update", "--help"});
    EXPECT_EQ(update.wait(), 0);
    EXPECT_NE(update.out().find("--generation G"), std::string::npos);
    EXPECT_EQ(update.out().find("stop ID"), std::string::npos);
}

TEST(Lawnctl, RefusesWhatItDoesNotUnderstand)
{
    expect_refusal({}, "COMMAND is missing");
    expect_refusal({"halt"}, "'halt'");
    expect_refusal({"--nonsense"}, "no option --nonsense");
    expect_refusal({"stop", "a", "--nonsense"}, "no option --nonsense");
    // Whatever it was given, it says one line.
    expect_refusal({"--a\nb=1", "stop", "a"}, "--a\\x0ab");
    expect_refusal({"--json=1", "--json\n"}, "");
    expect_refusal({"stop", "a", "b\nc"}, "b\\x0ac");
    expect_refusal({"start", "a", "--at", "1\n"}, "");
    expect_refusal({"start", "a", "--in", "1\n"}, "");
    expect_refusal({"start", "a", "--in", "1s", "--misfire", "a\nb"}, "a");
    expect_refusal({"consume", "--group", "g", "--answer", "a\nb"}, "a");
    expect_refusal({"consume", "--group", "g", "--count", "1\n"}, "--count");
    expect_refusal({"list", "--state", "a\nb"}, "a");
    expect_refusal({"load", "--rate\n"}, "");
    expect_refusal({"start"}, "ID is missing");
    expect_refusal({"start", "a"}, "--in or --at");
    expect_refusal({"start", "a", "--in"}, "--in needs a value");
    expect_refusal({"start", "a", "--in", "2"}, "'2'");
    expect_refusal({"start", "a", "--in", "-2s"}, "-2s");
    expect_refusal({"start", "a", "--in", "2s", "--in", "3s"}, "twice");
    expect_refusal({"start", "a", "--in", "2s", "--at", "3"}, "exclude");
    expect_refusal({"start", "a", "--at", "soon"}, "'soon'");
    expect_refusal({"start", "a", "--at", "1.0000001"}, "1.0000001");
    expect_refusal({"start", "a", "--at", "9000000001"}, "2255");
    expect_refusal({"start", "a", "--cron", "* * * *"}, "--cron: ");
    expect_refusal({"start", "a", "--cron", "* * * * *", "--zone", "No/Where"},
                   "No/Where");
    expect_refusal({"start", "a b", "--in", "2s"}, "the id ");
    expect_refusal({"start", "", "--in", "2s"}, "the id ");
    expect_refusal({"start", std::string(256, 'a'), "--in", "2s"}, "the id ");
    expect_refusal({"start", "a", "--in", "2s", "--every", "9ms"},
                   "--every takes 10ms at least");
    expect_refusal({"start", "a", "--in", "2s", "--zone", "UTC"}, "--zone");
    expect_refusal({"start", "a", "--in", "2s", "--durability", "safe"},
                   "safe");
    expect_refusal({"start", "a", "--in", "2s", "--durability", "replicated:0"},
                   "replicated:0");
    expect_refusal({"start", "a", "--in", "2s", "--target", "ftp://host/"},
                   "ftp://host/");
    expect_refusal({"start", "a", "--in", "2s", "--max-attempts", "0"}, "'0'");
    expect_refusal({"start", "a", "--in", "2s", "--misfire", "skip:x"}, "x");
    expect_refusal({"start", "a", "--in", "2s", "--misfire", "skip:50d"},
                   "49 days");
    expect_refusal(
        {"start", "a", "--in", "2s", "--payload", std::string(65537, 'x')},
        "65536");
    expect_refusal({"start", "a", "--in", "2s", "--count", "1"}, "--count");
    expect_refusal({"start", "a", "--at", "2026-12-24T18:00"}, "--zone");
    expect_refusal({"start", "a", "--at", "2026-12-24"}, "no time like");
    expect_refusal({"start", "a", "--at", "2026-13-24T18:00Z"}, "no time like");
    expect_refusal({"start", "a", "--at", "1969-12-31T23:59Z"}, "before 1970");
    expect_refusal({"start", "a", "--at", "2300-01-01T00:00Z"}, "year 2255");
    expect_refusal({"start", "a", "--at", "2026-12-24T18:00Z", "--zone", "UTC"},
                   "has an offset");
    expect_refusal(
        {"start", "a", "--at", "2026-12-24T18:00", "--zone", "Europe/Berln"},
        "not a time zone: 'Europe/Berln'");
    expect_refusal(
        {"start", "a", "--at", "2026-03-29T02:30", "--zone", "Europe/Berlin"},
        "does not exist in Europe/Berlin");
    expect_refusal({"start", "a", "--in", "1s", "--zone", "UTC"}, "--zone");
    expect_refusal({"start", "a", "--at", "1", "--zone", "UTC"}, "--zone");
    expect_refusal({"update", "a", "--in", "1s"}, "--generation");
    expect_refusal({"update", "a", "--generation", "1"}, "--payload");
    expect_refusal({"get", "a", "b"}, "'b'");
    expect_refusal({"get", "a", "--json=yes"}, "--json");
    expect_refusal({"consume"}, "--group");
    expect_refusal({"consume", "--group", "g", "--answer", "maybe"}, "maybe");
    expect_refusal({"consume", "--group", "g", "--count", "0"}, "'0'");
    expect_refusal({"consume", "--group", "a b"}, "--group");
    expect_refusal({"consume", "--group", "g", "--lease", "12d"}, "11 days");
    expect_refusal({"consume", "--group", "g", "--lease", "0s"}, "11 days");
    expect_refusal({"consume", "--group", "g", "--lease", "9ms"}, "10ms");
    expect_refusal({"list", "--state", "lost"}, "'lost'");
    expect_refusal({"load", "--rate", "10"}, "--seconds");
    expect_refusal(
        {"load", "--rate", "10", "--seconds", "1", "--coalesce", "2s"},
        "--coalesce");
    expect_refusal({"load", "--rate", "10", "--seconds", "1", "--delay", "2h"},
                   "--delay");
    expect_refusal({"load", "--rate", "10", "--seconds", "1", "--delay", "1s",
                    "--spread", "2s"},
                   "--spread");
    expect_refusal({"verify", "--redis", "unix:/nowhere"}, "--redis");
    expect_refusal({"verify", "--seconds", "x"}, "'x'");
    expect_refusal({"--namespace", "a b", "get", "x"}, "--namespace");
    expect_refusal({"--redis", "", "get", "x"}, "redis://");
}

TEST(Lawnctl, SaysThatAStoreCannotBeReached)
{
    const std::string missing = "unix:/tmp/there-is-no-such-socket";
    expect_refusal({"--redis", missing, "get", "a"}, "there-is-no-such-socket");
    expect_refusal({"--redis", missing, "start", "a", "--in", "1s"},
                   "there-is-no-such-socket");
    expect_refusal({"--redis", missing, "consume", "--group", "g"},
                   "there-is-no-such-socket");
    expect_refusal({"--redis", missing, "stats"}, "there-is-no-such-socket");
    expect_refusal({"--redis", missing, "list"}, "there-is-no-such-socket");
    expect_refusal({"--redis", missing, "drain"}, "there-is-no-such-socket");
    expect_refusal(
        {"--redis", missing, "load", "--rate", "1", "--seconds", "1"},
        "there-is-no-such-socket");
    expect_refusal({"--redis", "rediss://127.0.0.1", "get", "a"}, "TLS");
    expect_refusal({"--redis", "http://127.0.0.1", "get", "a"}, "redis://");
}

TEST_F(LawnctlTest, StartsAndStopsATimer)
{
    EXPECT_EQ(out_of({"get", "a"}), "unknown\n");
    EXPECT_EQ(out_of({"stop", "a"}, 4), "unknown\n");
    const std::string first = out_of({"start", "a", "--in", "1h"});
    const std::regex line("started a ([0-9]+) ([0-9]+)\\.([0-9]{6})\n");
    std::smatch match;
    ASSERT_TRUE(std::regex_match(first, match, line)) << first;
    const unsigned long generation = std::stoul(match[1]);
    EXPECT_EQ(out_of({"get", "a"}), "pending\n");
    const std::string again = out_of({"start", "a", "--in", "1h"});
    ASSERT_TRUE(std::regex_match(again, match, line)) << again;
    EXPECT_GT(std::stoul(match[1]), generation);
    EXPECT_EQ(out_of({"stop", "a"}), "stopped\n");
    EXPECT_EQ(out_of({"stop", "a"}), "stopped\n");
    EXPECT_EQ(out_of({"get", "a"}), "stopped\n");
}

TEST_F(LawnctlTest, StartsAtATimeOfDay)
{
    const std::string out = out_of({"start", "a", "--at", "4000000000.25",
                                    "--payload", "x y", "--target", "stream"});
    EXPECT_TRUE(std::regex_match(
        out, std::regex("started a [0-9]+ 4000000000\\.250000\n")))
        << out;
    const std::string json = out_of({"--json", "get", "a"});
    EXPECT_NE(json.find("\"due\":4000000000.250000"), std::string::npos)
        << json;
    EXPECT_NE(json.find("\"payload\":\"x y\""), std::string::npos) << json;
    EXPECT_NE(json.find("\"state\":\"pending\""), std::string::npos) << json;
}

// 18:00 in Berlin is 17:00 UTC in winter. At the end of summer time, of a time
// that comes twice the first is meant.
TEST_F(LawnctlTest, TakesDates)
{
    const auto due_of = [this](const Words &options) {
        Words words = {"start", "a"};
        words.insert(words.end(), options.begin(), options.end());
        const std::string line = out_of(words);
        return line.substr(line.rfind(' ') + 1);
    };
    for (const Words &options :
         {Words{"--at", "2026-12-24T17:00Z"},
          Words{"--at", "2026-12-24T17:00:00Z"},
          Words{"--at", "2026-12-24T18:00:00.000000+01:00"},
          Words{"--at", "2026-12-24T17Z"},
          Words{"--at", "2026-12-24T18:00", "--zone", "Europe/Berlin"}}) {
        EXPECT_EQ(due_of(options), "1798131600.000000\n") << options[1];
    }
    EXPECT_EQ(due_of({"--at", "2026-12-24T17:00:00.25Z"}),
              "1798131600.250000\n");
    EXPECT_EQ(due_of({"--at", "2026-10-25T02:30", "--zone", "Europe/Berlin"}),
              due_of({"--at", "2026-10-25T00:30Z"}));
}

TEST_F(LawnctlTest, UpdatesATimer)
{
    EXPECT_EQ(out_of({"update", "a", "--generation", "1", "--in", "1h"}, 4),
              "unknown\n");
    const std::string started = out_of({"start", "a", "--in", "1h"});
    const std::string generation =
        started.substr(10, started.find(' ', 10) - 10);
    const std::string updated =
        out_of({"update", "a", "--generation", generation, "--at",
                "2100-01-01T00:00Z", "--payload", "new"});
    EXPECT_EQ(updated.find("updated a "), 0U) << updated;
    EXPECT_NE(updated.find(" 4102444800.000000\n"), std::string::npos);
    const std::string got = out_of({"--json", "get", "a"});
    EXPECT_NE(got.find("\"payload\":\"new\""), std::string::npos) << got;
    EXPECT_EQ(out_of({"update", "a", "--generation", "7", "--in", "1h"}, 3),
              "too late\n");
    const std::string json =
        out_of({"--json", "update", "a", "--generation", "7", "--in", "1h"}, 3);
    EXPECT_NE(json.find("\"answer\":\"too late\""), std::string::npos) << json;
    EXPECT_NE(json.find("\"state\":\"pending\""), std::string::npos) << json;
}

TEST_F(LawnctlTest, WarnsOfAStoreThatMayDropTimers)
{
    server_.command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"});
    Program warned(with_store({"start", "a", "--in", "1h"}));
    EXPECT_EQ(warned.wait(), 0);
    EXPECT_EQ(warned.err().find("lawnctl: warning: "), 0U) << warned.err();
    EXPECT_NE(warned.err().find("allkeys-lfu"), std::string::npos);
    EXPECT_EQ(lines(warned.err()), 1U);
    EXPECT_EQ(warned.out().find("started a "), 0U);
    Program refused(with_store({"--require-safe-store", "get", "a"}));
    EXPECT_NE(refused.wait(), 0);
    EXPECT_NE(refused.err().find("no safe store: "), std::string::npos)
        << refused.err();
    EXPECT_EQ(lines(refused.err()), 1U);
}

TEST_F(LawnctlTest, ListsAndCounts)
{
    out_of({"start", "a", "--in", "1h"});
    out_of({"start", "b", "--in", "2h"});
    out_of({"start", "c", "--in", "1h"});
    out_of({"stop", "c"});
    EXPECT_EQ(lines(out_of({"list", "--state", "pending"})), 2u);
    EXPECT_EQ(lines(out_of({"list", "--limit", "1"})), 1u);
    EXPECT_EQ(lines(out_of({"list"})), 3u);
    EXPECT_EQ(
        out_of({"list", "--state", "stopped"}).compare(0, 10, "c stopped "), 0);
    const std::string stats = out_of({"--json", "stats"});
    EXPECT_NE(stats.find("\"pending\":2,"), std::string::npos) << stats;
    EXPECT_NE(stats.find("\"started\":3,"), std::string::npos) << stats;
    EXPECT_EQ(lines(out_of({"stats"})), 19u);
    // Somebody else writes over a timer, which is due now.
    for (int shard = 0; shard < 8; ++shard) {
        const std::string keys = "{test:" + std::to_string(shard) + "}:";
        if (server_.command({"HEXISTS", keys + "body", "a"}).integer == 1) {
            server_.command({"HSET", keys + "body", "a", "junk"});
            server_.command({"ZADD", keys + "due", "1", "a"});
            server_.command({"PUBLISH", keys + "wake", "1"});
        }
    }
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::minutes(1);
    std::string counts;
    do {
        counts = out_of({"--json", "stats"});
    } while (counts.find("\"corrupt\":1,") == std::string::npos &&
             std::chrono::steady_clock::now() < limit);
    EXPECT_NE(counts.find("\"corrupt\":1,"), std::string::npos) << counts;
}

TEST_F(LawnctlTest, DrainsANamespace)
{
    out_of({"start", "a", "--in", "1h"});
    expect_refusal(with_store({"drain", "--timeout", "50ms"}), "not empty");
    expect_refusal(with_store({"start", "b", "--in", "1h"}),
                   "lawnctl: the namespace is being drained");
    out_of({"stop", "a"});
    EXPECT_EQ(out_of({"drain"}), "drained\n");
    EXPECT_EQ(out_of({"drain", "--end"}), "open\n");
    out_of({"start", "b", "--in", "1h"});
}

TEST_F(LawnctlTest, WarnsOfALossUntilItIsAcknowledged)
{
    out_of({"start", "a", "--in", "1h"});
    server_.command({"DEL", "{test:0}:meta"});
    Program get(with_store({"get", "a"}));
    EXPECT_EQ(get.wait(), 0);
    EXPECT_EQ(get.err().substr(0, 50),
              "lawnctl: warning: test:0: timers were lost, as key");
    Program acknowledge(with_store({"acknowledge"}));
    EXPECT_EQ(acknowledge.wait(), 0);
    EXPECT_EQ(acknowledge.out(), "acknowledged\n");
    Program again(with_store({"get", "a"}));
    EXPECT_EQ(again.wait(), 0);
    EXPECT_EQ(again.err(), "");
}

TEST_F(LawnctlTest, LoadsAStore)
{
    Program run({"--redis", server_.url(), "--json", "load", "--rate", "200",
                 "--seconds", "2", "--delay", "100ms"});
    EXPECT_EQ(run.wait(), 0) << run.err();
    const std::string out = run.out();
    EXPECT_NE(out.find("\"acknowledged\":400,"), std::string::npos) << out;
    EXPECT_NE(out.find("\"answered\":400,"), std::string::npos) << out;
    EXPECT_NE(out.find("\"lost\":0,\"early\":0,\"duplicates\":0,"),
              std::string::npos)
        << out;
    EXPECT_NE(out.find("\"lateness_p999_ms\":"), std::string::npos) << out;
    EXPECT_NE(out.find("\"delivery_p999_ms\":"), std::string::npos) << out;
    EXPECT_NE(out.find("\"redis_cpu_us_per_timer\":"), std::string::npos)
        << out;
}

// A start that the store carries out after the client has given up has failed,
// and is answered.
TEST_F(LawnctlTest, WaitsForAllThatItsLoadWasPromised)
{
    Program run({"--redis", server_.url(), "--json", "load", "--rate", "300",
                 "--seconds", "8", "--delay", "3s", "--spread", "1ms"});
    const auto is_begun = [this] {
        return server_.command({"ZCARD", "{lawn-load:0}:due"}).integer > 300;
    };
    while (!is_begun()) {
    }
    server_.pause();
    std::this_thread::sleep_for(std::chrono::seconds(6)); // the time-out is 5 s
    server_.resume();
    EXPECT_EQ(run.wait(), 1);
    EXPECT_NE(run.err().find(" starts failed, 0 timers were not answered"),
              std::string::npos)
        << run.err();
    const std::string out = run.out();
    EXPECT_EQ(out.find("\"failed\":0,"), std::string::npos) << out;
    EXPECT_NE(out.find("\"lost\":0,"), std::string::npos) << out;
}

TEST_F(LawnctlTest, LoadsAStoreAndLeavesTheTimersThere)
{
    Program run({"--redis", server_.url(), "--namespace", "left", "load",
                 "--rate", "100", "--seconds", "1", "--delay", "1h", "--spread",
                 "1ms", "--leave"});
    EXPECT_EQ(run.wait(), 0) << run.err();
    Program stats({"--redis", server_.url(), "--namespace", "left", "stats"});
    EXPECT_EQ(stats.wait(), 0) << stats.err();
    EXPECT_TRUE(std::regex_search(stats.out(), std::regex("pending +100\n")))
        << stats.out();
}

TEST_F(LawnctlTest, HasAnExampleOfBothTiers)
{
    const char *example = getenv("LAWN_EXAMPLE_DURABLE");
    ASSERT_NE(example, nullptr);
    Program run({server_.url()}, example);
    EXPECT_EQ(run.wait(), 0) << run.err();
    EXPECT_EQ(lines(run.out()), 12u) << run.out();
    const std::regex expired("[^\n]* has expired\n");
    const std::string out = run.out();
    EXPECT_GE(
        std::distance(std::sregex_iterator(out.begin(), out.end(), expired),
                      std::sregex_iterator()),
        3)
        << out;
    Program refused({"--help"}, example);
    EXPECT_EQ(refused.wait(), 2);
    Program full(
        {"-c", "exec \"$0\" \"$1\" >/dev/full", example, server_.url()},
        "/bin/sh");
    EXPECT_EQ(full.wait(), 1);
    EXPECT_EQ(full.err(),
              "durable: standard output: No space left on device\n");
    Program unreachable({"unix:/tmp/there-is-no-such-socket"}, example);
    EXPECT_EQ(unreachable.wait(), 1);
    EXPECT_EQ(lines(unreachable.err()), 1u) << unreachable.err();
    Program misled({"redis:/127.0.0.1"}, example);
    EXPECT_EQ(misled.wait(), 1);
    EXPECT_NE(misled.err().find("the URL"), std::string::npos) << misled.err();
}

TEST_F(LawnctlTest, HasAnExampleThatRunsBesideAnother)
{
    const char *example = getenv("LAWN_EXAMPLE_DURABLE");
    ASSERT_NE(example, nullptr);
    std::list<Program> runs;
    for (int i = 0; i < 3; ++i) {
        runs.emplace_back(Words{server_.url()}, example);
    }
    for (Program &run : runs) {
        EXPECT_EQ(run.wait(), 0) << run.err();
        EXPECT_EQ(lines(run.out()), 12u) << run.out();
    }
}

// A run may be at its end before the store dies: then another one follows.
TEST_F(LawnctlTest, HasAnExampleThatEndsWithTheStore)
{
    const char *example = getenv("LAWN_EXAMPLE_DURABLE");
    ASSERT_NE(example, nullptr);
    int status = 0;
    while (status == 0) {
        server_.start();
        Program run({server_.url()}, example);
        for (int i = 0; i < 100000; ++i) {
            if (server_.command({"KEYS", "*example*due"}).size() > 0) {
                break;
            }
        }
        server_.kill();
        status = run.wait();
        if (status != 0) {
            EXPECT_EQ(status, 1);
            EXPECT_EQ(lines(run.err()), 1u) << run.err();
        }
    }
}

// Short: the chaos has a program of its own in ci.
TEST(LawnctlVerify, FindsThatThePromiseIsKept)
{
    Program run(
        {"--json", "verify", "--seconds", "5", "--seed", "3", "--rate", "100"});
    EXPECT_EQ(run.wait(), 0) << run.err();
    const std::string out = run.out();
    EXPECT_NE(out.find("\"lost\":0,"), std::string::npos) << out;
    EXPECT_NE(out.find("\"early\":0,"), std::string::npos) << out;
    EXPECT_NE(out.find("\"verdict\":\"good\""), std::string::npos) << out;
}

TEST(LawnctlPlan, IsTheSameForTheSameSeed)
{
    using lawn_verify::FaultKind;
    const lawn_verify::FaultKinds some = {FaultKind::kill, FaultKind::step};
    const std::vector<lawn_verify::FaultKinds> victims = {
        {}, some, some, some, {FaultKind::cut}};
    const auto a = lawn_verify::make_plan(7, victims, 60000000);
    const auto b = lawn_verify::make_plan(7, victims, 60000000);
    const auto c = lawn_verify::make_plan(8, victims, 60000000);
    ASSERT_EQ(a.size(), b.size());
    bool differs = a.size() != c.size();
    int64_t last_us = 0;
    std::vector<int64_t> busy_us(5, 0);
    for (size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].at_us, b[i].at_us);
        EXPECT_EQ(a[i].victim, b[i].victim);
        EXPECT_EQ(a[i].kind, b[i].kind);
        EXPECT_GE(a[i].at_us, last_us);
        ASSERT_LT(a[i].victim, 5u);
        EXPECT_NE(a[i].victim, 0u) << "spared";
        EXPECT_EQ(a[i].kind == FaultKind::cut, a[i].victim == 4);
        EXPECT_EQ(a[i].step_us != 0, a[i].kind == FaultKind::step);
        EXPECT_GE(a[i].at_us, busy_us[a[i].victim]) << "one at a time";
        busy_us[a[i].victim] = a[i].at_us + a[i].for_us;
        last_us = a[i].at_us;
        differs = differs || a[i].at_us != c[i].at_us;
    }
    EXPECT_GT(a.size(), 60u);
    EXPECT_LT(last_us, 60000000);
    EXPECT_TRUE(differs);
}

TEST(LawnctlOutput, WritesJsonThatCanBeRead)
{
    using lawnctl::Json;
    EXPECT_EQ(Json().str(), "{}");
    EXPECT_EQ(Json().text("a", "x\"y\\z\n").number("b", 7).str(),
              "{\"a\":\"x\\\"y\\\\z\\u000a\",\"b\":7}");
    EXPECT_EQ(Json().payload("\xff", 1).str(), "{\"payload_hex\":\"ff\"}");
    EXPECT_EQ(Json().id("a\xff").str(), "{\"id\":\"a?\",\"id_hex\":\"61ff\"}");
    EXPECT_EQ(Json().id("a").str(), "{\"id\":\"a\"}");
    EXPECT_EQ(Json().payload("\xc3\xa9", 2).str(),
              "{\"payload\":\"\xc3\xa9\"}");
    EXPECT_EQ(Json().payload("\xed\xa0\x80", 3).str(),
              "{\"payload_hex\":\"eda080\"}");
    EXPECT_EQ(Json().payload("\xc0\x80", 2).str(),
              "{\"payload_hex\":\"c080\"}");
    EXPECT_EQ(Json().time("t", 1500000).str(), "{\"t\":1.500000}");
    EXPECT_EQ(lawnctl::payload_text("a\nb\x7f", 4), "a\\x0ab\\x7f");
}

} // namespace
