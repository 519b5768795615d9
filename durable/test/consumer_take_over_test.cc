// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a consumer takes over of what a dead one has left, beside what it reads.

#include "consumer_fixture.h"

namespace
{

using namespace lawn_test;

// Each shard is asked at the same time for as many as there is room for.
class DurableTakeOver : public DurableConsumer
{
protected:
    // Forty timers that a dead consumer leaves, ten or so in each shard.
    void SetUp() override
    {
        Taker dead(add_client());
        dead.answer = nullptr;
        dead.open();
        start_many(40);
        run_until([&] { return dead.given.size() == 40; });
        dead.close();
        run_until([this] { return count_late() == 40; });
        consume.lease_us = 200000;
    }

    size_t count_late()
    {
        size_t late = 0;
        for (int shard = 0; shard < 4; ++shard) {
            const std::string stream =
                "{test:" + std::to_string(shard) + "}:out";
            late += server
                        ->command({"XPENDING", stream, "lawn", "IDLE", "200",
                                   "-", "+", "40"})
                        .size();
        }
        return late;
    }

    lawn_durable_consume_t consume = {};
};

TEST_F(DurableTakeOver, NoMoreThanAgreedAreGiven)
{
    taker.answer = nullptr;
    consume.max_in_flight = 3;
    taker.open(consume);
    for (size_t seen = 0; seen < 40; ++seen) {
        run_until([&] { return taker.given.size() > seen; });
        ASSERT_LE(taker.given.size(), seen + 3);
        taker.reply(taker.given[seen], LAWN_DURABLE_DONE);
    }
    run_until([&] { return taker.answered == 40; });
    EXPECT_EQ(taker.taken.size(), 40U);
}

TEST_F(DurableTakeOver, NoMoreThanTheLimitAreGiven)
{
    consume.limit = 25;
    taker.open(consume);
    run_until([&] { return taker.answered >= 25; });
    ASSERT_EQ(taker.taken.size(), 25U);
    Taker next(client);
    consume.limit = 0;
    next.open(consume);
    run_until([&] { return next.answered == 15; });
    EXPECT_EQ(taker.taken.size(), 25U);
}

// It does not look again for half a lease.
TEST_F(DurableTakeOver, AllIsTakenOverThoughThereIsRoomForFew)
{
    end_leases();
    consume.lease_us = 600000000;
    consume.max_in_flight = 4;
    taker.open(consume);
    run_until([&] { return taker.answered == 40; });
    EXPECT_EQ(taker.taken.size(), 40U);
}

TEST_F(DurableTakeOver, OneThatOnlyLooksTakesOverAllAtOnce)
{
    end_leases();
    consume.lease_us = 600000000;
    consume.max_in_flight = 2;
    consume.no_answer = true;
    taker.answer = nullptr;
    taker.open(consume);
    run_until([&] { return taker.taken.size() == 40; });
}

// The stream always has new entries, and each is worked on for longer than half
// a lease.
TEST_F(DurableTakeOver, WhatIsReadLeavesRoomForWhatIsTakenOver)
{
    constexpr size_t new_ones = 60;
    for (size_t i = 0; i < new_ones; ++i) {
        start(("new" + std::to_string(i)).c_str(), 0);
    }
    consume.lease_us = 20000;
    consume.max_in_flight = 1;
    taker.answer = nullptr;
    taker.open(consume);
    size_t old_ones = 0;
    for (size_t seen = 0; seen < new_ones; ++seen) {
        run_until([&] { return taker.given.size() > seen; });
        old_ones += taker.taken[seen].id[0] == 't';
        run_for(std::chrono::milliseconds(12));
        taker.reply(taker.given[seen], LAWN_DURABLE_DONE);
    }
    EXPECT_EQ(old_ones, 40U);
}

TEST_F(DurableTakeOver, WhatCannotBeTakenOverIsSaid)
{
    const std::string key = "{test:1}:dead";
    server->command({"SET", key, "x"});
    taker.open(consume);
    const auto error = [&] {
        const char *const line = lawn_durable_error(*client);
        return std::string(line ? line : "");
    };
    run_until([&] { return !error().empty(); });
    EXPECT_EQ(error().rfind("cannot take over from {test:1}:out: WRONGTYPE", 0),
              0U)
        << error();
    start("a", 0);
    run_until([&] { return taker.count("a") == 1; });
    server->command({"DEL", key});
    run_until([&] { return taker.answered == 41 && error().empty(); });
}

// What is read and what is taken over is asked for at the same time.
TEST_F(DurableTakeOver, NoMoreThanTheLimitAreGivenOfTwoAnswers)
{
    for (int i = 0; i < 40; ++i) {
        start(("new" + std::to_string(i)).c_str(), 0);
    }
    consume.limit = 25;
    taker.open(consume);
    run_until([&] { return taker.answered >= 25; });
    run_for(std::chrono::milliseconds(50));
    EXPECT_EQ(taker.taken.size(), 25U);
}

} // namespace
