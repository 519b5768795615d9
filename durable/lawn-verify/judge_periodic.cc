// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The rules for timers that fire again and again; see judge.h. Whatever fault
// there is, each occurrence comes. A failover may undo that one has fired, but
// not that it will.

#include "judge_internal.h"

#include <string>

namespace lawn_verify
{

void Judge::expect_periodic(const Event &event)
{
    Periodic &timer = periodic_[event.id];
    timer.first_us = event.due_us;
    timer.every_us = event.fired_us;
}

bool Judge::hear_periodic(const Event &event)
{
    const auto found = periodic_.find(event.id);
    if (found == periodic_.end()) {
        return false;
    }
    Periodic &timer = found->second;
    if (event.kind == EventKind::deliver) {
        timer.occurrences[event.due_us].deliveries.push_back(
            {event.time_us, event.due_us, event.fired_us, event.attempt,
             event.operation});
    } else if (event.kind == EventKind::stop && timer.stop_asked_us == 0) {
        timer.stop_asked_us = event.time_us;
    } else if (event.kind == EventKind::stopped) {
        timer.stopped_us = event.time_us;
    }
    return true;
}

void Judge::judge_periodic(const std::string &id, const Periodic &timer)
{
    int64_t next_us = timer.first_us;
    for (const auto &[due_us, occurrence] : timer.occurrences) {
        ++verdict_.occurrences;
        const auto number = static_cast<uint64_t>(due_us);
        if ((due_us - timer.first_us) % timer.every_us != 0 ||
            due_us < timer.first_us) {
            object("invented", id, number, "it is due at no such time");
            continue;
        }
        for (; next_us < due_us; next_us += timer.every_us) {
            object("gap", id, static_cast<uint64_t>(next_us),
                   "what was due then did not come, but what follows");
        }
        next_us = due_us + timer.every_us;
        judge_deliveries(id, number, occurrence);
        const uint64_t before = verdict_.rolled_back;
        judge_attempts(id, number, occurrence);
        verdict_.occurrences_again += verdict_.rolled_back - before;
        for (const Delivery &delivery : occurrence.deliveries) {
            if (timer.stopped_us != 0 && delivery.fired_us > timer.stopped_us) {
                object("stopped", id, number, "fired after it was stopped");
            }
        }
    }
    if (limits_.late_us != 0 &&
        next_us + limits_.late_us < timer.stop_asked_us &&
        !is_fault_near(next_us, timer.stop_asked_us)) {
        object("lost", id, static_cast<uint64_t>(next_us),
               "what was due then, and all behind it");
    }
}

} // namespace lawn_verify
