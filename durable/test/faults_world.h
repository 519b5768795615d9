// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A store, a pump, two consumers and a client that keeps the history of what it
// asks for and of what is delivered. Faults can be put into the store and into
// the consumers.

#ifndef LAWN_TEST_DURABLE_FAULTS_WORLD_H
#define LAWN_TEST_DURABLE_FAULTS_WORLD_H

#include "lawn-verify/judge.h"
#include "redis_server.h"

#include <lawn/durable.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace lawn_test
{

struct ConsumerFaults {
    bool answers_first = false; // and dies before it handles what it was given
    int64_t work_us = 0;        // until it answers
    uint64_t lease_us = 0;      // 0: the default
};

class FaultsWorld
{
public:
    explicit FaultsWorld(const ConsumerFaults &faults = ConsumerFaults());
    ~FaultsWorld();

    FaultsWorld(const FaultsWorld &) = delete;
    FaultsWorld &operator=(const FaultsWorld &) = delete;

    // Replaces a text of the functions of the store, which is there once.
    void replace(const std::string &from, const std::string &to);
    void command(const Words &words);

    // Starts a timer and returns the operation, or repeats a start. A timer
    // with the mark "r" is tried again twice.
    uint64_t start(const std::string &id, int64_t delay_us,
                   const char *mark = "", uint64_t operation = 0);
    // A periodic timer of an id of its own, which is returned.
    std::string start_periodic(int64_t every_us);
    void stop(const std::string &id);
    // The timer that was started or updated last.
    void update(const std::string &id, int64_t delay_us);

    void run(int64_t for_us);
    // Until nothing is pending or in flight; for a minute at most, and for
    // `faulty_us` if there is a fault.
    void settle();

    lawn_verify::Verdict verdict() const;

private:
    struct Seat {
        FaultsWorld *world = nullptr;
        lawn_durable_consumer_t *consumer = nullptr;
    };

    struct Work {
        int64_t ready_us;
        Seat *seat;
        const lawn_durable_delivery_t *delivery;
    };

    lawn_durable_t *open();
    void wait_for(const std::function<bool()> &is_done, int64_t most_us);
    bool is_empty();
    lawn_verify::Event &note(lawn_verify::EventKind kind, uint64_t operation,
                             const std::string &id, uint64_t generation,
                             int64_t due_us, const std::string &word);
    void deliver(Seat *seat, const lawn_durable_delivery_t *delivery);
    void finish(Seat *seat, const lawn_durable_delivery_t *delivery);
    void do_work();

    RedisServer server_;
    const ConsumerFaults faults_;
    bool is_faulty_;
    lawn_durable_t *durable_ = nullptr;
    lawn_durable_t *pump_client_ = nullptr;
    Seat seats_[2];
    std::deque<Work> work_;
    std::vector<lawn_verify::Event> events_;
    uint64_t operations_ = 0;
    uint64_t generation_ = 0;
    unsigned retries_ = 0;
};

} // namespace lawn_test

#endif
