// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Cron timers, whose next times the pumps tell.

#include "store_fixture.h"

namespace
{

using namespace lawn_test;

class DurableCron : public Store
{
public:
    DurableCron()
    {
        join();
    }

    static Options cron(int64_t next_us, int misfire = 0)
    {
        Options options;
        options.cron = "0 * * * *";
        options.zone = "Europe/Berlin";
        options.next_us = next_us;
        options.misfire = static_cast<uint8_t>(misfire);
        return options;
    }

    std::vector<Reply> cron_timers()
    {
        return call("lawn_cron", "body cron", {"100"})[1].elements;
    }

    long long renew(const std::string &id, long long generation, int64_t next)
    {
        return call("lawn_renew", "due body meta cron",
                    {id, std::to_string(generation), std::to_string(next)})
            .integer;
    }

    int64_t due(const std::string &id)
    {
        const Reply score = server.command({"ZSCORE", key("due"), id});
        return score.type == Reply::text ? std::stoll(score.string) : 0;
    }
};

TEST_F(DurableCron, GoesFromOneTimeToTheNext)
{
    const int64_t base = now() - 2 * second;
    const auto first = static_cast<long long>(
        start("a", std::to_string(base), "x", cron(base + hour)).generation);
    const Fired fired = fire();
    EXPECT_EQ(fired.fired(), 1U);
    EXPECT_EQ(fired.cron, 1U);
    EXPECT_EQ(due("a"), base + hour);
    const std::vector<Reply> timers = cron_timers();
    ASSERT_EQ(timers.size(), 1U);
    EXPECT_EQ(timers[0][0].string, "a");
    const long long generation = timers[0][1].integer;
    EXPECT_GT(generation, first);
    EXPECT_EQ(timers[0][2].integer, base + hour);
    EXPECT_EQ(timers[0][3].string, "0 * * * *");
    EXPECT_EQ(timers[0][4].string, "Europe/Berlin");
    EXPECT_EQ(renew("a", first, base + 2 * hour), 0);  // another generation
    EXPECT_EQ(renew("a", generation, base + hour), 0); // not after it
    EXPECT_EQ(renew("a", generation, base + 2 * hour), 1);
    EXPECT_EQ(renew("a", generation, base + 3 * hour), 0); // known
    EXPECT_EQ(fire().cron, 0U);
    EXPECT_TRUE(cron_timers().empty());
    EXPECT_EQ(due("a"), base + hour);
}

TEST_F(DurableCron, WaitsForItsTimeAndCanBeStopped)
{
    const int64_t base = now() - 10 * second;
    start("a", std::to_string(base), "x", cron(base + second));
    EXPECT_EQ(fire().fired(), 1U); // both times are in the past
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(due("a"), 0); // nobody has said when
    EXPECT_EQ(fire().fired(), 0U);
    ASSERT_EQ(cron_timers().size(), 1U);
    EXPECT_EQ(cron_timers()[0][2].integer, base + second);
    const long long generation = cron_timers()[0][1].integer;
    EXPECT_EQ(renew("a", generation, base + hour), 1);
    EXPECT_EQ(due("a"), base + hour);
    ASSERT_EQ(cron_timers().size(), 1U); // the one after that
    EXPECT_EQ(renew("a", generation, base + 2 * hour), 1);
    EXPECT_TRUE(cron_timers().empty());
    start("b", std::to_string(base), "x", cron(base + second));
    while (fire().fired() > 0) {
    }
    EXPECT_EQ(due("b"), 0);
    EXPECT_EQ(stop("b").state, stopped);
    EXPECT_TRUE(cron_timers().empty());
    EXPECT_EQ(server.command({"SCARD", key("cron")}).integer, 0);
}

// Whose next time was sought when the outage began.
TEST_F(DurableCron, OccurrencesThatNobodyWantsAreNotSought)
{
    constexpr int skip = 1;
    constexpr int coalesce = 2;
    constexpr int64_t minute = 60 * second;
    const int64_t base = now() - 5 * hour;
    const auto after = [&](int misfire, bool is_tried_again) {
        Options options = cron(0, misfire);
        options.misfire_ms = 60000;
        start("a", std::to_string(base), "x", options);
        // What is skipped has no delivery, but goes on like one.
        EXPECT_EQ(fire().fired(), misfire == skip ? 0U : 1U);
        if (is_tried_again) {
            EXPECT_EQ(answer(read().back(), retry_verdict(0, 1, "")),
                      Answered::taken);
            // As if the outage had begun when it was answered.
            std::string body =
                server.command({"HGET", key("body"), "a"}).string;
            const auto from = static_cast<double>(base);
            constexpr size_t after_misfire = 24;
            memcpy(&body[after_misfire], &from, sizeof(from));
            server.command({"HSET", key("body"), "a", body});
            server.command({"ZADD", key("due"), "XX", "CH", ago(1), "a"});
            EXPECT_EQ(fire().fired(), 1U);
        }
        const int64_t sought = cron_timers().at(0)[2].integer;
        stop("a");
        return sought;
    };
    EXPECT_EQ(after(0, false), base);
    const int64_t before = now();
    EXPECT_GE(after(coalesce, false), before);
    EXPECT_GE(after(coalesce, true), before);
    const int64_t wanted = after(skip, false);
    EXPECT_GE(wanted, before - minute - 1);
    EXPECT_LT(wanted, now());
}

TEST_F(DurableCron, EndsWithItsLastTime)
{
    const int64_t base = now() - 10 * second;
    start("a", std::to_string(base), "xyz", cron(now() + hour));
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(renew("a", cron_timers().at(0)[1].integer, 0), 1);
    EXPECT_EQ(server.command({"ZADD", key("due"), "XX", ago(1), "a"}).integer,
              0);
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(state("a"), delivered);
    const std::vector<Delivery> all = read();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(answer(all[1], done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), success);
    EXPECT_EQ(stats()["bytes"], 0);
}

class DurableCronRetry : public DurableCron
{
public:
    // Has fired, and nobody has said when it does so next.
    DurableCronRetry()
    {
        start("a", std::to_string(base), "xyz", cron(0));
        EXPECT_EQ(fire().fired(), 1U);
        first = read().at(0);
        bytes = stats()["bytes"];
    }

    void fire_now()
    {
        EXPECT_EQ(server.command({"ZADD", key("due"), "XX", "CH", ago(1), "a"})
                      .integer,
                  1);
        EXPECT_EQ(fire().fired(), 1U);
    }

    long long renew_first(int64_t next)
    {
        return renew("a", static_cast<long long>(first.generation), next);
    }

    const int64_t base = now() - 10 * second;
    Delivery first;
    int64_t bytes = 0;
};

TEST_F(DurableCronRetry, WaitsForNoTime)
{
    EXPECT_EQ(due("a"), 0);
    EXPECT_EQ(answer(first, retry_verdict(hour, 1, "")), Answered::taken);
    EXPECT_EQ(state("a"), pending);
    ASSERT_EQ(cron_timers().size(), 1U);
    EXPECT_EQ(cron_timers()[0][2].integer, base);
    const int64_t next = base + 3 * hour;
    EXPECT_EQ(renew_first(base), 0);
    EXPECT_EQ(renew_first(next), 1);
    EXPECT_EQ(cron_timers()[0][2].integer, next); // and the one after that
    EXPECT_EQ(renew_first(next + hour), 1);
    EXPECT_TRUE(cron_timers().empty());
    fire_now();
    const Delivery second = read().at(0);
    EXPECT_EQ(second.attempt, 2U);
    EXPECT_EQ(second.generation, first.generation);
    EXPECT_EQ(due("a"), next);
    EXPECT_EQ(answer(second, done_verdict()), Answered::taken);
    EXPECT_EQ(stats()["bytes"], bytes);
}

TEST_F(DurableCronRetry, MayFireBeforeAnybodySaysWhen)
{
    EXPECT_EQ(answer(first, retry_verdict(0, 1, "")), Answered::taken);
    fire_now();
    Delivery again = read().at(0);
    EXPECT_EQ(again.attempt, 2U);
    EXPECT_EQ(due("a"), 0);
    EXPECT_EQ(answer(again, retry_verdict(0, 1, "")), Answered::taken);
    fire_now();
    again = read().at(0);
    EXPECT_EQ(again.attempt, 3U);
    ASSERT_EQ(cron_timers().size(), 1U);
    EXPECT_EQ(cron_timers()[0][2].integer, base);
    EXPECT_EQ(renew("a", cron_timers()[0][1].integer, base + hour), 1);
    EXPECT_EQ(due("a"), base + hour);
    EXPECT_EQ(stats()["bytes"], bytes);
}

TEST_F(DurableCronRetry, GivesWayToAnOccurrenceThatComesFirst)
{
    EXPECT_EQ(answer(first, retry_verdict(3 * hour, 1, "")), Answered::taken);
    EXPECT_EQ(renew_first(base + hour), 1);
    EXPECT_EQ(due("a"), base + hour);
    const Got got = decoded<Got>(get_reply("a"));
    EXPECT_EQ(got.body.due_us, base + hour);
    EXPECT_EQ(got.body.attempt, 1U);
    EXPECT_GT(got.body.generation, first.generation);
    EXPECT_EQ(stats()["superseded"], 1);
    EXPECT_EQ(stats()["bytes"], bytes);
    ASSERT_EQ(cron_timers().size(), 1U);
    EXPECT_EQ(cron_timers()[0][2].integer, base + hour);
}

TEST_F(DurableCronRetry, MayBeTheLast)
{
    EXPECT_EQ(answer(first, retry_verdict(hour, 1, "")), Answered::taken);
    EXPECT_EQ(renew_first(0), 1);
    EXPECT_EQ(server.command({"SCARD", key("cron")}).integer, 0);
    fire_now();
    const Delivery second = read().at(0);
    EXPECT_EQ(second.attempt, 2U);
    EXPECT_EQ(second.payload, "xyz");
    EXPECT_EQ(answer(second, done_verdict()), Answered::taken);
    EXPECT_EQ(state("a"), success);
    EXPECT_EQ(stats()["bytes"], 0);
}

TEST_F(DurableCron, Coalesces)
{
    const int64_t base = now() - 10 * hour;
    start("a", std::to_string(base), "", cron(base + hour, 2));
    const Fired fired = fire();
    EXPECT_EQ(fired.fired(), 1U);
    EXPECT_FALSE(fired.more);
    const std::vector<Reply> timers = cron_timers();
    ASSERT_EQ(timers.size(), 1U);
    EXPECT_EQ(timers[0][2].integer, fired.now_us);
}

// As its time is not known, it is in no ZSET.
TEST_F(DurableCron, OneWhoseTimeIsSoughtIsPending)
{
    const auto listed = [this](int state) {
        std::vector<std::string> ids;
        std::string cursor = "0";
        do {
            const Reply reply = call("lawn_list", list_keys,
                                     {std::to_string(state), cursor, "10"});
            const Tree tree(reply);
            Listed page;
            EXPECT_TRUE(decode(tree.get(), &page)) << to_string(reply);
            for (const Listed::Timer &t : page.timers) {
                ids.emplace_back(t.id);
            }
            cursor = page.cursor;
        } while (cursor != "0" && !cursor.empty());
        return ids;
    };
    const int64_t base = now() - 10 * hour;
    start("a", std::to_string(base), "old", cron(base + hour, 2));
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(due("a"), 0);
    const Got got = decoded<Got>(get_reply("a"));
    EXPECT_EQ(got.state, pending);
    EXPECT_EQ(listed(pending), std::vector<std::string>{"a"});
    EXPECT_TRUE(listed(delivered).empty());
    EXPECT_EQ(call("lawn_count", "due body cron", {}).integer, 1);
    // Its payload can be changed, and its time is sought as before.
    const Updated updated = decoded<Updated>(
        call("lawn_update", "due body meta",
             {"a", std::to_string(got.body.generation), "", "new"}));
    EXPECT_TRUE(updated.updated);
    EXPECT_EQ(due("a"), 0);
    ASSERT_EQ(cron_timers().size(), 1U);
    const long long generation = cron_timers()[0][1].integer;
    EXPECT_EQ(static_cast<uint64_t>(generation), updated.generation);
    EXPECT_EQ(renew("a", generation, now() + hour), 1);
    EXPECT_EQ(listed(pending), std::vector<std::string>{"a"});
    EXPECT_EQ(call("lawn_count", "due body cron", {}).integer, 1);
    const Reply reply = get_reply("a");
    const Tree tree(reply);
    Got renewed;
    ASSERT_TRUE(decode(tree.get(), &renewed));
    EXPECT_EQ(renewed.body.payload, "new");
}

} // namespace
