// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The operations of the C API, against a server that is well.

#include "client_fixture.h"

#include <climits>
#include <string>

namespace
{

using namespace lawn_test;

TEST_F(DurableClient, StartsGetsAndStops)
{
    const Result started = client.start("a");
    ASSERT_EQ(started.status, LAWN_OK) << started.error;
    EXPECT_EQ(started.state, LAWN_DURABLE_PENDING);
    EXPECT_GT(started.generation, 0U);
    EXPECT_GT(started.due_us, lawn_durable_now(client));
    EXPECT_EQ(lawn_durable_shards(client), 4U);
    EXPECT_EQ(lawn_durable_error(client), nullptr);

    const Result got = client.get("a");
    EXPECT_EQ(got.state, LAWN_DURABLE_PENDING);
    EXPECT_EQ(got.generation, started.generation);
    EXPECT_EQ(got.due_us, started.due_us);
    EXPECT_EQ(got.attempt, 1U);
    EXPECT_EQ(client.count().count, 1U);

    EXPECT_EQ(client.stop("a").state, LAWN_DURABLE_STOPPED);
    EXPECT_EQ(client.stop("a").state, LAWN_DURABLE_STOPPED);
    EXPECT_EQ(client.get("a").state, LAWN_DURABLE_STOPPED);
    EXPECT_EQ(client.count().count, 0U);
}

TEST_F(DurableClient, AnUnknownTimerIsUnknown)
{
    const Result got = client.get("a");
    EXPECT_EQ(got.status, LAWN_OK);
    EXPECT_EQ(got.state, LAWN_DURABLE_UNKNOWN);
    const Result stopped = client.stop("a");
    EXPECT_EQ(stopped.status, LAWN_OK);
    EXPECT_EQ(stopped.state, LAWN_DURABLE_UNKNOWN);
}

TEST_F(DurableClient, AStartWithATokenIsRecognised)
{
    lawn_durable_start_t start = Client::in_an_hour("a");
    start.token = 0x123456789abcdef0;
    const Result first = client.start(start);
    const Result repeat = client.start(start);
    EXPECT_EQ(repeat.generation, first.generation);
    EXPECT_EQ(repeat.due_us, first.due_us);
    EXPECT_GT(client.start("a").generation, first.generation);
    EXPECT_GT(client.start(start).generation, first.generation);
}

// What is asked of one timer is done in this order, though starts are joined.
TEST_F(DurableClient, RequestsAreCarriedOutInTheirOrder)
{
    client.start("other"); // it is connected
    std::deque<Result> stops;
    std::vector<Result *> starts;
    for (int i = 0; i < 100; ++i) {
        for (const char *const id : {"a", "b", "c"}) {
            starts.push_back(client.begin_start(Client::in_an_hour(id)));
        }
        Result *const stop = &stops.emplace_back();
        ASSERT_EQ(
            lawn_durable_stop(client, i % 2 ? "a" : "b", 0, Result::keep, stop),
            LAWN_OK);
        if (i % 10 == 0) {
            lawn_durable_poll(client); // some are under way
        }
    }
    client.run_until(
        [&] { return stops.back().is_answered && starts.back()->is_answered; });
    for (size_t i = 0; i < stops.size(); ++i) {
        EXPECT_EQ(stops[i].state, LAWN_DURABLE_STOPPED);
        EXPECT_EQ(stops[i].generation,
                  starts[3 * i + (i % 2 ? 0 : 1)]->generation);
    }
    EXPECT_EQ(client.get("c").generation, starts.back()->generation);
}

TEST_F(DurableClient, KeepsAnyPayload)
{
    std::string payload(LAWN_DURABLE_MAX_PAYLOAD, '\0');
    for (size_t i = 0; i < payload.size(); ++i) {
        payload[i] = static_cast<char>(i * 31 % 256);
    }
    lawn_durable_start_t start = Client::in_an_hour("a");
    start.payload = payload.data();
    start.payload_size = payload.size();
    ASSERT_EQ(client.start(start).status, LAWN_OK);
    EXPECT_EQ(client.get("a").payload, payload);
}

TEST_F(DurableClient, UpdatesWhatIsStillTheSame)
{
    lawn_durable_start_t start = Client::in_an_hour("a");
    start.payload = "old";
    start.payload_size = 3;
    const Result started = client.start(start);

    lawn_durable_update_t update = {};
    update.id = "a";
    update.generation = started.generation;
    update.set_payload = true;
    update.payload = "new";
    update.payload_size = 3;
    const Result updated = client.update(update);
    ASSERT_EQ(updated.status, LAWN_OK) << updated.error;
    EXPECT_EQ(updated.due_us, started.due_us);
    EXPECT_EQ(client.get("a").payload, "new");
    const Result repeated = client.update(update);
    EXPECT_EQ(repeated.status, LAWN_OK) << repeated.error;
    EXPECT_EQ(repeated.generation, updated.generation);

    update.generation = updated.generation;
    update.set_payload = false;
    update.due_us = started.due_us + 1;
    const Result moved = client.update(update);
    EXPECT_EQ(moved.due_us, started.due_us + 1);
    EXPECT_EQ(client.get("a").payload, "new");
    EXPECT_EQ(client.get("a").due_us, started.due_us + 1);

    client.start("a");
    update.generation = moved.generation;
    const Result late = client.update(update);
    EXPECT_EQ(late.status, LAWN_ERR_NO_ELEM);
    EXPECT_EQ(late.state, LAWN_DURABLE_PENDING);
    EXPECT_GT(late.generation, moved.generation);

    update.id = "b";
    EXPECT_EQ(client.update(update).status, LAWN_ERR_NO_ELEM);
}

TEST_F(DurableClient, UpdatesOnlyThePayloadOfACronTimer)
{
    lawn_durable_start_t start = {};
    start.id = "a";
    start.cron = "17 * * * *";
    lawn_durable_update_t update = {};
    update.id = "a";
    update.generation = client.start(start).generation;
    update.delay_us = 1;
    EXPECT_EQ(client.update(update).status, LAWN_ERR_INVALID_PARAM);
    update.delay_us = 0;
    update.set_payload = true;
    EXPECT_EQ(client.update(update).status, LAWN_OK);
}

TEST_F(DurableClient, ACronTimerBeginsWithTheNextTime)
{
    lawn_durable_start_t start = {};
    start.id = "a";
    start.cron = "17 * * * *";
    start.zone = "Europe/Berlin";
    const Result result = client.start(start);
    ASSERT_EQ(result.status, LAWN_OK) << result.error;
    const int64_t minute_us = 60000000;
    EXPECT_EQ(result.due_us % minute_us, 0);
    EXPECT_EQ(result.due_us / minute_us % 60, 17);
    EXPECT_GT(result.due_us, lawn_durable_now(client) - minute_us);
    EXPECT_LE(result.due_us, lawn_durable_now(client) + 61 * minute_us);
}

TEST_F(DurableClient, RefusesBadArguments)
{
    const auto status_of = [this](void (*set)(lawn_durable_start_t *)) {
        lawn_durable_start_t start = Client::in_an_hour("a");
        set(&start);
        return lawn_durable_start(client, &start, nullptr, nullptr);
    };
    using Start = lawn_durable_start_t;
    const struct {
        const char *why;
        void (*set)(Start *);
    } bad[] = {
        {"there is no id", [](Start *s) { s->id = nullptr; }},
        {"the id '' is not 1 to 255 bytes", [](Start *s) { s->id = ""; }},
        {"the id 'a b' is not", [](Start *s) { s->id = "a b"; }},
        {"due_us", [](Start *s) { s->due_us = -1; }},
        {"due_us", [](Start *s) { s->due_us = INT64_MAX; }},
        {"delay_us", [](Start *s) { s->delay_us = UINT64_MAX; }},
        {"the payload is NULL", [](Start *s) { s->payload_size = 1; }},
        {"65536 bytes",
         [](Start *s) {
             static char payload[LAWN_DURABLE_MAX_PAYLOAD + 1];
             s->payload = payload;
             s->payload_size = sizeof(payload);
         }},
        {"no durability -2", [](Start *s) { s->durability = -2; }},
        {"no durability 1000", [](Start *s) { s->durability = 1000; }},
        {"max_attempts", [](Start *s) { s->max_attempts = 65536; }},
        {"49 days", [](Start *s) { s->backoff_max_us = UINT64_MAX; }},
        {"49 days", [](Start *s) { s->misfire_us = UINT64_MAX; }},
        {"no misfire policy 3",
         [](Start *s) { s->misfire = static_cast<lawn_durable_misfire_t>(3); }},
        {"every_us is less than 10 ms", [](Start *s) { s->every_us = 9999; }},
        {"every_us is more than", [](Start *s) { s->every_us = UINT64_MAX; }},
        {"61", [](Start *s) { s->cron = "61 * * * *"; }},
        {"not a time zone: 'Europe/Berln'",
         [](Start *s) {
             s->cron = "* * * * *";
             s->zone = "Europe/Berln";
         }},
        {"exclude each other",
         [](Start *s) {
             s->cron = "* * * * *";
             s->every_us = 1000000;
         }},
        {"'ftp://host'", [](Start *s) { s->target = "ftp://host"; }},
    };
    for (const auto &one : bad) {
        EXPECT_EQ(status_of(one.set), LAWN_ERR_INVALID_PARAM) << one.why;
        EXPECT_TRUE(contains(lawn_durable_refusal(), one.why))
            << lawn_durable_refusal() << " instead of " << one.why;
    }
    // And what waits for its answer says it, too.
    lawn_durable_result_t result = {};
    lawn_durable_start_t start = Client::in_an_hour("a");
    start.target = "ftp://host";
    EXPECT_EQ(lawn_durable_start_sync(client, &start, &result),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(result.error, "'ftp://host'")) << result.error;
    EXPECT_EQ(lawn_durable_get(client, "a\n", nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_stop(client, "a", -7, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    lawn_durable_update_t update = {};
    update.id = "a";
    EXPECT_EQ(lawn_durable_update(client, &update, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(client.count().count, 0U);
}

// A program that was built with a later header.
TEST_F(DurableClient, RefusesWhatItDoesNotKnow)
{
    struct Later {
        lawn_durable_start_t start;
        uint64_t more;
    } later = {Client::in_an_hour("a"), 0};
    EXPECT_EQ(lawn_durable_start_sized(client, &later.start, sizeof(later),
                                       nullptr, nullptr),
              LAWN_OK);
    later.more = 1;
    EXPECT_EQ(lawn_durable_start_sized(client, &later.start, sizeof(later),
                                       nullptr, nullptr),
              LAWN_ERR_UNSUPPORTED);
}

TEST(DurableOpen, RefusesBadParameters)
{
    const auto status_of = [](void (*set)(lawn_durable_params_t *)) {
        lawn_durable_params_t params = {};
        set(&params);
        lawn_durable_t *durable = nullptr;
        const lawn_status_t status = lawn_durable_open(&params, &durable);
        EXPECT_EQ(durable, nullptr);
        EXPECT_STRNE(lawn_durable_open_error(), "");
        return status;
    };
    using Params = lawn_durable_params_t;
    EXPECT_EQ(status_of([](Params *p) { p->url = "http://store"; }),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(status_of([](Params *p) { p->url = "rediss://store"; }),
              LAWN_ERR_UNSUPPORTED);
    EXPECT_EQ(status_of([](Params *p) { p->name_space = "a b"; }),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(status_of([](Params *p) { p->shards = 1025; }),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(status_of([](Params *p) { p->keep_us = UINT64_MAX; }),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(status_of([](Params *p) { p->request_timeout_us = UINT64_MAX; }),
              LAWN_ERR_INVALID_PARAM);
    lawn_durable_params_t params = {};
    EXPECT_EQ(lawn_durable_open(&params, nullptr), LAWN_ERR_INVALID_PARAM);
    lawn_durable_close(nullptr);
}

TEST_F(DurableClient, LimitsWhatIsUnanswered)
{
    Client few(server.url(),
               [](lawn_durable_params_t *params) { params->max_requests = 2; });
    const lawn_durable_start_t start = Client::in_an_hour("a");
    Result *const first = few.begin_start(start);
    Result *const second = few.begin_start(start);
    EXPECT_EQ(lawn_durable_start(few, &start, nullptr, nullptr), LAWN_ERR_BUSY);
    few.run_until([=] { return first->is_answered && second->is_answered; });
    EXPECT_EQ(few.start("a").status, LAWN_OK);
}

TEST_F(DurableClient, SaysWhenTheNamespaceIsFull)
{
    Client limited(server.url(), [](lawn_durable_params_t *params) {
        params->name_space = "limited";
        params->shards = 1;
        params->max_pending = 1;
    });
    EXPECT_EQ(limited.start("a").status, LAWN_OK);
    const Result full = limited.start("b");
    EXPECT_EQ(full.status, LAWN_ERR_BUSY);
    EXPECT_NE(full.error.find("as many timers are pending"), std::string::npos)
        << full.error;
    EXPECT_EQ(limited.start("a").status, LAWN_OK);
    limited.stop("a");
    EXPECT_EQ(limited.start("b").status, LAWN_OK);
}

// Each shard has its share of the bounds, rounded up.
TEST_F(DurableClient, DividesTheBoundsAmongTheShards)
{
    const auto start_many = [](Client *limited) {
        unsigned started = 0;
        for (int i = 0; i < 60; ++i) {
            lawn_durable_start_t start = Client::in_an_hour("");
            const std::string id = std::to_string(i);
            start.id = id.c_str();
            start.payload = "x";
            start.payload_size = 1;
            started += limited->start(start).status == LAWN_OK;
        }
        return started;
    };
    Client timers(server.url(), [](lawn_durable_params_t *params) {
        params->name_space = "timers";
        params->max_pending = 9;
    });
    EXPECT_EQ(start_many(&timers), 12U);
    Client bytes(server.url(), [](lawn_durable_params_t *params) {
        params->name_space = "bytes";
        params->max_payload_bytes = 3;
    });
    EXPECT_EQ(start_many(&bytes), 4U);
    Client free(server.url(), [](lawn_durable_params_t *params) {
        params->name_space = "free";
    });
    EXPECT_EQ(start_many(&free), 60U);
}

TEST_F(DurableClient, AnswersManyRequestsOnce)
{
    constexpr unsigned count = 20000;
    std::vector<Result *> results;
    for (unsigned i = 0; i < count; ++i) {
        results.push_back(client.begin_start(
            Client::in_an_hour(("id-" + std::to_string(i)).c_str())));
        if (i % 1000 == 0) {
            lawn_durable_poll(static_cast<lawn_durable_t *>(client));
        }
    }
    client.run_until([&] { return results.back()->is_answered; });
    client.run_until([&] { return client.get("id-0").is_answered; });
    unsigned good = 0;
    for (const Result *i : results) {
        good += i->answers == 1 && i->status == LAWN_OK;
    }
    EXPECT_EQ(good, count);
    EXPECT_EQ(client.count().count, count);
}

// The first answer sets the clock, and later ones keep it.
TEST_F(DurableClient, KnowsTheClockOfTheStore)
{
    EXPECT_EQ(lawn_durable_now(client), 0);
    client.start("a");
    const Reply before = server.command({"TIME"});
    const int64_t now = lawn_durable_now(client);
    const Reply after = server.command({"TIME"});
    const auto usec = [](const Reply &reply) {
        return std::stoll(reply[0].string) * 1000000 +
               std::stoll(reply[1].string);
    };
    // It is behind by what a request took.
    EXPECT_GT(now, usec(before) - 60000000);
    EXPECT_LE(now, usec(after) + 60000000);
}

TEST_F(DurableClient, RecordsWhatTheFirstHasSaid)
{
    client.start("a");
    Client any(server.url(),
               [](lawn_durable_params_t *params) { params->shards = 0; });
    any.start("b");
    EXPECT_EQ(lawn_durable_shards(any), 4U);
    Client other(server.url(),
                 [](lawn_durable_params_t *params) { params->shards = 5; });
    const Result refused = other.start("c");
    EXPECT_EQ(refused.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_NE(refused.error.find("4 shards"), std::string::npos)
        << refused.error;
    ASSERT_NE(lawn_durable_error(other), nullptr);
    EXPECT_EQ(client.count().count, 2U);
}

} // namespace
