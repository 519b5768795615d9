// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structures behind lawn_engine_t and lawn_source_t, and the border
// between the pass (engine.cc) and sleeping (sleep.cc): a program that never
// blocks never reaches the second.

#ifndef LAWN_SRC_ENGINE_ENGINE_H
#define LAWN_SRC_ENGINE_ENGINE_H

#include "base/base.h"
#include "base/ticks.h"
#include "timer/advance.h"
#include "timer/observer.h"

#include <lawn/engine.h>

namespace lawn
{

struct Page;
struct Trace;

// Who has a say in an engine's passes and sleep: a worker of a group, the owner
// of a shared memory.
struct Passenger {
    // Last in each pass, when all sources were polled. Returns the work done.
    // NULL: nothing, and no `next`.
    unsigned (*pass)(void *arg, lawn_time_t now, unsigned budget);
    lawn_time_t (*next)(void *arg); // when to pass again
    // The engine is about to sleep, and what wakes it is set. False: do not.
    bool (*sleep)(void *arg, lawn_time_t until);
    void *arg;
    Passenger *behind; // or nullptr
};

} // namespace lawn

// A source removed inside a pass loses its `poll` at once, and its place in
// the list and its memory when the pass has ended: whoever walks the list may
// go on from where it is.
struct lawn_source {
    lawn_source_t *next;
    lawn_source_t *prev;
    lawn_poll_fn_t poll; // NULL: removed
    void *arg;
    int fd;
    // Where polls are timed: what `poll` calls, `arg` being this source.
    lawn_poll_fn_t timed_poll;
    void *timed_arg;
    lawn_engine_t *engine;
};

struct lawn_engine {
    // What every pass touches. Other threads read the clock, its offset and
    // `now`, so the latter two are stored atomically.
    lawn_clock_fn_t clock;
    void *clock_arg;
    lawn_time_t offset; // by which the clock has gone back
    lawn_time_t now;    // on the engine's time: the clock and the offset
    // A pass from `notable_at` on, `notable_gap` after the one before, is a
    // stall, or the longest gap so far.
    lawn_time_t notable_at;
    lawn_time_t notable_gap;
    lawn_time_t stall_threshold;
    lawn_t *lawn;
    lawn_source_t *first;
    lawn_source_t *last;
    lawn_box_t *box;             // nullptr until somebody asks for it
    lawn::Passenger *passengers; // a list
    unsigned budget;
    bool in_pass;
    bool has_removed; // sources to free when all was polled
    bool has_rest;    // those, or passengers
    bool times_sources;
    uint32_t sequence; // of changes of `stats`; odd while there is one
    lawn_engine_stats_t stats;
    lawn_histogram_t late;

    lawn_time_t stalled_at; // the latest pass that was late; 0: none
    double ticks_per_sec;
    lawn_time_t usec; // the ticks of a microsecond, rounded up
    lawn_time_t msec; // likewise
    lawn_allocator_t allocator;
    lawn::Trace *trace; // or nullptr
    lawn::Page *page;   // likewise

    // Sleeping; -1 until something needs it. wake() reads some of it, so that
    // is stored atomically.
    int epoll_fd;
    int timer_fd;
    unsigned forks;     // fork_count when they were opened
    unsigned signature; // by which timer_fd is known
    lawn_time_t armed;  // what timer_fd is set to; INFINITY: nothing
};

namespace lawn
{

// A clock as parameters give it: NULL is the processor's.
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
    // NaN and infinity fail here too.
    return ticks_per_sec >= 0 && ticks_per_sec <= __DBL_MAX__;
}

// The clock was read and shows `now`, which is before the latest pass. Returns
// the time of that, from which the engine's time goes on.
lawn_time_t go_on(lawn_engine_t *engine, lawn_time_t now);

// The engine's time, which does not go back behind the latest pass.
inline lawn_time_t read_clock(lawn_engine_t *engine)
{
    const lawn_time_t now = read_ticks(engine) + engine->offset;
    return LAWN_LIKELY(now >= engine->now) ? now : go_on(engine, now);
}

// Inside a pass, or a callback of somebody else's advance or drain of the lawn.
inline bool is_inside(const lawn_engine_t *engine)
{
    return engine->in_pass || is_busy(engine->lawn);
}

// When to pass again, for the lawn or a passenger.
inline lawn_time_t next_of(const lawn_engine_t *engine)
{
    lawn_time_t next = lawn_next(engine->lawn);
    for (const Passenger *i = engine->passengers; i; i = i->behind) {
        next = i->pass ? earlier_of(next, i->next(i->arg)) : next;
    }
    return next;
}

// The next pass is late when it comes later than usual after `time`.
inline void expect_pass(lawn_engine_t *engine, lawn_time_t time)
{
    engine->notable_at = add_saturating(time, engine->notable_gap);
}

// A pass has come at `notable_at` or later. True: it is a stall.
bool note_gap(lawn_engine_t *engine, lawn_time_t now);

// A pass at `now` has touched timers.
void note_work(lawn_engine_t *engine, Work done, lawn_time_t now);

// The clock has gone back by `step`.
void note_step(lawn_engine_t *engine, lawn_time_t step);

// Polls a source `arg` and measures how long that takes.
unsigned poll_timed(void *arg);

inline void add_passenger(lawn_engine_t *engine, Passenger *passenger)
{
    passenger->behind = engine->passengers;
    engine->passengers = passenger;
    engine->has_rest = true;
}

inline void remove_passenger(lawn_engine_t *engine, const Passenger *passenger)
{
    Passenger **link = &engine->passengers;
    while (*link != passenger) {
        link = &(*link)->behind;
    }
    *link = passenger->behind;
}

// Lets `fd` wake a sleeping engine. IO, with errno.
lawn_status_t watch(lawn_engine_t *engine, int fd);

// Undoes watch() for a source that is leaving, unless another shares its fd.
void unwatch(lawn_engine_t *engine, const lawn_source_t *source);

// Wakes the engine `arg` from another thread, which has found it asleep.
void wake(void *arg);

// Closes what sleeping has opened; in the child of a fork, for it alone.
void close_sleep(lawn_engine_t *engine);

} // namespace lawn

#endif
