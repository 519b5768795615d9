// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A model of store/*.lua (seeded_model.h).

#include "seeded_model.h"

#include "src/script.h"

#include <algorithm>
#include <cstring>

namespace lawn_test
{

using namespace resp;

namespace
{

constexpr int64_t usec_per_msec = 1000;
constexpr unsigned most_attempts = 10;
constexpr size_t head_size = 18;
constexpr long long long_idle_ms = 1000000000;
constexpr int success = 3;
constexpr int failure = 4;
constexpr int stopped = 5;
constexpr int dead = 6;

template <class Value> void pack(std::string *to, Value value)
{
    char bytes[sizeof(value)];
    memcpy(bytes, &value, sizeof(value));
    to->append(bytes, sizeof(bytes));
}

std::string head_of(uint64_t generation, int64_t due_us, unsigned attempt)
{
    std::string head;
    pack(&head, static_cast<double>(generation));
    pack(&head, static_cast<double>(due_us));
    head += static_cast<char>(attempt & 255);
    head += static_cast<char>(attempt >> 8);
    return head;
}

unsigned attempt_of(std::string_view head)
{
    return static_cast<unsigned char>(head[16]) +
           256U * static_cast<unsigned char>(head[17]);
}

uint64_t token_of(std::string_view tail)
{
    uint64_t token = 0;
    if ((tail[0] & 1) != 0) {
        memcpy(&token, tail.data() + 1, sizeof(token));
    }
    return token;
}

} // namespace

uint64_t SeededModel::generation_of(std::string_view head)
{
    double value = 0;
    memcpy(&value, head.data(), sizeof(value));
    return static_cast<uint64_t>(value);
}

void SeededModel::rename(Body *body, uint64_t generation)
{
    body->head = head_of(generation, body->due_us, attempt_of(body->head));
}

size_t SeededModel::timers() const
{
    size_t count = 0;
    for (const Shard &shard : shards_) {
        count += shard.bodies.size() + shard.sought.size();
    }
    return count;
}

size_t SeededModel::entries() const
{
    size_t count = 0;
    for (const Shard &shard : shards_) {
        count += shard.stream.size();
    }
    return count;
}

const SeededModel::Start *SeededModel::start_of(uint64_t token) const
{
    const auto found = starts_.find(token);
    return found == starts_.end() ? nullptr : &found->second;
}

// Of a key {lawn:SHARD}:name.
size_t SeededModel::index_of(const std::string &key)
{
    const size_t colon = key.find(':');
    return static_cast<size_t>(
        integer(std::string_view(key).substr(colon + 1)));
}

std::string SeededModel::call(const std::string &function,
                              const std::string &key, const Words &args)
{
    Shard *const shard = key.empty() ? nullptr : &shards_.at(index_of(key));
    if (function == "lawn_version") {
        return number(lawn::durable::script_version);
    } else if (function == "lawn_open") {
        return list({number(static_cast<int64_t>(shards_.size())), number(0),
                     number(0), number(3600000000), number(100000), bulk("")});
    } else if (function == "lawn_prepare") {
        return list({number(1), number(0)});
    } else if (function == "lawn_look") {
        return number(0);
    } else if (function == "lawn_start") {
        return start(shard, args);
    } else if (function == "lawn_stop") {
        return stop(shard, args[1]);
    } else if (function == "lawn_update") {
        return update(shard, args);
    } else if (function == "lawn_fire") {
        return fire(shard, args);
    } else if (function == "lawn_answer") {
        return answer(shard, args);
    } else if (function == "lawn_take") {
        return take(shard, args);
    } else if (function == "lawn_extend") {
        return extend(shard, args);
    } else if (function == "lawn_release") {
        return release(shard, args);
    } else if (function == "lawn_cron") {
        return cron(shard, args);
    } else if (function == "lawn_renew") {
        return renew(shard, args);
    } else if (function == "lawn_join") {
        return bulk(args.back());
    } else if (function == "lawn_beat") {
        return beat(args);
    }
    return "-ERR Function not found\r\n";
}

// pump, stay, alive
std::string SeededModel::beat(const Words &args)
{
    pumps_[args[0]] = owner_.time_us();
    if (args[1] == "0") {
        pumps_.erase(args[0]);
    }
    std::vector<std::string> names;
    for (const auto &[name, time] : pumps_) {
        if (owner_.time_us() - time < integer(args[2])) {
            names.push_back(bulk(name));
        }
    }
    return list(names);
}

uint64_t SeededModel::write()
{
    ++writes_;
    if (writes_through) {
        make_safe(writes_, disk);
    }
    return writes_;
}

uint64_t SeededModel::stop_of(const std::string &id) const
{
    const auto found = stops_.find(id);
    return found == stops_.end() ? 0 : found->second;
}

std::string SeededModel::start(Shard *shard, const Words &args)
{
    std::vector<std::string> replies;
    for (size_t i = 1; i + 2 < args.size(); i += 3) {
        replies.push_back(start_one(shard, args[i], args[i + 1], args[i + 2]));
    }
    return list(replies);
}

std::string SeededModel::start_one(Shard *shard, const std::string &id,
                                   const std::string &when,
                                   const std::string &tail)
{
    const uint64_t token = token_of(tail);
    const auto known = shard->bodies.find(id);
    const auto ended = shard->ends.find(id);
    const bool is_known = known != shard->bodies.end();
    const bool is_repeated =
        is_known ? known->second.token == token
                 : ended != shard->ends.end() && ended->second.token == token;
    int state = 1;
    if (is_repeated) {
        state =
            is_known ? known->second.is_pending ? 1 : 2 : ended->second.state;
    } else {
        const int64_t due = when[0] == '+'
                                ? owner_.time_us() + integer(&when[1])
                                : integer(when);
        const uint64_t generation = ++generation_;
        Body *const body = &shard->bodies[id];
        *body = {head_of(generation, due, 1), tail, token, due, "", true};
        starts_[token] = {generation, due, write()};
        wake(shard, due);
    }
    const Start &first = starts_.at(token);
    std::string reply;
    pack(&reply, static_cast<double>(first.generation));
    pack(&reply, static_cast<double>(first.due_us));
    pack(&reply, static_cast<double>(owner_.time_us()));
    reply += static_cast<char>(is_repeated);
    reply += static_cast<char>(state);
    return bulk(reply);
}

std::string SeededModel::stop(Shard *shard, const std::string &id)
{
    const auto known = shard->bodies.find(id);
    if (known == shard->bodies.end()) {
        const auto ended = shard->ends.find(id);
        return ended == shard->ends.end()
                   ? list({number(0), number(0)})
                   : list({number(ended->second.state),
                           number(static_cast<int64_t>(
                               generation_of(ended->second.head)))});
    }
    const auto generation =
        static_cast<int64_t>(generation_of(known->second.head));
    if (!known->second.is_pending) {
        return list({number(2), number(generation)});
    }
    finish(shard, id, stopped);
    stops_[id] = write();
    return list({number(stopped), number(generation)});
}

void SeededModel::finish(Shard *shard, const std::string &id, int state)
{
    const auto found = shard->bodies.find(id);
    shard->ends[id] = {state, found->second.head, found->second.token};
    shard->bodies.erase(found);
}

// shards, limit, horizon, count
std::string SeededModel::fire(Shard *shard, const Words &args)
{
    const int64_t now = owner_.time_us();
    std::string fired;
    std::vector<int64_t> dues;
    for (auto &[id, body] : shard->bodies) {
        if (!body.is_pending) {
            continue;
        }
        if (body.due_us > now) {
            dues.push_back(body.due_us);
            continue;
        }
        Entry entry;
        entry.id = id;
        pack(&entry.body, static_cast<double>(now));
        entry.body += body.head + body.tail;
        shard->stream[next_entry_++] = entry;
        body.is_pending = false;
        pack(&fired, static_cast<double>(body.due_us));
    }
    std::sort(dues.begin(), dues.end());
    shard->wake_us = dues.empty() ? INT64_MAX : dues[0];
    std::string times;
    size_t count = 0;
    for (const int64_t due : dues) {
        if (count == 0 || (due <= now + integer(args[2]) &&
                           count < size_t(integer(args[3])))) {
            pack(&times, static_cast<double>(due));
            ++count;
        }
    }
    std::string reply;
    pack(&reply, static_cast<double>(now));
    pack(&reply, static_cast<uint32_t>(shard->sought.size() + shard->gone));
    reply += '\0'; // there is never more
    reply += static_cast<char>(count);
    return bulk(reply + times + fired);
}

void SeededModel::wake(Shard *shard, int64_t due_us)
{
    if (due_us >= shard->wake_us) {
        return;
    }
    shard->wake_us = due_us;
    const std::string channel =
        "{lawn:" + std::to_string(shard - shards_.data()) + "}:wake";
    owner_.publish(
        list({bulk("message"), bulk(channel), bulk(std::to_string(due_us))}));
}

std::string SeededModel::answer(Shard *shard, const Words &args)
{
    std::string results;
    for (size_t i = 1; i + 3 < args.size(); i += 4) {
        results +=
            static_cast<char>('0' + answer_one(shard, args[i], args[i + 1],
                                               args[i + 2], args[i + 3]));
    }
    return bulk(results);
}

int SeededModel::answer_one(Shard *shard, const std::string &entry,
                            const std::string &id, const std::string &identity,
                            const std::string &verdict)
{
    shard->stream.erase(static_cast<unsigned>(integer(entry)));
    const auto found = shard->bodies.find(id);
    if (found == shard->bodies.end() || found->second.head != identity ||
        found->second.is_pending) {
        return 0;
    }
    if (verdict[0] == 'd' || verdict[0] == 'f') {
        finish(shard, id, verdict[0] == 'd' ? success : failure);
        return 1;
    }
    const size_t space = verdict.find(' ');
    const unsigned tried = static_cast<unsigned>(
        integer(std::string_view(verdict).substr(space + 1)));
    Body &body = found->second;
    const unsigned attempt =
        attempt_of(body.head) + tried - (verdict[0] == 'w' ? 1 : 0);
    if (attempt > most_attempts) {
        finish(shard, id, dead);
        return 2;
    }
    body.due_us = owner_.time_us() +
                  integer(std::string_view(verdict).substr(1, space - 1));
    body.head = head_of(generation_of(body.head), body.due_us, attempt);
    body.is_pending = true;
    wake(shard, body.due_us);
    return 1;
}

long long SeededModel::idle_ms(const Entry &entry) const
{
    return entry.given_us == 0
               ? long_idle_ms
               : (owner_.time_us() - entry.given_us) / usec_per_msec;
}

// group, consumer, lease, count, entries
std::string SeededModel::take(Shard *shard, const Words &args)
{
    const long long lease_ms =
        args.size() > 4 ? 0 : integer(args[2]) / usec_per_msec;
    const auto most = static_cast<size_t>(integer(args[3]));
    std::vector<std::string> taken;
    size_t looked_at = 0;
    std::vector<unsigned> buried;
    for (auto &[name, entry] : shard->stream) {
        const std::string full = std::to_string(name) + "-0";
        const bool is_meant = args.size() > 4
                                  ? entry.consumer == args[1] &&
                                        std::find(args.begin() + 4, args.end(),
                                                  full) != args.end()
                                  : idle_ms(entry) >= lease_ms;
        if (entry.consumer.empty() || !is_meant || looked_at == most) {
            continue;
        }
        ++looked_at;
        const std::string_view head =
            std::string_view(entry.body).substr(sizeof(double), head_size);
        if (attempt_of(head) + entry.deliveries > most_attempts) {
            buried.push_back(name);
            continue;
        }
        entry.consumer = args[1];
        entry.given_us = owner_.time_us();
        ++entry.deliveries;
        taken.push_back(list(
            {bulk(full), number(entry.deliveries),
             list({bulk("i"), bulk(entry.id), bulk("b"), bulk(entry.body)})}));
    }
    for (const unsigned name : buried) {
        bury(shard, name);
    }
    return list({number(looked_at == most ? 1 : 0), list(taken)});
}

// What was delivered too often.
void SeededModel::bury(Shard *shard, unsigned name)
{
    const Entry entry = shard->stream.at(name);
    shard->stream.erase(name);
    const auto found = shard->bodies.find(entry.id);
    if (found != shard->bodies.end() && !found->second.is_pending &&
        entry.body.compare(sizeof(double), head_size, found->second.head) ==
            0) {
        finish(shard, entry.id, dead);
    }
}

SeededModel::Entry *SeededModel::own(Shard *shard, const std::string &number,
                                     const std::string &consumer)
{
    const auto at = shard->stream.find(static_cast<unsigned>(integer(number)));
    return at != shard->stream.end() && at->second.consumer == consumer
               ? &at->second
               : nullptr;
}

std::string SeededModel::extend(Shard *shard, const Words &args)
{
    std::vector<std::string> names;
    for (size_t i = 2; i < args.size(); ++i) {
        if (Entry *const entry = own(shard, args[i], args[1])) {
            entry->given_us = owner_.time_us();
            names.push_back(bulk(args[i]));
        }
    }
    return list(names);
}

std::string SeededModel::release(Shard *shard, const Words &args)
{
    int64_t count = 0;
    for (size_t i = 2; i < args.size(); ++i) {
        Entry *const entry = own(shard, args[i], args[1]);
        count += entry != nullptr;
        if (entry && entry->given_us != 0) {
            entry->given_us = 0;
            --entry->deliveries;
        }
    }
    return number(count);
}

std::string SeededModel::pending(const std::string &key,
                                 const std::string &consumer) const
{
    const Shard &shard = shards_.at(index_of(key));
    std::vector<std::string> all;
    for (const auto &[name, entry] : shard.stream) {
        if (entry.consumer == consumer) {
            all.push_back(
                list({bulk(std::to_string(name) + "-0"), bulk(consumer),
                      number(idle_ms(entry)), number(entry.deliveries)}));
        }
    }
    return list(all);
}

// XREADGROUP GROUP group consumer COUNT count [BLOCK ms] STREAMS key .. > ..:
// "" if there is nothing.
std::string SeededModel::read(const Words &words)
{
    const auto streams = std::find(words.begin(), words.end(), "STREAMS");
    const ptrdiff_t keys = (words.end() - streams) / 2;
    std::vector<std::string> found;
    for (auto key = streams + 1; key != streams + 1 + keys; ++key) {
        const std::string entries =
            read_shard(&shards_.at(index_of(*key)), words);
        if (!entries.empty()) {
            found.push_back(list({bulk(*key), entries}));
        }
    }
    return found.empty() ? "" : list(found);
}

std::string SeededModel::read_shard(Shard *shard, const Words &words)
{
    const auto most = static_cast<size_t>(integer(words[5]));
    std::vector<std::string> found;
    for (auto &[name, entry] : shard->stream) {
        if (!entry.consumer.empty() || found.size() >= most) {
            continue;
        }
        entry.consumer = words[3];
        entry.given_us = owner_.time_us();
        entry.deliveries = 1;
        found.push_back(list(
            {bulk(std::to_string(name) + "-0"),
             list({bulk("i"), bulk(entry.id), bulk("b"), bulk(entry.body)})}));
    }
    return found.empty() ? "" : list(found);
}

} // namespace lawn_test
