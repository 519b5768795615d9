// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structures behind lawn_engine_t and lawn_source_t, and the border between
// the pass (engine.cc) and sleeping (sleep.cc). The pass itself calls sleep.cc
// only to wake another engine, so a program that never blocks does not pay for
// sleeping.

#ifndef LAWN_SRC_ENGINE_ENGINE_H
#define LAWN_SRC_ENGINE_ENGINE_H

#include "base/base.h"
#include "base/ticks.h"
#include "timer/inside.h"

#include <lawn/engine.h>

namespace lawn
{

struct Page;
struct Profiles;
struct Trace;

// A hook takes part in an engine's passes, and has a say before the engine
// sleeps. Hooks are the worker of a group, the owner of shared memory, the
// statistics page, and the engine's own thread (thread.h).
struct PassHook {
    // Called last in each pass, after sources and timers. Returns the work
    // done. If `pass` is NULL, the hook has nothing to do in passes, and
    // `next` is not called.
    unsigned (*pass)(void *arg, lawn_time_t now, unsigned budget);
    lawn_time_t (*next)(void *arg); // the next pass, at the latest
    // Called before the engine sleeps, when the timerfd that wakes it is
    // already set. Returns false if the engine must not sleep.
    bool (*sleep)(void *arg, lawn_time_t until);
    void *arg;
    PassHook *behind; // the next in the list, or nullptr
};

} // namespace lawn

// If a source is removed inside a pass, `poll` becomes NULL at once. The source
// leaves the list and is freed when the pass has ended, so code that walks the
// list can go on from it.
struct lawn_source {
    lawn_source_t *next;
    lawn_source_t *prev;
    lawn_poll_fn_t poll; // NULL if removed
    void *arg;
    int fd;
    // Only if polls are timed. `poll` is then poll_timed(), its `arg` is this
    // source, and poll_timed() calls this function.
    lawn_poll_fn_t timed_poll;
    void *timed_arg;
    lawn_engine_t *engine;
};

struct lawn_engine {
    // Every pass uses these fields. Other threads read the clock, `offset` and
    // `now`. The last two change, so they are stored atomically.
    lawn_clock_fn_t clock;
    void *clock_arg;
    lawn_time_t offset; // how far the clock has gone back
    lawn_time_t now;    // of the latest pass: clock plus offset
    // A pass, or a sleep that begins, at `notable_at` or later is a stall, or
    // ends the longest gap so far. `notable_at` is `notable_gap` after the
    // latest pass or the end of a sleep.
    lawn_time_t notable_at;
    lawn_time_t notable_gap;
    lawn_time_t stall_threshold;
    lawn_t *lawn;
    lawn_source_t *first;
    lawn_source_t *last;
    lawn_box_t *box;       // nullptr until lawn_engine_box()
    lawn::PassHook *hooks; // a list
    unsigned budget;
    bool in_pass;
    bool has_removed; // sources wait to be freed after the polls
    bool has_more;    // has_removed, or there are hooks
    bool times_sources;
    uint32_t sequence; // counter for `stats`; odd during a change
    uint32_t resets;   // counter for `late`; odd during a reset
    lawn_engine_stats_t stats;
    lawn_histogram_t late;

    lawn_time_t stalled_at; // time of the latest stall; INFINITY: none
    double ticks_per_sec;
    lawn_time_t usec; // ticks per microsecond, rounded up
    lawn_time_t msec; // ticks per millisecond, rounded up
    lawn_allocator_t allocator;
    lawn::Trace *trace; // or nullptr
    lawn::Page *page;   // or nullptr
    // What its connections share, or nullptr
    lawn::Profiles *profiles;

    // For sleeping. The descriptors are -1 until they are needed. wake() reads
    // `timer_fd`, `forks` and `signature` in other threads, so these are stored
    // atomically.
    int epoll_fd;
    int timer_fd;
    unsigned forks;     // lawn::forks when the descriptors were opened
    unsigned signature; // identifies timer_fd
    lawn_time_t armed;  // the time timer_fd is set to; INFINITY: none
};

namespace lawn
{

// Reads a clock that parameters give. NULL is lawn_get_time().
inline lawn_time_t read_ticks(lawn_clock_fn_t clock, void *arg)
{
    return clock ? clock(arg) : lawn_get_time();
}

inline lawn_time_t read_ticks(const lawn_engine_t *engine)
{
    return read_ticks(engine->clock, engine->clock_arg);
}

inline bool rate_is_valid(double ticks_per_sec)
{
    // NaN and infinity fail here, too.
    return ticks_per_sec >= 0 && ticks_per_sec <= __DBL_MAX__;
}

// Handles a clock that has shown `now`, which is before the latest pass.
// Returns the time from which the engine's time goes on: that of the latest
// pass.
lawn_time_t go_on(lawn_engine_t *engine, lawn_time_t now);

// Returns the engine's time, which is never before the latest pass.
inline lawn_time_t read_clock(lawn_engine_t *engine)
{
    const lawn_time_t now = read_ticks(engine) + engine->offset;
    return LAWN_LIKELY(now >= engine->now) ? now : go_on(engine, now);
}

// True inside a pass, and in a callback of any other advance or drain of the
// lawn.
inline bool is_inside(const lawn_engine_t *engine)
{
    return engine->in_pass || is_busy(engine->lawn);
}

// Returns when the lawn or a hook needs the next pass.
inline lawn_time_t next_of(const lawn_engine_t *engine)
{
    lawn_time_t next = lawn_next(engine->lawn);
    for (const PassHook *i = engine->hooks; i; i = i->behind) {
        next = i->pass ? earlier_of(next, i->next(i->arg)) : next;
    }
    return next;
}

// The next pass is notable if it comes `notable_gap` or more after `time`.
inline void expect_pass(lawn_engine_t *engine, lawn_time_t time)
{
    engine->notable_at = add_saturating(time, engine->notable_gap);
}

// Handles a pass, or a sleep that begins, at `notable_at` or later. Returns
// true if it is a stall.
bool note_gap(lawn_engine_t *engine, lawn_time_t now);

// Counts the work of a pass at `now` that has touched timers.
void note_work(lawn_engine_t *engine, Work done, lawn_time_t now);

// Counts that the clock has gone back by `step`.
void note_step(lawn_engine_t *engine, lawn_time_t step);

// Adds one to a number of `stats` that connections count.
void note_conn(lawn_engine_t *engine, uint64_t lawn_engine_stats_t::*number);

// Polls the source `arg`, and measures how long the poll takes.
unsigned poll_timed(void *arg);

inline void add_hook(lawn_engine_t *engine, PassHook *hook)
{
    hook->behind = engine->hooks;
    engine->hooks = hook;
    engine->has_more = true;
}

inline void remove_hook(lawn_engine_t *engine, const PassHook *hook)
{
    PassHook **link = &engine->hooks;
    while (*link != hook) {
        link = &(*link)->behind;
    }
    *link = hook->behind;
}

// Lets `fd` wake a sleeping engine. Returns OK, or IO with errno.
lawn_status_t watch(lawn_engine_t *engine, int fd);

// Undoes watch() for a source that is removed, unless another source has its
// fd.
void unwatch(lawn_engine_t *engine, const lawn_source_t *source);

// Wakes the engine `arg` if it sleeps. Any thread may call it.
void wake(void *arg);

// Closes the descriptors that sleeping has opened. In the child of a fork, this
// does not affect the parent.
void close_sleep(lawn_engine_t *engine);

} // namespace lawn

#endif
