// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What consumers are given, and what their answers do.

#include "consumer_fixture.h"

namespace
{

using namespace lawn_test;

TEST_F(DurableConsumer, GetsWhatWasStarted)
{
    taker.open();
    start_many(500);
    run_until([&] { return taker.answered == 500; });
    EXPECT_EQ(taker.taken.size(), 500U);
    for (const Delivered &d : taker.taken) {
        EXPECT_EQ(d.payload, "payload of " + d.id);
        EXPECT_EQ(d.attempt, 1U);
        EXPECT_EQ(d.deliveries, 1U);
        EXPECT_EQ(d.target, "");
    }
    EXPECT_EQ(taker.count_ids(), 500U);
    EXPECT_EQ(taker.statuses[LAWN_OK], 500);
    EXPECT_EQ(taker.states[LAWN_DURABLE_SUCCESS], 500);
    EXPECT_EQ(get("t17").state, LAWN_DURABLE_SUCCESS);
    EXPECT_EQ(lawn_durable_consumer_in_flight(taker.consumer), 0U);
}

TEST_F(DurableConsumer, AnswersDecideHowATimerEnds)
{
    taker.answer = nullptr;
    taker.open();
    start("done", 0);
    start("bad", 0);
    run_until([&] { return taker.given.size() == 2; });
    EXPECT_EQ(get("done").state, LAWN_DURABLE_DELIVERED);
    EXPECT_EQ(stop("done").state, LAWN_DURABLE_DELIVERED);
    for (const lawn_durable_delivery_t *const d : std::vector(taker.given)) {
        taker.reply(d, *d->id == 'd' ? LAWN_DURABLE_DONE : LAWN_DURABLE_REJECT,
                    0, "broken");
    }
    EXPECT_EQ(lawn_durable_consumer_in_flight(taker.consumer), 2U);
    run_until([&] { return taker.answered == 2; });
    EXPECT_EQ(get("done").state, LAWN_DURABLE_SUCCESS);
    EXPECT_EQ(get("bad").state, LAWN_DURABLE_FAIL);
    EXPECT_EQ(taker.states[LAWN_DURABLE_FAIL], 1);
}

// A program that ends of a delivery, and is started anew with its name.
TEST_F(DurableConsumer, EachTimeThatItIsGivenAgainCountsAsAnAttempt)
{
    lawn_durable_start_t start = timer("a", 0, "x");
    start.max_attempts = 3;
    this->start(start);
    lawn_durable_consume_t consume = {};
    consume.name = "worker";
    taker.answer = nullptr;
    for (unsigned times = 1; times <= 3; ++times) {
        taker.open(consume);
        run_until([&] { return taker.taken.size() == times; });
        EXPECT_EQ(taker.taken.back().attempt, 1U);
        EXPECT_EQ(taker.taken.back().deliveries, times);
        taker.close();
    }
    taker.open(consume);
    run_until([&] { return get("a").state == LAWN_DURABLE_DEAD; });
    EXPECT_EQ(taker.taken.size(), 3U);
}

TEST_F(DurableConsumer, ARetryComesAgainUntilTheAttemptsAreUsedUp)
{
    taker.answer = [&](const lawn_durable_delivery_t *d) {
        taker.reply(d, LAWN_DURABLE_RETRY, 20000, "not now");
    };
    taker.open();
    lawn_durable_start_t start = timer("a", 0, "x");
    start.max_attempts = 3;
    this->start(start);
    run_until([&] { return taker.answered == 3; });
    ASSERT_EQ(taker.taken.size(), 3U);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(taker.taken[i].attempt, i + 1);
        EXPECT_EQ(taker.taken[i].payload, "x");
        if (i > 0) {
            EXPECT_GE(taker.taken[i].due_us,
                      taker.taken[i - 1].fired_us + 20000);
        }
    }
    EXPECT_EQ(taker.states[LAWN_DURABLE_PENDING], 2);
    EXPECT_EQ(taker.states[LAWN_DURABLE_DEAD], 1);
    EXPECT_EQ(get("a").state, LAWN_DURABLE_DEAD);
}

TEST_F(DurableConsumer, ABackOffIsWithinTheLimitsOfTheTimer)
{
    taker.answer = [&](const lawn_durable_delivery_t *d) {
        taker.reply(d, d->attempt < 4 ? LAWN_DURABLE_RETRY : LAWN_DURABLE_DONE,
                    LAWN_DURABLE_BACKOFF);
    };
    taker.open();
    lawn_durable_start_t start = timer("a", 0);
    start.backoff_min_us = 10000;
    start.backoff_max_us = 20000;
    this->start(start);
    run_until([&] { return taker.answered == 4; });
    EXPECT_EQ(get("a").state, LAWN_DURABLE_SUCCESS);
}

TEST_F(DurableConsumer, ADeferredDeliveryHasUsedNoAttempt)
{
    int left = 5;
    taker.answer = [&](const lawn_durable_delivery_t *d) {
        taker.reply(d, left-- > 0 ? LAWN_DURABLE_DEFER : LAWN_DURABLE_DONE,
                    1000);
    };
    taker.open();
    lawn_durable_start_t start = timer("a", 0);
    start.max_attempts = 1;
    this->start(start);
    run_until([&] { return taker.answered == 6; });
    EXPECT_EQ(taker.taken.back().attempt, 1U);
    EXPECT_EQ(get("a").state, LAWN_DURABLE_SUCCESS);
}

// The consumer is full when a read that began before brings one more.
TEST_F(DurableConsumer, WhatWaitsTooLongForRoomIsReleased)
{
    start("a", 0);
    std::string stream;
    run_until([&] {
        for (int shard = 0; shard < 4; ++shard) {
            const std::string key = "{test:" + std::to_string(shard) + "}:out";
            if (server->command({"XLEN", key}).integer == 1) {
                stream = key;
            }
        }
        return !stream.empty();
    });
    server->command({"XGROUP", "CREATE", stream, "lawn", "0"});
    server->command(
        {"XREADGROUP", "GROUP", "lawn", "dead", "STREAMS", stream, ">"});
    lawn_durable_consume_t consume = {};
    consume.max_in_flight = 1;
    consume.lease_us = 1000000;
    taker.answer = nullptr;
    taker.open(consume);
    run_until([&] { return taker.count("a") == 1; });
    start("b", 0);
    run_until([&] { return unacknowledged("lawn") == 2; });
    run_until([&] {
        const std::vector<long long> idle = all_pending(2);
        return std::any_of(idle.begin(), idle.end(),
                           [](long long msec) { return msec >= 100000000; });
    });
    Taker other(add_client());
    consume.lease_us = 600000000;
    other.open(consume);
    run_until([&] { return other.answered == 1; });
    EXPECT_EQ(other.taken.at(0).id, "b");
    EXPECT_EQ(other.taken.at(0).deliveries, 1U); // nobody had seen it
    EXPECT_EQ(taker.count("b"), 0U);
}

// Each call looks at a hundred, none of which is left to be given.
TEST_F(DurableConsumer, DeadLettersDoNotKeepOthersFromBeingTakenOver)
{
    {
        Taker dead(client);
        dead.answer = nullptr;
        lawn_durable_consume_t many = {};
        many.max_in_flight = 1000;
        dead.open(many);
        for (int i = 0; i < 801; ++i) {
            const std::string id = "t" + std::to_string(i);
            lawn_durable_start_t start = timer(id.c_str(), 0);
            start.max_attempts = i < 800 ? 1 : 2;
            Result result;
            lawn_durable_start(*client, &start, Result::keep, &result);
            run_until([&] { return result.is_answered; });
        }
        run_until([&] { return dead.taken.size() == 801; });
    }
    end_leases();
    lawn_durable_consume_t consume = {};
    consume.lease_us = 600000000; // it looks once
    taker.open(consume);
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(taker.taken.at(0).id, "t800");
}

TEST_F(DurableConsumer, AnAnswerThatIsLateSaysSo)
{
    taker.answer = nullptr;
    taker.open();
    start("a", 0);
    run_until([&] { return taker.given.size() == 1; });
    start("a", 3600000000); // anew
    taker.reply(taker.given[0], LAWN_DURABLE_DONE);
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(taker.statuses[LAWN_ERR_NO_ELEM], 1);
    EXPECT_EQ(get("a").state, LAWN_DURABLE_PENDING);
}

TEST_F(DurableConsumer, MoreThanAgreedAreNotGiven)
{
    taker.answer = nullptr;
    lawn_durable_consume_t consume = {};
    consume.max_in_flight = 3;
    taker.open(consume);
    start_many(50);
    for (size_t seen = 0; seen < 50;) {
        run_until([&] { return taker.given.size() > seen; });
        EXPECT_LE(lawn_durable_consumer_in_flight(taker.consumer), 3U);
        run_for(std::chrono::milliseconds(1));
        ASSERT_LE(taker.given.size(), taker.answered + 3);
        taker.reply(taker.given[seen++], LAWN_DURABLE_DONE);
        run_until([&] { return taker.answered == seen; });
    }
    EXPECT_EQ(taker.taken.size(), 50U);
}

// What a consumer leaves, because it dies, others get when the lease is over.
TEST_F(DurableConsumer, WhatADeadConsumerLeavesGoesToAnother)
{
    Client *const other = add_client();
    {
        Taker dead(other);
        dead.answer = nullptr;
        dead.open();
        start_many(20);
        run_until([&] { return dead.given.size() == 20; });
    }
    lawn_durable_consume_t consume = {};
    consume.lease_us = 1000000;
    taker.open(consume);
    run_until([&] { return taker.states[LAWN_DURABLE_SUCCESS] == 20; });
    for (const Delivered &d : taker.taken) {
        EXPECT_GE(d.deliveries, 2U); // more, if the machine stood still
        EXPECT_EQ(d.attempt, 1U);
    }
}

// Its lease is over, and there is nobody else to take the delivery over.
TEST_F(DurableConsumer, ASlowOneIsGivenADeliveryAgain)
{
    taker.answer = nullptr;
    lawn_durable_consume_t consume = {};
    consume.lease_us = 100000;
    taker.open(consume);
    start("a", 0);
    run_until([&] { return taker.given.size() >= 2; });
    EXPECT_GE(lawn_durable_consumer_lost(taker.consumer), 1U);
    EXPECT_GE(taker.taken[1].deliveries, 2U);
    EXPECT_EQ(taker.taken[1].attempt, 1U);
    taker.reply(taker.given[0], LAWN_DURABLE_DONE); // nobody was told
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(get("a").state, LAWN_DURABLE_SUCCESS);
}

// It kills each consumer that gets it, so it ends as a dead letter.
TEST_F(DurableConsumer, ATimerThatIsNeverAnsweredDies)
{
    lawn_durable_start_t start = timer("poison", 0);
    start.max_attempts = 2;
    this->start(start);
    {
        Taker dead(client);
        dead.answer = nullptr;
        dead.open();
        run_until([&] { return dead.given.size() == 1; });
    }
    taker.answer = nullptr;
    lawn_durable_consume_t consume = {};
    consume.lease_us = 100000;
    taker.open(consume);
    run_until_state("poison", LAWN_DURABLE_DEAD);
    ASSERT_EQ(taker.taken.size(), 1U);
    EXPECT_EQ(taker.taken[0].deliveries, 2U);
}

TEST_F(DurableConsumer, AnExtendedLeaseKeepsADelivery)
{
    taker.answer = nullptr;
    lawn_durable_consume_t consume = {};
    consume.lease_us = 60000000;
    taker.open(consume);
    start("a", 0);
    run_until([&] { return taker.given.size() == 1; });
    const auto idle_ms = [this] { return pending(2); };
    run_until([&] { return idle_ms() >= 2000; });
    lawn_durable_extend(taker.consumer, taker.given[0]);
    run_until([&] { return idle_ms() < 2000; });
    taker.reply(taker.given[0], LAWN_DURABLE_DONE);
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(get("a").state, LAWN_DURABLE_SUCCESS);
}

TEST_F(DurableConsumer, WhatIsNotAnEntryIsPassedOver)
{
    taker.open();
    start("a", 0);
    run_until([&] { return taker.answered == 1; });
    for (int shard = 0; shard < 4; ++shard) {
        const std::string key = "{test:" + std::to_string(shard) + "}:out";
        server->command({"XADD", key, "*", "x", "y"});
        server->command({"XADD", key, "*", "i", "a", "b", "short"});
        server->command(
            {"XADD", key, "*", "i", "a b", "b", std::string(30, '\xff')});
    }
    start("b", 0);
    run_until([&] { return taker.count("b") == 1; });
    run_until([&] { return unacknowledged("lawn") == 0; });
    EXPECT_EQ(taker.taken.size(), 2U);
    long long letters = 0;
    for (int shard = 0; shard < 4; ++shard) {
        const std::string keys = "{test:" + std::to_string(shard) + "}:";
        letters += server->command({"XLEN", keys + "dead"}).integer;
        EXPECT_EQ(server->command({"HGET", keys + "meta", "corrupt"}).string,
                  "3");
    }
    EXPECT_EQ(letters, 12);
}

TEST_F(DurableConsumer, RefusesBadArguments)
{
    lawn_durable_consumer_t *consumer = nullptr;
    lawn_durable_consume_t consume = {};
    lawn_durable_deliver_fn_t deliver = [](void *,
                                           const lawn_durable_delivery_t *) {};
    const auto expect_refusal = [&](lawn_durable_t *of, const char *why) {
        EXPECT_EQ(
            lawn_durable_consume(of, &consume, deliver, nullptr, &consumer),
            LAWN_ERR_INVALID_PARAM);
        EXPECT_TRUE(contains(lawn_durable_refusal(), why))
            << lawn_durable_refusal();
        consume = {};
    };
    expect_refusal(nullptr, "no client");
    consume.group = "two words";
    expect_refusal(*client, "the group 'two words'");
    consume.name = "";
    expect_refusal(*client, "the name ''");
    for (const uint64_t lease : {UINT64_MAX, uint64_t{9999}}) {
        consume.lease_us = lease;
        expect_refusal(*client, "10 ms to 11 days");
    }
    EXPECT_EQ(
        lawn_durable_consume(*client, &consume, deliver, nullptr, nullptr),
        LAWN_ERR_INVALID_PARAM);
    deliver = nullptr;
    expect_refusal(*client, "no function");
    lawn_durable_consumer_close(nullptr);
}

TEST_F(DurableConsumer, ADeliveryIsAnsweredOnce)
{
    taker.open();
    start("a", 0);
    run_until([&] { return taker.answered == 1; });
    lawn_durable_delivery_t other = {};
    for (const lawn_durable_delivery_t *const d :
         {taker.given[0], static_cast<const lawn_durable_delivery_t *>(&other),
          static_cast<const lawn_durable_delivery_t *>(nullptr)}) {
        EXPECT_EQ(lawn_durable_answer(taker.consumer, d, LAWN_DURABLE_DONE, 0,
                                      nullptr, nullptr, nullptr),
                  LAWN_ERR_INVALID_PARAM);
        lawn_durable_extend(taker.consumer, d);
    }
}

// Entries go when they are answered, so a stream does not grow.
TEST_F(DurableConsumer, AnsweredEntriesLeaveTheStore)
{
    taker.open();
    const auto entries = [&] {
        long long sum = 0;
        for (int shard = 0; shard < 4; ++shard) {
            sum += server
                       ->command(
                           {"XLEN", "{test:" + std::to_string(shard) + "}:out"})
                       .integer;
        }
        return sum;
    };
    for (size_t round = 1; round <= 10; ++round) {
        start_many(300);
        run_until([&] { return taker.answered == round * 300; });
    }
    // Trimming is done now and then, as timers fire, and by whole nodes of a
    // hundred entries: some nodes of each shard stay.
    run_until([&] {
        start_many(8);
        run_for(std::chrono::milliseconds(300));
        return entries() < 1500;
    });
}

} // namespace
