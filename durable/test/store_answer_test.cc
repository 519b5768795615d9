// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Answers, leases, dead letters and lists.

#include "store_fixture.h"

#include <set>

namespace
{

using namespace lawn_test;

class DurableAnswer : public AnsweredStore
{
public:
    std::set<std::string> list(int state, unsigned count = 1000)
    {
        std::set<std::string> ids;
        std::string cursor = "0";
        do {
            const Reply reply =
                call("lawn_list", list_keys,
                     {std::to_string(state), cursor, std::to_string(count)});
            const Tree tree(reply);
            Listed listed;
            EXPECT_TRUE(decode(tree.get(), &listed)) << to_string(reply);
            for (const Listed::Timer &t : listed.timers) {
                EXPECT_EQ(t.state, state);
                ids.insert(std::string(t.id));
            }
            cursor = listed.cursor;
        } while (cursor != "0" && !cursor.empty());
        return ids;
    }
};

TEST_F(DurableAnswer, DoneAndFailEndATimer)
{
    const Delivery a = deliver("a");
    const Delivery b = deliver("b");
    EXPECT_EQ(
        results({{a, done_verdict()}, {b, reject_verdict("why")}, {a, "d"}}),
        (std::vector<Answered>{Answered::taken, Answered::taken,
                               Answered::too_late}));
    EXPECT_EQ(state("a"), success);
    EXPECT_EQ(state("b"), fail);
    EXPECT_EQ(unanswered(), 0);
    EXPECT_EQ(stats()["success"], 1);
    EXPECT_EQ(stats()["fail"], 1);
    EXPECT_EQ(stats()["bytes"], 0);
    EXPECT_EQ(stats()["out_in_flight"], 0);
    const Got got = decoded<Got>(get_reply("a"));
    EXPECT_EQ(got.end.generation, a.generation);
    EXPECT_EQ(got.end.due_us, a.due_us);
    EXPECT_GE(got.end.ended_us, a.fired_us);
    EXPECT_EQ(got.end.attempt, 1U);
}

TEST_F(DurableAnswer, ARetryIsTheSameTimerLater)
{
    const Delivery first = deliver("a");
    const int64_t before = now();
    EXPECT_EQ(answer(first, retry_verdict(1000, 1, "busy")), Answered::taken);
    EXPECT_EQ(answer(first, done_verdict()), Answered::too_late);
    EXPECT_EQ(state("a"), pending);
    while (fire().fired() == 0) {
    }
    const Delivery second = read().at(0);
    EXPECT_EQ(second.generation, first.generation);
    EXPECT_EQ(second.payload, "payload");
    EXPECT_EQ(second.attempt, 2U);
    EXPECT_GE(second.due_us, before + 1000);
    EXPECT_GE(second.fired_us, second.due_us);
    EXPECT_EQ(answer(second, done_verdict()), Answered::taken);
    EXPECT_EQ(stats()["retried"], 1);
}

TEST_F(DurableAnswer, WhatIsDeferredIsNoAttempt)
{
    Delivery d = deliver("a", attempts(1));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(answer(d, defer_verdict(0, 1)), Answered::taken);
        while (fire().fired() == 0) {
        }
        d = read().at(0);
        EXPECT_EQ(d.attempt, 1U);
    }
    EXPECT_EQ(stats()["deferred"], 3);
    EXPECT_EQ(stats()["retried"], 0);
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "")), Answered::dead);
}

TEST_F(DurableAnswer, AfterTheLastAttemptThereIsADeadLetter)
{
    Delivery d = deliver("a", attempts(2));
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "first")), Answered::taken);
    while (fire().fired() == 0) {
    }
    d = read().at(0);
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "second")), Answered::dead);
    EXPECT_EQ(state("a"), dead);
    EXPECT_EQ(stop("a").state, dead);
    const std::vector<Delivery> letters = entries("dead");
    ASSERT_EQ(letters.size(), 1U);
    EXPECT_EQ(letters[0].id, "a");
    EXPECT_EQ(letters[0].payload, "payload");
    EXPECT_EQ(letters[0].attempt, 2U);
    EXPECT_EQ(letters[0].reason, "attempts");
    EXPECT_EQ(letters[0].error, "second");
    EXPECT_EQ(stats()["dead"], 1);
    EXPECT_EQ(stats()["dead_letters"], 1);
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableAnswer, ADeadLetterIsReplayed)
{
    Delivery d = deliver("a", attempts(1));
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "")), Answered::dead);
    const std::string entry = entries("dead").at(0).entry;
    const auto replay = [&](const std::string &letter) {
        return decoded<Replayed>(
            call("lawn_replay", "due body meta dead", {letter, "a"}));
    };
    EXPECT_FALSE(replay("").replayed);
    const Replayed replayed = replay(entry);
    EXPECT_TRUE(replayed.replayed);
    EXPECT_GT(replayed.generation, d.generation);
    EXPECT_EQ(state("a"), pending);
    EXPECT_TRUE(entries("dead").empty());
    // The first answer may have been lost.
    for (const std::string &letter : {entry, std::string()}) {
        const Replayed again = replay(letter);
        EXPECT_TRUE(again.replayed);
        EXPECT_EQ(again.generation, replayed.generation);
        EXPECT_EQ(again.due_us, replayed.due_us);
    }
    EXPECT_EQ(fire().fired(), 1U);
    d = read().at(0);
    EXPECT_EQ(d.attempt, 1U);
    EXPECT_EQ(d.payload, "payload");
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "")), Answered::dead);
    start("a", "+1000000");
    const Replayed refused = replay(entries("dead").at(0).entry);
    EXPECT_FALSE(refused.replayed);
    EXPECT_GT(refused.generation, d.generation);
    EXPECT_EQ(replay("").generation, 0U);
    EXPECT_EQ(entries("dead").size(), 1U);
}

TEST_F(DurableAnswer, OtherGroupsOnlyRead)
{
    join("reader");
    start("a", ago(1));
    fire();
    const Delivery theirs = read("reader").at(0);
    EXPECT_EQ(answer(theirs, done_verdict(), "reader"), Answered::too_late);
    EXPECT_EQ(server.command({"XPENDING", key("out"), "reader"})[0].integer, 0);
    EXPECT_EQ(state("a"), delivered);
    EXPECT_EQ(answer(read().at(0), done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), success);
}

// As if the shard had been elsewhere meanwhile, and had come back.
TEST_F(DurableAnswer, TheFirstGroupIsNotForgotten)
{
    server.command({"HDEL", key("meta"), "group_out"});
    forget_shard();
    start("a", ago(1));
    fire();
    const Delivery d = read().at(0);
    server.command({"HSET", key("meta"), "group_out", group});
    EXPECT_EQ(answer(d, done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), success);
}

TEST_F(DurableAnswer, TheFirstGroupStaysTheFirst)
{
    EXPECT_EQ(call("lawn_join", "meta out", {"reader"}).string, group);
    EXPECT_EQ(call("lawn_join", "meta out", {group}).string, group);
    EXPECT_EQ(call("lawn_join", "meta out", {"third", "reader"}).string,
              "reader");
    EXPECT_EQ(call("lawn_join", "meta push", {"lawnd"}).string, "lawnd");
}

using DurableAge = SteppedStore;

TEST_F(DurableAge, NamesOfConsumersThatHaveGoneAreForgotten)
{
    join();
    start("a", ago(1));
    fire();
    EXPECT_EQ(read().size(), 1U); // and does not answer
    server.command({"XGROUP", "CREATECONSUMER", key("out"), group, "gone"});
    const auto names = [this] {
        std::set<std::string> all;
        const Reply reply =
            server.command({"XINFO", "CONSUMERS", key("out"), group});
        for (const Reply &one : reply.elements) {
            all.insert(one[1].string);
        }
        return all;
    };
    step("3000");
    server.command({"XGROUP", "CREATECONSUMER", key("out"), group, "idle"});
    join();
    EXPECT_EQ(names(), (std::set<std::string>{consumer, "gone", "idle"}));
    step("6000");
    join();
    EXPECT_EQ(names(), (std::set<std::string>{consumer, "idle"}));
    EXPECT_EQ(take(0).at(0).id, "a");
}

TEST_F(DurableAnswer, WhatNobodyAnswersGoesToAnother)
{
    const Delivery d = deliver("a");
    EXPECT_TRUE(take(hour).empty());
    const std::vector<Delivery> taken = take(0);
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].entry, d.entry);
    EXPECT_EQ(taken[0].identity, d.identity);
    EXPECT_EQ(taken[0].deliveries, 2U);
    EXPECT_EQ(stats()["taken"], 1);
    EXPECT_EQ(answer(taken[0], done_verdict()), Answered::taken);
    EXPECT_EQ(answer(d, done_verdict()), Answered::too_late);
    EXPECT_TRUE(take(0).empty());
}

TEST_F(DurableAnswer, WhatWasTakenTooOftenIsDead)
{
    deliver("a", attempts(3));
    EXPECT_EQ(take(0).at(0).deliveries, 2U);
    EXPECT_EQ(take(0).at(0).deliveries, 3U);
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(state("a"), dead);
    EXPECT_EQ(unanswered(), 0);
    const Delivery letter = entries("dead").at(0);
    EXPECT_EQ(letter.reason, "lease");
    EXPECT_EQ(letter.attempt, 3U);
    EXPECT_EQ(decoded<Got>(get_reply("a")).end.attempt, 3U);
    EXPECT_EQ(stats()["bytes"], 0);
    // For another group nothing is ever dead.
    join("reader");
    read("reader");
    for (unsigned i = 0; i < 12; ++i) {
        EXPECT_EQ(take(0, "reader").size(), 1U);
    }
}

TEST_F(DurableAnswer, ARetryCountsWhatWasTaken)
{
    deliver("a", attempts(3));
    const Delivery taken = take(0).at(0);
    EXPECT_EQ(answer(taken, retry_verdict(0, taken.deliveries, "")),
              Answered::taken);
    while (fire().fired() == 0) {
    }
    Delivery last = read().at(0);
    EXPECT_EQ(last.attempt, 3U);
    EXPECT_EQ(answer(last, retry_verdict(0, 1, "")), Answered::dead);
    deliver("b", attempts(3));
    take(0);
    last = take(0).at(0);
    EXPECT_EQ(answer(last, retry_verdict(0, last.deliveries, "")),
              Answered::dead);
    EXPECT_EQ(entries("dead").at(1).attempt, 3U);
    EXPECT_EQ(decoded<Got>(get_reply("b")).end.attempt, 3U);
}

// The deliveries before the one that is put off were attempts.
TEST_F(DurableAnswer, WhatIsDeferredAfterALeaseHasUsedThatAttempt)
{
    deliver("a", attempts(2));
    Delivery d = take(0).at(0);
    EXPECT_EQ(answer(d, defer_verdict(0, d.deliveries)), Answered::taken);
    while (fire().fired() == 0) {
    }
    d = read().at(0);
    EXPECT_EQ(d.attempt, 2U);
    EXPECT_EQ(answer(d, defer_verdict(0, 0)), Answered::refused);
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(state("a"), dead);
}

// A consumer that was started anew with its name asks for what it had.
TEST_F(DurableAnswer, WhatAConsumerHadIsGivenToItOnceMore)
{
    const Delivery a = deliver("a", attempts(3));
    const Delivery b = deliver("b");
    const auto retake = [&](const char *name) {
        return taken_in(
            call("lawn_take", "due body meta out ended0 ended1 dead",
                 {group, name, "1000000000", "100", a.entry, "9-9"}));
    };
    EXPECT_TRUE(retake("other").empty());
    for (unsigned deliveries = 2; deliveries <= 3; ++deliveries) {
        const std::vector<Delivery> own = retake(consumer);
        ASSERT_EQ(own.size(), 1U);
        EXPECT_EQ(own[0].id, "a");
        EXPECT_EQ(own[0].deliveries, deliveries);
    }
    EXPECT_TRUE(retake(consumer).empty());
    EXPECT_EQ(state("a"), dead);
    EXPECT_EQ(entries("dead").at(0).reason, "lease");
    EXPECT_EQ(state("b"), delivered);
}

// A call looks at so many whose lease is over. All of these may have used their
// attempts, and then it has none to give.
TEST_F(DurableAnswer, ItIsSaidWhetherThereAreMoreToTakeOver)
{
    for (int i = 0; i < 100; ++i) {
        start("dead-" + std::to_string(i), ago(1), "", attempts(1));
    }
    start("last", ago(1), "", attempts(2));
    EXPECT_EQ(fire(500).fired(), 101U);
    EXPECT_EQ(read().size(), 101U);
    const Reply first = take_reply(0);
    EXPECT_EQ(first[0].integer, 1);
    EXPECT_TRUE(taken_in(first).empty());
    const Reply second = take_reply(0);
    EXPECT_EQ(second[0].integer, 0);
    ASSERT_EQ(taken_in(second).size(), 1U);
    EXPECT_EQ(taken_in(second)[0].id, "last");
    EXPECT_EQ(stats()["dead"], 100);
}

TEST_F(DurableAnswer, AnOldDeliveryThatNobodyAnswersChangesNothing)
{
    Options options = attempts(1);
    deliver("a", options);
    start("a", "+1000000000");
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(unanswered(), 0);
    EXPECT_EQ(state("a"), pending);
    EXPECT_TRUE(entries("dead").empty());
}

TEST_F(DurableAnswer, ALeaseIsExtendedByItsOwner)
{
    const Delivery d = deliver("a");
    const auto extend = [&](const char *name) {
        return call("lawn_extend", "out", {group, name, d.entry}).size();
    };
    EXPECT_EQ(extend(consumer), 1U);
    EXPECT_EQ(extend("stranger"), 0U);
    EXPECT_TRUE(take(hour).empty());
    EXPECT_EQ(take(0).at(0).deliveries, 2U);
    EXPECT_EQ(extend(consumer), 0U);
    EXPECT_EQ(extend("other"), 1U);
    EXPECT_EQ(take(0).at(0).deliveries, 3U);
}

TEST_F(DurableAnswer, WhatItsOwnerReleasesWasNotDelivered)
{
    const Delivery d = deliver("a", attempts(2));
    const auto release = [&](const char *name) {
        return call("lawn_release", "out", {group, name, d.entry, "9-9"})
            .integer;
    };
    EXPECT_EQ(release("stranger"), 0);
    EXPECT_TRUE(take(hour).empty());
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(release(i == 0 ? consumer : "other"), 1);
        EXPECT_EQ(take(hour).at(0).deliveries, 1U);
    }
    EXPECT_EQ(take(0).at(0).deliveries, 2U);
    EXPECT_TRUE(take(hour).empty());
    EXPECT_EQ(release("other"), 1);
    EXPECT_EQ(release("other"), 1);
    EXPECT_EQ(take(hour).at(0).deliveries, 2U);
    EXPECT_EQ(state("a"), delivered);
}

TEST_F(DurableAnswer, EndsAreKeptUntilThereAreTooMany)
{
    prepare("0", "0", "3600000000", "10");
    for (int i = 0; i < 35; ++i) {
        start(std::to_string(i), "+1000000");
        EXPECT_EQ(stop(std::to_string(i)).state, stopped);
    }
    for (int i = 25; i < 35; ++i) {
        EXPECT_EQ(state(std::to_string(i)), stopped) << i;
    }
    EXPECT_EQ(state("0"), 0);
    EXPECT_LE(list(stopped).size(), 20U);
}

TEST_F(DurableAge, EndsAreKeptForTheirTime)
{
    prepare("0", "0", "3600000000", "1000");
    start("a", "+1000000");
    stop("a");
    for (const char *const seconds : {"4000", "8000"}) {
        EXPECT_EQ(state("a"), stopped);
        step(seconds);
        start("b", "+1000000");
        stop("b");
    }
    EXPECT_EQ(state("a"), 0);
    EXPECT_EQ(state("b"), stopped);
}

TEST_F(DurableAnswer, TimersAreListedByState)
{
    std::set<std::string> wanted;
    for (int i = 0; i < 700; ++i) {
        wanted.insert(std::to_string(i));
    }
    start_many(700, "+3600000000");
    EXPECT_EQ(list(pending, 50), wanted);
    deliver("delivered");
    answer(deliver("success"), done_verdict());
    answer(deliver("again"), done_verdict());
    answer(deliver("fail"), reject_verdict(""));
    start("again", "+3600000000");
    wanted.insert("again");
    EXPECT_EQ(list(pending, 50), wanted);
    EXPECT_EQ(list(delivered, 50), std::set<std::string>{"delivered"});
    EXPECT_EQ(list(success), std::set<std::string>{"success"});
    EXPECT_EQ(list(fail), std::set<std::string>{"fail"});
    EXPECT_TRUE(list(dead).empty());
    for (const std::string &id : wanted) {
        stop(id);
    }
    EXPECT_EQ(list(stopped, 20), wanted);
}

// Many timers have the same due time. The pages are taken while those before
// them fire, the last one that was listed among them.
TEST_F(DurableAnswer, WhatDoesNotChangeIsListedWhileOthersFire)
{
    const auto page = [this](std::string *cursor) {
        const Reply reply = call("lawn_list", list_keys,
                                 {std::to_string(pending), *cursor, "10"});
        const Tree tree(reply);
        Listed listed;
        EXPECT_TRUE(decode(tree.get(), &listed)) << to_string(reply);
        std::vector<std::string> ids;
        for (const Listed::Timer &t : listed.timers) {
            ids.emplace_back(t.id);
        }
        *cursor = listed.cursor;
        return ids;
    };
    const int64_t early = now() + hour;
    for (int i = 0; i < 60; ++i) {
        start("id-" + std::to_string(i), std::to_string(early + i / 25));
    }
    start("\xff", std::to_string(early));
    start("A", std::to_string(early));
    std::multiset<std::string> seen;
    std::set<std::string> fired;
    std::string cursor = "0";
    do {
        const std::vector<std::string> ids = page(&cursor);
        seen.insert(ids.begin(), ids.end());
        // The last of the page, and one of its middle.
        for (const size_t at : {size_t{9}, size_t{4}}) {
            if (at < ids.size()) {
                stop(ids[at]);
                fired.insert(ids[at]);
            }
        }
    } while (cursor != "0" && !cursor.empty());
    EXPECT_EQ(seen.size(), 62U);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 62U);
    EXPECT_EQ(fired.size(), 12U);
    for (const char *const bad : {"1", "x y", "1 ", " a", "nan a"}) {
        EXPECT_TRUE(
            call("lawn_list", list_keys, {std::to_string(pending), bad, "10"})
                .is_error())
            << bad;
    }
}

TEST_F(DurableAnswer, CountsAreRight)
{
    start("a", "+3600000000", "12345");
    start("b", ago(1));
    start("c", ago(1));
    std::map<std::string, int64_t> s = stats();
    EXPECT_EQ(s["pending"], 3);
    EXPECT_EQ(s["due"], 2);
    EXPECT_EQ(s["bytes"], 5);
    EXPECT_EQ(s["started"], 3);
    EXPECT_LT(s["next"], s["now"]);
    fire();
    EXPECT_EQ(stats()["out_in_flight"], 2) << "not read yet";
    read();
    s = stats();
    EXPECT_EQ(s["out_in_flight"], 2) << "not answered yet";
    EXPECT_EQ(s["due"], 0);
    EXPECT_GT(s["next"], s["now"]);
}

} // namespace
