// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A server that answers anything: what is no reply, replies of wrong types and
// sizes, replies to nothing, at any point of the conversation. The client does
// not crash, answers each request once, and works again with a server that is
// well.

#include "client_fixture.h"
#include "hostile_server.h"

#include <functional>
#include <string>
#include <vector>

namespace
{

using namespace lawn_test;

// All bad replies that there are come at each point of the conversation, sooner
// or later.
TEST(DurableHostile, NothingTheServerSaysCrashesTheClient)
{
    HostileServer server;
    Client client("unix:" + server.path(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 100000;
        params->connect_timeout_us = 100000;
    });
    lawn_durable_update_t update = {};
    update.id = "a";
    update.delay_us = 1;
    unsigned bad = 0;
    for (unsigned round = 0; round < 60; ++round) {
        if (round % 10 == 0) {
            // Then it works, and goes on from a connection that is well.
            server.set_period(0, 0);
            client.run_until(
                [&client] { return client.start("a").status == LAWN_OK; });
        }
        server.set_period(2 + round % 20, round);
        Result results[5];
        const lawn_durable_start_t start = Client::in_an_hour("a");
        lawn_durable_start(client, &start, Result::keep, &results[0]);
        lawn_durable_get(client, "a", Result::keep, &results[1]);
        lawn_durable_stop(client, "a", 0, Result::keep, &results[2]);
        lawn_durable_count(client, Result::keep, &results[3]);
        lawn_durable_update(client, &update, Result::keep, &results[4]);
        for (const Result &i : results) {
            client.run_until([&i] { return i.is_answered; });
            EXPECT_EQ(i.answers, 1U);
            EXPECT_LT(i.error.size(), 500U);
            bad += i.status != LAWN_OK;
        }
    }
    EXPECT_GT(bad, 10U);
    server.set_period(0, 0);
    client.run_until([&client] { return client.start("a").status == LAWN_OK; });
    client.run_until(
        [&client] { return lawn_durable_error(client) == nullptr; });
}

std::string list_page(const std::string &cursor)
{
    return "*2\r\n" + bulk(cursor) + "*0\r\n";
}

// As long as a page can be, so that another is asked for.
std::string letters(const std::vector<std::string> &numbers)
{
    std::string page = "*" + std::to_string(numbers.size()) + "\r\n";
    for (const std::string &number : numbers) {
        page += "*2\r\n" + bulk(number) + "*2\r\n" + bulk("x") + bulk("y");
    }
    return page;
}

// A server can make up pages that lead back to where they began.
TEST(DurableHostile, NoListGoesRoundForEver)
{
    HostileServer server;
    Client client("unix:" + server.path());
    const auto each = [](void *, const lawn_durable_item_t *) {};
    const auto ask = [&](const std::function<lawn_status_t(Result *)> &list,
                         const std::vector<std::string> &pages) {
        Result result;
        server.set_pages(pages);
        EXPECT_EQ(list(&result), LAWN_OK);
        client.run_until([&] { return result.is_answered; });
        EXPECT_EQ(result.status, LAWN_ERR_CORRUPT) << pages[0];
    };
    std::vector<std::string> round;
    for (int i = 1; i <= 100; ++i) {
        round.push_back(list_page(std::to_string(i)));
    }
    for (const auto &pages :
         {std::vector<std::string>{list_page("1")}, round}) {
        ask(
            [&](Result *result) {
                return lawn_durable_list(client, LAWN_DURABLE_PENDING, 0, each,
                                         Result::keep, result);
            },
            pages);
    }
    std::vector<std::string> up;
    std::vector<std::string> down;
    for (int i = 100; i < 300; ++i) {
        up.push_back(std::to_string(i) + "-0");
        down.push_back(std::to_string(400 - i) + "-0");
    }
    const std::vector<std::string> pages[] = {
        {letters(std::vector<std::string>(200, "1-1"))},
        {letters(std::vector<std::string>(200, "what"))},
        {letters(std::vector<std::string>(200, ""))},
        {letters(up)},
        {letters(down)},
    };
    for (const std::vector<std::string> &one : pages) {
        ask(
            [&](Result *result) {
                return lawn_durable_list_dead(client, 0, each, Result::keep,
                                              result);
            },
            one);
        ask(
            [&](Result *result) {
                return lawn_durable_replay(client, "a", Result::keep, result);
            },
            one);
    }
}

// The status says what it is.
TEST(DurableHostile, EachReplyHasItsStatus)
{
    struct Known {
        std::string reply;
        lawn_status_t status;
    };
    HostileServer server;
    Client client("unix:" + server.path());
    for (const Known &i : std::initializer_list<Known>{
             {"+OK\r\n", LAWN_ERR_CORRUPT},
             {":1\r\n", LAWN_ERR_CORRUPT},
             {"$-1\r\n", LAWN_ERR_CORRUPT},
             {"*0\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n:1\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n*2\r\n:1\r\n:1\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n$-1\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n$3\r\nabc\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n" + bulk(good_start() + "x"), LAWN_ERR_CORRUPT},
             {"*1\r\n" + bulk(good_start().substr(0, 25) + '\x7'),
              LAWN_ERR_CORRUPT},
             {"*2\r\n-LAWN FULL x\r\n-LAWN FULL x\r\n", LAWN_ERR_CORRUPT},
             {"*1\r\n-LAWN FULL x\r\n", LAWN_ERR_BUSY},
             {"*1\r\n-WRONGTYPE x\r\n", LAWN_ERR_CORRUPT},
             {"-MOVED 1 127.0.0.1:1\r\n", LAWN_ERR_CORRUPT},
             {"-WRONGTYPE x\r\n", LAWN_ERR_CORRUPT},
             {"-LAWN CORRUPT x\r\n", LAWN_ERR_CORRUPT},
             {"-LAWN FULL x\r\n", LAWN_ERR_BUSY},
             {"-LAWN INVALID x\r\n", LAWN_ERR_INVALID_PARAM},
             {"-LAWN VERSION x\r\n", LAWN_ERR_UNSUPPORTED},
             {"-OOM x\r\n", LAWN_ERR_NO_MEMORY},
             {"-NOPERM x\r\n", LAWN_ERR_INVALID_PARAM},
             {"-MISCONF x\r\n", LAWN_ERR_IO},
             {"-ERR x\r\n", LAWN_ERR_IO},
             {"garbage\r\n", LAWN_ERR_IO},
             {"*1000000000\r\n", LAWN_ERR_IO},
             {":1\r\n:1\r\n", LAWN_ERR_CORRUPT}}) {
        server.set_start("");
        client.run_until(
            [&client] { return client.start("a").status == LAWN_OK; });
        server.set_start(i.reply);
        const Result result = client.start("a");
        EXPECT_EQ(result.status, i.status) << i.reply << result.error;
    }
}

// It is not kept until memory is gone.
TEST(DurableHostile, AReplyWithoutEndIsCutOff)
{
    HostileServer server;
    Client client("unix:" + server.path());
    std::string reply = "*1000\r\n";
    const std::string element = bulk(std::string(1 << 20, 'x'));
    for (int i = 0; i < 130; ++i) {
        reply += element;
    }
    server.set_start(reply);
    Result *const start = client.begin_start(Client::in_an_hour("a"));
    std::string told;
    client.run_until([&] {
        const char *const error = lawn_durable_error(client);
        told = error ? error : told;
        return start->is_answered;
    });
    EXPECT_EQ(start->status, LAWN_ERR_IO);
    EXPECT_TRUE(contains(told, "a reply is too long")) << told;
}

// What is for programs is left out, and what is too long ends with a word.
TEST(DurableHostile, ErrorsAreOneSentence)
{
    HostileServer server;
    Client client("unix:" + server.path());
    std::string words;
    for (int i = 0; i < 200; ++i) {
        words += " word" + std::to_string(i);
    }
    const auto error_for = [&](const std::string &reply) {
        server.set_start(reply);
        return client.start("a").error;
    };
    EXPECT_EQ(error_for("-LAWN INVALID id\r\n"), "invalid id");
    EXPECT_EQ(error_for("-LAWN CORRUPT the key\r\n"), "the key");
    EXPECT_EQ(error_for("-LAWN FULL of timers\r\n"), "of timers");
    const std::string cut = error_for("-MISCONF" + words + "\r\n");
    ASSERT_GT(cut.size(), 400U);
    ASSERT_LT(cut.size(), 520U);
    EXPECT_EQ(cut.substr(cut.size() - 4), " ...");
    EXPECT_EQ(("MISCONF" + words + " ").find(cut.substr(0, cut.size() - 3)), 0U)
        << cut;
    const std::string whole = "MISCONF" + words.substr(0, 400);
    EXPECT_EQ(error_for("-" + whole + "\r\n"), whole);
}

} // namespace
