// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The store notes that keys of it are gone, and never takes what it has done
// itself for that.

#include "store_fixture.h"

namespace
{

using namespace lawn_test;

constexpr const char *all_keys = "due body meta out push cron";

class DurableLosses : public AnsweredStore
{
public:
    static Options pushed()
    {
        Options options;
        options.target = "http://localhost/";
        return options;
    }
    static Options hourly()
    {
        Options options;
        options.every_us = hour;
        return options;
    }
    static Options minutely()
    {
        Options options;
        options.cron = "* * * * *";
        options.zone = "UTC";
        return options;
    }

    // For a program that knows when the shard was born, or 0.
    Prepared prepare_again(int64_t known)
    {
        return prepare("0", "0", "3600000000", "100000", known);
    }

    // 0: nothing is missing.
    int64_t look()
    {
        const Reply reply = call("lawn_look", all_keys, {});
        EXPECT_EQ(reply.type, Reply::number) << to_string(reply);
        return reply.integer;
    }

    void acknowledge()
    {
        EXPECT_EQ(call("lawn_acknowledge", all_keys, {}).integer, 1);
    }

    void remove(const std::string &name)
    {
        EXPECT_EQ(server.command({"DEL", key(name)}).integer, 1);
    }

    // A loss that one look shows, and that is acknowledged.
    void expect_loss_of(const std::string &name)
    {
        EXPECT_EQ(look(), 0) << name;
        remove(name);
        EXPECT_GT(look(), 0) << name;
        acknowledge();
        EXPECT_EQ(look(), 0) << name;
        EXPECT_EQ(prepare_again(0).lost_us, 0);
    }
};

TEST_F(DurableLosses, AShardThatIsNewHasLostNothing)
{
    const Prepared first = prepare_again(0);
    EXPECT_EQ(first.lost_us, 0);
    start("a", "+1000000");
    const Prepared again = prepare_again(first.born_us);
    EXPECT_EQ(again.born_us, first.born_us);
    EXPECT_EQ(again.lost_us, 0);
    EXPECT_EQ(prepare_again(0).born_us, first.born_us);
}

TEST_F(DurableLosses, AShardThatWasMadeAnewIsNotTheOneThatWasKnown)
{
    const int64_t born = prepare_again(0).born_us;
    server.command({"FLUSHALL"});
    const Prepared anew = prepare_again(0); // this one cannot know
    EXPECT_EQ(anew.lost_us, 0);
    EXPECT_GT(anew.born_us, born);
    EXPECT_EQ(prepare_again(born).lost_us, anew.born_us);
    EXPECT_EQ(prepare_again(0).lost_us, anew.born_us);
    acknowledge();
    EXPECT_EQ(prepare_again(0).lost_us, 0);
    // It was away meanwhile.
    EXPECT_EQ(prepare_again(born).lost_us, 0);
    server.command({"FLUSHALL"});
    EXPECT_GT(prepare_again(anew.born_us).lost_us, 0);
}

TEST_F(DurableLosses, TimersWithoutTheirShardAreALoss)
{
    start("a", "+1000000");
    remove("meta");
    EXPECT_GT(prepare_again(0).lost_us, 0);
}

// An earlier version did not say when a shard was born.
TEST_F(DurableLosses, AnOldShardHasLostNothing)
{
    start("a", "+1000000");
    server.command({"HDEL", key("meta"), "born"});
    const Prepared known = prepare_again(0);
    EXPECT_GT(known.born_us, 0);
    EXPECT_EQ(known.lost_us, 0);
    EXPECT_EQ(look(), 0);
}

TEST_F(DurableLosses, AKeyThatIsGoneIsALoss)
{
    start("a", "+1000000000");
    expect_loss_of("due");
    start("b", "+1000000000");
    start("c", "+1000000000");
    expect_loss_of("body");
}

TEST_F(DurableLosses, WhatIsInFlightAndGoneIsALoss)
{
    start("d", ago(1));
    start("e", ago(1), "", pushed());
    EXPECT_EQ(fire().fired(), 2U);
    expect_loss_of("push");
    read();
    expect_loss_of("out");
}

TEST_F(DurableLosses, TimersWhoseTimeWasSoughtAreALoss)
{
    start("f", ago(1), "", minutely());
    fire();
    EXPECT_EQ(server.command({"SCARD", key("cron")}).integer, 1);
    read_and_answer();
    expect_loss_of("cron");
}

// What is acknowledged does not hide what is lost later.
TEST_F(DurableLosses, AnotherLossIsTold)
{
    start("a", "+1000000000");
    expect_loss_of("due");
    start("b", "+1000000000");
    expect_loss_of("due");
    // The ones without a due time go, and one more is lost.
    server.command({"HDEL", key("body"), "a", "b"});
    EXPECT_EQ(look(), 0);
    start("c", "+1000000000");
    expect_loss_of("due");
}

TEST_F(DurableLosses, TheRecordOfTheNamespaceIsMadeAnewAsItWas)
{
    server.command({"HSET", key("meta"), "shards", "4"});
    EXPECT_EQ(
        call("lawn_open", "config meta", {"5", "0", "0", "0", "0", "1"}).string,
        "LAWN SHARDS the namespace has 4 shards, not 5");
    EXPECT_EQ(decoded<Opened>(call("lawn_open", "config meta",
                                   {"0", "0", "0", "0", "0", "1"}))
                  .shards,
              4U);
    server.command({"HSET", key("meta"), "shards", "1"});
    EXPECT_GT(look(), 0);
}

// Whatever becomes of timers, none is taken for missing.
TEST_F(DurableLosses, NothingThatWeDoIsALoss)
{
    EXPECT_EQ(look(), 0);
    join("reader");
    for (const char *round : {"a", "b", "c"}) {
        const std::string name = round;
        start(name + "1", ago(1), "", hourly());
        start(name + "2", ago(1), "", minutely());
        start(name + "3", ago(1), "", attempts(1));
        start(name + "4", ago(1), "", pushed());
        start(name + "5", "+1000000000");
        EXPECT_EQ(look(), 0);
        EXPECT_EQ(fire().fired(), 4U);
        EXPECT_EQ(look(), 0);
        const std::vector<Delivery> all = read();
        ASSERT_EQ(all.size(), 3U);
        EXPECT_EQ(look(), 0);
        answer(all[0], retry_verdict(hour, 1, ""));
        answer(all[1], done_verdict());
        answer(all[2], retry_verdict(0, 1, ""));
        EXPECT_EQ(look(), 0);
        stop(name + "5");
        stop(name + "1");
        start(name + "4", "+1000000000"); // while it is delivered
        EXPECT_EQ(look(), 0);
    }
    take(0);
    read_and_answer("reader");
    forget_shard();
    fire();
    EXPECT_EQ(look(), 0);
}

} // namespace
