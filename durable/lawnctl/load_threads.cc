// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See load_threads.h.

#include "load_threads.h"

#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace lawnctl
{

namespace
{

constexpr char id_prefix[] = "load-";
constexpr uint64_t wait_us = 100000; // the longest, to notice the end

} // namespace

std::string load_prefix()
{
    return id_prefix + std::to_string(getpid()) + "-";
}

LoadPump::LoadPump(const Settings &settings, uint64_t coalesce_us)
    : client_(settings), coalesce_us_(coalesce_us), thread_([this] { run(); })
{
}

LoadPump::~LoadPump()
{
    ends_ = true;
    thread_.join();
}

void LoadPump::run()
{
    lawn_durable_pump_t *pump = nullptr;
    lawn_durable_pump_params_t params = {};
    params.coalesce_us = coalesce_us_;
    require_success(lawn_durable_pump_start(client_.get(), &params, &pump),
                    nullptr);
    while (!ends_) {
        lawn_durable_wait(client_.get(), wait_us);
    }
    lawn_durable_pump_close(pump);
}

LoadConsumer::LoadConsumer(const Settings &settings)
    : client_(settings), thread_([this] { run(); })
{
}

LoadConsumer::~LoadConsumer()
{
    end();
}

void LoadConsumer::end()
{
    ends_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
}

std::vector<LoadConsumer::Delivery> LoadConsumer::deliveries() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return deliveries_;
}

void LoadConsumer::deliver(const lawn_durable_delivery_t *delivery)
{
    // What somebody else has started is left to others.
    if (strncmp(delivery->id, id_prefix, strlen(id_prefix)) != 0) {
        return;
    }
    // What an earlier load has left is answered, and not counted.
    const bool is_own =
        strncmp(delivery->id, prefix_.c_str(), prefix_.size()) == 0;
    if (is_own) {
        const std::lock_guard<std::mutex> lock(mutex_);
        deliveries_.push_back(
            {strtoull(delivery->id + prefix_.size(), nullptr, 10),
             delivery->due_us, delivery->fired_us,
             lawn_durable_now(client_.get())});
    }
    const lawn_durable_fn_t count = [](void *arg,
                                       const lawn_durable_result_t *result) {
        if (result->status == LAWN_OK) {
            ++static_cast<LoadConsumer *>(arg)->answered_;
        }
    };
    require_success(lawn_durable_answer(consumer_, delivery, LAWN_DURABLE_DONE,
                                        0, nullptr, is_own ? count : nullptr,
                                        this),
                    nullptr);
}

void LoadConsumer::run()
{
    lawn_durable_consume_t consume = {};
    consume.group = "load";
    consume.max_in_flight = 4096;
    require_success(lawn_durable_consume(
                        client_.get(), &consume,
                        [](void *arg, const lawn_durable_delivery_t *delivery) {
                            static_cast<LoadConsumer *>(arg)->deliver(delivery);
                        },
                        this, &consumer_),
                    nullptr);
    while (!ends_) {
        lawn_durable_wait(client_.get(), wait_us);
    }
    lawn_durable_consumer_close(consumer_);
}

} // namespace lawnctl
