// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What keeps a pump from its work for longer than a moment is told, until it is
// over.

#include "flow_fixture.h"

#include "src/hash.h"
#include "src/script.h"

#include <string>

namespace
{

using namespace lawn_test;

// Where functions of the store begin.
const std::string fire_begin = "local limit = integer(args[1], 1, 500)";
const std::string cron_begin = "local most = integer(args[1], 1, 500)";
const std::string renew_begin = "if #args % 3 ~= 0 then";
const std::string beat_begin = "local alive = integer(args[3], 1, MOST)";

class DurablePumpErrors : public Flow
{
protected:
    // Has the store do this where it does `what` otherwise.
    void replace(const std::string &what, const std::string &by)
    {
        std::string script = lawn::durable::script();
        const size_t at = script.find(what);
        ASSERT_NE(at, std::string::npos) << what;
        script.replace(at, what.size(), by);
        server->command({"FUNCTION", "LOAD", "REPLACE", script});
    }

    // Has a function of the store do this first.
    void insert(const std::string &begin, const std::string &what)
    {
        replace(begin, what + " " + begin);
    }

    void mend()
    {
        server->command(
            {"FUNCTION", "LOAD", "REPLACE", lawn::durable::script()});
    }

    // A client whose requests are soon late.
    Client *add_quick_client()
    {
        clients.push_back(std::make_unique<Client>(
            server->url(), [](lawn_durable_params_t *params) {
                params->request_timeout_us = 500000;
            }));
        return clients.back().get();
    }

    // Wakes the pump for all shards: "" if all is well.
    std::string told()
    {
        for (int shard = 0; shard < 4; ++shard) {
            server->command(
                {"PUBLISH", "{test:" + std::to_string(shard) + "}:wake", ""});
        }
        const char *const error = lawn_durable_error(*pumping);
        return error ? error : "";
    }

    void run_until_told(const std::string &part)
    {
        run_until([&] { return contains(told(), part.c_str()); });
    }

    void run_until_well()
    {
        run_until([&] { return told().empty(); });
    }

    static std::string key_of(const char *id, const char *name)
    {
        return "{test:" + std::to_string(lawn::durable::shard_of(id, 4)) +
               "}:" + name;
    }

    long long length(const std::string &stream)
    {
        return server->command({"XLEN", stream}).integer;
    }

    void start_cron()
    {
        lawn_durable_start_t cron = timer("cron", 0);
        cron.due_us = 1;
        cron.cron = "*/5 * * * *";
        cron.zone = "UTC";
        cron.misfire = LAWN_DURABLE_COALESCE;
        start(cron);
    }

    Client *pumping = add_client();
};

// As long as a script of somebody else runs.
TEST_F(DurablePumpErrors, AServerThatStaysBusyIsTold)
{
    pumping = add_quick_client();
    add_pump(pumping);
    start("a", 0);
    run_until_state("a", LAWN_DURABLE_DELIVERED);
    insert(fire_begin, "do return redis.error_reply('BUSY a script') end");
    run_until_told("cannot fire shard 0: not done in time: BUSY a script");
    mend();
    start("b", 0);
    run_until_state("b", LAWN_DURABLE_DELIVERED);
    run_until_well();
}

// Three calls of four are refused, and made again a little later.
TEST_F(DurablePumpErrors, AServerThatIsBusyForAMomentIsNotTold)
{
    replace("register_of_shard('lawn_fire', 8, 3, 3, {'allow-oom'}, "
            "function(keys, args)",
            "local refused = 0 "
            "register_of_shard('lawn_fire', 8, 3, 3, {'allow-oom'}, "
            "function(keys, args) refused = refused + 1 "
            "if refused % 4 ~= 0 then "
            "return redis.error_reply('BUSY a script') end");
    lawn_durable_pump_t *const pump = add_pump(pumping);
    start_many(20, 10000);
    run_until([&] {
        EXPECT_EQ(told(), "");
        return query(pump).fired >= 20;
    });
}

// Whoever adds an entry with this number leaves room for none behind it.
TEST_F(DurablePumpErrors, AStreamThatTakesNoMoreIsToldWithItsKey)
{
    add_pump(pumping);
    for (const char *const name : {"out", "push"}) {
        const std::string key = key_of("a", name);
        server->command({"XADD", key,
                         "18446744073709551615-18446744073709551615", "x",
                         "y"});
        lawn_durable_start_t start = timer("a", 0);
        start.target = *name == 'p' ? "http://127.0.0.1:1/" : nullptr;
        this->start(start);
        run_until_told(": " + key + ": ");
        EXPECT_EQ(get("a").state, LAWN_DURABLE_PENDING);
        EXPECT_EQ(length(key), 1);
        server->command({"DEL", key});
        run_until_well();
        run_until([&] { return length(key) == 1; });
    }
}

TEST_F(DurablePumpErrors, GenerationsThatAreNoNumbersAreToldWithTheirKey)
{
    lawn_durable_start_t periodic = timer("a", 0);
    periodic.every_us = 3600000000;
    start(periodic);
    const std::string key = key_of("a", "meta");
    server->command({"HSET", key, "gen", "text"});
    add_pump(pumping);
    run_until_told(key + ", field gen: ");
    EXPECT_EQ(length(key_of("a", "out")), 0);
    server->command({"HSET", key, "gen", "7"});
    run_until_well();
    run_until([&] { return length(key_of("a", "out")) == 1; });
}

// Such as a command that the user may not use, or a fault in the library.
TEST_F(DurablePumpErrors, AnyErrorThatStaysIsTold)
{
    start_cron();
    const struct {
        const std::string &begin;
        const char *told;
    } calls[] = {
        {fire_begin, "cannot fire shard "},
        {cron_begin, "cannot find cron timers of shard "},
        {renew_begin, "cannot give cron timers of shard "},
        {beat_begin, "cannot find the other pumps: "},
    };
    for (const auto &call : calls) {
        for (const char *const error :
             {"do return redis.error_reply('ERR refused') end",
              "error('refused')"}) {
            insert(call.begin, error);
            lawn_durable_pump_t *const pump = add_pump(pumping);
            run_until([&] {
                const std::string line = told();
                return contains(line, call.told) && contains(line, ": ERR ") &&
                       contains(line, "refused");
            });
            lawn_durable_pump_close(pump);
        }
    }
    EXPECT_EQ(lawn_durable_error(*pumping), nullptr);
    insert(beat_begin, "do return redis.error_reply('ERR refused') end");
    add_pump(pumping);
    run_until_told("cannot find the other pumps: ");
    mend();
    run_until_well();
}

// Not each time that a call before it is answered.
TEST_F(DurablePumpErrors, WhatStaysIsNotSaidToBeOver)
{
    insert(renew_begin, "do return redis.error_reply('ERR refused') end");
    start_cron();
    lawn_durable_pump_t *const pump = add_pump(pumping);
    run_until_told("cannot give cron timers of shard ");
    const uint64_t before = query(pump).errors;
    run_until([&] {
        EXPECT_NE(told(), "");
        return query(pump).errors >= before + 3 || HasFailure();
    });
    mend();
    run_until_well();
    run_until([&] { return get("cron").due_us > 1; });
}

} // namespace
