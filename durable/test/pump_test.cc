// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Pumps: in time, never early, and whatever happens to them.

#include "flow_fixture.h"

#include "src/script.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <set>

namespace
{

using namespace lawn_test;

class DurablePump : public Flow
{
protected:
    // Starts timers with delays up to `most_us`, and returns their ids when
    // the store has acknowledged them.
    std::vector<std::string> start_random(const std::string &prefix, int count,
                                          uint64_t most_us)
    {
        std::vector<std::string> ids;
        std::vector<Result> results(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) {
            ids.push_back(prefix + std::to_string(i));
            const lawn_durable_start_t start =
                timer(ids.back().c_str(), random_() % (most_us + 1));
            EXPECT_EQ(lawn_durable_start(*client, &start, Result::keep,
                                         &results[static_cast<size_t>(i)]),
                      LAWN_OK);
        }
        run_until([&] {
            return std::all_of(results.begin(), results.end(),
                               [](const Result &r) { return r.is_answered; });
        });
        for (const Result &result : results) {
            EXPECT_EQ(result.status, LAWN_OK) << result.error;
        }
        return ids;
    }

    // One that is due, and then every five minutes.
    void start_cron(const char *zone)
    {
        lawn_durable_start_t cron = timer("cron", 0);
        cron.due_us = 1;
        cron.cron = "*/5 * * * *";
        cron.zone = zone;
        cron.misfire = LAWN_DURABLE_COALESCE;
        start(cron);
    }

    // Wakes the pump until its client says so; nullptr: that all is well.
    void run_until_error_is(const char *part)
    {
        run_until([&] {
            for (int shard = 0; shard < 4; ++shard) {
                server->command({"PUBLISH",
                                 "{test:" + std::to_string(shard) + "}:wake",
                                 "1"});
            }
            const char *const error = lawn_durable_error(*pumping);
            return part ? error && strstr(error, part) : !error;
        });
    }

    void run_until_taken(const std::vector<std::string> &ids)
    {
        std::set<std::string> seen;
        size_t next = 0;
        run_until([&] {
            while (next < taker.taken.size()) {
                seen.insert(taker.taken[next++].id);
            }
            return std::all_of(ids.begin(), ids.end(), [&](const auto &id) {
                return seen.count(id) > 0;
            });
        });
    }

    void SetUp() override
    {
        taker.open();
    }

    // The pumps are other processes than the consumer.
    Client *pumping = add_client();
    Client *pumping_too = add_client();
    Taker taker{client};
    std::mt19937 random_{11};
};

// Taker checks that none is early.
TEST_F(DurablePump, FiresThousandsOnceAndNotEarly)
{
    lawn_durable_pump_t *const pump = add_pump(pumping);
    const std::vector<std::string> ids = start_random("t", 5000, 1000000);
    run_until_taken(ids);
    EXPECT_EQ(taker.taken.size(), 5000U);
    // The consumer may have been told before the pump.
    run_until([&] { return query(pump).fired >= 5000; });
    const lawn_durable_pump_stats_t stats = query(pump);
    EXPECT_EQ(stats.fired, 5000U);
    EXPECT_EQ(stats.errors, 0U);
    EXPECT_EQ(lawn_histogram_count(&stats.lateness_us), 5000U);
    EXPECT_LE(lawn_histogram_count(&stats.round_trip_us), stats.calls);
    EXPECT_GT(lawn_histogram_count(&stats.round_trip_us), 0U);
}

TEST_F(DurablePump, WakesForAnEarlierTimer)
{
    add_pump(pumping);
    start("far", 3600000000);
    run_for(std::chrono::milliseconds(100));
    start("near", 30000);
    run_until([&] { return taker.taken.size() == 1; });
    EXPECT_EQ(taker.taken[0].id, "near");
    start("now", 0);
    run_until([&] { return taker.taken.size() == 2; });
}

TEST_F(DurablePump, TwoShareTheShards)
{
    lawn_durable_pump_t *const one = add_pump(pumping, "one");
    lawn_durable_pump_t *const two = add_pump(pumping_too, "two");
    run_until([&] { return query(one).calls > 0 && query(two).calls > 0; });
    const std::vector<std::string> ids = start_random("t", 2000, 500000);
    run_until_taken(ids);
    EXPECT_EQ(taker.taken.size(), 2000U);
    const auto fired = [&] { return query(one).fired + query(two).fired; };
    run_until([&] { return fired() >= 2000; });
    EXPECT_EQ(fired(), 2000U);
}

TEST_F(DurablePump, AnotherGoesOnWhenOneStops)
{
    add_pump(pumping, "one");
    lawn_durable_pump_t *const two = add_pump(pumping_too, "two");
    run_until([&] { return query(two).calls > 0; });
    const std::vector<std::string> ids = start_random("t", 1000, 500000);
    run_until([&] { return taker.taken.size() > 100; });
    paused.push_back(pumping); // SIGSTOP
    run_until_taken(ids);
    paused.clear();
    run_until_taken(start_random("u", 1000, 100000));
    paused.push_back(pumping_too);
    run_until_taken(start_random("v", 1000, 100000));
    EXPECT_EQ(taker.taken.size(), 3000U);
}

TEST_F(DurablePump, AnotherGoesOnWhenOneDies)
{
    add_pump(pumping, "one");
    add_pump(pumping_too, "two");
    const std::vector<std::string> ids = start_random("t", 1000, 500000);
    run_until([&] { return taker.taken.size() > 100; });
    pumping->close();
    clients.erase(clients.begin() + 1);
    run_until_taken(ids);
    EXPECT_EQ(taker.taken.size(), 1000U);
}

TEST_F(DurablePump, GoesOnAfterLostConnections)
{
    lawn_durable_pump_t *const pump = add_pump(pumping);
    run_until([&] { return query(pump).calls > 0; });
    for (int round = 0; round < 5; ++round) {
        const std::vector<std::string> ids =
            start_random("t" + std::to_string(round) + ":", 50, 20000);
        server->command({"CLIENT", "KILL", "TYPE", "pubsub"});
        server->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        run_until_taken(ids);
        run_until([&] {
            return get("x").status == LAWN_OK &&
                   lawn_durable_error(*pumping) == nullptr;
        });
    }
}

TEST_F(DurablePump, SaysThatItCannotReadWhatTheStoreAnswers)
{
    add_pump(pumping);
    start("a", 0);
    run_until_taken({"a"});
    std::string script = lawn::durable::script();
    const std::string end = "return upcoming(f, horizon, most, is_more)";
    script.replace(script.find(end), end.size(), "return 1");
    server->command({"FUNCTION", "LOAD", "REPLACE", script});
    start("b", 0);
    run_until([&] {
        const char *const error = lawn_durable_error(*pumping);
        return error && strstr(error, ": nobody can read its answer");
    });
    server->command({"FUNCTION", "LOAD", "REPLACE", lawn::durable::script()});
    run_until([&] { return lawn_durable_error(*pumping) == nullptr; });
    start("c", 0);
    run_until_taken({"c"});
}

// What a message would have told is found by the call after the connection.
TEST_F(DurablePump, FindsWhatWasStartedWhileItWasAway)
{
    lawn_durable_pump_t *const pump = add_pump(pumping);
    run_until([&] { return query(pump).calls > 0; });
    paused.push_back(pumping);
    server->command({"CLIENT", "KILL", "TYPE", "pubsub"});
    start("a", 0);
    paused.clear();
    run_until([&] { return taker.count("a") == 1; });
}

TEST_F(DurablePump, GoesOnWhenTheServerIsRestarted)
{
    taker.close();
    server->set_options({"--appendonly", "yes", "--appendfsync", "always"});
    server->stop();
    server->start();
    taker.open();
    add_pump(pumping);
    run_until([&] { return get("x").status == LAWN_OK; });
    for (int round = 0; round < 3; ++round) {
        const std::vector<std::string> ids =
            start_random("t" + std::to_string(round) + ":", 200, 300000);
        server->kill();
        server->start();
        run_until_taken(ids);
        run_until([&] { return get("x").status == LAWN_OK; });
    }
}

TEST_F(DurablePump, FiresAPeriodicTimerAgainAndAgain)
{
    add_pump(pumping);
    lawn_durable_start_t start = timer("tick", 20000, "p");
    start.every_us = 30000;
    const Result first = this->start(start);
    run_until([&] { return taker.taken.size() >= 8; });
    for (size_t i = 0; i < taker.taken.size(); ++i) {
        EXPECT_EQ(taker.taken[i].due_us,
                  first.due_us + static_cast<int64_t>(i) * 30000);
        EXPECT_EQ(taker.taken[i].payload, "p");
        if (i > 0) {
            EXPECT_GT(taker.taken[i].generation, taker.taken[i - 1].generation);
        }
    }
    const Result stopped = stop("tick");
    EXPECT_EQ(stopped.state, LAWN_DURABLE_STOPPED);
    run_for(std::chrono::milliseconds(150));
    // What arrived since had been fired before the stop.
    for (const Delivered &delivered : taker.taken) {
        EXPECT_LT(delivered.generation, stopped.generation);
    }
}

TEST_F(DurablePump, FiresACronTimerAndFindsItsNextTime)
{
    add_pump(pumping);
    start_cron("Europe/Berlin");
    run_until([&] { return taker.count("cron") >= 1; });
    Result next;
    run_until([&] {
        next = get("cron");
        return next.state == LAWN_DURABLE_PENDING &&
               next.due_us > taker.taken.back().fired_us;
    });
    constexpr int64_t five_minutes = 300000000;
    EXPECT_EQ(next.due_us % five_minutes, 0);
    EXPECT_LE(next.due_us - taker.taken.back().fired_us, five_minutes);
    EXPECT_LE(taker.count_generations("cron"), 2U);
}

// A machine without the file of the zone, or without descriptors, must not end
// the timer.
TEST_F(DurablePump, ACronTimerWaitsForAPumpThatKnowsItsZone)
{
    start_cron("Asia/Kathmandu");
    setenv("TZDIR", "/nowhere", 1);
    add_pump(pumping);
    run_until_error_is("time zone Asia/Kathmandu");
    unsetenv("TZDIR");
    run_until_error_is(nullptr);
    EXPECT_EQ(get("cron").state, LAWN_DURABLE_PENDING);
}

TEST_F(DurablePump, ACronTimerThatIsStoppedIsNoErrorAnyMore)
{
    start_cron("America/Lima");
    setenv("TZDIR", "/nowhere", 1);
    add_pump(pumping);
    run_until_error_is("time zone America/Lima");
    EXPECT_EQ(stop("cron").state, LAWN_DURABLE_STOPPED);
    run_until_error_is(nullptr);
    unsetenv("TZDIR");
}

// This may go on for hours.
TEST_F(DurablePump, WithoutReplicasThatTheServerWantsItSaysSo)
{
    Client quick(server->url(), [](lawn_durable_params_t *params) {
        params->request_timeout_us = 100000;
    });
    add_pump(&quick);
    const auto says = [&] {
        lawn_durable_wait(quick, 1000);
        const char *const error = lawn_durable_error(quick);
        return error && contains(error, "NOREPLICAS");
    };
    start("a", 0);
    run_until([&] { return says() || taker.count("a") > 0; });
    start("b", 300000);
    server->command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    run_until(says);
    server->command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    run_until([&] { return !says(); });
}

// Nothing else calls for a timer that is not due, for half a minute.
TEST_F(DurablePump, ACallForCronTimersThatFailsIsMadeAgain)
{
    std::string script = lawn::durable::script();
    const std::string reply = "return {removed, list}";
    script.replace(script.find(reply), reply.size(), "return invalid('x')");
    server->command({"FUNCTION", "LOAD", "REPLACE", script});
    lawn_durable_pump_t *const pump = add_pump(pumping);
    start_cron("Europe/Berlin");
    run_until([&] { return query(pump).errors >= 6; });
}

TEST_F(DurablePump, TimersThatAreGoneHideNoCronTimer)
{
    for (int shard = 0; shard < 4; ++shard) {
        for (int i = 0; i < 2000; ++i) {
            server->command({"SADD",
                             "{test:" + std::to_string(shard) + "}:cron",
                             "gone" + std::to_string(i)});
        }
    }
    add_pump(pumping);
    start_cron("Europe/Berlin");
    run_until([&] {
        const Result next = get("cron");
        return taker.count("cron") >= 1 && next.state == LAWN_DURABLE_PENDING &&
               next.due_us > taker.taken.back().fired_us;
    });
}

TEST_F(DurablePump, MissedTimersAreTreatedAsTheySay)
{
    const int64_t now = start("x", 3600000000).due_us - 3600000000;
    lawn_durable_start_t t = timer("skip", 0);
    t.due_us = now - 10000000;
    t.misfire = LAWN_DURABLE_SKIP;
    t.misfire_us = 1000000;
    start(t);
    t.id = "late";
    t.misfire_us = 3600000000;
    start(t);
    t.id = "fire";
    t.misfire = LAWN_DURABLE_FIRE;
    start(t);
    // 55 minutes ago, and every ten minutes.
    t.due_us = now - 3300000000;
    t.every_us = 600000000;
    t.id = "each";
    start(t);
    t.id = "once";
    t.misfire = LAWN_DURABLE_COALESCE;
    start(t);
    add_pump(pumping);
    run_until_state("skip", LAWN_DURABLE_FAIL);
    run_until_state("late", LAWN_DURABLE_SUCCESS);
    run_until_state("fire", LAWN_DURABLE_SUCCESS);
    run_until(
        [&] { return get("each").due_us > now && get("once").due_us > now; });
    run_until([&] { return taker.count_generations("each") >= 6; });
    EXPECT_EQ(taker.count("skip"), 0U);
    EXPECT_EQ(taker.count_generations("each"), 6U);
    run_until([&] { return taker.count("once") >= 1; });
    EXPECT_EQ(taker.count_generations("once"), 1U);
}

// A stop that was answered `stopped` is never followed by a delivery.
TEST_F(DurablePump, AStopThatWasInTimeIsFinal)
{
    add_pump(pumping);
    add_pump(pumping_too);
    std::vector<std::string> ids = start_random("t", 2000, 1000000);
    start("far", 3600000000); // is stopped in time on any machine
    ids.push_back("far");
    std::vector<Result> stops(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
        // Now and then, so that many are stopped before they are due.
        if (i % 50 == 0) {
            run_for(std::chrono::milliseconds(1));
        }
        ASSERT_EQ(lawn_durable_stop(*client, ids[i].c_str(), LAWN_DURABLE_ASYNC,
                                    Result::keep, &stops[i]),
                  LAWN_OK);
    }
    run_until([&] {
        return std::all_of(stops.begin(), stops.end(),
                           [](const Result &r) { return r.is_answered; });
    });
    std::vector<std::string> not_stopped;
    for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(stops[i].status, LAWN_OK) << stops[i].error;
        ASSERT_NE(stops[i].state, LAWN_DURABLE_UNKNOWN);
        if (stops[i].state != LAWN_DURABLE_STOPPED) {
            not_stopped.push_back(ids[i]);
        }
    }
    EXPECT_GT(not_stopped.size(), 0U);
    EXPECT_LT(not_stopped.size(), ids.size());
    run_until_taken(not_stopped);
    run_for(std::chrono::seconds(1)); // until all were due
    EXPECT_GE(taker.taken.size(), not_stopped.size());
    for (size_t i = 0; i < ids.size(); ++i) {
        if (stops[i].state == LAWN_DURABLE_STOPPED) {
            EXPECT_EQ(taker.count(ids[i]), 0U);
        }
    }
}

// It wakes up less than once a second. The heart-beat, every four seconds,
// wakes it twice: when it is sent, and when it is answered.
TEST_F(DurablePump, SleepsWhileThereIsNothingToDo)
{
    lawn_durable_pump_t *const pump = add_pump(pumping);
    start("far", 3600000000);
    uint64_t before = 0;
    std::chrono::steady_clock::time_point began;
    run_until([&] {
        if (query(pump).wakeups < before + 2) {
            return false;
        }
        const auto now = std::chrono::steady_clock::now();
        const bool is_asleep =
            before > 0 && now - began >= std::chrono::seconds(2);
        before = query(pump).wakeups;
        began = now;
        return is_asleep;
    });
    EXPECT_GE(query(pump).calls, 4U);
}

TEST_F(DurablePump, IsClosedAndLeavesItsShards)
{
    lawn_durable_pump_t *const pump = add_pump(pumping, "one");
    run_until([&] { return query(pump).calls > 0; });
    run_until([&] {
        return server->command({"ZCARD", "{test:0}:pumps"}).integer == 1;
    });
    lawn_durable_pump_close(pump);
    run_until([&] {
        return server->command({"ZCARD", "{test:0}:pumps"}).integer == 0;
    });
    start("a", 0);
    run_for(std::chrono::milliseconds(50));
    EXPECT_EQ(taker.taken.size(), 0U);
    lawn_durable_pump_close(nullptr);
}

TEST_F(DurablePump, MessagesOfOthersDoNoHarm)
{
    add_pump(pumping);
    start("a", 200000);
    for (const char *const text :
         {"", "x", "-1", "12x", "99999999999999999999999", "0", "5"}) {
        server->command({"PUBLISH", "{test:0}:wake", text});
        server->command({"PUBLISH", "{test:1}:wake", text});
    }
    run_until([&] { return taker.count("a") == 1; });
}

TEST_F(DurablePump, SaysWhichShardItCannotFire)
{
    Client *const other = add_client();
    lawn_durable_pump_t *const own = add_pump(other);
    const auto told = [&]() -> std::string {
        server->command({"PUBLISH", "{test:2}:wake", ""}); // has it look
        const char *const error = lawn_durable_error(*other);
        return error ? error : "";
    };
    start("a", 0);
    run_until([&] { return taker.count("a") > 0; });
    server->command({"RENAME", "{test:2}:meta", "{test:2}:kept"});
    server->command({"SET", "{test:2}:meta", "text"});
    run_until(
        [&] { return told().find("{test:2}:meta") != std::string::npos; });
    EXPECT_NE(told().find("shard 2"), std::string::npos) << told();
    server->command({"RENAME", "{test:2}:kept", "{test:2}:meta"});
    run_until([&] { return told().empty(); });
    lawn_durable_pump_close(own);
}

TEST_F(DurablePump, RefusesBadArguments)
{
    lawn_durable_pump_params_t params = {};
    lawn_durable_pump_t *pump = nullptr;
    EXPECT_EQ(lawn_durable_pump_start(nullptr, &params, &pump),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_durable_pump_start(*client, &params, nullptr),
              LAWN_ERR_INVALID_PARAM);
    params.name = "two words";
    EXPECT_EQ(lawn_durable_pump_start(*client, &params, &pump),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(lawn_durable_refusal(), "the name 'two words'"));
    params.name = nullptr;
    params.prefetch_us = UINT64_MAX;
    EXPECT_EQ(lawn_durable_pump_start(*client, &params, &pump),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_TRUE(contains(lawn_durable_refusal(), "prefetch_us"));
}

} // namespace
