// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The structures behind lawn_engine_t and lawn_source_t, and the border between
// the pass (engine.cc) and sleeping (sleep.cc). The pass itself calls sleep.cc
// only to wake another engine, so a program that never blocks does not pay for
// sleeping. Other rooms include inside.h instead.

#ifndef LAWN_SRC_ENGINE_ENGINE_H
#define LAWN_SRC_ENGINE_ENGINE_H

#include "base/base.h"
#include "base/ticks.h"
#include "engine/inside.h"

namespace lawn
{

struct Engine;
struct Page;
struct Trace;

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
    lawn::Engine *engine;
};

namespace lawn
{

struct Engine : lawn_engine {
    // A pass, or a sleep that begins, at `notable_at` or later is a stall, or
    // ends the longest gap so far. `notable_at` is `notable_gap` after the
    // latest pass or the end of a sleep.
    lawn_time_t notable_at;
    lawn_time_t notable_gap;
    lawn_time_t stall_threshold;
    lawn_source_t *first;
    lawn_source_t *last;
    lawn_box_t *box;  // nullptr until lawn_engine_box()
    bool has_removed; // sources wait to be freed after the polls
    bool times_sources;
    uint32_t sequence; // counter for `stats`; odd during a change
    uint32_t resets;   // counter for `late`; odd during a reset
    lawn_engine_stats_t stats;
    lawn_histogram_t late;
    Trace *trace; // or nullptr
    Page *page;   // or nullptr

    // For sleeping. The descriptors are -1 until they are needed. wake() reads
    // `timer_fd`, `forks` and `signature` in other threads, so these are stored
    // atomically.
    int epoll_fd;
    int timer_fd;
    unsigned forks;     // lawn::forks when the descriptors were opened
    unsigned signature; // identifies timer_fd
    lawn_time_t armed;  // the time timer_fd is set to; INFINITY: none
};

inline Engine *impl_of(lawn_engine_t *engine)
{
    return static_cast<Engine *>(engine);
}

inline const Engine *impl_of(const lawn_engine_t *engine)
{
    return static_cast<const Engine *>(engine);
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
inline void expect_pass(Engine *engine, lawn_time_t time)
{
    engine->notable_at = add_saturating(time, engine->notable_gap);
}

// Handles a pass, or a sleep that begins, at `notable_at` or later. Returns
// true if it is a stall.
bool note_gap(Engine *engine, lawn_time_t now);

// Counts the work of a pass at `now` that has touched timers.
void note_work(Engine *engine, Work done, lawn_time_t now);

// Counts that the clock has gone back by `step`.
void note_step(Engine *engine, lawn_time_t step);

// Polls the source `arg`, and measures how long the poll takes.
unsigned poll_timed(void *arg);

// Lets `fd` wake a sleeping engine. Returns OK, or IO with errno.
lawn_status_t watch(Engine *engine, int fd);

// Closes the descriptors that sleeping has opened. In the child of a fork, this
// does not affect the parent.
void close_sleep(Engine *engine);

} // namespace lawn

#endif
