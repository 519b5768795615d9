// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The model of timer_fuzz.cc: two ordered sets, of the timers that run by
// deadline, and of the starts of each TTL.

#ifndef LAWN_TEST_FUZZ_TIMER_MODEL_H
#define LAWN_TEST_FUZZ_TIMER_MODEL_H

#include <lawn/time.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace fuzz
{

// What the model knows of a timer.
struct TimerState {
    lawn_time_t deadline = LAWN_TIME_INFINITY;
    lawn_time_t ttl = 0;
    uint64_t number = 0; // of the start
    bool is_new = true;  // not initialised
    bool runs = false;
    bool is_deferred = false; // due in the next pass, not in this
    bool is_buried = false;
    bool acts = false;         // its callback does something
    bool is_last_turn = false; // has no order among starts of its tick
};

class TimerModel
{
public:
    explicit TimerModel(size_t timers) : states_(timers)
    {
    }

    TimerState &operator[](size_t index)
    {
        return states_[index];
    }

    const TimerState &operator[](size_t index) const
    {
        return states_[index];
    }

    size_t size() const
    {
        return states_.size();
    }

    // Timers that run.
    size_t count() const
    {
        return by_deadline_.size() + deferred_.size();
    }

    // By the state that the timer has by now.
    void start(size_t index)
    {
        states_[index].runs = true;
        if (states_[index].is_deferred) {
            deferred_.push_back(index);
        } else {
            insert(index);
        }
    }

    // False if it did not run.
    bool stop(size_t index)
    {
        TimerState &state = states_[index];
        if (!state.runs) {
            return false;
        }
        if (state.is_deferred) {
            deferred_.erase(
                std::find(deferred_.begin(), deferred_.end(), index));
        } else {
            by_deadline_.erase({state.deadline, index});
            by_ttl_.erase({state.ttl, state.number, index});
        }
        state.runs = false;
        return true;
    }

    // What was deferred is due from now on.
    void end_pass()
    {
        for (const size_t index : deferred_) {
            states_[index].is_deferred = false;
            insert(index);
        }
        deferred_.clear();
    }

    bool has_deferred() const
    {
        return !deferred_.empty();
    }

    // Deferred ones aside.
    lawn_time_t earliest() const
    {
        return by_deadline_.empty() ? LAWN_TIME_INFINITY
                                    : by_deadline_.begin()->first;
    }

    // No timer of its TTL has to fire before.
    bool may_fire(size_t index) const
    {
        const TimerState &state = states_[index];
        const auto first = by_ttl_.lower_bound({state.ttl, 0, 0});
        const TimerState &earlier = states_[std::get<2>(*first)];
        return &earlier == &state ||
               (earlier.is_last_turn && state.is_last_turn &&
                earlier.deadline == state.deadline);
    }

private:
    void insert(size_t index)
    {
        const TimerState &state = states_[index];
        by_deadline_.emplace(state.deadline, index);
        by_ttl_.emplace(state.ttl, state.number, index);
    }

    std::vector<TimerState> states_;
    std::vector<size_t> deferred_;
    std::set<std::pair<lawn_time_t, size_t>> by_deadline_;
    std::set<std::tuple<lawn_time_t, uint64_t, size_t>> by_ttl_;
};

} // namespace fuzz

#endif
