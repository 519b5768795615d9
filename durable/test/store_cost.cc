// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a timer costs the store: processor time of redis-server for a whole life
// (start, fire, read, answer) in batches of some sizes, with an append-only
// file, and memory while it is pending. `least` is what a life takes without
// the functions: the same writes as bare commands of Redis, which look at
// nothing and decide nothing.
//
//     LAWN_REDIS_SERVER=redis-server build/durable/test/durable_store_cost

#include "redis_server.h"

#include "src/codec.h"
#include "src/script.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace
{

using namespace lawn_test;

const char *const payload = "0123456789abcdef0123456789abcdef";
constexpr int64_t bare_due = 1000000000000000;

std::string key(const char *name)
{
    return std::string("{cost:0}:") + name;
}

Words call(const char *function, const std::vector<const char *> &keys,
           const Words &args)
{
    Words words = {"FCALL", function, std::to_string(keys.size())};
    for (const char *const name : keys) {
        words.push_back(key(name));
    }
    words.insert(words.end(), args.begin(), args.end());
    return words;
}

// The value of a line of INFO.
double info(RedisServer *server, const char *section, const char *name)
{
    const std::string text = server->command({"INFO", section}).string;
    const size_t at = text.find(std::string("\n") + name + ":");
    return at == std::string::npos
               ? 0
               : strtod(text.c_str() + at + strlen(name) + 2, nullptr);
}

double cpu_us(RedisServer *server)
{
    return 1e6 * (info(server, "cpu", "used_cpu_user") +
                  info(server, "cpu", "used_cpu_sys"));
}

// An empty shard of a namespace that has no other.
void begin_anew(RedisServer *server)
{
    server->command({"FLUSHALL"});
    server->command(call("lawn_prepare", {"due", "body", "meta"},
                         {"0", "0", "3600000000", "100000", "1", "0"}));
}

void expect(bool condition, const Reply &reply)
{
    if (!condition) {
        fprintf(stderr, "store_cost: unexpected answer: %s\n",
                to_string(reply).c_str());
        exit(1);
    }
}

Words starts(unsigned first, unsigned count, const char *when)
{
    const std::string tail = lawn::durable::encode_tail({}, payload);
    Words args = {"1"};
    for (unsigned i = 0; i < count; ++i) {
        args.insert(args.end(),
                    {"session-" + std::to_string(first + i), when, tail});
    }
    return call("lawn_start", {"due", "body", "meta", "ended0", "ended1"},
                args);
}

// Batches of one size, one step after another: the processor time of each step.
class Lives
{
public:
    Lives(RedisServer *server, unsigned timers, unsigned batch)
        : server_(server), timers_(timers / batch * batch), batch_(batch)
    {
    }

    // Prints what each step takes, and `least`.
    void run(double least)
    {
        const double empty = step([this](unsigned) {
            expect(server_->command({"PING"}).type == Reply::status, {});
        });
        const double start = step([this](unsigned first) { start_all(first); });
        usleep(50000); // until the last is due
        const double fire = step([this](unsigned) { fire_all(); });
        const double read = step([this](unsigned) { read_all(); });
        const double answer = step([this](unsigned) { answer_all(); });
        printf("%5u %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f %8.1f\n", batch_, start,
               fire, read, answer, start + fire + read + answer, empty, least);
    }

    double least()
    {
        double sum = step([this](unsigned first) { bare_start(first); });
        sum += step([this](unsigned first) { bare_fire(first); });
        sum += step([this](unsigned) { bare_read(); });
        return sum + step([this](unsigned first) { bare_answer(first); });
    }

private:
    template <class Step> double step(Step run_step)
    {
        const double before = cpu_us(server_);
        for (unsigned first = 0; first < timers_; first += batch_) {
            run_step(first);
        }
        return (cpu_us(server_) - before) / timers_;
    }

    std::string id(unsigned first, unsigned i) const
    {
        return "session-" + std::to_string(first + i);
    }

    void bare(const std::vector<Words> &commands)
    {
        for (const Reply &reply : server_->pipeline(commands)) {
            expect(reply.type != Reply::none && !reply.is_error(), reply);
        }
    }

    void bare_start(unsigned first)
    {
        Words add = {"ZADD", key("due")};
        Words set = {"HSET", key("body")};
        for (unsigned i = 0; i < batch_; ++i) {
            add.insert(add.end(),
                       {std::to_string(bare_due + first + i), id(first, i)});
            set.insert(set.end(), {id(first, i), bare_body()});
        }
        bare({add, set});
    }

    void bare_fire(unsigned first)
    {
        const std::string count = std::to_string(batch_);
        Words get = {"HMGET", key("body")};
        std::vector<Words> commands = {{"ZRANGE", key("due"), "-inf", "+inf",
                                        "BYSCORE", "LIMIT", "0", count}};
        for (unsigned i = 0; i < batch_; ++i) {
            get.push_back(id(first, i));
            commands.push_back({"XADD", key("out"), "*", "i", id(first, i), "b",
                                "12345678" + bare_body()});
        }
        commands.push_back(get);
        commands.push_back(
            {"ZREMRANGEBYRANK", key("due"), "0", std::to_string(batch_ - 1)});
        bare(commands);
    }

    void bare_read()
    {
        const Reply read = server_->command({"XREADGROUP", "GROUP", "g", "c",
                                             "COUNT", std::to_string(batch_),
                                             "STREAMS", key("out"), ">"});
        expect(read.size() == 1 && read[0][1].size() == batch_, read);
        Words ack = {"XACK", key("out"), "g"};
        for (const Reply &entry : read[0][1].elements) {
            ack.push_back(entry[0].string);
        }
        answers_.push_back(ack);
    }

    void bare_answer(unsigned first)
    {
        Words get = {"HMGET", key("body")};
        Words set = {"HSET", key("ended0")};
        Words remove = {"HDEL", key("body")};
        for (unsigned i = 0; i < batch_; ++i) {
            get.push_back(id(first, i));
            set.insert(set.end(), {id(first, i), bare_body().substr(0, 27)});
            remove.push_back(id(first, i));
        }
        bare({get, answers_.front(), set, remove});
        answers_.pop_front();
    }

    static std::string bare_body()
    {
        return std::string(lawn::durable::identity_size, 'x') +
               lawn::durable::encode_tail({}, payload);
    }

    void start_all(unsigned first)
    {
        const Reply started = server_->command(starts(first, batch_, "+20000"));
        expect(started.size() == batch_ && started[0].type == Reply::text,
               started);
    }

    void fire_all()
    {
        const Reply fired = server_->command(call(
            "lawn_fire",
            {"due", "body", "meta", "out", "push", "ended0", "ended1", "cron"},
            {"1", std::to_string(batch_), "0", "1"}));
        // Their due times are behind a head of 14 bytes.
        expect(fired.type == Reply::text &&
                   fired.string.size() >= 14 + 8 * batch_,
               fired);
    }

    void read_all()
    {
        const Reply read = server_->command({"XREADGROUP", "GROUP", "g", "c",
                                             "COUNT", std::to_string(batch_),
                                             "STREAMS", key("out"), ">"});
        expect(read.size() == 1 && read[0][1].size() == batch_, read);
        Words args = {"g"};
        for (const Reply &entry : read[0][1].elements) {
            args.insert(args.end(), {entry[0].string, entry[1][1].string,
                                     entry[1][3].string.substr(
                                         8, lawn::durable::identity_size),
                                     lawn::durable::done_verdict()});
        }
        answers_.push_back(call(
            "lawn_answer",
            {"due", "body", "meta", "out", "ended0", "ended1", "dead"}, args));
    }

    void answer_all()
    {
        const Reply answered = server_->command(answers_.front());
        answers_.pop_front();
        expect(answered.string == std::string(batch_, '1'), answered);
    }

    RedisServer *server_;
    unsigned timers_;
    unsigned batch_;
    std::deque<Words> answers_;
};

} // namespace

int main(int argc, char **argv)
{
    const unsigned timers =
        argc > 1 ? static_cast<unsigned>(strtoul(argv[1], nullptr, 10))
                 : 100000;
    RedisServer server(
        {"--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"});
    server.command({"FUNCTION", "LOAD", lawn::durable::script()});
    puts(
        "Redis CPU per timer, us; ping is one PING per batch, and least is all "
        "without the functions\n"
        "batch    start     fire     read   answer      all     ping    least");
    for (const unsigned batch : {1U, 5U, 20U, 100U}) {
        server.command({"FLUSHALL"});
        server.command({"XGROUP", "CREATE", key("out"), "g", "0", "MKSTREAM"});
        const double least = Lives(&server, timers, batch).least();
        begin_anew(&server);
        server.command(call("lawn_join", {"meta", "out"}, {"g"}));
        Lives(&server, timers, batch).run(least);
    }

    begin_anew(&server);
    const double empty = info(&server, "memory", "used_memory");
    for (unsigned i = 0; i < timers; i += 1000) {
        server.command(starts(i, 1000, "+1000000000"));
    }
    printf("memory: %.0f bytes per pending timer with a payload of 32 bytes\n",
           (info(&server, "memory", "used_memory") - empty) / timers);
    return 0;
}
