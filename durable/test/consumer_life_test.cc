// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How consumers begin and end, also with their connections, and those that only
// look.

#include "../../test/misuse.h"
#include "consumer_fixture.h"

#include "src/hash.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

using namespace lawn_test;

// A program that one delivery kills. Those that it has been given with it are
// handled meanwhile, and use no more attempts than they must.
TEST_F(DurableConsumer, ADeliveryThatKillsEachProgramTakesNoOtherWithIt)
{
    lawn_durable_start_t start = timer("poison", 0);
    start.max_attempts = 3;
    this->start(start);
    for (int i = 0; i < 30; ++i) {
        const std::string id = "t" + std::to_string(i);
        start.id = id.c_str();
        this->start(start);
    }
    lawn_durable_consume_t consume = {};
    consume.name = "worker";
    for (int round = 0; round < 3; ++round) {
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            Client child(server->url());
            Taker dying(&child);
            dying.answer = [&dying](const lawn_durable_delivery_t *d) {
                if (strcmp(d->id, "poison") == 0) {
                    kill(getpid(), SIGKILL);
                }
                dying.reply(d, LAWN_DURABLE_DONE);
            };
            dying.open(consume);
            for (;;) {
                lawn_durable_wait(child, 1000000);
            }
        }
        int status = 0;
        run_until([&] { return waitpid(pid, &status, WNOHANG) == pid; });
        ASSERT_TRUE(WIFSIGNALED(status));
        EXPECT_EQ(WTERMSIG(status), SIGKILL);
    }
    taker.open(consume);
    run_until([&] { return get("poison").state == LAWN_DURABLE_DEAD; });
    EXPECT_EQ(taker.count_generations("poison"), 0U);
    for (int i = 0; i < 30; ++i) {
        const std::string id = "t" + std::to_string(i);
        run_until(
            [&] { return get(id.c_str()).state >= LAWN_DURABLE_SUCCESS; });
        EXPECT_EQ(get(id.c_str()).state, LAWN_DURABLE_SUCCESS) << id;
    }
}

// Each begins with entries that a program of the same name was given, and did
// not answer.
class DurableInheritor : public DurableConsumer
{
protected:
    static constexpr int count = 20;

    void SetUp() override
    {
        consume.name = "worker";
        consume.lease_us = 600000000;
        consume.max_in_flight = 1;
        taker.answer = nullptr;
        lawn_durable_consume_t all = consume;
        all.max_in_flight = count;
        Taker first(client);
        first.answer = nullptr;
        first.open(all);
        // None in shard 0, which is joined, and looked at, before the others.
        for (int i = 0, started = 0; started < count; ++i) {
            const std::string id = "t" + std::to_string(i);
            if (lawn::durable::shard_of(id, 4) != 0) {
                start(id.c_str(), 0);
                ++started;
            }
        }
        run_until([&] { return first.taken.size() == count; });
    }

    // How often each entry was delivered, as the store has it, ascending.
    std::vector<long long> deliveries()
    {
        std::vector<long long> all = all_pending(3);
        std::sort(all.begin(), all.end());
        return all;
    }

    // One was given again, and the others stay as they were.
    void expect_one_more()
    {
        run_until([&] { return taker.taken.size() == 1; });
        run_for(std::chrono::milliseconds(100));
        EXPECT_EQ(taker.taken.size(), 1U);
        EXPECT_EQ(taker.taken[0].deliveries, 2U);
        std::vector<long long> wanted(count, 1);
        wanted.back() = 2;
        EXPECT_EQ(deliveries(), wanted);
    }

    lawn_durable_consume_t consume = {};
};

TEST_F(DurableInheritor, IsGivenNoMoreThanItHasRoomFor)
{
    taker.open(consume);
    expect_one_more();
    server->command({"CLIENT", "KILL", "TYPE", "normal"});
    expect_one_more();
    taker.close();
    expect_one_more();
}

TEST_F(DurableInheritor, LeavesTheRestAsItIsWhenItStops)
{
    consume.max_in_flight = count;
    consume.limit = 1;
    taker.open(consume);
    expect_one_more();
}

// Under another name.
TEST_F(DurableInheritor, TakesOverNoMoreThanItHasRoomFor)
{
    run_for(std::chrono::milliseconds(300));
    consume.name = "other";
    consume.lease_us = 300000;
    taker.open(consume);
    expect_one_more();
}

TEST_F(DurableConsumer, ASecondGroupOnlyReads)
{
    taker.open();
    start("a", 0);
    run_until([&] { return taker.answered == 1; });
    Taker second(client);
    second.answer = [&](const lawn_durable_delivery_t *d) {
        second.reply(d, LAWN_DURABLE_REJECT);
    };
    lawn_durable_consume_t consume = {};
    consume.group = "second";
    second.open(consume);
    start("b", 0);
    run_until([&] { return second.count("b") == 1 && taker.answered == 2; });
    run_until([&] { return second.answered == second.taken.size(); });
    EXPECT_EQ(second.statuses[LAWN_OK], static_cast<int>(second.answered));
    EXPECT_EQ(get("b").state, LAWN_DURABLE_SUCCESS);
}

TEST_F(DurableConsumer, ALimitedOneReadsNoMore)
{
    start_many(40);
    lawn_durable_consume_t consume = {};
    consume.limit = 7;
    taker.open(consume);
    run_until([&] { return taker.answered == 7; });
    run_for(std::chrono::milliseconds(50));
    EXPECT_EQ(taker.taken.size(), 7U);
    // The others are not kept from those who come next.
    Taker next(client);
    next.open();
    run_until([&] { return next.answered == 33; });
    EXPECT_EQ(next.taken.size(), 33U);
}

TEST_F(DurableConsumer, AStoppedOneGivesBackWhatItHasNotGiven)
{
    start_many(40);
    lawn_durable_consume_t consume = {};
    taker.answer = [&](const lawn_durable_delivery_t *d) {
        taker.reply(d, LAWN_DURABLE_DONE);
        if (taker.taken.size() == 5) {
            lawn_durable_consumer_stop(taker.consumer);
        }
    };
    taker.open(consume);
    run_until([&] { return taker.answered == 5; });
    EXPECT_EQ(taker.taken.size(), 5U);
    run_until([&] { return is_given_back(); });
    Taker next(client);
    consume.lease_us = 600000000; // nothing runs out in this test
    next.open(consume);
    run_until([&] { return next.answered == 35; });
    for (const Delivered &d : next.taken) {
        EXPECT_EQ(d.deliveries, 1U) << d.id; // the others were not delivered
    }
}

TEST_F(DurableConsumer, MayBeClosedWithinItsCallback)
{
    start_many(10);
    taker.answer = [&](const lawn_durable_delivery_t *) { taker.close(); };
    taker.open();
    run_until([&] { return taker.taken.size() == 1; });
    run_for(std::chrono::milliseconds(20));
    EXPECT_EQ(taker.taken.size(), 1U);
}

// Without a poll between that and the close of the client.
TEST_F(DurableConsumer, MayBeClosedInTheLastPoll)
{
    Client *const other = add_client();
    Taker last(other);
    last.answer = [&](const lawn_durable_delivery_t *) { last.close(); };
    last.open();
    start_many(1);
    run_until([&] { return last.taken.size() == 1; });
    other->close();
    clients.pop_back();
}

// What a client says that keeps it from its work; "" if nothing does.
std::string error_of(Client *client)
{
    const char *const error = lawn_durable_error(*client);
    return error ? error : "";
}

// Also if it is the first shard, which says whose group came first.
TEST_F(DurableConsumer, AKeyOfAWrongTypeKeepsItFromOneShardOnly)
{
    for (const char *const key : {"{test:0}:out", "{test:2}:out"}) {
        start_many(1); // makes the namespace
        taker.open();
        run_until([&] { return taker.answered > 0; });
        taker.close();
        server->command({"RENAME", key, "{test:0}:kept"});
        server->command({"SET", key, "text"});
        Client *const other = add_client();
        Taker last(other);
        last.open();
        start_many(60);
        const std::string due = std::string(key, 9) + "due";
        const auto broken =
            static_cast<size_t>(server->command({"ZCARD", due}).integer);
        EXPECT_GT(broken, 0U);
        run_until([&] {
            return last.count_ids() == 60 - broken &&
                   error_of(other).find(key) != std::string::npos;
        });
        server->command({"DEL", key});
        server->command({"RENAME", "{test:0}:kept", key});
        run_until(
            [&] { return last.count_ids() == 60 && error_of(other).empty(); });
        last.close();
        other->close();
        clients.pop_back();
    }
}

TEST_F(DurableConsumer, AKeyThatBecomesWrongKeepsItFromOneShardOnly)
{
    Client *const other = add_client();
    Taker last(other);
    last.open();
    start_many(60);
    run_until([&] { return last.answered == 60; });
    server->command({"RENAME", "{test:1}:out", "{test:1}:kept"});
    server->command({"SET", "{test:1}:out", "text"});
    start_many(60);
    const auto broken =
        static_cast<size_t>(server->command({"ZCARD", "{test:1}:due"}).integer);
    run_until([&] {
        return last.answered >= 120 - broken &&
               error_of(other).find("{test:1}:out") != std::string::npos;
    });
    server->command({"RENAME", "{test:1}:kept", "{test:1}:out"});
    run_until([&] { return last.answered == 120 && error_of(other).empty(); });
    last.close();
}

TEST_F(DurableConsumer, WhatItMayNotReadIsSaid)
{
    Client *const other = add_client();
    Taker last(other);
    last.open();
    start("a", 0);
    run_until([&] { return last.answered == 1; });
    server->command({"ACL", "SETUSER", "default", "-xreadgroup"});
    server->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    run_until(
        [&] { return error_of(other).find("NOPERM") != std::string::npos; });
    server->command({"ACL", "SETUSER", "default", "+xreadgroup"});
    run_until([&] { return get("a").status == LAWN_OK; });
    start("b", 0);
    run_until([&] { return last.answered == 2 && error_of(other).empty(); });
    last.close();
}

TEST_F(DurableConsumer, AnswersOfOneThatIsClosedAreToldAndSent)
{
    taker.open();
    taker.answer = [&](const lawn_durable_delivery_t *delivery) {
        taker.reply(delivery, LAWN_DURABLE_DONE);
        EXPECT_EQ(taker.answered, 0U);
        taker.close();
    };
    start("a", 0);
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(taker.statuses[LAWN_ERR_IO], 1);
    run_until_state("a", LAWN_DURABLE_SUCCESS);
    EXPECT_EQ(taker.answered, 1U);
}

TEST_F(DurableConsumer, NobodyClosesTheClientWhileAConsumerIsClosed)
{
    taker.open();
    start("a", 0);
    taker.answer = nullptr;
    run_until([&] { return taker.given.size() == 1; });
    struct Closer {
        lawn_durable_t *durable;
        bool is_told;
    } closer = {*client, false};
    const auto close_client = [](void *arg, const lawn_durable_result_t *) {
        Closer *const self = static_cast<Closer *>(arg);
        EXPECT_MISUSE(lawn_durable_close(self->durable), "may_be_callback");
        self->is_told = true;
    };
    EXPECT_EQ(lawn_durable_answer(taker.consumer, taker.given[0],
                                  LAWN_DURABLE_DONE, 0, nullptr, close_client,
                                  &closer),
              LAWN_OK);
    taker.close();
    EXPECT_TRUE(closer.is_told);
    run_until_state("a", LAWN_DURABLE_SUCCESS);
}

TEST_F(DurableConsumer, AConnectionThatIsLostIsMadeAnew)
{
    lawn_durable_consume_t consume = {};
    consume.lease_us = 600000000; // nothing waits for it
    taker.open(consume);
    for (int round = 0; round < 3; ++round) {
        start_many(30);
        server->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        server->command({"CLIENT", "KILL", "TYPE", "pubsub"});
    }
    // A start whose connection was lost may not have been done, but these are.
    run_until([&] { return get("t0").status == LAWN_OK; });
    start_many(30);
    for (int i = 0; i < 30; ++i) {
        const std::string id = "t" + std::to_string(i);
        run_until_state(id.c_str(), LAWN_DURABLE_SUCCESS);
        EXPECT_GT(taker.count(id), 0U);
    }
    run_until([&] { return unacknowledged("lawn") == 0; });
}

TEST_F(DurableConsumer, AServerThatComesBackEmptyIsUsedAgain)
{
    taker.open();
    start("a", 0);
    run_until([&] { return taker.answered == 1; });
    server->kill();
    server->start();
    run_until([&] {
        const lawn_durable_start_t again = timer("b", 0);
        const Result result = ask([&](Result *r) {
            return lawn_durable_start(*client, &again, Result::keep, r);
        });
        return result.status == LAWN_OK;
    });
    run_until([&] { return taker.count("b") > 0; });
}

TEST_F(DurableConsumer, OneThatOnlyLooksAnswersNothing)
{
    lawn_durable_consume_t consume = {};
    consume.no_answer = true;
    taker.answer = nullptr;
    taker.open(consume);
    start_many(20);
    run_until([&] { return taker.taken.size() == 20; });
    EXPECT_EQ(lawn_durable_consumer_in_flight(taker.consumer), 0U);
    EXPECT_EQ(get("t3").state, LAWN_DURABLE_DELIVERED);
}

// It answers nothing, so what it was given comes again.
TEST_F(DurableConsumer, OneThatOnlyLooksTakesOverWhatNobodyAnswers)
{
    lawn_durable_consume_t consume = {};
    consume.no_answer = true;
    consume.lease_us = 50000;
    taker.answer = nullptr;
    taker.open(consume);
    lawn_durable_start_t start = timer("a", 0);
    start.max_attempts = 3;
    this->start(start);
    run_until_state("a", LAWN_DURABLE_DEAD);
    ASSERT_EQ(taker.taken.size(), 3U);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(taker.taken[i].deliveries, i + 1);
    }
}

// What it was given stays with it; what it was not goes to others at once.
TEST_F(DurableConsumer, OneThatOnlyLooksGivesBackWhatItHasNotGiven)
{
    start_many(40);
    lawn_durable_consume_t consume = {};
    consume.no_answer = true;
    consume.lease_us = 600000000; // nothing runs out in this test
    taker.answer = [&](const lawn_durable_delivery_t *) {
        if (taker.taken.size() == 5) {
            lawn_durable_consumer_stop(taker.consumer);
        }
    };
    taker.open(consume);
    run_until([&] { return taker.taken.size() == 5; });
    Taker next(client);
    consume.no_answer = false;
    next.open(consume);
    run_until([&] { return next.answered == 35; });
    run_for(std::chrono::milliseconds(20));
    EXPECT_EQ(next.taken.size(), 35U);
    EXPECT_EQ(next.count_ids(), 35U);
    for (const auto &taken : taker.taken) {
        EXPECT_EQ(next.count(taken.id), 0U);
    }
}

} // namespace
