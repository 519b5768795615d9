// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What has been answered goes from the streams: a bounded part of it with each
// call, and also if something before it is not answered for days.

#include "store_fixture.h"

namespace
{

using namespace lawn_test;

// MOST_TRIMMED and HELD_LENGTH of the store.
constexpr long long most_trimmed = 2000;
constexpr long long held_length = 10000;

class Trimmed : public AnsweredStore
{
public:
    using AnsweredStore::AnsweredStore;

    long long length()
    {
        return server.command({"XLEN", key("out")}).integer;
    }

    // So many entries that these groups have answered.
    void fill(int count, const Words &groups = {group})
    {
        const Words entry = {"XADD", key("out"), "*", "i", "id"};
        for (const Reply &reply : server.pipeline({size_t(count), entry})) {
            EXPECT_FALSE(reply.is_error()) << to_string(reply);
        }
        for (const std::string &name : groups) {
            server.command({"XGROUP", "SETID", key("out"), name, "$"});
        }
        forget_shard();
    }
};

class DurableTrim : public Trimmed
{
};

TEST_F(DurableTrim, StreamsAreTrimmedToWhatIsWanted)
{
    constexpr int rounds = 600;
    start_many(rounds);
    while (fire(100).more) {
    }
    EXPECT_EQ(server.command({"XLEN", key("out")}).integer, rounds);
    std::vector<Delivery> all = read();
    ASSERT_EQ(all.size(), static_cast<size_t>(rounds));
    const Delivery kept = all[rounds / 2];
    all.erase(all.begin() + rounds / 2);
    std::vector<std::pair<Delivery, std::string>> answers;
    for (const Delivery &d : all) {
        answers.emplace_back(d, done_verdict());
    }
    EXPECT_FALSE(answer_reply(answers).is_error());
    forget_shard();
    start("again", ago(1));
    fire();
    EXPECT_LE(
        server.command({"XRANGE", key("out"), "-", "(" + kept.entry}).size(),
        100U);
    EXPECT_EQ(
        server.command({"XRANGE", key("out"), kept.entry, kept.entry}).size(),
        1U);
}

TEST_F(DurableTrim, OtherGroupsKeepTheirEntriesWhileThereIsRoom)
{
    join("reader");
    prepare("0", "0", "3600000000", "300");
    start_many(250);
    EXPECT_EQ(fire().fired(), 250U);
    read_and_answer();
    forget_shard();
    start("a", ago(1));
    EXPECT_EQ(fire().fired(), 1U);
    EXPECT_EQ(entries("out").size(), 251U);
    read_and_answer();
    start_many(1000);
    EXPECT_EQ(fire(500).fired(), 500U);
    EXPECT_EQ(fire(500).fired(), 500U);
    read_and_answer();
    forget_shard();
    // Each call drops some, until what is left can wait.
    for (int i = 0; i < 4; ++i) {
        start("a", ago(1));
        fire();
    }
    EXPECT_LE(entries("out").size(), 600U);
    EXPECT_GE(entries("out").size(), 300U);
    EXPECT_FALSE(read("reader").empty());
}

// A call that finds nothing due trims, too, and so does each group.
TEST_F(DurableTrim, WhatAllHaveAnsweredGoesAlsoIfNothingFires)
{
    join("reader");
    const auto fire_many = [this] {
        start_many(500);
        EXPECT_EQ(fire(500).fired(), 500U);
        EXPECT_EQ(read_and_answer(), 500U);
    };
    fire_many();
    EXPECT_EQ(entries("out").size(), 500U);
    forget_shard();
    EXPECT_EQ(read_and_answer("reader"), 500U);
    EXPECT_LE(entries("out").size(), 100U);
    // The shard may just be looked at anew between the two answers.
    do {
        fire_many();
        EXPECT_EQ(read_and_answer("reader"), 500U);
    } while (entries("out").size() < 500);
    forget_shard();
    EXPECT_EQ(fire().fired(), 0U);
    EXPECT_LE(entries("out").size(), 100U);
}

TEST_F(DurableTrim, AGroupThatHasGoneMakesNoStreamGrow)
{
    join("reader");
    prepare("0", "0", "3600000000", "100");
    for (int i = 0; i < 12; ++i) {
        start_many(500);
        EXPECT_EQ(fire(500).fired(), 500U);
        EXPECT_EQ(read_and_answer(), 500U);
    }
    forget_shard();
    for (int i = 0; i < 8; ++i) {
        start("a", ago(1));
        fire();
    }
    EXPECT_LE(server.command({"XLEN", key("out")}).integer, 2500);
}

// To drop what is beyond keep_count, entries must be read. A call reads half a
// megabyte, and what it asks for at once: 50 entries.
TEST_F(DurableTrim, LargeEntriesGoAFewAtATime)
{
    join("reader");
    prepare("0", "0", "3600000000", "100");
    const Words entry = {
        "XADD", key("out"), "*", "i", "id", "b", std::string(60000, 'x')};
    server.pipeline({400, entry});
    server.command({"XGROUP", "SETID", key("out"), group, "$"});
    forget_shard();
    long long left = length();
    for (bool is_more = true; is_more;) {
        is_more = fire().more;
        EXPECT_GE(length(), left - 50);
        left = length();
    }
    EXPECT_LE(left, 101);
    EXPECT_GE(left, 100);
}

TEST_F(DurableTrim, ACallDropsNoMoreThanItsPart)
{
    fill(7000);
    // A pump calls again until all is done, though no timer is due.
    for (bool more = true; more;) {
        const long long before = length();
        more = fire().more;
        EXPECT_LE(before - length(), most_trimmed);
    }
    EXPECT_LE(length(), 500);
}

TEST_F(DurableTrim, NodesOfAnySizeGo)
{
    server.command({"CONFIG", "SET", "stream-node-max-entries", "3000",
                    "stream-node-max-bytes", "0"});
    fill(9001);
    for (int i = 0; i < 4; ++i) {
        forget_shard();
        fire();
    }
    EXPECT_EQ(length(), 1);
}

// Dead letters, too, do not grow for ever.
TEST_F(DurableTrim, TheOldestLettersGoForNewOnes)
{
    prepare("0", "0", "3600000000", "300");
    for (int i = 0; i < 500; ++i) {
        start("t" + std::to_string(i), ago(1), "", attempts(1));
    }
    while (fire().more) {
    }
    EXPECT_EQ(read().size(), 500U);
    for (bool more = true; more;) {
        more = take_reply(0)[0].integer == 1;
    }
    const std::vector<Delivery> letters = entries("dead");
    EXPECT_GE(letters.size(), 300U);
    EXPECT_LE(letters.size(), 400U);
    EXPECT_EQ(letters.back().id, "t499");
    EXPECT_EQ(stats()["dropped_letters"],
              500 - static_cast<int64_t>(letters.size()));
}

// An entry that nobody answers, while others are.
class DurableHeld : public Trimmed
{
public:
    DurableHeld() : Trimmed(SteppedStore::clock())
    {
    }
    ~DurableHeld() override
    {
        unlink(SteppedStore::file().c_str());
    }

    // Returns the entry; a long time passes.
    Delivery hold()
    {
        const Delivery held = deliver("held");
        SteppedStore::step("2");
        return held;
    }

    void fire_many(int count = 1000)
    {
        start_many(count);
        while (fire().more) {
        }
    }
};

TEST_F(DurableHeld, WhatIsAnsweredBehindItGoes)
{
    const Delivery held = hold();
    for (int i = 0; i < 16; ++i) {
        fire_many();
        read_and_answer();
        forget_shard(); // each second, it is seen whether something holds
    }
    EXPECT_LE(length(), held_length + 3000);
    EXPECT_GE(length(), held_length - 3000);
    EXPECT_EQ(stats()["out_in_flight"], 1);
    EXPECT_EQ(stats()["entries"], length());
    EXPECT_EQ(answer(held, done_verdict()), Answered::taken);
    EXPECT_EQ(state("held"), success);
    for (int i = 0; i < 16; ++i) {
        forget_shard();
        fire();
    }
    EXPECT_LE(length(), 100);
}

// Redis says so, as long as nothing is deleted that was read last.
TEST_F(DurableHeld, ItIsKnownWhatIsNotRead)
{
    hold();
    fill(held_length + 500);
    fire_many(900);
    for (int i = 0; i < 9; ++i) {
        const Reply some =
            server.command({"XREADGROUP", "GROUP", group, consumer, "COUNT",
                            "100", "STREAMS", key("out"), ">"});
        std::vector<std::pair<Delivery, std::string>> answers;
        for (const Delivery &d : deliveries_in(some[0][1])) {
            answers.emplace_back(d, done_verdict());
        }
        ASSERT_EQ(answers.size(), 100U);
        EXPECT_FALSE(answer_reply(answers).is_error());
        EXPECT_EQ(stats()["out_in_flight"], 1 + 900 - 100 * (i + 1));
    }
    EXPECT_LE(length(), held_length + 510);
}

TEST_F(DurableHeld, WhatAnotherGroupWantsStays)
{
    join("reader");
    hold();
    fill(held_length + 500, {group, "reader"});
    fire_many();
    EXPECT_EQ(read_and_answer(), 1000U);
    const long long before = length();
    EXPECT_EQ(before, held_length + 1501);
    const std::vector<Delivery> all = read("reader");
    ASSERT_EQ(all.size(), 1000U);
    EXPECT_EQ(answer(all[500], done_verdict(), "reader"), Answered::too_late);
    EXPECT_EQ(answer(all[501], done_verdict(), "reader"), Answered::too_late);
    EXPECT_EQ(length(), before - 1); // the newest stays for a while
}

// But not beyond what is kept for it.
TEST_F(DurableHeld, WhatAnotherGroupHasNotReadGoesInTheEnd)
{
    join("reader");
    prepare("0", "0", "3600000000", "10000");
    hold();
    fill(held_length + 500);
    fire_many();
    EXPECT_EQ(read_and_answer(), 1000U);
    EXPECT_LE(length(), held_length + 502);
}

// Neither does the first group lose what it has not answered.
TEST_F(DurableHeld, AnotherGroupTakesNothingFromTheFirst)
{
    join("reader");
    prepare("0", "0", "3600000000", "10000");
    hold();
    fill(held_length + 500, {group, "reader"});
    fire_many();
    EXPECT_EQ(read_and_answer("reader"), 1000U);
    EXPECT_EQ(read().size(), 1000U);
    EXPECT_EQ(length(), held_length + 1501);
}

// What becomes a dead letter is answered by that.
TEST_F(DurableHeld, DeadLettersGo)
{
    hold();
    fill(held_length + 500);
    for (int i = 0; i < 20; ++i) {
        start("t" + std::to_string(i), ago(1), "", attempts(1));
    }
    EXPECT_EQ(fire().fired(), 20U);
    EXPECT_EQ(read().size(), 20U);
    const long long before = length();
    take(0);
    EXPECT_EQ(stats()["dead_letters"], 20);
    EXPECT_EQ(length(), before - 19);
}

} // namespace
