// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See faults_world.h.

#include "faults_world.h"

#include "src/script.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace lawn_test
{

namespace
{

using lawn_verify::Event;
using lawn_verify::EventKind;

constexpr int64_t ms = 1000;
constexpr int64_t minute_us = 60 * 1000 * ms;
constexpr int64_t faulty_us = 2000 * ms;
constexpr unsigned most_retries = 2;

int64_t now_us()
{
    using namespace std::chrono;
    return duration_cast<microseconds>(steady_clock::now().time_since_epoch())
        .count();
}

std::string payload_of(const lawn_durable_delivery_t *delivery)
{
    return std::string(static_cast<const char *>(delivery->payload),
                       delivery->payload_size);
}

} // namespace

FaultsWorld::FaultsWorld(const ConsumerFaults &faults)
    : faults_(faults),
      is_faulty_(faults.answers_first ||
                 (faults.lease_us != 0 &&
                  faults.lease_us < static_cast<uint64_t>(faults.work_us)))
{
    durable_ = open();
    pump_client_ = open();
    const lawn_durable_pump_params_t params = {};
    lawn_durable_pump_t *pump = nullptr;
    EXPECT_EQ(lawn_durable_pump_start(pump_client_, &params, &pump), LAWN_OK);
    for (Seat &seat : seats_) {
        seat.world = this;
        lawn_durable_consume_t consume = {};
        consume.group = "faults";
        consume.lease_us = faults.lease_us;
        const auto on_delivery = [](void *arg,
                                    const lawn_durable_delivery_t *delivery) {
            auto *to = static_cast<Seat *>(arg);
            to->world->deliver(to, delivery);
        };
        EXPECT_EQ(lawn_durable_consume(durable_, &consume, on_delivery, &seat,
                                       &seat.consumer),
                  LAWN_OK);
    }
    const auto is_open = [this] {
        return lawn_durable_shards(durable_) != 0 &&
               lawn_durable_shards(pump_client_) != 0;
    };
    wait_for(is_open, minute_us);
    EXPECT_TRUE(is_open());
}

FaultsWorld::~FaultsWorld()
{
    lawn_durable_close(pump_client_);
    lawn_durable_close(durable_);
}

lawn_durable_t *FaultsWorld::open()
{
    const std::string url = server_.url();
    lawn_durable_params_t params = {};
    params.url = url.c_str();
    params.name_space = "faults";
    params.shards = 1;
    lawn_durable_t *durable = nullptr;
    EXPECT_EQ(lawn_durable_open(&params, &durable), LAWN_OK)
        << lawn_durable_open_error();
    return durable;
}

void FaultsWorld::replace(const std::string &from, const std::string &to)
{
    std::string text = lawn::durable::script();
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    ASSERT_EQ(text.find(from, at + 1), std::string::npos) << from;
    text.replace(at, from.size(), to);
    command({"FUNCTION", "LOAD", "REPLACE", text});
    is_faulty_ = true;
}

void FaultsWorld::command(const Words &words)
{
    const Reply reply = server_.command(words);
    EXPECT_FALSE(reply.is_error()) << to_string(reply);
}

Event &FaultsWorld::note(EventKind kind, uint64_t operation,
                         const std::string &id, uint64_t generation,
                         int64_t due_us, const std::string &word)
{
    Event event;
    event.time_us = lawn_verify::history_now();
    event.kind = kind;
    event.operation = operation;
    event.id = id;
    event.generation = generation;
    event.due_us = due_us;
    event.word = word;
    events_.push_back(event);
    return events_.back();
}

uint64_t FaultsWorld::start(const std::string &id, int64_t delay_us,
                            const char *mark, uint64_t operation)
{
    operation = operation == 0 ? ++operations_ : operation;
    const std::string payload = std::to_string(operation) + mark;
    note(EventKind::start, operation, id, 0, 0, "");
    lawn_durable_start_t start = {};
    start.id = id.c_str();
    start.delay_us = static_cast<uint64_t>(delay_us);
    start.payload = payload.data();
    start.payload_size = payload.size();
    start.token = operation;
    lawn_durable_result_t result = {};
    EXPECT_EQ(lawn_durable_start_sync(durable_, &start, &result), LAWN_OK);
    note(EventKind::started, operation, id, result.generation, result.due_us,
         "");
    generation_ = result.generation;
    return operation;
}

std::string FaultsWorld::start_periodic(int64_t every_us)
{
    const std::string id = "periodic-" + std::to_string(++operations_);
    lawn_durable_start_t start = {};
    start.id = id.c_str();
    start.payload = "-";
    start.payload_size = 1;
    start.delay_us = static_cast<uint64_t>(every_us);
    start.every_us = static_cast<uint64_t>(every_us);
    lawn_durable_result_t result = {};
    EXPECT_EQ(lawn_durable_start_sync(durable_, &start, &result), LAWN_OK);
    note(EventKind::periodic, 0, id, result.generation, result.due_us, "")
        .fired_us = every_us;
    return id;
}

void FaultsWorld::stop(const std::string &id)
{
    const uint64_t operation = ++operations_;
    note(EventKind::stop, operation, id, 0, 0, "");
    lawn_durable_result_t result = {};
    EXPECT_EQ(lawn_durable_stop_sync(durable_, id.c_str(), LAWN_DURABLE_ASYNC,
                                     &result),
              LAWN_OK);
    note(EventKind::stopped, operation, id, result.generation, 0,
         result.state == LAWN_DURABLE_STOPPED   ? "stopped"
         : result.state == LAWN_DURABLE_UNKNOWN ? "unknown"
                                                : "late");
}

void FaultsWorld::update(const std::string &id, int64_t delay_us)
{
    const uint64_t operation = ++operations_;
    note(EventKind::update, operation, id, generation_, 0, "");
    lawn_durable_update_t update = {};
    update.id = id.c_str();
    update.generation = generation_;
    update.delay_us = static_cast<uint64_t>(delay_us);
    lawn_durable_result_t result = {};
    EXPECT_EQ(lawn_durable_update_sync(durable_, &update, &result), LAWN_OK);
    note(EventKind::updated, operation, id, result.generation, result.due_us,
         "");
    generation_ = result.generation;
}

void FaultsWorld::wait_for(const std::function<bool()> &is_done,
                           int64_t most_us)
{
    const int64_t until_us = now_us() + most_us;
    while (!is_done() && now_us() < until_us) {
        lawn_durable_poll(pump_client_);
        lawn_durable_wait(durable_, ms);
        do_work();
    }
}

void FaultsWorld::run(int64_t for_us)
{
    wait_for([] { return false; }, for_us);
}

bool FaultsWorld::is_empty()
{
    struct Answer {
        bool is_there = false;
        bool is_empty = false;
    } answer;
    const auto on_stats = [](void *arg, const lawn_durable_stats_t *stats) {
        auto *to = static_cast<Answer *>(arg);
        to->is_there = true;
        to->is_empty = stats->status == LAWN_OK && stats->pending == 0 &&
                       stats->in_flight == 0;
    };
    if (lawn_durable_stats(durable_, on_stats, &answer) != LAWN_OK) {
        return false;
    }
    // It is answered in any case: with an error when it has taken too long.
    while (!answer.is_there) {
        wait_for([&] { return answer.is_there; }, minute_us);
    }
    return answer.is_empty && work_.empty();
}

void FaultsWorld::settle()
{
    const int64_t until_us = now_us() + (is_faulty_ ? faulty_us : minute_us);
    while (!is_empty() && now_us() < until_us) {
        run(10 * ms);
    }
}

lawn_verify::Verdict FaultsWorld::verdict() const
{
    return lawn_verify::judge(events_, lawn_verify::Limits());
}

void FaultsWorld::deliver(Seat *seat, const lawn_durable_delivery_t *delivery)
{
    if (faults_.answers_first) {
        // It dies now, and nobody handles what it was given.
        finish(seat, delivery);
        return;
    }
    Event &event = note(
        EventKind::deliver, strtoull(payload_of(delivery).c_str(), nullptr, 10),
        delivery->id, delivery->generation, delivery->due_us, "");
    event.fired_us = delivery->fired_us;
    event.attempt = delivery->attempt;
    if (faults_.work_us == 0) {
        finish(seat, delivery);
    } else {
        work_.push_back({now_us() + faults_.work_us, seat, delivery});
    }
}

void FaultsWorld::finish(Seat *seat, const lawn_durable_delivery_t *delivery)
{
    const bool is_retry =
        payload_of(delivery).back() == 'r' && retries_ < most_retries;
    if (is_retry) {
        ++retries_;
        for (const EventKind kind : {EventKind::answer, EventKind::answered}) {
            note(kind, 0, delivery->id, delivery->generation, 0, "retry")
                .attempt = delivery->attempt;
        }
    }
    const lawn_durable_answer_t answer =
        is_retry ? LAWN_DURABLE_RETRY : LAWN_DURABLE_DONE;
    EXPECT_EQ(lawn_durable_answer(seat->consumer, delivery, answer, 10 * ms,
                                  nullptr, nullptr, nullptr),
              LAWN_OK);
}

void FaultsWorld::do_work()
{
    while (!work_.empty() && work_.front().ready_us <= now_us()) {
        const Work work = work_.front();
        work_.pop_front();
        finish(work.seat, work.delivery);
    }
}

} // namespace lawn_test
