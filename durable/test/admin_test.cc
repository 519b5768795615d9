// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Lists, dead letters, statistics and draining.

#include "flow_fixture.h"

#include <algorithm>
#include <set>

namespace
{

using namespace lawn_test;

constexpr uint64_t hour_us = 3600000000;

struct Item {
    std::string id;
    lawn_durable_state_t state;
    uint64_t generation;
    std::string payload;
    std::string reason;
    std::string error;
};

void keep_item(void *arg, const lawn_durable_item_t *item)
{
    std::string payload(static_cast<const char *>(item->payload),
                        item->payload_size);
    static_cast<std::vector<Item> *>(arg)->push_back(
        {item->id, item->state, item->generation, payload,
         item->reason ? item->reason : "", item->error ? item->error : ""});
}

struct Statistics {
    bool is_answered = false;
    lawn_durable_stats_t stats;
    std::string error;

    static void keep(void *arg, const lawn_durable_stats_t *stats)
    {
        Statistics *const self = static_cast<Statistics *>(arg);
        self->is_answered = true;
        self->stats = *stats;
        self->error = stats->error ? stats->error : "";
    }
};

// The items and the result share an argument.
struct Listing {
    std::vector<Item> items;
    Result result;

    static void on_item(void *arg, const lawn_durable_item_t *item)
    {
        keep_item(&static_cast<Listing *>(arg)->items, item);
    }
    static void on_done(void *arg, const lawn_durable_result_t *result)
    {
        Result::keep(&static_cast<Listing *>(arg)->result, result);
    }
};

class DurableAdmin : public Flow
{
protected:
    Listing list(lawn_durable_state_t state, uint64_t limit = 0)
    {
        Listing listing;
        EXPECT_EQ(lawn_durable_list(*client, state, limit, Listing::on_item,
                                    Listing::on_done, &listing),
                  LAWN_OK);
        run_until([&] { return listing.result.is_answered; });
        EXPECT_EQ(listing.result.status, LAWN_OK) << listing.result.error;
        EXPECT_EQ(listing.result.count, listing.items.size());
        return listing;
    }

    Listing list_dead(uint64_t limit = 0)
    {
        Listing listing;
        EXPECT_EQ(lawn_durable_list_dead(*client, limit, Listing::on_item,
                                         Listing::on_done, &listing),
                  LAWN_OK);
        run_until([&] { return listing.result.is_answered; });
        EXPECT_EQ(listing.result.status, LAWN_OK) << listing.result.error;
        EXPECT_EQ(listing.result.count, listing.items.size());
        return listing;
    }

    Result replay(const char *id)
    {
        return ask([&](Result *result) {
            return lawn_durable_replay(*client, id, Result::keep, result);
        });
    }

    lawn_durable_stats_t stats()
    {
        Statistics statistics;
        EXPECT_EQ(lawn_durable_stats(*client, Statistics::keep, &statistics),
                  LAWN_OK);
        run_until([&] { return statistics.is_answered; });
        EXPECT_EQ(statistics.stats.status, LAWN_OK) << statistics.error;
        return statistics.stats;
    }

    Statistics shard_stats(unsigned shard)
    {
        Statistics statistics;
        EXPECT_EQ(lawn_durable_shard_stats(*client, shard, Statistics::keep,
                                           &statistics),
                  LAWN_OK);
        run_until([&] { return statistics.is_answered; });
        return statistics;
    }

    // Timers that die at their first attempt.
    void make_dead(int count)
    {
        Taker taker(client);
        taker.answer = [&](const lawn_durable_delivery_t *d) {
            taker.reply(d, LAWN_DURABLE_RETRY, 0, "refused");
        };
        taker.open();
        lawn_durable_pump_t *const pump = add_pump(client);
        for (int i = 0; i < count; ++i) {
            const std::string id = "d" + std::to_string(i);
            const std::string payload = "of " + id;
            lawn_durable_start_t start = timer(id.c_str(), 0, payload);
            start.max_attempts = 1;
            this->start(start);
        }
        run_until([&] { return taker.answered >= static_cast<size_t>(count); });
        lawn_durable_pump_close(pump);
    }
};

TEST_F(DurableAdmin, ListsTimersByState)
{
    EXPECT_EQ(list(LAWN_DURABLE_UNKNOWN).items.size(), 0U);
    start_many(1000, hour_us, "12345678");
    stop("t1");
    stop("t2");
    const Listing pending = list(LAWN_DURABLE_PENDING);
    std::set<std::string> ids;
    for (const Item &item : pending.items) {
        ids.insert(item.id);
        EXPECT_EQ(item.state, LAWN_DURABLE_PENDING);
        EXPECT_GT(item.generation, 0U);
    }
    EXPECT_EQ(ids.size(), 998U);
    EXPECT_EQ(pending.items.size(), 998U);
    EXPECT_EQ(list(LAWN_DURABLE_STOPPED).items.size(), 2U);
    EXPECT_EQ(list(LAWN_DURABLE_DEAD).items.size(), 0U);
    EXPECT_EQ(list(LAWN_DURABLE_UNKNOWN).items.size(), 1000U);
    EXPECT_EQ(list(LAWN_DURABLE_PENDING, 17).items.size(), 17U);
}

// It is counted, so it is shown, with the place where it is.
TEST_F(DurableAdmin, ListsLettersThatNobodyCanRead)
{
    make_dead(1);
    const std::string key = "{test:0}:dead";
    const std::string entry =
        server->command({"XADD", key, "*", "x", "y"}).string;
    const Listing dead = list_dead();
    ASSERT_EQ(dead.items.size(), 2U);
    const Item &item = dead.items[dead.items[0].id.empty() ? 0 : 1];
    EXPECT_EQ(item.id, "");
    EXPECT_EQ(item.reason, "unreadable");
    EXPECT_EQ(item.error, "entry " + entry + " of " + key);
    EXPECT_EQ(stats().dead, 2U);
    EXPECT_EQ(list_dead(1).items.size(), 1U);
}

TEST_F(DurableAdmin, ListsAndReplaysDeadLetters)
{
    make_dead(20);
    const Listing dead = list_dead();
    EXPECT_EQ(dead.items.size(), 20U);
    for (const Item &item : dead.items) {
        EXPECT_EQ(item.state, LAWN_DURABLE_DEAD);
        EXPECT_EQ(item.payload, "of " + item.id);
        EXPECT_NE(item.reason, "");
        EXPECT_EQ(item.error, "refused");
    }
    EXPECT_EQ(list_dead(3).items.size(), 3U);
    const Result replayed = replay("d7");
    EXPECT_EQ(replayed.status, LAWN_OK) << replayed.error;
    EXPECT_EQ(replayed.state, LAWN_DURABLE_PENDING);
    EXPECT_EQ(get("d7").state, LAWN_DURABLE_PENDING);
    EXPECT_EQ(get("d7").payload, "of d7");
    const Result repeated = replay("d7"); // the first answer may be lost
    EXPECT_EQ(repeated.status, LAWN_OK) << repeated.error;
    EXPECT_EQ(repeated.generation, replayed.generation);
    stop("d7");
    EXPECT_EQ(replay("d7").status, LAWN_ERR_NO_ELEM);
    EXPECT_EQ(replay("nobody").status, LAWN_ERR_NO_ELEM);
    EXPECT_EQ(list_dead().items.size(), 19U);
    start("d8", 3600000000);
    EXPECT_EQ(replay("d8").status, LAWN_ERR_NO_ELEM);
    EXPECT_EQ(stats().dead, 19U);
}

TEST_F(DurableAdmin, CountsWhatThereIs)
{
    // Bytes are counted where they are bounded.
    clients.clear();
    clients.push_back(std::make_unique<Client>(
        server->url(), [](lawn_durable_params_t *params) {
            params->max_payload_bytes = 1 << 20;
        }));
    client = clients.back().get();
    start_many(100, hour_us, "12345678");
    stop("t5");
    const lawn_durable_stats_t before = stats();
    EXPECT_EQ(before.shards, 4U);
    EXPECT_EQ(before.pending, 99U);
    EXPECT_EQ(before.due, 0U);
    EXPECT_EQ(before.payload_bytes, 99U * 8);
    EXPECT_EQ(before.stopped, 1U);
    EXPECT_EQ(before.started, 100U);
    start("due", 0);
    run_until([&] { return stats().due == 1; });
    Taker taker(client);
    taker.open();
    add_pump(client);
    run_until([&] { return taker.answered == 1; });
    const lawn_durable_stats_t after = stats();
    EXPECT_EQ(after.fired, 1U);
    EXPECT_EQ(after.succeeded, 1U);
    EXPECT_EQ(after.in_flight, 0U);
}

TEST_F(DurableAdmin, CountsRetriesThatAreSuperseded)
{
    lawn_durable_start_t periodic = timer("a", 0);
    periodic.every_us = hour_us;
    start(periodic);
    Taker taker(client);
    taker.answer = [&](const lawn_durable_delivery_t *d) {
        taker.reply(d, LAWN_DURABLE_RETRY, 2 * hour_us);
    };
    taker.open();
    add_pump(client);
    run_until([&] { return taker.answered == 1; });
    EXPECT_EQ(stats().superseded, 1U);
    EXPECT_EQ(stats().retried, 0U);
}

TEST_F(DurableAdmin, DrainsANamespace)
{
    start_many(10, hour_us, "12345678");
    const auto drain = [&](bool begin) {
        return ask([&](Result *result) {
            return lawn_durable_drain(*client, begin, Result::keep, result);
        });
    };
    EXPECT_EQ(drain(true).status, LAWN_OK);
    for (int i = 0; i < 8; ++i) { // every shard
        const std::string id = "new" + std::to_string(i);
        const lawn_durable_start_t start = timer(id.c_str(), 0);
        const Result refused = ask([&](Result *result) {
            return lawn_durable_start(*client, &start, Result::keep, result);
        });
        EXPECT_EQ(refused.status, LAWN_ERR_BUSY);
        EXPECT_NE(refused.error.find("drained"), std::string::npos)
            << refused.error;
    }
    EXPECT_EQ(get("t3").state, LAWN_DURABLE_PENDING);
    EXPECT_EQ(drain(false).status, LAWN_OK);
    start("new", 0);
}

TEST_F(DurableAdmin, SaysWhatIsWrong)
{
    start("a", 3600000000);
    server->command({"SET", "{test:2}:dead", "not a stream"});
    Listing listing;
    ASSERT_EQ(lawn_durable_list_dead(*client, 0, Listing::on_item,
                                     Listing::on_done, &listing),
              LAWN_OK);
    run_until([&] { return listing.result.is_answered; });
    EXPECT_EQ(listing.result.status, LAWN_ERR_CORRUPT);
    EXPECT_NE(listing.result.error.find("{test:2}:dead"), std::string::npos)
        << listing.result.error;
    Statistics statistics;
    ASSERT_EQ(lawn_durable_stats(*client, Statistics::keep, &statistics),
              LAWN_OK);
    run_until([&] { return statistics.is_answered; });
    EXPECT_EQ(statistics.stats.status, LAWN_ERR_CORRUPT);
    EXPECT_NE(statistics.error.find("{test:2}:dead"), std::string::npos)
        << statistics.error;
    EXPECT_EQ(shard_stats(2).stats.status, LAWN_ERR_CORRUPT);
    EXPECT_EQ(shard_stats(1).stats.status, LAWN_OK);
}

TEST_F(DurableAdmin, TheStatisticsAreTheSumOfThoseOfTheShards)
{
    start_many(20, hour_us, "12345678");
    uint64_t pending = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const Statistics one = shard_stats(i);
        EXPECT_EQ(one.stats.status, LAWN_OK) << one.error;
        EXPECT_EQ(one.stats.shards, 4U);
        EXPECT_LT(one.stats.pending, 20U);
        pending += one.stats.pending;
    }
    EXPECT_EQ(pending, 20U);
    EXPECT_EQ(stats().pending, 20U);
    EXPECT_EQ(shard_stats(4).stats.status, LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(shard_stats(0U - 1).stats.status, LAWN_ERR_INVALID_PARAM);
}

TEST_F(DurableAdmin, RefusesBadArguments)
{
    const auto each = [](void *, const lawn_durable_item_t *) {};
    EXPECT_EQ(lawn_durable_list(*client, LAWN_DURABLE_PENDING, 0, nullptr,
                                nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_list(*client, static_cast<lawn_durable_state_t>(7),
                                0, each, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_list_dead(*client, 0, nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_replay(*client, nullptr, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_replay(*client, "a b", nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(lawn_durable_refusal(), "the id 'a b'"));
    EXPECT_EQ(lawn_durable_stats(*client, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_shard_stats(*client, 0, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_drain(nullptr, true, nullptr, nullptr),
              LAWN_ERR_INVALID_PARAM);
}

} // namespace
