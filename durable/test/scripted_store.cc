// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A store on virtual time (scripted_store.h).

#include "scripted_store.h"

#include "redis_server.h"
#include "reply_tree.h"

#include <cstring>

namespace lawn_test
{

using lawn::durable::Channel;

namespace
{

constexpr long long most_attempts = 10;
constexpr long long long_idle_ms = 1000000000;

lawn_time_t virtual_time = 0;

lawn_time_t read_virtual()
{
    return virtual_time;
}

lawn_time_t ticks(uint64_t usec)
{
    return lawn_time_from_usec(static_cast<double>(usec));
}

Reply number(long long value)
{
    Reply reply;
    reply.type = Reply::number;
    reply.integer = value;
    return reply;
}

Reply text(std::string value)
{
    Reply reply;
    reply.type = Reply::text;
    reply.string = std::move(value);
    return reply;
}

Reply list(std::vector<Reply> elements = {})
{
    Reply reply;
    reply.type = Reply::list;
    reply.elements = std::move(elements);
    return reply;
}

std::string name_of(unsigned entry)
{
    return std::to_string(entry) + "-0";
}

// What fired, as in store/lawn.lua: a timer without options and payload.
Reply fields_of(const ScriptedStore::Entry &entry, unsigned number)
{
    const double fired = 1;
    const double generation = number;
    const double due = 1;
    std::string body(3 * sizeof(double), '\0');
    memcpy(&body[0], &fired, sizeof(double));
    memcpy(&body[sizeof(double)], &generation, sizeof(double));
    memcpy(&body[2 * sizeof(double)], &due, sizeof(double));
    body += std::string("\1\0\0", 3); // the attempt, and no options
    return list({text("i"), text(entry.id), text("b"), text(body)});
}

} // namespace

struct ScriptedStore::Reply : lawn_test::Reply {
    using lawn_test::Reply::Reply;
    Reply(lawn_test::Reply reply) : lawn_test::Reply(std::move(reply))
    {
    }
};

class ScriptedStore::Line final : public Channel
{
public:
    Line(ScriptedStore &store, Events events)
        : store_(store), events_(std::move(events)),
          blocked_(store.loop(), [this] { end_read(); })
    {
        store_.line_ = this;
        connect();
    }
    ~Line() override
    {
        store_.line_ = nullptr;
    }

    bool is_connected() const override
    {
        return is_connected_;
    }
    const std::string &error() const override
    {
        return error_;
    }

    void send(const Args &command, uint64_t, Done done) override
    {
        done_ = std::move(done);
        command_ = command;
        if (command[0] == "XPENDING") {
            reply(store_.pending(command.back()));
        } else {
            look();
        }
    }

    // Something may be there to read.
    void look()
    {
        if (!done_ || command_[0] != "XREADGROUP" || is_replying_) {
            return;
        }
        const lawn_test::Reply read = store_.read(command_);
        if (read.type == lawn_test::Reply::list) {
            reply(read);
        } else if (!blocked_.is_active()) {
            blocked_.start_after(5000000);
        }
    }

    void lose()
    {
        is_connected_ = false;
        blocked_.stop();
        if (const Done done = std::exchange(done_, nullptr)) {
            done({LAWN_ERR_IO, "cut", nullptr, 0});
        }
        events_.lost("cut");
        connect();
    }

private:
    void connect()
    {
        store_.loop().defer([this, alive = alive_] {
            if (*alive) {
                is_connected_ = true;
                events_.connected();
            }
        });
    }

    void end_read()
    {
        reply({});
    }

    void reply(const lawn_test::Reply &reply)
    {
        blocked_.stop();
        is_replying_ = true;
        store_.loop().defer([this, alive = alive_, reply] {
            if (!*alive || !done_) {
                return;
            }
            is_replying_ = false;
            const Tree tree(reply);
            const Done done = std::exchange(done_, nullptr);
            done({LAWN_OK, "", tree.get(), 0});
        });
    }

    struct Life {
        ~Life()
        {
            *is_alive = false;
        }
        std::shared_ptr<bool> is_alive = std::make_shared<bool>(true);
    };

    ScriptedStore &store_;
    const Events events_;
    const Life life_;
    const std::shared_ptr<bool> alive_ = life_.is_alive;
    bool is_connected_ = false;
    bool is_replying_ = false;
    const std::string error_;
    Args command_;
    Done done_;
    lawn::durable::Timer blocked_;
};

ScriptedStore::ScriptedStore() : durable_(new lawn_durable(read_virtual))
{
    virtual_time = ticks(1000000000);
    durable_->params.request_timeout_us = 5000000;
    EXPECT_EQ(durable_->loop.open(), LAWN_OK);
    durable_->link.reset(this);
}

void ScriptedStore::add(const std::string &id)
{
    entries_[next_++] = {id, "", 0, 0};
    if (line_) {
        line_->look();
    }
}

void ScriptedStore::run_for(uint64_t usec, uint64_t step_us)
{
    for (uint64_t i = 0; i < usec; i += step_us) {
        virtual_time += ticks(step_us);
        while (lawn_durable_poll(durable_) > 0) {
        }
    }
}

void ScriptedStore::cut()
{
    line_->lose();
}

void ScriptedStore::steal()
{
    for (auto &[number, entry] : entries_) {
        if (!entry.consumer.empty()) {
            entry.consumer = "another";
            entry.given = virtual_time;
            ++entry.deliveries;
        }
    }
}

void ScriptedStore::hold_answers(bool holds)
{
    holds_answers_ = holds;
    for (auto &[held, done] : std::exchange(held_, {})) {
        --requests_;
        call(std::move(held), std::move(done));
    }
}

void ScriptedStore::end_leases()
{
    for (auto &[number, entry] : entries_) {
        entry.given = 1;
    }
}

void ScriptedStore::call(lawn::durable::Call call, Done done)
{
    ++requests_;
    if (holds_answers_ && call.function == std::string("lawn_answer")) {
        held_.emplace_back(std::move(call), std::move(done));
        return;
    }
    loop().defer([this, call = std::move(call), done = std::move(done)] {
        --requests_;
        const Tree tree(carry_out(call.function, call.args));
        done({LAWN_OK, "", tree.get(), 0});
    });
}

void ScriptedStore::command(unsigned, const Args &command, Done done)
{
    ++requests_;
    loop().defer([this, command, done = std::move(done)] {
        --requests_;
        const Tree tree(pending(command.back()));
        done({LAWN_OK, "", tree.get(), 0});
    });
}

std::unique_ptr<Channel> ScriptedStore::open_channel(unsigned,
                                                     std::vector<std::string>,
                                                     Channel::Events events)
{
    return std::make_unique<Line>(*this, std::move(events));
}

ScriptedStore::Reply ScriptedStore::carry_out(const std::string &function,
                                              const Args &args)
{
    if (function == "lawn_join") {
        return text(args[0]);
    } else if (function == "lawn_take") {
        return take(args);
    } else if (function == "lawn_answer") {
        return answer(args);
    } else if (function == "lawn_extend") {
        return extend(args);
    } else if (function == "lawn_release") {
        return release(args);
    }
    ADD_FAILURE() << "the scripted store has no " << function;
    return {};
}

// XREADGROUP GROUP group consumer COUNT count ...
ScriptedStore::Reply ScriptedStore::read(const Args &command)
{
    std::vector<lawn_test::Reply> found;
    const size_t count = std::stoul(command[5]);
    for (auto &[number, entry] : entries_) {
        if (entry.consumer.empty() && found.size() < count) {
            entry.consumer = command[3];
            entry.given = virtual_time;
            entry.deliveries = 1;
            found.push_back(
                list({text(name_of(number)), fields_of(entry, number)}));
        }
    }
    if (found.empty()) {
        return {};
    }
    const std::string stream = key(0, lawn::durable::Key::out);
    return list({list({text(stream), list(std::move(found))})});
}

long long ScriptedStore::idle_ms(const Entry &entry) const
{
    return entry.given == 0
               ? long_idle_ms
               : static_cast<long long>(
                     lawn_time_to_nsec(virtual_time - entry.given) / 1000000);
}

ScriptedStore::Reply ScriptedStore::take(const Args &args)
{
    const long long lease_ms = args.size() > 4 ? 0 : std::stoll(args[2]) / 1000;
    const size_t most = std::stoul(args[3]);
    std::vector<lawn_test::Reply> taken;
    size_t looked_at = 0;
    for (auto at = entries_.begin();
         at != entries_.end() && looked_at < most;) {
        Entry &entry = at->second;
        const bool is_named =
            args.size() <= 4 || std::find(args.begin() + 4, args.end(),
                                          name_of(at->first)) != args.end();
        if (entry.consumer.empty() || !is_named || idle_ms(entry) < lease_ms) {
            ++at;
            continue;
        }
        ++looked_at;
        if (entry.deliveries >= most_attempts) {
            ++buried_;
            at = entries_.erase(at);
            continue;
        }
        entry.consumer = args[1];
        entry.given = virtual_time;
        ++entry.deliveries;
        taken.push_back(
            list({text(name_of(at->first)), number(entry.deliveries),
                  fields_of(entry, at->first)}));
        ++at;
    }
    return list({number(looked_at == most ? 1 : 0), list(std::move(taken))});
}

ScriptedStore::Reply ScriptedStore::answer(const Args &args)
{
    std::string results;
    for (size_t i = 1; i < args.size(); i += 4) {
        const size_t erased =
            entries_.erase(static_cast<unsigned>(std::stoul(args[i])));
        answered_ += static_cast<unsigned>(erased);
        results += erased ? '1' : '0';
    }
    return text(results);
}

ScriptedStore::Entry *ScriptedStore::own(const std::string &number,
                                         const std::string &consumer)
{
    const auto at = entries_.find(static_cast<unsigned>(std::stoul(number)));
    return at != entries_.end() && at->second.consumer == consumer ? &at->second
                                                                   : nullptr;
}

ScriptedStore::Reply ScriptedStore::extend(const Args &args)
{
    std::vector<lawn_test::Reply> names;
    for (size_t i = 2; i < args.size(); ++i) {
        if (Entry *const entry = own(args[i], args[1])) {
            entry->given = virtual_time;
            names.push_back(text(args[i]));
        }
    }
    return list(std::move(names));
}

ScriptedStore::Reply ScriptedStore::release(const Args &args)
{
    long long count = 0;
    for (size_t i = 2; i < args.size(); ++i) {
        Entry *const entry = own(args[i], args[1]);
        if (entry && entry->given != 0) {
            entry->given = 0;
            --entry->deliveries;
            ++count;
        }
    }
    return number(count);
}

ScriptedStore::Reply ScriptedStore::pending(const std::string &consumer) const
{
    std::vector<lawn_test::Reply> all;
    for (const auto &[number, entry] : entries_) {
        if (entry.consumer == consumer) {
            all.push_back(list({text(name_of(number)), text(consumer),
                                lawn_test::number(idle_ms(entry)),
                                lawn_test::number(entry.deliveries)}));
        }
    }
    return list(std::move(all));
}

} // namespace lawn_test
