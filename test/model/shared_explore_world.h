// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the explorer explores: a box on a real lawn, a few shared timers, and
// threads that do a few operations each, by the steps of shared_ops.h. The
// first thread is the owner.
//
// Every operation is judged by what the deadlines in memory were: each store
// of one has an operation as its author, which is a start, or ends the start
// whose deadline it takes away. An operation lasts from its first access to
// its last, so that what must be seen by it, or before it, is as much as can
// be. A start ends once: it fires, or is superseded by another, or stopped by a
// stop that says so, or by a retire, a destroy or a lawn_drain().
//
// Runs in which a user would break a rule are given up: those in which a timer
// is released while another thread is in a call for it, or is called for later.

#ifndef LAWN_TEST_MODEL_SHARED_EXPLORE_WORLD_H
#define LAWN_TEST_MODEL_SHARED_EXPLORE_WORLD_H

#include "shared/box.h"
#include "shared_explore_fault.h"

#include <string>
#include <vector>

namespace shared_explore
{

constexpr unsigned most_timers = 3;
constexpr unsigned most_ops = 20;
constexpr unsigned most_boxed = 16; // more is a circle

struct Op {
    Do what;
    unsigned timer;
    lawn_time_t time; // a deadline, or when it is
    unsigned budget;
    unsigned id;
};

inline Op start(unsigned timer, lawn_time_t deadline)
{
    return {Do::start, timer, deadline, 0, 0};
}

inline Op local(unsigned timer, lawn_time_t deadline)
{
    return {Do::local, timer, deadline, 0, 0};
}

// Of a timer: stop, sync and retire.
inline Op on(Do what, unsigned timer)
{
    return {what, timer, 0, 0, 0};
}

// Of the owner.
inline Op at(Do what, lawn_time_t now, unsigned budget = 0)
{
    return {what, 0, now, budget, 0};
}

// What a user calls for a timer, and must have returned from when it is
// released; retire aside.
constexpr bool is_call(Do what)
{
    return what == Do::start || what == Do::local || what == Do::stop ||
           what == Do::sync;
}

struct Scenario {
    unsigned timers;
    std::vector<Op> before;               // by the owner, alone
    std::vector<std::vector<Op>> threads; // the owner first
    std::vector<Op> on_fire;              // in timer 0's first callback
};

class World final : public Program
{
public:
    World(const Scenario &scenario, const Fault *fault);

    World(const World &) = delete;
    World &operator=(const World &) = delete;

    static Result explore(const Scenario &scenario, const Fault *fault,
                          uint64_t most_runs, bool merges = true);

    unsigned begin() override;
    void run(unsigned thread) override;
    void end() override;
    uint64_t hash() const override;
    uint64_t plain(unsigned thread) const override;
    bool is_ready(unsigned thread) const override;
    void on_access(unsigned thread, const Access &access) override;
    uint64_t token(unsigned thread) const override;
    void on_write(uint64_t token, const void *at, uint64_t was,
                  uint64_t value) override;
    std::string describe(unsigned thread) const override;
    std::string name_of(const void *at) const override;
    std::string text_of(uint64_t value) const override;

    // What shared_ops.h and the lawn call.
    uint64_t act(const Access &access);
    void see(uint64_t value);
    void pause();
    static void on_plain(lawn_timer_t *timer, lawn_time_t now);
    static void on_drain(lawn_timer_t *timer);
    static void on_expired(lawn_shared_t *timer, lawn_time_t now);
    static void on_released(lawn_shared_t *timer, lawn_time_t now);
    static void on_wake(void *arg);
    static void *on_allocate(void *arg, size_t size);
    static void on_release(void *arg, void *memory);

private:
    enum State : uint64_t {
        none, // its deadline is not stored yet
        active,
        superseded,
        stopped,
        killed,
        taken, // by the owner, which has not called back yet
        fired,
        withdrawn // by itself: the box is closed
    };

    enum Stage : uint64_t { not_yet, begun, returned };

    // What happened, as far as a check asks for it. Numbers are from 1 on, of
    // operations, timers and runs; 0 is none.
    struct Past {
        uint64_t state[most_ops];
        uint64_t has_returned[most_ops];
        uint64_t holder[most_timers]; // whose deadline is stored
        uint64_t taken[most_timers];
        uint64_t is_late[most_timers]; // taken after its retire had returned
        uint64_t fires[most_timers];
        uint64_t run[most_timers]; // that is not over
        uint64_t retire[most_timers];
        uint64_t released[most_timers];
        uint64_t calls[most_threads + 1]; // the timer that it calls for
        uint64_t runs;
        uint64_t destroy;
        uint64_t woken;
        uint64_t sleeps;
        uint64_t wakes;
        uint64_t box_frees;
        uint64_t scratch; // an atomic that is nobody's
    };

    // An operation that is going on; those in a callback have a parent.
    struct Frame {
        const Op *op;
        Frame *parent;
        Do what;
        bool has_begun;
        bool has_ended_one; // a start, as a stop
        uint64_t destroy;   // when it began
        uint64_t retire;
        uint64_t run;
        lawn_time_t cover;
        uint64_t due[most_timers]; // to end until it returns
    };

    struct Place {
        Field field;
        unsigned timer;
    };

    uint64_t plain_hash() const;
    uint64_t past_hash() const;
    Place place_of(const void *at) const;
    unsigned index_of(const lawn_shared_t *timer) const;
    unsigned who() const;
    void make_box();
    uint64_t lawn_hash() const;
    void touch();
    void apply(const Op &op);
    bool call(const Op &op, Frame *frame);
    void drain(lawn_time_t now, unsigned budget);
    bool start_local(lawn_shared_t *timer, lawn_time_t deadline);
    void sleep(lawn_time_t until, bool stays);
    void on_begin(Frame *frame);
    void on_return(const Frame &frame, bool result);
    void judge_start(const Frame &frame, bool result);
    void find_due(Frame *frame) const;
    void on_start(unsigned timer, uint64_t id);
    void on_end(unsigned timer, uint64_t id, Do what);
    void fire(unsigned timer, lawn_time_t now);
    void release(unsigned timer);
    void end_run(unsigned timer);
    bool is_boxed(const lawn_shared_t *timer, bool *is_circle) const;
    void check_rest();
    void fire_all();
    void retire_all();

    void fail_if(bool is_wrong, const char *what)
    {
        if (is_wrong) {
            explorer_.fail(what);
        }
    }

    Scenario scenario_;
    const Fault *fault_; // or nullptr
    Explorer explorer_;
    Weakness weakness_;
    lawn_t *lawn_ = nullptr;
    lawn_box_t *box_ = nullptr;
    lawn_shared_t timers_[most_timers] = {};
    Past past_ = {};
    Frame *frames_[most_threads + 1] = {};
    size_t allocated_ = 0; // bytes of the arena
    unsigned live_ = 0;    // allocations
    const Op *starts_[most_ops] = {};
    std::vector<lawn_time_t> times_;   // all deadlines, ascending
    std::vector<unsigned char> fresh_; // what is in the arena at first
    alignas(64) unsigned char arena_[size_t{32} << 10];
};

// The scenario, a violation, and the steps that lead to it.
std::string text_of(const Scenario &scenario, const Result &result);

} // namespace shared_explore

#endif
