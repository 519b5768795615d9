// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The pumps and consumers of `lawnctl load`: threads, each with a client of its
// own.

#ifndef LAWN_LAWNCTL_LOAD_THREADS_H
#define LAWN_LAWNCTL_LOAD_THREADS_H

#include "client.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

namespace lawnctl
{

// The ids of this process are this and a number.
std::string load_prefix();

class LoadPump
{
public:
    // coalesce_us: 0 for the library's default.
    LoadPump(const Settings &settings, uint64_t coalesce_us);
    ~LoadPump();

private:
    void run();

    Client client_;
    uint64_t coalesce_us_;
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

class LoadConsumer
{
public:
    // A delivery of a timer of this process, by the store's clock.
    struct Delivery {
        uint64_t number; // of the timer
        int64_t due_us;
        int64_t fired_us;
        int64_t handled_us; // when this consumer was given it
    };

    explicit LoadConsumer(const Settings &settings);
    ~LoadConsumer();

    // Joins the thread.
    void end();

    uint64_t answered() const
    {
        return answered_;
    }

    std::vector<Delivery> deliveries() const;

private:
    void deliver(const lawn_durable_delivery_t *delivery);
    void run();

    const std::string prefix_ = load_prefix();
    Client client_;
    lawn_durable_consumer_t *consumer_ = nullptr;
    mutable std::mutex mutex_;
    std::vector<Delivery> deliveries_;
    std::atomic<uint64_t> answered_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

} // namespace lawnctl

#endif
