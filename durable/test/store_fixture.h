// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of the store on a server of the test's own, for one shard. A
// reply that cannot be decoded fails the test.

#ifndef LAWN_TEST_DURABLE_STORE_FIXTURE_H
#define LAWN_TEST_DURABLE_STORE_FIXTURE_H

#include "redis_server.h"
#include "reply_tree.h"

#include "src/codec.h"
#include "src/script.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace lawn_test
{

using namespace lawn::durable;

constexpr int pending = 1;
constexpr int delivered = 2;
constexpr int success = 3;
constexpr int fail = 4;
constexpr int stopped = 5;
constexpr int dead = 6;

constexpr int64_t second = 1000000; // us

constexpr const char *group = "group";
constexpr const char *consumer = "consumer";

// What was read from a stream; owns its texts.
struct Delivery {
    std::string entry;
    std::string id;
    std::string identity;
    std::string payload;
    std::string target;
    std::string reason;
    std::string error;
    uint64_t generation = 0;
    int64_t due_us = 0;
    int64_t fired_us = 0;
    unsigned attempt = 0;
    unsigned deliveries = 0;
};

constexpr const char *list_keys = "due body meta ended0 ended1 cron";

class Store : public testing::Test
{
public:
    explicit Store(Words options = {}, Words environment = {})
        : server(std::move(options), std::move(environment))
    {
        load();
        // Bytes are counted where there is a bound.
        prepare("0", "1000000000");
    }

    // For a program that knows when the shard was born, or 0.
    Prepared prepare(const std::string &max_pending,
                     const std::string &max_bytes,
                     const std::string &keep_us = "3600000000",
                     const std::string &keep_count = "100000",
                     int64_t known = 0)
    {
        return decoded<Prepared>(
            call("lawn_prepare", "due body meta",
                 {max_pending, max_bytes, keep_us, keep_count, "1",
                  std::to_string(known)}));
    }

    void load()
    {
        const Reply loaded = server.command(
            {"FUNCTION", "LOAD", "REPLACE", lawn::durable::script()});
        ASSERT_EQ(loaded.string, "lawn") << to_string(loaded);
    }

    // Whether its first argument is the number of shards.
    static bool names_shards(const std::string &function)
    {
        const std::set<std::string> all = {"lawn_start",  "lawn_stop",
                                           "lawn_update", "lawn_get",
                                           "lawn_replay", "lawn_fire"};
        return all.count(function) != 0;
    }

    // The call of a function. `keys` are the names of keys of the shard, which
    // is the only one.
    static Words call_words(const std::string &function,
                            const std::string &keys, Words args)
    {
        if (names_shards(function)) {
            args.insert(args.begin(), "1");
        }
        Words names;
        std::istringstream stream(keys);
        for (std::string name; stream >> name;) {
            names.push_back(key(name));
        }
        Words words = {"FCALL", function, std::to_string(names.size())};
        words.insert(words.end(), names.begin(), names.end());
        words.insert(words.end(), args.begin(), args.end());
        return words;
    }

    Reply call(const std::string &function, const std::string &keys,
               const Words &args)
    {
        return server.command(call_words(function, keys, args));
    }

    // What is remembered of the shard goes after a second, or when a call
    // changes it, such as this one, which changes nothing else.
    void forget_shard()
    {
        EXPECT_EQ(call("lawn_drain", "meta", {"0"}).integer, 1);
    }

    static std::string key(const std::string &name)
    {
        return "{test:0}:" + name;
    }

    template <class Decoded> Decoded decoded(const Reply &reply)
    {
        Decoded all = {};
        const Tree tree(reply);
        EXPECT_TRUE(decode(tree.get(), &all)) << to_string(reply);
        return all;
    }

    static Words start_args(const std::string &id, const std::string &when,
                            const std::string &payload = "",
                            const Options &options = {})
    {
        return {id, when, encode_tail(options, payload)};
    }

    // One start: its reply, or the error of the whole call.
    Reply start_reply(const Words &args,
                      const std::string &keys = "due body meta ended0 ended1")
    {
        const Reply reply = call("lawn_start", keys, args);
        EXPECT_TRUE(reply.is_error() || reply.size() == 1) << to_string(reply);
        return reply.size() == 1 ? reply[0] : reply;
    }

    Started start(const std::string &id, const std::string &when,
                  const std::string &payload = "", const Options &options = {})
    {
        return decoded<Started>(
            start_reply(start_args(id, when, payload, options)));
    }

    // Timers whose IDs are the numbers from 0 on; due already, if not told.
    void start_many(int count, const std::string &when = "")
    {
        const std::string time = when.empty() ? ago(1) : when;
        std::vector<Words> all;
        for (int i = 0; i < count; ++i) {
            all.push_back(call_words("lawn_start",
                                     "due body meta ended0 ended1",
                                     start_args(std::to_string(i), time)));
        }
        for (const Reply &reply : server.pipeline(all)) {
            EXPECT_FALSE(reply.is_error()) << to_string(reply);
        }
    }

    Stopped stop(const std::string &id)
    {
        return decoded<Stopped>(
            call("lawn_stop", "due body meta ended0 ended1", {id}));
    }

    Reply get_reply(const std::string &id)
    {
        return call("lawn_get", "due body meta ended0 ended1", {id});
    }

    int state(const std::string &id)
    {
        return decoded<Got>(get_reply(id)).state;
    }

    Reply fire_reply(unsigned limit = 500, int64_t horizon_us = 0,
                     unsigned count = 64)
    {
        return call("lawn_fire", "due body meta out push ended0 ended1 cron",
                    {std::to_string(limit), std::to_string(horizon_us),
                     std::to_string(count)});
    }

    Fired fire(unsigned limit = 500, int64_t horizon_us = 0,
               unsigned count = 64)
    {
        return decoded<Fired>(fire_reply(limit, horizon_us, count));
    }

    void join(const std::string &name = group,
              const std::string &stream = "out")
    {
        const Reply first = call("lawn_join", "meta " + stream, {name});
        ASSERT_EQ(first.type, Reply::text) << to_string(first);
    }

    // All entries that the group was not given yet.
    std::vector<Delivery> read(const std::string &name = group,
                               const std::string &stream = "out")
    {
        const Reply reply =
            server.command({"XREADGROUP", "GROUP", name, consumer, "STREAMS",
                            key(stream), ">"});
        EXPECT_FALSE(reply.is_error()) << to_string(reply);
        return reply.size() ? deliveries_in(reply[0][1])
                            : std::vector<Delivery>();
    }

    // All that is in a stream.
    std::vector<Delivery> entries(const std::string &stream)
    {
        return deliveries_in(server.command({"XRANGE", key(stream), "-", "+"}));
    }

    Reply take_reply(int64_t lease_us, const std::string &name = group)
    {
        return call("lawn_take", "due body meta out ended0 ended1 dead",
                    {name, "other", std::to_string(lease_us), "100"});
    }

    std::vector<Delivery> take(int64_t lease_us,
                               const std::string &name = group)
    {
        return taken_in(take_reply(lease_us, name));
    }

    static std::vector<Delivery> taken_in(const Reply &reply)
    {
        EXPECT_EQ(reply.size(), 2U) << to_string(reply);
        return deliveries_in(reply[1]);
    }

    static std::vector<Delivery> deliveries_in(const Reply &reply)
    {
        EXPECT_EQ(reply.type, Reply::list) << to_string(reply);
        std::vector<Delivery> all;
        for (const Reply &element : reply.elements) {
            const Tree tree(element);
            Entry e;
            EXPECT_TRUE(decode_entry(tree.get(), &e)) << to_string(element);
            all.push_back(
                {std::string(e.entry), std::string(e.id),
                 std::string(e.body.identity), std::string(e.body.payload),
                 std::string(e.body.options.target), std::string(e.reason),
                 std::string(e.error), e.body.generation, e.body.due_us,
                 e.fired_us, e.body.attempt, e.deliveries});
        }
        return all;
    }

    Reply answer_reply(const std::vector<std::pair<Delivery, std::string>> &all,
                       const std::string &name = group,
                       const std::string &stream = "out")
    {
        Words args = {name};
        for (const auto &one : all) {
            args.insert(args.end(), {one.first.entry, one.first.id,
                                     one.first.identity, one.second});
        }
        return call("lawn_answer",
                    "due body meta " + stream + " ended0 ended1 dead", args);
    }

    std::vector<Answered>
    results(const std::vector<std::pair<Delivery, std::string>> &all,
            const std::string &name = group, const std::string &stream = "out")
    {
        const Reply reply = answer_reply(all, name, stream);
        const Tree tree(reply);
        Results results;
        EXPECT_TRUE(decode(tree.get(), &results)) << to_string(reply);
        std::vector<Answered> list;
        for (size_t i = 0; i < results.size(); ++i) {
            list.push_back(results[i]);
        }
        return list;
    }

    Answered answer(const Delivery &delivery, const std::string &verdict,
                    const std::string &name = group,
                    const std::string &stream = "out")
    {
        return results({{delivery, verdict}}, name, stream).at(0);
    }

    // Reads what the group was not given yet, and has done it. Returns how many
    // that were.
    size_t read_and_answer(const std::string &name = group)
    {
        std::vector<std::pair<Delivery, std::string>> answers;
        for (const Delivery &d : read(name)) {
            answers.emplace_back(d, done_verdict());
        }
        EXPECT_FALSE(answer_reply(answers, name).is_error());
        return answers.size();
    }

    std::map<std::string, int64_t> stats()
    {
        std::map<std::string, int64_t> all;
        const Reply reply =
            call("lawn_stats", "due body meta out push dead cron", {});
        EXPECT_EQ(reply.type, Reply::list) << to_string(reply);
        for (size_t i = 0; i + 1 < reply.size(); i += 2) {
            all[reply[i].string] = reply[i + 1].integer;
        }
        return all;
    }

    // The server's clock, as TIME tells it.
    int64_t now()
    {
        const Reply time = server.command({"TIME"});
        return std::stoll(time[0].string) * 1000000 +
               std::stoll(time[1].string);
    }

    std::string ago(int64_t us)
    {
        return std::to_string(now() - us);
    }

    RedisServer server;
};

constexpr int64_t hour = 3600000000;

// Has a group that reads, and answers.
class AnsweredStore : public Store
{
public:
    explicit AnsweredStore(const Words &environment = {})
        : Store({}, environment)
    {
        join();
    }

    Delivery deliver(const std::string &id, const Options &options = {},
                     const std::string &payload = "payload")
    {
        start(id, ago(1), payload, options);
        EXPECT_EQ(fire().fired(), 1U);
        return read().at(0);
    }

    long long unanswered()
    {
        return server.command({"XPENDING", key("out"), group})[0].integer;
    }

    static Options attempts(unsigned most)
    {
        Options options;
        options.max_attempts = static_cast<uint16_t>(most);
        return options;
    }
};

// A server whose clock is off by what a file says.
class SteppedStore : public Store
{
public:
    SteppedStore() : Store({}, clock())
    {
    }
    ~SteppedStore() override
    {
        unlink(file().c_str());
    }

    // The environment of the server.
    static Words clock()
    {
        return {"LD_PRELOAD=" + std::string(getenv("LAWN_STEPPING_CLOCK")),
                "LAWN_CLOCK_FILE=" + file()};
    }

    static std::string file()
    {
        return testing::TempDir() + "/lawn-clock-" + std::to_string(getpid());
    }

    static void step(const std::string &seconds)
    {
        std::ofstream(file()) << seconds << "\n";
    }
};

} // namespace lawn_test

#endif
