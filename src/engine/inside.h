// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the library's other rooms use of an engine, beside lawn/engine.h: those
// that take part in its passes, and connections, which share what an engine
// knows of the time. How an engine works is in engine.h, which only src/engine
// includes.
//
//     add_hook(engine, &mine->hook);     // behind each pass, before each sleep
//     wake(engine);                      // from any thread
//     read_clock(engine);                // never before the latest pass

#ifndef LAWN_SRC_ENGINE_INSIDE_H
#define LAWN_SRC_ENGINE_INSIDE_H

#include "timer/inside.h"

#include <lawn/engine.h>

namespace lawn
{

struct Profiles;

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

struct lawn_engine {
    // Other threads read the clock, `offset` and `now`. The last two change, so
    // they are stored atomically.
    lawn_clock_fn_t clock;
    void *clock_arg;
    lawn_time_t offset; // how far the clock has gone back
    lawn_time_t now;    // of the latest pass: clock plus offset
    lawn_t *lawn;
    lawn::PassHook *hooks;  // a list
    lawn_time_t stalled_at; // time of the latest stall; INFINITY: none
    unsigned budget;
    bool in_pass;
    bool has_more; // sources wait to be freed after the polls, or hooks to run
    lawn::Usage usage;

    double ticks_per_sec;
    lawn_time_t usec; // ticks per microsecond, rounded up
    lawn_time_t msec; // ticks per millisecond, rounded up
    lawn_allocator_t allocator;
    // What its connections share, or nullptr
    lawn::Profiles *profiles;
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

inline void assert_usable(const lawn_engine_t *engine)
{
    assert_usable(engine->usage);
}

// True inside a pass, and in a callback of any other advance or drain of the
// lawn.
inline bool is_inside(const lawn_engine_t *engine)
{
    return engine->in_pass || is_busy(engine->lawn);
}

// Adds one to a number of `stats` that connections count.
void note_conn(lawn_engine_t *engine, uint64_t lawn_engine_stats_t::*number);

// Records what has happened to a connection, which goes by the name of its
// retransmit timer, if the engine writes a trace. `value` is left out if 0.
void trace_conn(lawn_engine_t *engine, const char *event,
                const lawn_timer_t *conn, uint64_t value = 0);

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

// From now on the source's fd does not wake the engine, unless another source
// has it, too.
void unwatch(lawn_engine_t *engine, lawn_source_t *source);

// Wakes the engine `arg` if it sleeps. Any thread may call it.
void wake(void *arg);

} // namespace lawn

#endif
