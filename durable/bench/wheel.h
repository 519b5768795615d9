// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The usual design of a distributed timer, as durable/doc/durable.md describes
// it: a hashed wheel with a bucket for each second in a key-value store, a
// global clock that is advanced under an optimistic lock, whose winner alone
// fetches the second's bucket, a queue between it and the workers, and a sweep
// for what was missed. It is here to be compared with. It has no retries, since
// nothing fails here.
//
// A bucket is a hash of tasks by id. The first character of a task is its
// state: pending, or delivered to the queue. One that has succeeded is removed,
// which costs less than to keep its state. The queue is a list.
//
// A second's tasks are fetched when it is over, so that none fires early.

#ifndef LAWN_BENCH_DURABLE_WHEEL_H
#define LAWN_BENCH_DURABLE_WHEEL_H

#include "connection.h"

#include <cstdint>
#include <functional>
#include <string>

namespace known
{

constexpr int64_t second_us = 1000000;

// The time of day in microseconds.
int64_t now_us();

struct Task {
    std::string id;
    int64_t due_us;
    std::string payload;
};

// Each object below has a connection and is used by one thread.

class Adder
{
public:
    explicit Adder(const std::string &path) : connection_(path)
    {
    }

    // Goes out with the next flush().
    void add(const Task &task);
    // Until all are acknowledged; `each` is called for each one in turn.
    void flush(const std::function<void()> &each);

private:
    Connection connection_;
    size_t added_ = 0;
};

class Scheduler
{
public:
    Scheduler(const std::string &path, int64_t sweep_s)
        : connection_(path), sweep_s_(sweep_s)
    {
    }

    // Advances the global clock if it is time, and if nobody else does so now;
    // then fires. Returns when to come again.
    int64_t tick();

private:
    void fire(int64_t second, bool is_sweep);
    void publish(const std::string &bucket, const redisReply &fields,
                 int64_t before_us, bool is_sweep);

    Connection connection_;
    const int64_t sweep_s_;
};

class Worker
{
public:
    explicit Worker(const std::string &path) : connection_(path)
    {
    }

    // Waits for tasks, at most for a tenth of a second; calls `work` with each
    // one. Returns how many have then been recorded as succeeded.
    size_t take(const std::function<void(const Task &task)> &work);

private:
    Connection connection_;
};

} // namespace known

#endif
