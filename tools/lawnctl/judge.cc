// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The rules by which a history is judged; see judge.h. Times of processes and
// of the store are compared with each other: they are of one clock.

#include "judge.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

namespace lawnctl
{

namespace
{

constexpr size_t max_examples = 20;

struct Delivery {
    int64_t time_us;
    int64_t due_us;
    int64_t fired_us;
    unsigned attempt;
    uint64_t operation;
};

// What was promised of one generation, and how it was delivered.
struct Generation {
    uint64_t operation = 0; // the start; 0: no answer names the generation
    int64_t promised_us = 0;
    int64_t due_us = 0;
    std::vector<Delivery> deliveries;
    std::vector<unsigned> retries; // attempts whose retry was acknowledged
    int64_t retry_asked_us = 0;    // the first time; 0: never
};

struct Stop {
    int64_t asked_us = 0;
    int64_t answered_us = 0; // 0: nobody heard of it again
    uint64_t generation = 0;
    std::string word;
};

struct Timer {
    std::map<uint64_t, Generation> generations;
    std::map<uint64_t, Stop> stops; // by operation
};

struct Start {
    std::string id;
    uint64_t generation = 0; // 0: not acknowledged
    bool is_unheard = false;
    bool is_refused = false;
    std::set<uint64_t> delivered; // generations
};

bool is_promised(const Generation &generation)
{
    return generation.promised_us != 0;
}

int64_t first_fired(const Generation &generation)
{
    int64_t first = generation.deliveries.front().fired_us;
    for (const Delivery &delivery : generation.deliveries) {
        first = std::min(first, delivery.fired_us);
    }
    return first;
}

class Court
{
public:
    explicit Court(const Limits &limits) : limits_(limits)
    {
    }

    void hear(const Event &event);
    Verdict verdict();

private:
    void hear_promise(const Event &event, uint64_t operation);
    void hear_answer(const Event &event);
    void hear_delivery(const Event &event);

    void object(const char *violation, const std::string &id,
                uint64_t generation, const std::string &why);
    void judge_starts();
    void judge_timer(const std::string &id, const Timer &timer);
    void judge_deliveries(const std::string &id, uint64_t number,
                          const Generation &generation);
    void judge_attempts(const std::string &id, uint64_t number,
                        const Generation &generation);
    void judge_lateness(const std::string &id, uint64_t number,
                        const Generation &generation);
    void judge_end(const std::string &id, const Timer &timer, uint64_t number);
    void judge_stop(const std::string &id, const Timer &timer,
                    const Stop &stop);
    bool is_ended(const Timer &timer, uint64_t number) const;
    bool is_fault_near(int64_t from_us, int64_t to_us) const;

    const Limits limits_;
    std::unordered_map<std::string, Timer> timers_;
    std::unordered_map<uint64_t, Start> starts_;
    std::unordered_map<uint64_t, uint64_t> updates_; // start of an update
    std::vector<Event> faults_;
    Verdict verdict_;
};

void Court::hear_promise(const Event &event, uint64_t operation)
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
    generation.due_us = event.due_us;
}

void Court::hear_answer(const Event &event)
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

void Court::hear_delivery(const Event &event)
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

void Court::hear(const Event &event)
{
    switch (event.kind) {
    case EventKind::start:
        starts_[event.operation].id = event.id;
        break;
    case EventKind::started: {
        Start &start = starts_[event.operation];
        if (start.generation != 0 && start.generation != event.generation) {
            object("doubled", event.id, event.generation,
                   "a repeated start was given another generation");
        }
        start.generation = event.generation;
        hear_promise(event, event.operation);
        break;
    }
    case EventKind::update: {
        const Timer &timer = timers_[event.id];
        const auto found = timer.generations.find(event.generation);
        updates_[event.operation] =
            found == timer.generations.end() ? 0 : found->second.operation;
        break;
    }
    case EventKind::updated:
        hear_promise(event, updates_[event.operation]);
        break;
    case EventKind::stop: {
        Stop &stop = timers_[event.id].stops[event.operation];
        stop.asked_us = stop.asked_us == 0 ? event.time_us : stop.asked_us;
        break;
    }
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
    case EventKind::fault:
        faults_.push_back(event);
        break;
    }
}

void Court::object(const char *violation, const std::string &id,
                   uint64_t generation, const std::string &why)
{
    ++verdict_.violations[violation];
    if (verdict_.examples.size() < max_examples) {
        verdict_.examples.push_back(std::string(violation) + ": " + id +
                                    " generation " +
                                    std::to_string(generation) + ": " + why);
    }
}

bool Court::is_fault_near(int64_t from_us, int64_t to_us) const
{
    return std::any_of(faults_.begin(), faults_.end(), [&](const Event &fault) {
        return fault.time_us <= to_us &&
               fault.due_us + limits_.recovery_us >= from_us;
    });
}

// Whether nothing more has to come of a generation: a stop may have met it, or
// a later one has taken its place.
bool Court::is_ended(const Timer &timer, uint64_t number) const
{
    return timer.generations.rbegin()->first > number ||
           std::any_of(timer.stops.begin(), timer.stops.end(),
                       [number](const auto &each) {
                           const Stop &stop = each.second;
                           return stop.answered_us == 0 ||
                                  (stop.word == "stopped" &&
                                   stop.generation >= number);
                       });
}

void Court::judge_deliveries(const std::string &id, uint64_t number,
                             const Generation &generation)
{
    for (const Delivery &delivery : generation.deliveries) {
        if (delivery.fired_us < delivery.due_us ||
            delivery.time_us < delivery.due_us) {
            const int64_t early_us =
                delivery.due_us - std::min(delivery.fired_us, delivery.time_us);
            object("early", id, number,
                   "by " + std::to_string(early_us) + " us");
        }
        // A retry is due later than what was promised.
        const bool is_due_wrong =
            delivery.attempt <= 1 && delivery.due_us != generation.due_us;
        if (is_promised(generation) &&
            (is_due_wrong || delivery.operation != generation.operation)) {
            object("mixed", id, number, "not the timer that was promised");
        }
        verdict_.retried += delivery.attempt > 1 ? 1 : 0;
    }
}

void Court::judge_attempts(const std::string &id, uint64_t number,
                           const Generation &generation)
{
    std::map<unsigned, int64_t> fired; // by attempt
    for (const Delivery &delivery : generation.deliveries) {
        const auto [at, is_new] =
            fired.emplace(delivery.attempt, delivery.fired_us);
        if (is_new) {
            continue;
        }
        ++verdict_.duplicates;
        if (at->second != delivery.fired_us) {
            object("refired", id, number,
                   "attempt " + std::to_string(delivery.attempt) +
                       " fired again after " +
                       std::to_string(delivery.fired_us - at->second) + " us");
        }
    }
}

void Court::judge_lateness(const std::string &id, uint64_t number,
                           const Generation &generation)
{
    const int64_t due_us = generation.deliveries.front().due_us;
    const int64_t fired_us = first_fired(generation);
    if (generation.deliveries.front().attempt <= 1) {
        verdict_.lateness_us.push_back(fired_us - due_us);
        if (limits_.late_us != 0 && fired_us - due_us > limits_.late_us &&
            !is_fault_near(due_us, fired_us)) {
            object("late", id, number,
                   "by " + std::to_string(fired_us - due_us) +
                       " us, and no fault was near");
        }
    }
}

void Court::judge_end(const std::string &id, const Timer &timer,
                      uint64_t number)
{
    const Generation &generation = timer.generations.at(number);
    const std::vector<Delivery> &deliveries = generation.deliveries;
    const bool is_over = is_ended(timer, number);
    if (is_promised(generation) && deliveries.empty() && !is_over) {
        object("lost", id, number, "acknowledged, and never delivered");
    }
    if (is_promised(generation) && deliveries.empty() &&
        timer.generations.rbegin()->first > number) {
        ++verdict_.replaced;
    }
    for (const unsigned attempt : generation.retries) {
        if (!is_over && std::none_of(deliveries.begin(), deliveries.end(),
                                     [attempt](const Delivery &delivery) {
                                         return delivery.attempt > attempt;
                                     })) {
            object("retry", id, number,
                   "none after attempt " + std::to_string(attempt));
        }
    }
    int64_t replaced_us = INT64_MAX;
    for (const auto &[later, replacement] : timer.generations) {
        if (later > number && is_promised(replacement)) {
            replaced_us = std::min(replaced_us, replacement.promised_us);
        }
    }
    for (const Delivery &delivery : deliveries) {
        if (delivery.fired_us > replaced_us) {
            object("stale", id, number, "fired after it was replaced");
        }
    }
}

void Court::judge_stop(const std::string &id, const Timer &timer,
                       const Stop &stop)
{
    if (stop.word == "stopped") {
        ++verdict_.stopped;
        const auto found = timer.generations.find(stop.generation);
        if (found == timer.generations.end()) {
            return;
        }
        // What was pending had not fired, unless a handler gave it back.
        const Generation &generation = found->second;
        const bool is_given_back = generation.retry_asked_us != 0 &&
                                   generation.retry_asked_us < stop.answered_us;
        for (const Delivery &delivery : generation.deliveries) {
            if (!is_given_back || delivery.fired_us > stop.answered_us) {
                object("stopped", id, stop.generation,
                       "delivered, and a stop had answered `stopped`");
            }
        }
    }
    bool is_known = false;
    bool is_due = false;
    for (const auto &[number, generation] : timer.generations) {
        is_known = is_known || (is_promised(generation) &&
                                generation.promised_us < stop.asked_us);
        is_due = is_due || !is_promised(generation) ||
                 generation.due_us <= stop.answered_us;
    }
    if (stop.word == "unknown" && is_known) {
        object("denied", id, stop.generation,
               "`unknown` of what was acknowledged");
    }
    if (stop.word == "late" && is_known && !is_due) {
        object("denied", id, stop.generation,
               "`too late` of what was not due yet");
    }
}

void Court::judge_timer(const std::string &id, const Timer &timer)
{
    for (const auto &[number, generation] : timer.generations) {
        if (!generation.deliveries.empty()) {
            ++verdict_.delivered;
            judge_deliveries(id, number, generation);
            judge_attempts(id, number, generation);
            judge_lateness(id, number, generation);
        }
        judge_end(id, timer, number);
    }
    for (const auto &each : timer.stops) {
        judge_stop(id, timer, each.second);
    }
}

void Court::judge_starts()
{
    for (const auto &[operation, start] : starts_) {
        if (start.generation == 0 && !start.is_refused) {
            ++verdict_.unheard;
        }
        if (start.delivered.size() > 1) {
            object("doubled", start.id, *start.delivered.rbegin(),
                   "one start was delivered with two generations");
        }
        if (start.is_refused && !start.is_unheard && !start.delivered.empty()) {
            object("invented", start.id, *start.delivered.begin(),
                   "the start was refused");
        }
    }
}

Verdict Court::verdict()
{
    verdict_.faults = faults_.size();
    judge_starts();
    for (const auto &[id, timer] : timers_) {
        judge_timer(id, timer);
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

} // namespace

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
    Court court(limits);
    for (const Event &event : events) {
        court.hear(event);
    }
    return court.verdict();
}

} // namespace lawnctl
