// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What is due fires, once and not early; periodic timers and misfires.

#include "store_fixture.h"

#include <string.h>

#include <set>

namespace
{

using namespace lawn_test;

class DurableFire : public Store
{
public:
    DurableFire()
    {
        join();
        join("lawnd", "push");
    }

    static Options every(int64_t us, int misfire = 0, unsigned misfire_ms = 0)
    {
        Options options;
        options.every_us = us;
        options.misfire = static_cast<uint8_t>(misfire);
        options.misfire_ms = misfire_ms;
        return options;
    }

    int64_t due(const std::string &id)
    {
        const Reply score = server.command({"ZSCORE", key("due"), id});
        return score.type == Reply::text ? std::stoll(score.string) : 0;
    }
};

TEST_F(DurableFire, WhatIsDueAndNothingElse)
{
    const Started a = start("a", ago(1), "payload");
    start("b", "+3600000000");
    const Fired fired = fire();
    EXPECT_EQ(fired.late_us, (std::vector<int64_t>{fired.now_us - a.due_us}));
    EXPECT_FALSE(fired.more);
    EXPECT_EQ(state("a"), delivered);
    EXPECT_EQ(state("b"), pending);
    const std::vector<Delivery> all = read();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].id, "a");
    EXPECT_EQ(all[0].payload, "payload");
    EXPECT_EQ(all[0].generation, a.generation);
    EXPECT_EQ(all[0].due_us, a.due_us);
    EXPECT_EQ(all[0].fired_us, fired.now_us);
    EXPECT_EQ(all[0].attempt, 1U);
    EXPECT_EQ(fire().fired(), 0U);
    EXPECT_TRUE(read().empty());
    EXPECT_EQ(stats()["fired"], 1);
}

TEST_F(DurableFire, NeverEarlyAndEachOnce)
{
    constexpr unsigned timers = 3000;
    std::set<std::string> seen;
    unsigned fired = 0;
    const auto fire_some = [&] {
        fired += fire(7).fired();
        for (const Delivery &d : read()) {
            EXPECT_GE(d.fired_us, d.due_us);
            EXPECT_TRUE(seen.insert(d.id).second) << d.id;
        }
    };
    // In between, so that some are not due yet, however slow the machine.
    for (unsigned i = 0; i < timers; ++i) {
        start(std::to_string(i), "+" + std::to_string(i % 97 * 1000));
        if (i % 7 == 0) {
            fire_some();
        }
    }
    while (fired < timers) {
        fire_some();
    }
    EXPECT_EQ(seen.size(), timers);
    EXPECT_EQ(fire().fired(), 0U);
}

TEST_F(DurableFire, NoMoreThanTheLimit)
{
    for (const char *id : {"a", "b", "c"}) {
        start(id, ago(second));
    }
    const Fired first = fire(2);
    EXPECT_EQ(first.fired(), 2U);
    EXPECT_TRUE(first.more);
    const Fired rest = fire(2);
    EXPECT_EQ(rest.fired(), 1U);
    EXPECT_FALSE(rest.more);
    EXPECT_TRUE(rest.due_us.empty());
}

// Until then, it is told what the first was.
TEST_F(DurableFire, AnUpdateRepeatedAfterARetryIsToldTheNextAttempt)
{
    join();
    const std::string seen = std::to_string(start("a", "+1000000").generation);
    const auto update = [&] {
        return decoded<Updated>(
            call("lawn_update", "due body meta", {"a", seen, "+0", "two"}));
    };
    const Updated first = update();
    ASSERT_TRUE(first.updated);
    EXPECT_EQ(fire().fired(), 1U);
    answer(read().at(0), retry_verdict(1000000, 1, ""));
    const Updated again = update();
    EXPECT_TRUE(again.updated);
    EXPECT_EQ(again.generation, first.generation);
    EXPECT_GT(again.due_us, first.due_us);
}

TEST_F(DurableFire, TellsWhatComesNext)
{
    const int64_t base = now() + hour;
    for (const int64_t after : {5, 1, 1, 3, 1000, 2}) {
        start("id" + std::to_string(after) + std::to_string(now()),
              std::to_string(base + after));
    }
    EXPECT_EQ(fire().due_us, (std::vector<int64_t>{base + 1}));
    EXPECT_EQ(fire(500, 2 * hour).due_us,
              (std::vector<int64_t>{base + 1, base + 1, base + 2, base + 3,
                                    base + 5, base + 1000}));
    // As many as were asked for: there may be more.
    EXPECT_EQ(fire(500, 2 * hour, 3).due_us,
              (std::vector<int64_t>{base + 1, base + 1, base + 2}));
    EXPECT_EQ(fire(500, base - now() - hour / 2).due_us.size(), 1U);
}

TEST_F(DurableFire, ATargetHasAStreamOfItsOwn)
{
    Options options;
    options.target = "http://localhost/";
    start("a", ago(1), "x", options);
    start("b", ago(1));
    EXPECT_EQ(fire().fired(), 2U);
    EXPECT_EQ(read().at(0).id, "b");
    const Delivery pushed = read("lawnd", "push").at(0);
    EXPECT_EQ(pushed.id, "a");
    EXPECT_EQ(pushed.target, "http://localhost/");
    EXPECT_EQ(pushed.payload, "x");
    EXPECT_EQ(answer(pushed, done_verdict(), "lawnd", "push"), Answered::taken);
    EXPECT_EQ(state("a"), success);
}

TEST_F(DurableFire, APeriodicTimerIsStartedAgainAtOnce)
{
    const Started s = start("a", ago(second / 2), "x", every(hour));
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(state("a"), pending);
    EXPECT_EQ(due("a"), s.due_us + hour);
    const Delivery first = read().at(0);
    EXPECT_EQ(first.generation, s.generation);
    const Reply reply = get_reply("a");
    const Tree tree(reply);
    Got got;
    ASSERT_TRUE(decode(tree.get(), &got));
    EXPECT_GT(got.body.generation, s.generation);
    EXPECT_EQ(got.body.payload, "x");
    EXPECT_EQ(answer(first, done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), pending);
    EXPECT_EQ(stats()["success"], 1);
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableFire, APeriodMayBeLongerThanTimesGo)
{
    for (const int misfire : {0, 2}) {
        start("a", ago(1), "", every(8900000000 * second, misfire));
        EXPECT_EQ(fire().fired(), 1U);
        EXPECT_EQ(due("a"), max_time);
        EXPECT_EQ(state("a"), pending);
    }
}

TEST_F(DurableFire, AllThatWasMissedFires)
{
    const Started s = start("a", ago(10 * second), "", every(second));
    unsigned fired = 0;
    Fired last;
    do {
        last = fire();
        fired += last.fired();
    } while (last.more);
    EXPECT_GE(fired, 11U);
    int64_t wanted = s.due_us;
    for (const Delivery &d : read()) {
        EXPECT_EQ(d.due_us, wanted);
        wanted += second;
    }
    EXPECT_EQ(due("a"), wanted);
}

TEST_F(DurableFire, OneForAllThatWasMissed)
{
    const Started s = start("a", ago(10 * hour + second), "", every(hour, 2));
    const Fired fired = fire();
    EXPECT_EQ(fired.fired(), 1U);
    EXPECT_FALSE(fired.more);
    EXPECT_EQ(due("a"), s.due_us + 11 * hour);
    EXPECT_EQ(stats()["missed"], 10);
}

TEST_F(DurableFire, WhatIsTooLateIsSkipped)
{
    // The first two are later than the two and a half hours allowed.
    const Started s =
        start("a", ago(4 * hour), "", every(hour, 1, 2 * 3600000 + 1800000));
    Fired last;
    unsigned fired = 0;
    do {
        last = fire();
        fired += last.fired();
    } while (last.more);
    EXPECT_EQ(fired, 3U);
    EXPECT_EQ(stats()["missed"], 2);
    EXPECT_EQ(read().at(0).due_us, s.due_us + 2 * hour);
    EXPECT_EQ(due("a"), s.due_us + 5 * hour);
}

TEST_F(DurableFire, ATimerThatIsTooLateFails)
{
    Options options;
    options.misfire = 1;
    options.misfire_ms = 1000;
    start("late", ago(2 * second), "abc", options);
    options.misfire_ms = 3600000;
    start("soon", ago(second), "", options);
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(read().at(0).id, "soon");
    EXPECT_EQ(state("late"), fail);
    EXPECT_EQ(stats()["missed"], 1);
    EXPECT_EQ(stats()["bytes"], 5); // the options of the other
    EXPECT_EQ(stats()["out_in_flight"], 1);
}

// Somebody has had it, and wants it again.
TEST_F(DurableFire, ARetryIsNotSkipped)
{
    Options options;
    options.misfire = 1;
    options.misfire_ms = 3600000;
    start("a", ago(1), "", options);
    fire();
    EXPECT_EQ(answer(read().at(0), retry_verdict(0, 1, "")), Answered::taken);
    std::string body = server.command({"HGET", key("body"), "a"}).string;
    const auto due = static_cast<double>(now() - 2 * hour);
    memcpy(&body[8], &due, sizeof(due)); // the identity's second number
    server.command({"HSET", key("body"), "a", body});
    const Fired fired = fire();
    ASSERT_EQ(fired.fired(), 1U);
    EXPECT_GE(fired.late_us[0], 2 * hour);
    EXPECT_EQ(read().at(0).attempt, 2U);
    EXPECT_EQ(stats()["missed"], 0);
}

TEST_F(DurableFire, AStopBeforeItFiresWins)
{
    start("a", ago(1));
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(fire().fired(), 0U);
    EXPECT_TRUE(read().empty());
}

TEST_F(DurableFire, ATimerStartedAnewWhileDeliveredIsAnother)
{
    start("a", ago(1), "old");
    fire();
    const Delivery old = read().at(0);
    start("a", ago(1), "new");
    EXPECT_EQ(answer(old, retry_verdict(0, 1, "")), Answered::too_late);
    EXPECT_EQ(state("a"), pending);
    fire();
    const Delivery fresh = read().at(0);
    EXPECT_EQ(fresh.payload, "new");
    EXPECT_EQ(answer(old, done_verdict()), Answered::too_late);
    EXPECT_EQ(state("a"), delivered);
    EXPECT_EQ(answer(fresh, done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), success);
}

TEST_F(DurableFire, ABodyThatIsGoneOrForeignStopsNobody)
{
    start("a", ago(3));
    start("b", ago(2));
    start("c", ago(1));
    start("d", ago(1), "x", every(hour));
    server.command({"HDEL", key("body"), "a"});
    server.command({"HSET", key("body"), "b", "short"});
    server.command({"HSET", key("body"), "d", std::string(19, '\xff')});
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(read().at(0).id, "c");
    EXPECT_EQ(stats()["corrupt"], 3);
    EXPECT_EQ(stats()["pending"], 0);
    EXPECT_EQ(stats()["out_in_flight"], 1); // nothing else is waited for
}

} // namespace
