// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the clients and consumers of `verify` have in common: a loop in which
// things are done at their times, and the history.

#ifndef LAWN_VERIFY_WORKER_H
#define LAWN_VERIFY_WORKER_H

#include "common.h"
#include "history.h"

#include <functional>
#include <map>
#include <memory>
#include <random>

namespace lawn_verify
{

// The group of the consumers of `verify`.
constexpr char verify_group[] = "verify";
// A delivery with this at the end of its payload wants a retry.
constexpr char wants_retry = 'r';

constexpr unsigned verify_in_flight = 64;
constexpr uint64_t verify_lease_us = 2000000;

class Worker
{
public:
    // Takes --history, --process and --seed.
    Worker(const Settings &settings, Arguments &arguments);

    void at(int64_t time_us, std::function<void()> chore);
    void after(int64_t delay_us, std::function<void()> chore);

    // Runs chores as long as `goes_on` says so.
    void run(const std::function<bool()> &goes_on);

    Client &client()
    {
        return *client_;
    }
    HistoryWriter &history()
    {
        return *history_;
    }
    unsigned process() const
    {
        return process_;
    }
    // A number from 0 to `below` - 1.
    uint64_t random(uint64_t below)
    {
        return random_() % below;
    }

private:
    const unsigned process_;
    std::mt19937_64 random_;
    std::unique_ptr<HistoryWriter> history_;
    std::multimap<int64_t, std::function<void()>> chores_;
    std::unique_ptr<Client> client_; // its callbacks use the others
};

} // namespace lawn_verify

#endif
