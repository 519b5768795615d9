// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What timer_fuzz.cc does to timers and queues, in a callback or not: each call
// to the lawn beside the same to the model, and what must hold at once.

#ifndef LAWN_TEST_FUZZ_TIMER_CALLS_H
#define LAWN_TEST_FUZZ_TIMER_CALLS_H

#include "input.h"
#include "memory.h"
#include "timer_model.h"

#include <lawn/queue.h>

#include <algorithm>

namespace fuzz
{

constexpr size_t most_timers = 2048;
inline lawn_timer_t timers[most_timers];

class TimerCalls
{
protected:
    TimerCalls(Input input, lawn_expired_fn_t expired)
        : input_(input), model_(most_timers), expired_(expired)
    {
    }

    lawn_timer_t *timer(size_t index)
    {
        TimerState &state = model_[index];
        used_ = std::max(used_, index + 1);
        if (state.is_buried) {
            dig_up(&timers[index], sizeof(timers[index]));
        }
        if (state.is_new || state.is_buried) {
            lawn_timer_init(&timers[index], expired_);
            state.is_new = state.is_buried = false;
        }
        return &timers[index];
    }

    void start(size_t index, lawn_time_t now, lawn_time_t ttl, bool acts)
    {
        lawn_timer_start(lawn_, timer(index), now, ttl);
        started(index, now, after(now, ttl), acts);
        model_[index].ttl = ttl;
    }

    void start_at(size_t index, lawn_time_t now, lawn_time_t deadline,
                  bool acts)
    {
        lawn_timer_start_at(lawn_, timer(index), now, deadline);
        started(index, now, deadline, acts);
    }

    // In a queue, which is made if there is none.
    void enqueue(size_t index, lawn_time_t now, size_t q, bool acts)
    {
        lawn_queue_t *&queue = queues_[q];
        if (!queue) {
            const lawn_time_t ttl =
                in_pass_ ? input_.number_at_end() : input_.number();
            if (lawn_queue_create(lawn_, ttl, &queue) != LAWN_OK) {
                FUZZ_CHECK(arena_.refusals() != 0);
                return; // the arena gives each byte once
            }
            FUZZ_CHECK(lawn_queue_ttl(queue) == ttl);
        }
        lawn_queue_start(queue, timer(index), now);
        const lawn_time_t deadline = after(now, lawn_queue_ttl(queue));
        started(index, now, deadline, acts, q);
    }

    lawn_time_t after(lawn_time_t now, lawn_time_t ttl) const
    {
        const lawn_time_t latest = std::max(seen_, now);
        return ttl > UINT64_MAX - latest ? LAWN_TIME_INFINITY : latest + ttl;
    }

    void started(size_t index, lawn_time_t now, lawn_time_t deadline, bool acts,
                 size_t queue = no_queue)
    {
        ++work_;
        seen_ = std::max(seen_, now);
        model_.stop(index);
        TimerState &state = model_[index];
        state.deadline =
            deadline < LAWN_TIME_INFINITY - 1 ? deadline : LAWN_TIME_INFINITY;
        state.queue = queue;
        state.number = ++starts_;
        state.acts = acts;
        state.is_deferred = in_pass_ && deadline <= seen_;
        model_.start(index);
        FUZZ_CHECK(lawn_timer_is_active(&timers[index]));
        FUZZ_CHECK(lawn_timer_deadline(&timers[index]) == state.deadline);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    // What runs in the queue becomes idle.
    void close(size_t q)
    {
        if (!queues_[q]) {
            return;
        }
        FUZZ_CHECK(lawn_queue_count(queues_[q]) == model_.fifo(q).size());
        lawn_queue_destroy(queues_[q]);
        queues_[q] = nullptr;
        while (!model_.fifo(q).empty()) {
            const size_t index = model_.fifo(q).begin()->second;
            model_.stop(index);
            check_idle(&timers[index]);
        }
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    void stop(size_t index)
    {
        lawn_timer_t *const t = timer(index);
        FUZZ_CHECK(lawn_timer_stop(lawn_, t) == model_.stop(index));
        check_idle(t);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    void pause(size_t index)
    {
        lawn_timer_t *const t = timer(index);
        FUZZ_CHECK(lawn_timer_pause(lawn_, t) == model_.stop(index));
        check_idle(t);
        FUZZ_CHECK(model_.count() == lawn_count(lawn_));
    }

    void stop_and_bury(size_t index)
    {
        stop(index);
        bury(&timers[index], sizeof(timers[index]));
        model_[index].is_buried = true;
    }

    static void check_idle(const lawn_timer_t *t)
    {
        FUZZ_CHECK(!lawn_timer_is_active(t));
        FUZZ_CHECK(lawn_timer_deadline(t) == LAWN_TIME_INFINITY);
    }

    void count_each()
    {
        counted_ = 0;
        lawn_for_each(lawn_, on_counted, this);
        FUZZ_CHECK(counted_ == model_.count());
        FUZZ_CHECK(lawn_check(lawn_) == LAWN_OK);
    }

    static void on_counted(const lawn_timer_t *timer, void *arg)
    {
        TimerCalls *const self = static_cast<TimerCalls *>(arg);
        ++self->counted_;
        FUZZ_CHECK(self->model_[static_cast<size_t>(timer - timers)].runs);
    }

    Input input_;
    Arena arena_;
    lawn_t *lawn_ = nullptr;
    TimerModel model_;
    lawn_time_t seen_ = 0; // by the lawn
    bool in_pass_ = false; // or in a drain
    unsigned work_ = 0;
    uint64_t starts_ = 0;
    size_t used_ = 0; // states before this

private:
    lawn_expired_fn_t expired_;
    lawn_queue_t *queues_[queue_count] = {}; // those that there are
    size_t counted_ = 0;
};

} // namespace fuzz

#endif
