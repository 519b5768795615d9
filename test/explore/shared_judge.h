// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What must come of the operations of shared_program.h, by who has stored which
// deadline when.

#ifndef LAWN_TEST_EXPLORE_SHARED_JUDGE_H
#define LAWN_TEST_EXPLORE_SHARED_JUDGE_H

#include "shared_program.h"

#include <lawn/shared.h>

namespace explore::shared
{

constexpr unsigned most_timers = 3;
constexpr unsigned most_starts = 20;

enum Stage : uint8_t { not_yet, begun, returned };

// An operation that is going on. One in a callback has a parent.
struct Frame {
    const Op *op;
    Frame *parent;
    bool advances;    // it calls back from now on
    bool has_stopped; // a start that ran
    Stage destroy;    // when it began
    Stage retire;
};

class Judge
{
public:
    void begin(const lawn_box_t *box, lawn_shared_t *const *timers,
               unsigned count);
    uint64_t hash() const;

    void begin_op(unsigned thread, const Op &op, Frame *frame);
    void end_op(unsigned thread, const Op &op, const Frame &frame, bool result);
    void on_store(unsigned thread, const void *at, uint64_t value);
    // Whether the thread is in a call for a timer that is retired.
    bool is_misuse(unsigned thread) const;

    // Returns true if it is the first one of the timer.
    bool begin_call(unsigned timer, lawn_time_t now);
    void release(unsigned thread, unsigned timer);
    void sleep();
    void wake();
    void expect_not_destroyed() const;

    bool is_retired(unsigned timer) const
    {
        return timers_[timer].retire != not_yet;
    }
    bool is_destroyed() const
    {
        return destroy_ != not_yet;
    }

    // No start runs whose deadline is before `time`, nor has anybody retired a
    // timer that is not released.
    void expect_nothing_before(lawn_time_t time) const;
    // What holds when nobody is in a call.
    void expect_rest() const;
    void expect_all_released() const;

private:
    enum class State : uint8_t {
        none, // its deadline is not stored yet
        active,
        superseded,
        stopped,
        ended, // by a retire, a destroy or a drain
        taken, // by the owner, which has not called back yet
        called,
        withdrawn // by itself: the box is closed
    };

    struct Timer {
        lawn_shared_t *timer;
        unsigned holder; // the start whose deadline is stored; 0: none
        unsigned taken;  // the start that is about to be called
        bool is_late;    // it was taken after a retire had returned
        bool is_first;   // it has never been called
        unsigned run;    // the number of the callback that is not over
        Stage retire;
        bool is_released;
    };

    struct Thread {
        Frame *frame;
        unsigned calls_for;              // timer + 1; 0: none
        unsigned seen_runs[most_timers]; // that it found begun in a stop
    };

    struct Start {
        State state;
        lawn_time_t deadline;
    };

    void start(Timer *timer, const Op &op);
    void end_start(Timer *timer, Frame *frame);
    void end_runs();
    void judge_start(const Op &op, const Frame &frame, bool result) const;
    bool is_in_box(const lawn_shared_t *timer) const;

    const lawn_box_t *box_ = nullptr;
    Timer timers_[most_timers] = {};
    unsigned count_ = 0;
    Thread threads_[most_threads] = {};
    Start starts_[most_starts] = {};
    unsigned runs_ = 0;
    Stage destroy_ = not_yet;
    unsigned sleeps_ = 0;
    unsigned wakes_ = 0;
};

} // namespace explore::shared

#endif
