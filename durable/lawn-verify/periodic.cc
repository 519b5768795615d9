// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Periodic timers of a run; see periodic.h.

#include "periodic.h"

namespace lawn_verify
{

namespace
{

constexpr unsigned count = 10;
constexpr uint64_t first_us = 500000;
constexpr uint64_t every_us = 100000;

std::string explain(const std::string &what,
                    const lawn_durable_result_t &result)
{
    return "cannot " + what + ": " + reason_of(result.status, result.error);
}

} // namespace

PeriodicTimers::PeriodicTimers(const Settings &settings, int durability,
                               HistoryWriter &history)
    : client_(settings), durability_(durability), history_(history)
{
    for (unsigned i = 1; i <= count; ++i) {
        timers_.push_back({this, "periodic-" + std::to_string(i)});
    }
}

std::string PeriodicTimers::wait()
{
    const bool is_done =
        client_.run([this] { return open_ == 0 || !wrong_.empty(); });
    return is_done ? wrong_ : "interrupted";
}

std::string PeriodicTimers::start()
{
    uint64_t token = 0;
    for (Timer &timer : timers_) {
        lawn_durable_start_t start = {};
        start.id = timer.id.c_str();
        start.delay_us = first_us;
        start.every_us = every_us;
        start.durability = durability_;
        start.token = ++token;
        start.until_known = true;
        start.max_attempts = 1000; // a fault may take many
        require_success(
            lawn_durable_start(client_.get(), &start, on_start, &timer),
            nullptr);
        ++open_;
    }
    return wait();
}

void PeriodicTimers::on_start(void *arg, const lawn_durable_result_t *result)
{
    const Timer &timer = *static_cast<Timer *>(arg);
    --timer.all->open_;
    if (result->status != LAWN_OK) {
        timer.all->wrong_ = explain("start " + timer.id, *result);
        return;
    }
    Event event;
    event.kind = EventKind::periodic;
    event.id = timer.id;
    event.generation = result->generation;
    event.due_us = result->due_us;
    event.fired_us = every_us;
    timer.all->history_.write(event);
}

void PeriodicTimers::send_stop(Timer *timer)
{
    Event event;
    event.kind = EventKind::stop;
    event.id = timer->id;
    event.word = word_sure;
    history_.write(event);
    require_success(lawn_durable_stop(client_.get(), timer->id.c_str(),
                                      durability_, on_stop, timer),
                    nullptr);
    ++open_;
}

std::string PeriodicTimers::stop()
{
    for (Timer &timer : timers_) {
        send_stop(&timer);
    }
    return wait();
}

void PeriodicTimers::on_stop(void *arg, const lawn_durable_result_t *result)
{
    Timer *const timer = static_cast<Timer *>(arg);
    --timer->all->open_;
    if (result->status == LAWN_ERR_IO || result->status == LAWN_ERR_TIMED_OUT) {
        timer->all->send_stop(timer);
    } else if (result->status != LAWN_OK ||
               result->state != LAWN_DURABLE_STOPPED) {
        timer->all->wrong_ = explain("stop " + timer->id, *result);
    } else {
        Event event;
        event.kind = EventKind::stopped;
        event.id = timer->id;
        event.generation = result->generation;
        event.word = "stopped";
        timer->all->history_.write(event);
    }
}

} // namespace lawn_verify
