// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Programs with the rights that doc/durable.md says they need, and no others;
// and with a right less that is not needed for an answer, which is told.

#include "flow_fixture.h"
#include "watch_fixture.h"

#include "lawn-verify/server.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace lawn_test;

namespace
{

class DurableAcl : public Flow
{
protected:
    void SetUp() override
    {
        server->command({"CONFIG", "SET", "bind", "127.0.0.1"});
        server->command({"CONFIG", "SET", "port", std::to_string(port)});
        // Somebody else has loaded the functions and made the namespace.
        ASSERT_EQ(start("first", 3600000000).status, LAWN_OK);
    }

    // The rules of a user, as the document has them for the namespace `shop`.
    static Words rules_of(const std::string &user)
    {
        std::ifstream document(getenv("LAWN_DURABLE_DOC"));
        const std::string begin = "    ACL SETUSER " + user + " ";
        for (std::string line; std::getline(document, line);) {
            if (line.compare(0, begin.size(), begin) != 0) {
                continue;
            }
            std::istringstream all(line.substr(begin.size()));
            Words rules;
            for (std::string rule; all >> rule;) {
                const size_t at = rule.find("{shop:");
                rules.push_back(
                    at == rule.npos ? rule : rule.replace(at, 6, "{test:"));
            }
            return rules;
        }
        ADD_FAILURE() << "the document has no " << begin;
        return {};
    }

    // A client of this user, with more rules behind the document's.
    Client *
    add_user(const std::string &user, const Words &more = {},
             const std::function<void(lawn_durable_params_t *)> &set = nullptr)
    {
        Words words = {"ACL", "SETUSER", user};
        for (const Words &rules : {rules_of(user), more}) {
            words.insert(words.end(), rules.begin(), rules.end());
        }
        const Reply reply = server->command(words);
        EXPECT_EQ(reply.string, "OK") << to_string(reply);
        clients.push_back(std::make_unique<Client>(
            "redis://" + user + ":secret@127.0.0.1:" + std::to_string(port),
            set));
        return clients.back().get();
    }

    void expect_well(Client *of)
    {
        run_until([&] { return lawn_durable_shards(*of) != 0; });
        const char *const error = lawn_durable_error(*of);
        EXPECT_EQ(error, nullptr) << error;
        const char *const warning = lawn_durable_warning(*of);
        EXPECT_EQ(warning, nullptr) << warning;
    }

    // What the user may not do is in the server's log of that.
    void expect_no_refusal()
    {
        const Reply log = server->command({"ACL", "LOG"});
        EXPECT_EQ(log.size(), 0U) << to_string(log);
    }

    const int port = lawn_verify::free_port();
};

TEST_F(DurableAcl, AClientHasWhatItNeeds)
{
    // So few ends are kept that the older table is dropped.
    for (int shard = 0; shard < 4; ++shard) {
        server->command({"HSET", "{test:" + std::to_string(shard) + "}:meta",
                         "keep_count", "1"});
    }
    client = add_user("lawn-client");
    for (int i = 0; i < 40; ++i) {
        const std::string id = "t" + std::to_string(i);
        lawn_durable_start_t one = timer(id.c_str(), 3600000000, "payload");
        one.token = 7;
        one.every_us = i % 2 ? 0 : 3600000000;
        const Result started = start(one);
        EXPECT_EQ(start(one).generation, started.generation);
        lawn_durable_update_t update = {};
        update.id = id.c_str();
        update.generation = started.generation;
        update.delay_us = 7200000000;
        const Result updated = ask([&](Result *result) {
            return lawn_durable_update(*client, &update, Result::keep, result);
        });
        EXPECT_EQ(updated.status, LAWN_OK) << updated.error;
        EXPECT_EQ(get(id.c_str()).state, LAWN_DURABLE_PENDING);
        EXPECT_EQ(stop(id.c_str()).state, LAWN_DURABLE_STOPPED);
        EXPECT_EQ(stop(id.c_str()).state, LAWN_DURABLE_STOPPED);
    }
    const Result count = ask([&](Result *result) {
        return lawn_durable_count(*client, Result::keep, result);
    });
    EXPECT_EQ(count.status, LAWN_OK) << count.error;
    EXPECT_EQ(count.count, 1U);
    expect_well(client);
    expect_no_refusal();
}

TEST_F(DurableAcl, APumpHasWhatItNeeds)
{
    Taker taker(client); // what it answers is to be trimmed
    taker.open();
    Client *const pumping = add_user("lawn-pump");
    lawn_durable_pump_t *const pump = add_pump(pumping);
    lawn_durable_start_t cron = timer("cron", 1);
    cron.cron = "* * * * *";
    start(cron);
    lawn_durable_start_t every = timer("every", 1);
    every.every_us = 20000;
    start(every);
    start("once", 1);
    lawn_durable_start_t missed = timer("missed", 0);
    missed.due_us = 1;
    missed.misfire = LAWN_DURABLE_SKIP;
    start(missed);
    lawn_durable_start_t pushed = timer("pushed", 1);
    pushed.target = "http://127.0.0.1:1/";
    start(pushed);
    run_until([&] { return query(pump).fired >= 5; });
    run_until([&] { return get("missed").state == LAWN_DURABLE_FAIL; });
    run_until([&] { return get("cron").state == LAWN_DURABLE_PENDING; });
    expect_well(pumping);
    lawn_durable_pump_close(pump);
    run_for(std::chrono::milliseconds(20));
    expect_no_refusal();
}

TEST_F(DurableAcl, AConsumerHasWhatItNeeds)
{
    add_pump(client);
    Client *const consuming = add_user("lawn-consumer");
    Taker taker(consuming);
    taker.answer = [&](const lawn_durable_delivery_t *delivery) {
        lawn_durable_extend(taker.consumer, delivery);
        const std::string id = delivery->id;
        taker.reply(delivery,
                    id == "failed"           ? LAWN_DURABLE_REJECT
                    : delivery->attempt == 1 ? LAWN_DURABLE_RETRY
                                             : LAWN_DURABLE_DONE,
                    1);
    };
    lawn_durable_consume_t consume = {};
    consume.lease_us = 3000000; // also on a slow machine
    {
        Taker dead(client); // leaves one to be taken over
        dead.answer = nullptr;
        dead.open();
        start("left", 0);
        run_until([&] { return dead.given.size() == 1; });
    }
    taker.open(consume);
    start_many(20);
    start("failed", 0);
    lawn_durable_start_t mortal = timer("mortal", 0);
    mortal.max_attempts = 1;
    start(mortal);
    lawn_durable_start_t every = timer("every", 0);
    every.every_us = 3600000000;
    start(every);
    server->command({"XADD", "{test:0}:out", "*", "what", "nobody can read"});
    run_until([&] {
        return taker.states[LAWN_DURABLE_SUCCESS] >= 22 &&
               taker.states[LAWN_DURABLE_FAIL] == 1;
    });
    run_until_state("mortal", LAWN_DURABLE_DEAD);
    // A second one, which stops and gives back what it has.
    Taker second(consuming);
    second.answer = nullptr;
    second.open(consume);
    run_for(std::chrono::milliseconds(50));
    lawn_durable_consumer_stop(second.consumer);
    run_for(std::chrono::milliseconds(50));
    expect_well(consuming);
    expect_no_refusal();
}

TEST_F(DurableAcl, AnOperatorHasWhatItNeeds)
{
    add_pump(client);
    Taker taker(client);
    taker.answer = [&](const lawn_durable_delivery_t *delivery) {
        taker.reply(delivery, LAWN_DURABLE_RETRY);
    };
    taker.open();
    lawn_durable_start_t mortal = timer("mortal", 0);
    mortal.max_attempts = 1;
    start(mortal);
    run_until_state("mortal", LAWN_DURABLE_DEAD);
    Client *const operating = add_user("lawn-operator");
    const auto nothing = [](void *, const lawn_durable_item_t *) {};
    const auto expect_ok =
        [&](const char *what,
            const std::function<lawn_status_t(Result *)> &fn) {
            const Result result = ask(fn);
            EXPECT_EQ(result.status, LAWN_OK) << what << ": " << result.error;
        };
    expect_ok("list", [&](Result *result) {
        return lawn_durable_list(*operating, LAWN_DURABLE_UNKNOWN, 0, nothing,
                                 Result::keep, result);
    });
    expect_ok("dead", [&](Result *result) {
        return lawn_durable_list_dead(*operating, 0, nothing, Result::keep,
                                      result);
    });
    expect_ok("replay", [&](Result *result) {
        return lawn_durable_replay(*operating, "mortal", Result::keep, result);
    });
    expect_ok("drain", [&](Result *result) {
        return lawn_durable_drain(*operating, true, Result::keep, result);
    });
    expect_ok("drain --end", [&](Result *result) {
        return lawn_durable_drain(*operating, false, Result::keep, result);
    });
    expect_ok("acknowledge", [&](Result *result) {
        return lawn_durable_acknowledge(*operating, Result::keep, result);
    });
    expect_ok("get", [&](Result *result) {
        return lawn_durable_get(*operating, "first", Result::keep, result);
    });
    expect_ok("stop", [&](Result *result) {
        return lawn_durable_stop(*operating, "first", 0, Result::keep, result);
    });
    bool is_answered = false;
    EXPECT_EQ(lawn_durable_stats(
                  *operating,
                  [](void *arg, const lawn_durable_stats_t *stats) {
                      EXPECT_EQ(stats->status, LAWN_OK) << stats->error;
                      *static_cast<bool *>(arg) = true;
                  },
                  &is_answered),
              LAWN_OK);
    run_until([&] { return is_answered; });
    expect_well(operating);
    expect_no_refusal();
}

// What most servers let a user do who is no administrator.
TEST_F(DurableAcl, AUserWhoIsNoAdministratorCanWork)
{
    Client *const working =
        add_user("lawn-client", {"+@all", "-@admin", "-@dangerous"});
    client = working;
    EXPECT_EQ(start("a", 3600000000).state, LAWN_DURABLE_PENDING);
    const char *const warning = lawn_durable_warning(*working);
    ASSERT_NE(warning, nullptr);
    EXPECT_TRUE(contains(warning, "maxmemory-policy")) << warning;
}

TEST_F(DurableAcl, ThatItMayNotPublishIsTold)
{
    for (const Words &rules : {Words{"-publish"}, Words{"resetchannels"}}) {
        Client *const silent = add_user("lawn-client", rules);
        client = silent;
        EXPECT_EQ(start("a", 3600000000).state, LAWN_DURABLE_PENDING);
        const char *const warning = lawn_durable_warning(*silent);
        ASSERT_NE(warning, nullptr);
        EXPECT_TRUE(contains(warning, "{test:0}:wake: ")) << warning;
        EXPECT_TRUE(contains(warning, "may not publish")) << warning;
        EXPECT_EQ(lawn_durable_error(*silent), nullptr);
    }
}

TEST(DurableRole, ThatItIsNotKnownIsTold)
{
    RedisServer server({"--rename-command", "HELLO", "OTHER"});
    Client client(server.url());
    EXPECT_EQ(client.start("a").status, LAWN_OK);
    const char *const warning = lawn_durable_warning(client);
    ASSERT_NE(warning, nullptr);
    EXPECT_TRUE(contains(warning, "does not know HELLO")) << warning;
}

TEST_F(DurableAcl, AServerThatMayDropTimersIsTold)
{
    server->command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
    client = add_user("lawn-client");
    start("a", 3600000000);
    const char *warning = lawn_durable_warning(*client);
    ASSERT_NE(warning, nullptr);
    EXPECT_TRUE(contains(warning, "its maxmemory-policy is allkeys-lru"))
        << warning;
    // By INFO, too.
    client = add_user("lawn-client", {"-config|get", "+info"});
    start("a", 3600000000);
    warning = lawn_durable_warning(*client);
    ASSERT_NE(warning, nullptr);
    EXPECT_TRUE(contains(warning, "its maxmemory-policy is allkeys-lru"))
        << warning;
    for (const char *const policy : {"noeviction", "volatile-lru"}) {
        server->command({"CONFIG", "SET", "maxmemory-policy", policy});
        client = add_user("lawn-client");
        start("a", 3600000000);
        expect_well(client);
    }
}

TEST_F(DurableAcl, WhoWantsASafeStoreIsRefusedAnother)
{
    const auto wants_safety = [](lawn_durable_params_t *params) {
        params->require_safe_store = true;
    };
    const auto refusal = [&](const Words &rules) {
        client = add_user("lawn-client", rules, wants_safety);
        const Result result = client->start("a");
        EXPECT_EQ(result.status, LAWN_ERR_UNSUPPORTED);
        return result.error;
    };
    EXPECT_TRUE(contains(refusal({}), "keeps nothing on its disk"));
    server->command({"CONFIG", "SET", "save", "3600 1"});
    client = add_user("lawn-client", {}, wants_safety);
    EXPECT_EQ(start("a", 3600000000).state, LAWN_DURABLE_PENDING);
    EXPECT_TRUE(contains(refusal({"-config|get"}), "may not be asked"));
    server->command({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"});
    EXPECT_TRUE(contains(refusal({}), "allkeys-random"));
}

class DurableWatch : public Watched
{
protected:
    void set_policy(const char *policy)
    {
        server.command({"CONFIG", "SET", "maxmemory-policy", policy});
        let_time_pass();
    }
};

TEST_F(DurableWatch, ASettingThatChangesIsNoticed)
{
    open(false);
    EXPECT_EQ(lawn_durable_warning(client), nullptr);
    set_policy("allkeys-lru");
    poll_until([&] { return lawn_durable_warning(client) != nullptr; });
    set_policy("noeviction");
    poll_until([&] { return lawn_durable_warning(client) == nullptr; });
}

TEST_F(DurableWatch, AServerThatIsGoneIsForgotten)
{
    open(false);
    set_policy("allkeys-lru");
    poll_until([&] { return lawn_durable_warning(client) != nullptr; });
    server.kill();
    poll_until([&] { return lawn_durable_error(client) != nullptr; });
    EXPECT_EQ(lawn_durable_warning(client), nullptr);
}

TEST_F(DurableWatch, AStoreThatIsSafeNoMoreIsLeft)
{
    open(true);
    set_policy("allkeys-lru");
    poll_until([&] {
        const char *const error = lawn_durable_error(client);
        return error && contains(error, "no safe store: ");
    });
    set_policy("noeviction");
    poll_until([&] { return lawn_durable_error(client) == nullptr; });
}

} // namespace
