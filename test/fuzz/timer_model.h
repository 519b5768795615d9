// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The model of timer_fuzz.cc: an ordered set of the timers that run, by
// deadline, and for each queue one of those in it, by start.

#ifndef LAWN_TEST_FUZZ_TIMER_MODEL_H
#define LAWN_TEST_FUZZ_TIMER_MODEL_H

#include <lawn/time.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace fuzz
{

constexpr size_t queue_count = 3;
constexpr size_t no_queue = queue_count;

// What the model knows of a timer.
struct TimerState {
    lawn_time_t deadline = LAWN_TIME_INFINITY;
    lawn_time_t ttl = 0;
    uint64_t number = 0; // of the start
    size_t queue = no_queue;
    bool is_new = true; // not initialised
    bool runs = false;
    bool is_deferred = false; // due in the next pass, not in this
    bool is_buried = false;
    bool acts = false; // its callback does something
};

class TimerModel
{
public:
    using Fifo = std::map<uint64_t, size_t>; // by number of the start

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

    // Those in a queue.
    const Fifo &fifo(size_t queue) const
    {
        return fifos_[queue];
    }

    // By the state that the timer has by now.
    void start(size_t index)
    {
        TimerState &state = states_[index];
        state.runs = true;
        if (state.queue != no_queue) {
            fifos_[state.queue].emplace(state.number, index);
        }
        if (state.is_deferred) {
            deferred_.push_back(index);
        } else {
            by_deadline_.emplace(state.deadline, index);
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
        }
        if (state.queue != no_queue) {
            fifos_[state.queue].erase(state.number);
        }
        state.runs = false;
        state.is_deferred = false;
        return true;
    }

    // What was deferred is due from now on.
    void end_pass()
    {
        for (const size_t index : deferred_) {
            states_[index].is_deferred = false;
            by_deadline_.emplace(states_[index].deadline, index);
        }
        deferred_.clear();
    }

    // Deferred ones aside.
    lawn_time_t earliest() const
    {
        return by_deadline_.empty() ? LAWN_TIME_INFINITY
                                    : by_deadline_.begin()->first;
    }

    // Whose deadline that is, when one runs.
    size_t first() const
    {
        return by_deadline_.begin()->second;
    }

    // No timer of its queue has to fire before.
    bool may_fire(size_t index) const
    {
        const size_t queue = states_[index].queue;
        return queue == no_queue || fifos_[queue].begin()->second == index;
    }

private:
    std::vector<TimerState> states_;
    std::vector<size_t> deferred_;
    std::set<std::pair<lawn_time_t, size_t>> by_deadline_;
    Fifo fifos_[queue_count];
};

} // namespace fuzz

#endif
