// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See wheel.h.

#include "wheel.h"

#include <chrono>
#include <cstdlib>
#include <map>

namespace known
{

namespace
{

constexpr int64_t bucket_count = 100000000;
constexpr char page_size[] = "1000";  // tasks fetched at once
constexpr char take_size[] = "200";   // tasks taken from the queue at once
constexpr char take_wait_s[] = "0.1"; // the longest wait for one
constexpr char clock_key[] = "known:clock";
constexpr char queue_key[] = "known:queue";
constexpr char pending = 'p';
constexpr char delivered = 'd';

std::string bucket_of(int64_t second)
{
    return "known:bucket:" + std::to_string(second % bucket_count);
}

// A task in its bucket: state, due time, space, payload.
std::string text_of(char state, const std::string &due_and_payload)
{
    return state + due_and_payload;
}

bool is_nil(const redisReply &reply)
{
    return reply.type == REDIS_REPLY_NIL;
}

std::string string_of(const redisReply &reply)
{
    return std::string(reply.str, reply.len);
}

// Up to the next space; takes that, too.
std::string take_word(std::string *text)
{
    const size_t end = text->find(' ');
    if (end == std::string::npos) {
        fail("a task cannot be read: " + *text);
    }
    std::string word = text->substr(0, end);
    text->erase(0, end + 1);
    return word;
}

} // namespace

int64_t now_us()
{
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

void Adder::add(const Task &task)
{
    connection_.send(
        {"HSET", bucket_of(task.due_us / second_us), task.id,
         text_of(pending, std::to_string(task.due_us) + " " + task.payload)});
    ++added_;
}

void Adder::flush(const std::function<void()> &each)
{
    for (; added_ != 0; --added_) {
        connection_.receive();
        each();
    }
}

int64_t Scheduler::tick()
{
    const int64_t now = now_us();
    connection_.send({"WATCH", clock_key});
    connection_.send({"GET", clock_key});
    connection_.receive();
    const auto clock = connection_.receive();
    // The first one sets the clock to the present second.
    const int64_t second =
        is_nil(*clock) ? now / second_us - 1 : strtoll(clock->str, nullptr, 10);
    const int64_t over_us = (second + 1) * second_us;
    if (now < over_us) {
        connection_.call({"UNWATCH"});
        return over_us;
    }
    connection_.send({"MULTI"});
    connection_.send({"SET", clock_key, std::to_string(second + 1)});
    connection_.send({"EXEC"});
    connection_.receive();
    connection_.receive();
    if (is_nil(*connection_.receive())) {
        return now + second_us; // somebody else has won
    }
    fire(second, false);
    fire(second - sweep_s_, true);
    return over_us + second_us;
}

void Scheduler::fire(int64_t second, bool is_sweep)
{
    const std::string bucket = bucket_of(second);
    std::string cursor = "0";
    do {
        const auto page =
            connection_.call({"HSCAN", bucket, cursor, "COUNT", page_size});
        cursor = string_of(*page->element[0]);
        publish(bucket, *page->element[1], (second + 1) * second_us, is_sweep);
    } while (cursor != "0");
}

void Scheduler::publish(const std::string &bucket, const redisReply &fields,
                        int64_t before_us, bool is_sweep)
{
    Connection::Words messages = {"LPUSH", queue_key};
    Connection::Words states = {"HSET", bucket};
    for (size_t i = 0; i + 1 < fields.elements; i += 2) {
        const std::string id = string_of(*fields.element[i]);
        const std::string text = string_of(*fields.element[i + 1]);
        const std::string rest = text.substr(1);
        // The wheel may have to turn again for it; or it is in the queue.
        if (strtoll(rest.c_str(), nullptr, 10) >= before_us ||
            (text[0] != pending && !is_sweep)) {
            continue;
        }
        messages.push_back(bucket + " " + id + " " + rest);
        states.insert(states.end(), {id, text_of(delivered, rest)});
    }
    if (messages.size() == 2) {
        return;
    }
    // In one transaction: otherwise a quick worker could remove a task before
    // its state is written, and the sweep would fire it again.
    connection_.send({"MULTI"});
    connection_.send(messages);
    connection_.send(states);
    connection_.send({"EXEC"});
    for (int i = 0; i < 4; ++i) {
        connection_.receive();
    }
}

size_t Worker::take(const std::function<void(const Task &task)> &work)
{
    const auto taken = connection_.call(
        {"BLMPOP", take_wait_s, "1", queue_key, "RIGHT", "COUNT", take_size});
    if (is_nil(*taken)) {
        return 0;
    }
    std::map<std::string, Connection::Words> ended;
    const redisReply &messages = *taken->element[1];
    for (size_t i = 0; i < messages.elements; ++i) {
        std::string text = string_of(*messages.element[i]);
        const std::string bucket = take_word(&text);
        Task task;
        task.id = take_word(&text);
        task.due_us = strtoll(take_word(&text).c_str(), nullptr, 10);
        task.payload = text;
        work(task);
        Connection::Words &words = ended[bucket];
        if (words.empty()) {
            words = {"HDEL", bucket};
        }
        words.push_back(task.id);
    }
    for (const auto &[bucket, words] : ended) {
        connection_.send(words);
    }
    size_t count = 0;
    for (size_t i = 0; i < ended.size(); ++i) {
        count += static_cast<size_t>(connection_.receive()->integer);
    }
    return count;
}

} // namespace known
