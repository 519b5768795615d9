// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Answers to occurrences of periodic timers.

#include "store_fixture.h"

namespace
{

using namespace lawn_test;

using DurableOccurrence = AnsweredStore;

TEST_F(DurableOccurrence, AnOccurrenceIsTriedAgainBeforeTheNext)
{
    Options options;
    options.every_us = hour;
    const Delivery first = deliver("a", options);
    EXPECT_EQ(answer(first, retry_verdict(0, 1, "")), Answered::taken);
    EXPECT_EQ(answer(first, retry_verdict(0, 1, "")), Answered::too_late);
    while (fire().fired() == 0) {
    }
    const Delivery second = read().at(0);
    EXPECT_EQ(second.generation, first.generation);
    EXPECT_EQ(second.attempt, 2U);
    const Got next = decoded<Got>(get_reply("a"));
    EXPECT_EQ(next.state, pending);
    EXPECT_EQ(next.body.attempt, 1U);
    EXPECT_EQ(next.body.due_us, first.due_us + hour);
    EXPECT_GT(next.body.generation, first.generation);
    EXPECT_EQ(answer(second, retry_verdict(2 * hour, 1, "")),
              Answered::superseded);
    EXPECT_EQ(stats()["superseded"], 1);
    EXPECT_EQ(decoded<Got>(get_reply("a")).body.due_us, first.due_us + hour);
    EXPECT_EQ(stop("a").state, stopped);
}

TEST_F(DurableOccurrence, WhatWasStartedAnewIsNotTriedAgainForWhatWas)
{
    Options options;
    options.every_us = hour;
    options.token = 1;
    const Delivery once = deliver("a");
    start("a", ago(1), "", options);
    fire();
    const Delivery before = read().at(0);
    options.token = 2;
    const Started now = start("a", "+1000000000", "", options);
    for (const Delivery &old : {once, before}) {
        EXPECT_EQ(answer(old, retry_verdict(0, 1, "")), Answered::too_late);
        const Got got = decoded<Got>(get_reply("a"));
        EXPECT_EQ(got.body.generation, now.generation);
        EXPECT_EQ(got.body.due_us, now.due_us);
    }
    EXPECT_EQ(unanswered(), 0);
}

// Nothing but its start tells one from the other: neither has a token.
TEST_F(DurableOccurrence, ALateAnswerIsNotForALaterStart)
{
    Options options;
    options.every_us = hour;
    for (const bool is_stopped : {false, true}) {
        std::vector<Delivery> old;
        for (int i = 0; i < 3; ++i) {
            old.push_back(deliver("a", options));
        }
        if (is_stopped) {
            EXPECT_EQ(stop("a").state, stopped);
        }
        const Started now = start("a", "+1000000000", "new", options);
        const auto before = stats();
        EXPECT_EQ(answer(old[0], retry_verdict(0, 1, "")), Answered::too_late);
        EXPECT_EQ(answer(old[1], done_verdict()), Answered::too_late);
        EXPECT_EQ(answer(old[2], reject_verdict("")), Answered::too_late);
        const Reply reply = get_reply("a");
        const Tree tree(reply);
        Got got = {};
        ASSERT_TRUE(decode(tree.get(), &got));
        EXPECT_EQ(got.body.generation, now.generation);
        EXPECT_EQ(got.body.due_us, now.due_us);
        EXPECT_EQ(got.body.payload, "new");
        EXPECT_EQ(unanswered(), 0);
        auto after = stats();
        for (const char *const name :
             {"success", "fail", "retried", "superseded"}) {
            EXPECT_EQ(after[name], before.at(name)) << name;
        }
        stop("a");
    }
}

TEST_F(DurableOccurrence, ALetterTellsItsLastAttempt)
{
    Options options = attempts(2);
    options.every_us = hour;
    deliver("taken", options);
    EXPECT_EQ(take(0).at(0).deliveries, 2U);
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(entries("dead").at(0).attempt, 2U);
    deliver("answered", options);
    const Delivery last = take(0).at(0);
    EXPECT_EQ(answer(last, retry_verdict(0, last.deliveries, "")),
              Answered::dead);
    EXPECT_EQ(entries("dead").at(1).attempt, 2U);
}

TEST_F(DurableOccurrence, AnOldOccurrenceThatNobodyAnswersIsNoDeadLetter)
{
    Options options = attempts(1);
    options.every_us = hour;
    deliver("a", options);
    start("a", "+1000000000", "", options);
    EXPECT_TRUE(take(0).empty());
    EXPECT_EQ(unanswered(), 0);
    EXPECT_TRUE(entries("dead").empty());
    EXPECT_EQ(stats()["dead"], 0);
}

// Bodies that are stored already may have no mark, and a shorter period.
TEST_F(DurableOccurrence, ABodyWithoutAMarkIsUsedAsItIs)
{
    Options options;
    options.every_us = hour;
    start("a", ago(1), "", options);
    options.every_us = 1000;
    const std::string body =
        server.command({"HGET", key("body"), "a"}).string.substr(0, 18) +
        encode_tail(options, "old");
    server.command({"HSET", key("body"), "a", body});
    EXPECT_EQ(fire().fired(), 1U);
    const Delivery old = read().at(0);
    EXPECT_EQ(old.payload, "old");
    EXPECT_EQ(answer(old, done_verdict()), Answered::taken);
    while (fire().fired() == 0) {
    }
    const Delivery late = read().at(0);
    options.every_us = hour;
    start("a", "+1000000000", "", options);
    EXPECT_EQ(answer(late, retry_verdict(0, 1, "")), Answered::too_late);
    EXPECT_EQ(stats()["success"], 1);
}

// What the update has told, the generation and the due time, stays.
TEST_F(DurableOccurrence, AnOccurrenceFromBeforeAnUpdateIsNotTriedAgain)
{
    Options options;
    options.every_us = hour;
    const Delivery retried = deliver("a", options);
    const auto update = [this](uint64_t generation) {
        return decoded<Updated>(
            call("lawn_update", "due body meta",
                 {"a", std::to_string(generation), "+2000000000", "new"}));
    };
    const uint64_t seen = decoded<Got>(get_reply("a")).body.generation;
    const Updated updated = update(seen);
    EXPECT_TRUE(updated.updated);
    EXPECT_EQ(answer(retried, retry_verdict(0, 1, "")), Answered::superseded);
    const Got got = decoded<Got>(get_reply("a"));
    EXPECT_EQ(got.body.generation, updated.generation);
    EXPECT_EQ(got.body.due_us, updated.due_us);
    EXPECT_EQ(update(seen).generation, updated.generation); // a repeat
    EXPECT_EQ(stats()["superseded"], 1);
}

// The retry is not what is moved, and the occurrences between are not made up
// for.
TEST_F(DurableOccurrence, AnUpdateOfTheTimeSupersedesARetryThatWaits)
{
    Options options;
    options.every_us = hour;
    const Delivery first = deliver("a", options);
    EXPECT_EQ(answer(first, retry_verdict(second, 1, "")), Answered::taken);
    const int64_t due = now() - 3 * second / 2;
    const Updated updated = decoded<Updated>(
        call("lawn_update", "due body meta",
             {"a", std::to_string(first.generation), std::to_string(due)}));
    EXPECT_TRUE(updated.updated);
    const Fired fired = fire(500, 2 * hour);
    EXPECT_EQ(fired.fired(), 1U);
    EXPECT_EQ(fired.due_us, std::vector<int64_t>{due + hour});
    const Delivery moved = read().at(0);
    EXPECT_EQ(moved.attempt, 1U);
    EXPECT_EQ(moved.due_us, due);
    EXPECT_EQ(stats()["superseded"], 1);
    EXPECT_EQ(answer(moved, done_verdict()), Answered::taken);
    EXPECT_EQ(stop("a").state, stopped);
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableOccurrence, AnUpdateLeavesAnOccurrenceToItsTimer)
{
    Options options;
    options.every_us = hour;
    const Delivery first = deliver("a", options);
    const std::string seen =
        std::to_string(decoded<Got>(get_reply("a")).body.generation);
    EXPECT_TRUE(decoded<Updated>(call("lawn_update", "due body meta",
                                      {"a", seen, "", "new"}))
                    .updated);
    EXPECT_EQ(answer(first, done_verdict()), Answered::taken);
    EXPECT_EQ(stats()["success"], 1);
    // The next one is tried again, as before.
    const std::string now_due =
        std::to_string(decoded<Got>(get_reply("a")).body.generation);
    EXPECT_TRUE(decoded<Updated>(call("lawn_update", "due body meta",
                                      {"a", now_due, ago(1)}))
                    .updated);
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(answer(read().at(0), retry_verdict(0, 1, "")), Answered::taken);
}

TEST_F(DurableOccurrence, AnOccurrenceThatIsDeadDoesNotEndTheTimer)
{
    Options options = attempts(1);
    options.every_us = hour;
    const Delivery d = deliver("a", options);
    EXPECT_EQ(answer(d, retry_verdict(0, 1, "why")), Answered::dead);
    EXPECT_EQ(state("a"), pending);
    const Delivery letter = entries("dead").at(0);
    EXPECT_EQ(letter.generation, d.generation);
    EXPECT_EQ(letter.error, "why");
    EXPECT_EQ(letter.payload, "payload");
    // It is replayed as a timer that fires once, when the other is no more.
    EXPECT_FALSE(decoded<Replayed>(call("lawn_replay", "due body meta dead",
                                        {letter.entry, "a"}))
                     .replayed);
    stop("a");
    EXPECT_TRUE(decoded<Replayed>(call("lawn_replay", "due body meta dead",
                                       {letter.entry, "a"}))
                    .replayed);
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(state("a"), delivered);
}

// A start timed out after it was carried out, the timer has fired, and a
// consumer wants it again: the repeat is told what the first would have been.
TEST_F(DurableOccurrence, ARepeatedStartIsAnsweredLikeTheFirst)
{
    join();
    for (const bool is_periodic : {false, true}) {
        for (const bool has_policy : {false, true}) {
            Options options;
            options.token = 7;
            options.every_us = is_periodic ? hour : 0;
            options.max_attempts = 3;
            options.misfire = has_policy ? 2 : 0; // coalesce
            options.misfire_ms = has_policy ? 1000 : 0;
            const Started first = start("a", ago(1), "payload", options);
            const auto expect_first = [&](int state) {
                const Started again = start("a", "+1", "other", options);
                EXPECT_TRUE(again.repeated);
                EXPECT_EQ(again.generation, first.generation);
                EXPECT_EQ(again.due_us, first.due_us);
                EXPECT_EQ(again.state, state);
            };
            for (int attempt = 1; attempt <= 2; ++attempt) {
                fire();
                expect_first(is_periodic ? pending : delivered);
                const Delivery given = read().at(0);
                EXPECT_EQ(given.payload, "payload");
                EXPECT_EQ(answer(given, retry_verdict(0, 1, "")),
                          Answered::taken);
                expect_first(pending);
            }
            fire();
            const Got got = decoded<Got>(get_reply("a"));
            EXPECT_EQ(got.body.options.misfire, options.misfire);
            EXPECT_EQ(got.body.options.misfire_ms, options.misfire_ms);
            EXPECT_EQ(got.body.options.max_attempts, 3U);
            answer(read().at(0), done_verdict());
            if (is_periodic) {
                stop("a");
            }
            expect_first(is_periodic ? stopped : success);
            EXPECT_EQ(start("a", "+1", "", Options()).state, pending);
            stop("a");
        }
    }
}

TEST_F(DurableOccurrence, ARepeatedStartIsAnsweredLikeTheFirstAfterAnUpdate)
{
    Options options;
    options.token = 7;
    const Started first = start("a", "+1000000000", "payload", options);
    EXPECT_TRUE(decoded<Updated>(call("lawn_update", "due body meta",
                                      {"a", std::to_string(first.generation),
                                       "+2000000000"}))
                    .updated);
    const Started again = start("a", "+1", "other", options);
    EXPECT_EQ(again.generation, first.generation);
    EXPECT_EQ(again.due_us, first.due_us);
    EXPECT_GT(decoded<Got>(get_reply("a")).body.generation, first.generation);
}

// What the store keeps for that is not the program's, and takes no room of its.
TEST_F(DurableOccurrence, WhatAStartWasAnsweredTakesNoRoom)
{
    join();
    Options options;
    options.token = 7;
    options.every_us = hour;
    start("a", ago(1), "payload", options);
    const int64_t before = stats()["bytes"];
    fire();
    EXPECT_EQ(stats()["bytes"], before);
    answer(read().at(0), retry_verdict(0, 1, ""));
    fire();
    EXPECT_EQ(stats()["bytes"], before);
    stop("a");
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableOccurrence, AStartCannotSayWhatItWasAnswered)
{
    Options options;
    options.token = 7;
    options.misfire_ms = 1;
    std::string tail = encode_tail(options, "payload");
    tail[9] = '\x80';
    tail.insert(14, 16, '\0');
    EXPECT_EQ(start_reply({"a", "+1", tail}).string, "LAWN INVALID options");
}

// Ten thousand are made up for. Half a century of seconds is a mistake.
TEST_F(DurableOccurrence, NoMoreThanTenThousandArePastAtAStart)
{
    Options options;
    options.every_us = 1000000;
    const std::string long_ago = ago(10010 * int64_t{1000000});
    const std::string refusal = "LAWN INVALID time: more than 10000 "
                                "occurrences of it are past";
    const Reply refused = start_reply(start_args("a", long_ago, "", options));
    EXPECT_EQ(refused.string.substr(0, refusal.size()), refusal);
    EXPECT_EQ(state("a"), 0);
    const Started fits = start("b", ago(9990 * int64_t{1000000}), "", options);
    const Reply update = call("lawn_update", "due body meta",
                              {"b", std::to_string(fits.generation), long_ago});
    EXPECT_EQ(update.string.substr(0, refusal.size()), refusal);
    for (const uint8_t policy : {1, 2}) { // skip, coalesce
        options.misfire = policy;
        EXPECT_EQ(start("c", "1", "", options).state, pending);
        EXPECT_EQ(stop("c").state, stopped);
    }
    options = Options();
    EXPECT_EQ(start("d", "1", "", options).state, pending);
}

// The second has fired when the first waits to be tried again. The stop is of
// what comes after both.
TEST_F(DurableOccurrence, AStopIsAboveAllThatHasFired)
{
    join();
    Options options;
    options.every_us = hour;
    start("a", ago(3 * hour / 2), "", options);
    fire();
    fire();
    const std::vector<Delivery> fired = read();
    ASSERT_EQ(fired.size(), 2U);
    EXPECT_EQ(answer(fired[0], retry_verdict(0, 1, "")), Answered::taken);
    const Stopped s = stop("a");
    EXPECT_EQ(s.state, stopped);
    EXPECT_GT(s.generation, fired[0].generation);
    EXPECT_GT(s.generation, fired[1].generation);
    const Stopped again = stop("a");
    EXPECT_EQ(again.state, stopped);
    EXPECT_EQ(again.generation, s.generation);
    EXPECT_EQ(stats()["started"], 1);
    EXPECT_GT(start("a", "+1", "", options).generation, s.generation);
}

} // namespace
