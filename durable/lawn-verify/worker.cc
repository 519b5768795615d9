// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See worker.h.

#include "worker.h"

#include <algorithm>

namespace lawn_verify
{

namespace
{

// Shorter than most faults, so that requests time out now and then.
constexpr uint64_t request_timeout_us = 1500000;

lawn_durable_params_t worker_params()
{
    lawn_durable_params_t params = {};
    params.request_timeout_us = request_timeout_us;
    params.connect_timeout_us = request_timeout_us;
    return params;
}

} // namespace

Worker::Worker(const Settings &settings, Arguments &arguments)
    : process_(static_cast<unsigned>(
          arguments.take_number("--process", 1, UINT32_MAX).value_or(1))),
      random_(arguments.take_number("--seed", 0, INT64_MAX / 10).value_or(0))
{
    const auto path = arguments.take_text("--history");
    if (!path) {
        fail("--history is missing");
    }
    history_ = std::make_unique<HistoryWriter>(*path, process_);
    catch_signals();
    client_ = std::make_unique<Client>(settings, worker_params());
}

void Worker::at(int64_t time_us, std::function<void()> chore)
{
    chores_.emplace(time_us, std::move(chore));
}

void Worker::after(int64_t delay_us, std::function<void()> chore)
{
    at(monotonic_now() + delay_us, std::move(chore));
}

void Worker::run(const std::function<bool()> &goes_on)
{
    while (goes_on()) {
        const int64_t now_us = monotonic_now();
        while (!chores_.empty() && chores_.begin()->first <= now_us) {
            const auto chore = std::move(chores_.begin()->second);
            chores_.erase(chores_.begin());
            chore();
        }
        const int64_t next_us =
            chores_.empty() ? INT64_MAX : chores_.begin()->first;
        // `goes_on` may depend on the time, too.
        client_->run([&] { return !goes_on(); },
                     std::min(next_us, monotonic_now() + 100000));
    }
}

} // namespace lawn_verify
