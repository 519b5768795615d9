// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Judges a history: what was promised, and what came. A request that nobody
// heard of again may have been carried out or not, and either is right. A
// failover may undo what was done in its last moments, but for what was
// acknowledged with a durability that says otherwise.
//
//     std::vector<Event> events;
//     read_history("history.txt", events);
//     const Verdict verdict = judge(events, Limits());
//     return verdict.is_good() ? 0 : 1;

#ifndef LAWN_VERIFY_JUDGE_H
#define LAWN_VERIFY_JUDGE_H

#include "history.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lawn_verify
{

struct Limits {
    // A fault lets a delivery be repeated for each timer that is in flight when
    // it strikes. Without faults there are no duplicates.
    uint64_t duplicates_per_fault = 0;
    // A timer may fire as much late as this where no fault was near. 0: as late
    // as it wants.
    int64_t late_us = 0;
    // A fault is near for as long as this after it was mended.
    int64_t recovery_us = 5000000;
    // A replica may be behind its primary by as much as this when it is cut
    // off, or when the primary dies.
    int64_t lag_us = 1000000;
};

struct Verdict {
    uint64_t acknowledged = 0; // starts and updates
    uint64_t unheard = 0;      // starts of which nobody heard again
    uint64_t stopped = 0;      // stops with the answer `stopped`
    uint64_t replaced = 0;     // by a later start or update, before they fired
    uint64_t delivered = 0;    // generations that were delivered at least once
    uint64_t retried = 0;      // deliveries with an attempt above 1
    uint64_t occurrences = 0;  // of periodic timers, that were delivered
    uint64_t duplicates = 0;   // repeated deliveries of one attempt
    uint64_t faults = 0;
    // What failovers explain, and nothing else would:
    uint64_t forgotten = 0; // acknowledged with `async`, and never delivered
    uint64_t forgotten_stops = 0;   // so acknowledged; delivered all the same
    uint64_t rolled_back = 0;       // deliveries of what had been delivered
    uint64_t occurrences_again = 0; // those of them of periodic timers
    // How often, by name:
    //   lost        acknowledged, not stopped, and never delivered
    //   early       fired, or delivered, before it was due
    //   late        later than the limit although no fault was near
    //   invented    delivered, and never asked for
    //   doubled     one start, carried out twice
    //   refired     one attempt, fired at two times
    //   mixed       delivered with another due time or start than promised
    //   stale       fired after a later generation was acknowledged
    //   stopped     fired although the stop was acknowledged
    //   denied      a stop's answer that cannot be true
    //   retry       a retry was acknowledged, and there was none
    //   gap         an occurrence of a periodic timer that was left out
    //   duplicates  more than the faults explain
    std::map<std::string, uint64_t> violations;
    std::vector<std::string> examples; // a line for each of the first few
    std::vector<int64_t> lateness_us;  // of all that were delivered; sorted

    bool is_good() const;
    uint64_t count(const std::string &violation) const;
    // Of so many per cent; 0 if nothing was delivered.
    int64_t lateness(double per_cent) const;
};

// The events are in the order of their times.
Verdict judge(const std::vector<Event> &events, const Limits &limits);

} // namespace lawn_verify

#endif
