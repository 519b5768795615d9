// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// How the judge works (judge.h): it hears all events, and then looks at each
// timer by each rule.

#ifndef LAWN_VERIFY_JUDGE_INTERNAL_H
#define LAWN_VERIFY_JUDGE_INTERNAL_H

#include "judge.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace lawn_verify
{

struct Delivery {
    int64_t time_us;
    int64_t due_us;
    int64_t fired_us;
    unsigned attempt;
    uint64_t operation;
};

struct Asked {
    int64_t time_us = 0; // the last time
    bool is_async = false;
};

// What was promised of one generation, and how it was delivered.
struct Generation {
    uint64_t operation = 0; // the start; 0: no answer names the generation
    Asked asked;
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
    bool is_async = false;
};

struct Timer {
    std::map<uint64_t, Generation> generations;
    std::map<uint64_t, Stop> stops; // by operation
};

struct Start {
    std::string id;
    Asked asked;
    int64_t first_asked_us = 0;
    uint64_t generation = 0; // 0: not acknowledged
    bool is_unheard = false;
    bool is_refused = false;
    std::set<uint64_t> delivered; // generations
};

struct Update {
    uint64_t start = 0; // the operation
    Asked asked;
};

// Its occurrences have no generations of their own that anybody was told of.
struct Periodic {
    int64_t first_us = 0;
    int64_t every_us = 0;
    int64_t stop_asked_us = 0; // 0: it was not stopped
    int64_t stopped_us = 0;
    std::map<int64_t, Generation> occurrences; // by due time
};

class Judge
{
public:
    explicit Judge(const Limits &limits) : limits_(limits)
    {
    }

    // Of each periodic timer, before anything is heard.
    void expect_periodic(const Event &event);
    void hear(const Event &event);
    Verdict verdict();

private:
    void hear_promise(const Event &event, uint64_t operation,
                      const Asked &asked);
    void hear_stop(const Event &event);
    void hear_answer(const Event &event);
    void hear_delivery(const Event &event);
    // Whether the event is of a periodic timer.
    bool hear_periodic(const Event &event);

    void object(const char *violation, const std::string &id,
                uint64_t generation, const std::string &why);
    bool has_forgotten_update(uint64_t operation, const Start &start) const;
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
    void judge_periodic(const std::string &id, const Periodic &timer);
    bool is_ended(const Timer &timer, uint64_t number) const;
    bool is_fault_near(int64_t from_us, int64_t to_us) const;
    // Whether a failover may have undone what was done between two times, or
    // lies between them.
    bool is_undone(int64_t from_us, int64_t to_us) const;
    bool may_be_forgotten(const Generation &generation) const;

    const Limits limits_;
    std::unordered_map<std::string, Timer> timers_;
    std::unordered_map<std::string, Periodic> periodic_;
    std::unordered_map<uint64_t, Start> starts_;
    std::unordered_map<uint64_t, Update> updates_;
    std::vector<Event> faults_;
    std::vector<Event> failovers_; // some of the faults
    Verdict verdict_;
};

// Whether a start or an update was told of it.
inline bool is_promised(const Generation &generation)
{
    return generation.promised_us != 0;
}

} // namespace lawn_verify

#endif
