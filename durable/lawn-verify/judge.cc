// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the judge hears, and the verdict; see judge.h. The rules are in
// judge_rules.cc.

#include "judge_internal.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lawn_verify
{

namespace
{

constexpr size_t max_examples = 20;

} // namespace

void Judge::hear_promise(const Event &event, uint64_t operation,
                         const Asked &asked)
{
    Generation &generation = timers_[event.id].generations[event.generation];
    if (!is_promised(generation)) {
        generation.promised_us = event.time_us;
        ++verdict_.acknowledged;
    } else if (generation.operation != operation) {
        object("mixed", event.id, event.generation,
               "the generation was given to two starts");
    }
    generation.operation = operation;
    generation.asked = asked;
    generation.due_us = event.due_us;
}

void Judge::hear_stop(const Event &event)
{
    Stop &stop = timers_[event.id].stops[event.operation];
    stop.asked_us = stop.asked_us == 0 ? event.time_us : stop.asked_us;
    stop.is_async = event.word == word_async;
}

void Judge::hear_answer(const Event &event)
{
    Generation &generation = timers_[event.id].generations[event.generation];
    if (event.kind == EventKind::answered) {
        if (event.word == "retry") {
            generation.retries.push_back(event.attempt);
        }
    } else if (event.word == "retry" && generation.retry_asked_us == 0) {
        generation.retry_asked_us = event.time_us;
    }
}

void Judge::hear_delivery(const Event &event)
{
    timers_[event.id].generations[event.generation].deliveries.push_back(
        {event.time_us, event.due_us, event.fired_us, event.attempt,
         event.operation});
    const auto start = starts_.find(event.operation);
    if (start == starts_.end() || start->second.id != event.id) {
        object("invented", event.id, event.generation,
               "nobody asked for what was delivered");
    } else {
        start->second.delivered.insert(event.generation);
    }
}

void Judge::hear(const Event &event)
{
    if (hear_periodic(event)) {
        return;
    }
    const Asked asked = {event.time_us, event.word == word_async};
    switch (event.kind) {
    case EventKind::start: {
        Start &start = starts_[event.operation];
        start.id = event.id;
        start.asked = asked;
        if (start.first_asked_us == 0) {
            start.first_asked_us = event.time_us;
        }
        break;
    }
    case EventKind::started: {
        Start &start = starts_[event.operation];
        if (start.generation != 0 && start.generation != event.generation) {
            object("doubled", event.id, event.generation,
                   "a repeated start was given another generation");
        }
        start.generation = event.generation;
        hear_promise(event, event.operation, start.asked);
        break;
    }
    case EventKind::update: {
        const Timer &timer = timers_[event.id];
        const auto found = timer.generations.find(event.generation);
        updates_[event.operation] = {
            found == timer.generations.end() ? 0 : found->second.operation,
            asked};
        break;
    }
    case EventKind::updated: {
        const Update &update = updates_[event.operation];
        hear_promise(event, update.start, update.asked);
        break;
    }
    case EventKind::stop:
        hear_stop(event);
        break;
    case EventKind::stopped: {
        Stop &stop = timers_[event.id].stops[event.operation];
        stop.answered_us = event.time_us;
        stop.generation = event.generation;
        stop.word = event.word;
        break;
    }
    case EventKind::unheard:
        if (starts_.count(event.operation) != 0) {
            starts_[event.operation].is_unheard = true;
        }
        break;
    case EventKind::refused:
        if (starts_.count(event.operation) != 0) {
            starts_[event.operation].is_refused = true;
        } else {
            timers_[event.id].stops.erase(event.operation);
        }
        break;
    case EventKind::deliver:
        hear_delivery(event);
        break;
    case EventKind::answer:
    case EventKind::answered:
        hear_answer(event);
        break;
    case EventKind::periodic: // was heard before all others
        break;
    case EventKind::fault:
        faults_.push_back(event);
        if (event.word == word_failover) {
            failovers_.push_back(event);
        }
        break;
    }
}

void Judge::object(const char *violation, const std::string &id,
                   uint64_t generation, const std::string &why)
{
    ++verdict_.violations[violation];
    if (verdict_.examples.size() < max_examples) {
        verdict_.examples.push_back(std::string(violation) + ": " + id +
                                    " generation " +
                                    std::to_string(generation) + ": " + why);
    }
}

Verdict Judge::verdict()
{
    verdict_.faults = faults_.size();
    judge_starts();
    for (const auto &[id, timer] : timers_) {
        judge_timer(id, timer);
    }
    for (const auto &[id, timer] : periodic_) {
        judge_periodic(id, timer);
    }
    if (verdict_.duplicates > faults_.size() * limits_.duplicates_per_fault) {
        verdict_.violations["duplicates"] = verdict_.duplicates;
        verdict_.examples.push_back(
            "duplicates: " + std::to_string(verdict_.duplicates) +
            ", more than " + std::to_string(faults_.size()) +
            " faults explain");
    }
    std::sort(verdict_.lateness_us.begin(), verdict_.lateness_us.end());
    return std::move(verdict_);
}

bool Verdict::is_good() const
{
    return violations.empty();
}

uint64_t Verdict::count(const std::string &violation) const
{
    const auto found = violations.find(violation);
    return found == violations.end() ? 0 : found->second;
}

int64_t Verdict::lateness(double per_cent) const
{
    if (lateness_us.empty()) {
        return 0;
    }
    const double last = static_cast<double>(lateness_us.size() - 1);
    return lateness_us[static_cast<size_t>(
        std::llround(last * per_cent / 100))];
}

Verdict judge(const std::vector<Event> &events, const Limits &limits)
{
    Judge judge(limits);
    // A timer may fire before its start is answered.
    for (const Event &event : events) {
        if (event.kind == EventKind::periodic) {
            judge.expect_periodic(event);
        }
    }
    for (const Event &event : events) {
        judge.hear(event);
    }
    return judge.verdict();
}

} // namespace lawn_verify
