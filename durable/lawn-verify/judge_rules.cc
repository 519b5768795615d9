// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The rules by which a history is judged; see judge.h. Times of processes and
// of the store are compared with each other: they are of one clock.

#include "judge_internal.h"

#include <algorithm>
#include <utility>

namespace lawn_verify
{

namespace
{

int64_t first_fired(const Generation &generation)
{
    int64_t first = generation.deliveries.front().fired_us;
    for (const Delivery &delivery : generation.deliveries) {
        first = std::min(first, delivery.fired_us);
    }
    return first;
}

} // namespace

bool Judge::is_fault_near(int64_t from_us, int64_t to_us) const
{
    return std::any_of(faults_.begin(), faults_.end(), [&](const Event &fault) {
        return fault.time_us <= to_us &&
               fault.due_us + limits_.recovery_us >= from_us;
    });
}

bool Judge::is_undone(int64_t from_us, int64_t to_us) const
{
    return std::any_of(failovers_.begin(), failovers_.end(),
                       [&](const Event &failover) {
                           return from_us <= failover.fired_us &&
                                  failover.time_us - limits_.lag_us <= to_us;
                       });
}

// Whatever its durability, nobody was promised one that nobody heard of. That
// it has fired says when it was there.
bool Judge::may_be_forgotten(const Generation &generation) const
{
    if (is_promised(generation)) {
        return generation.asked.is_async &&
               is_undone(generation.asked.time_us, generation.promised_us);
    }
    return !generation.deliveries.empty() &&
           is_undone(first_fired(generation), first_fired(generation));
}

// Whether nothing more has to come of a generation: a stop may have met it, or
// a later one has taken its place.
bool Judge::is_ended(const Timer &timer, uint64_t number) const
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

void Judge::judge_deliveries(const std::string &id, uint64_t number,
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
        // A retry is due later than what was promised. A repeated start that
        // finds the timer waiting for its retry tells that time.
        const bool is_told_of_retry =
            generation.retry_asked_us != 0 &&
            generation.retry_asked_us < generation.promised_us;
        const bool is_due_wrong = delivery.attempt <= 1 && !is_told_of_retry &&
                                  delivery.due_us != generation.due_us;
        if (is_promised(generation) &&
            (is_due_wrong || delivery.operation != generation.operation)) {
            object("mixed", id, number, "not the timer that was promised");
        }
        verdict_.retried += delivery.attempt > 1 ? 1 : 0;
    }
}

void Judge::judge_attempts(const std::string &id, uint64_t number,
                           const Generation &generation)
{
    std::map<unsigned, const Delivery *> last; // by attempt
    for (const Delivery &delivery : generation.deliveries) {
        const Delivery *&before = last[delivery.attempt];
        if (before == nullptr) {
            before = &delivery;
            continue;
        }
        const int64_t fired_us = std::exchange(before, &delivery)->fired_us;
        if (is_undone(std::min(fired_us, delivery.fired_us),
                      delivery.time_us)) {
            ++verdict_.rolled_back;
            continue;
        }
        ++verdict_.duplicates;
        if (fired_us != delivery.fired_us) {
            object("refired", id, number,
                   "attempt " + std::to_string(delivery.attempt) +
                       " fired again after " +
                       std::to_string(delivery.fired_us - fired_us) + " us");
        }
    }
}

void Judge::judge_lateness(const std::string &id, uint64_t number,
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

void Judge::judge_end(const std::string &id, const Timer &timer,
                      uint64_t number)
{
    const Generation &generation = timer.generations.at(number);
    const std::vector<Delivery> &deliveries = generation.deliveries;
    const bool is_over = is_ended(timer, number);
    const bool is_forgotten = may_be_forgotten(generation);
    if (is_promised(generation) && deliveries.empty() && !is_over) {
        if (is_forgotten) {
            ++verdict_.forgotten;
        } else {
            object("lost", id, number, "acknowledged, and never delivered");
        }
    }
    if (is_promised(generation) && deliveries.empty() &&
        timer.generations.rbegin()->first > number) {
        ++verdict_.replaced;
    }
    for (const unsigned attempt : generation.retries) {
        if (!is_over && !is_forgotten &&
            std::none_of(deliveries.begin(), deliveries.end(),
                         [attempt](const Delivery &delivery) {
                             return delivery.attempt > attempt;
                         })) {
            object("retry", id, number,
                   "none after attempt " + std::to_string(attempt));
        }
    }
    int64_t replaced_us = INT64_MAX;
    for (const auto &[later, replacement] : timer.generations) {
        if (later > number && is_promised(replacement) &&
            !may_be_forgotten(replacement)) {
            replaced_us = std::min(replaced_us, replacement.promised_us);
        }
    }
    for (const Delivery &delivery : deliveries) {
        if (delivery.fired_us > replaced_us) {
            object("stale", id, number, "fired after it was replaced");
        }
    }
}

void Judge::judge_stop(const std::string &id, const Timer &timer,
                       const Stop &stop)
{
    if (stop.word == "stopped") {
        ++verdict_.stopped;
        const auto found = timer.generations.find(stop.generation);
        if (found == timer.generations.end()) {
            return;
        }
        // What was pending had not fired, unless a handler gave it back, or a
        // failover undid it.
        const Generation &generation = found->second;
        const bool is_given_back = generation.retry_asked_us != 0 &&
                                   generation.retry_asked_us < stop.answered_us;
        const bool is_forgotten =
            stop.is_async && is_undone(stop.asked_us, stop.answered_us);
        if (is_forgotten && !generation.deliveries.empty()) {
            ++verdict_.forgotten_stops;
        }
        for (const Delivery &delivery : generation.deliveries) {
            const bool is_after = delivery.fired_us > stop.answered_us;
            const bool is_pending_again =
                is_given_back || is_undone(delivery.fired_us, stop.answered_us);
            if (!is_forgotten && (is_after || !is_pending_again)) {
                object("stopped", id, stop.generation,
                       "delivered, and a stop had answered `stopped`");
            }
        }
    }
    bool is_known = false;
    bool is_due = false;
    for (const auto &[number, generation] : timer.generations) {
        is_known = is_known || (is_promised(generation) &&
                                generation.promised_us < stop.asked_us &&
                                !may_be_forgotten(generation));
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

void Judge::judge_timer(const std::string &id, const Timer &timer)
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

// Whether one of the generations that were delivered is of an update that a
// failover may have undone after it had fired. Whatever its durability, it may
// undo one that nobody had heard of.
bool Judge::has_forgotten_update(uint64_t operation, const Start &start) const
{
    const auto was_updated_by = [&](int64_t time_us) {
        return std::any_of(updates_.begin(), updates_.end(), [&](auto &each) {
            return each.second.start == operation &&
                   each.second.asked.time_us <= time_us;
        });
    };
    const Timer &timer = timers_.find(start.id)->second;
    const auto may_be_undone = [&](uint64_t number) {
        const auto found = timer.generations.find(number);
        if (number == start.generation || found == timer.generations.end()) {
            return false;
        }
        const Generation &generation = found->second;
        return may_be_forgotten(generation) &&
               (is_promised(generation) ||
                was_updated_by(first_fired(generation)));
    };
    return std::any_of(start.delivered.begin(), start.delivered.end(),
                       may_be_undone);
}

void Judge::judge_starts()
{
    for (const auto &[operation, start] : starts_) {
        if (start.generation == 0 && !start.is_refused) {
            ++verdict_.unheard;
        }
        // Repeated, and the failover undid what nobody had heard of.
        const bool is_undone_start =
            start.is_unheard &&
            is_undone(start.first_asked_us, start.asked.time_us);
        if (start.delivered.size() > 1 &&
            (is_undone_start || has_forgotten_update(operation, start))) {
            ++verdict_.rolled_back;
        } else if (start.delivered.size() > 1) {
            object("doubled", start.id, *start.delivered.rbegin(),
                   "one start was delivered with two generations");
        }
        if (start.is_refused && !start.is_unheard && !start.delivered.empty()) {
            object("invented", start.id, *start.delivered.begin(),
                   "the start was refused");
        }
    }
}

} // namespace lawn_verify
