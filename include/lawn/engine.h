/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/engine.h - the polling-progress engine: sources of work, one lawn, and
 * one reading of the clock per pass.
 *
 *     while (running) {
 *         lawn_engine_progress(engine);
 *     }
 *
 * One pass reads the clock, polls every source, then expires timers with the
 * time read before the poll. Receive comes first: an ACK that is already there
 * must stop its timer. A pass that comes late, because the process was
 * stopped or descheduled, polls every source once more before it expires
 * anything, so that a sleeper does not take its own absence for its peers'.
 *
 * No hidden threads, no signals. An engine belongs to one thread at a time;
 * engines are independent of each other. Only create, add and the first
 * arm, fd or wait allocate or call the kernel.
 *
 * A child of fork() has an engine of its own in what it inherits, timers and
 * sources included, and nothing that it does to it is felt by the parent. It
 * asks for lawn_engine_fd() anew; its calls are not traced.
 */
#ifndef LAWN_ENGINE_H
#define LAWN_ENGINE_H

#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_engine lawn_engine_t;
typedef struct lawn_source lawn_source_t;

/* Polls something (a completion queue, a ring) without blocking and returns
 * how much work it did, as ucp_worker_progress does; 0 is none. It may add and
 * remove sources, itself included, and do anything to timers. It may not run
 * or destroy its engine. */
typedef unsigned (*lawn_poll_fn_t)(void *arg);

/* A clock: ticks that never go back. */
typedef lawn_time_t (*lawn_clock_fn_t)(void *arg);

/* Zero-filled is the default of everything. Times are ticks. */
typedef struct {
    lawn_clock_fn_t clock; /* NULL: lawn_get_time() */
    void *clock_arg;
    double ticks_per_sec; /* of `clock`; 0: lawn_time_sec_value() */
    /* Most timers fired per pass; 0: 64. Work left over is done by the next
     * pass, after it has polled. */
    unsigned budget;
    /* A pass this long after the one before is a stall; 0: 10 ms. */
    lawn_time_t stall_threshold;
    lawn_params_t lawn; /* of the engine's lawn */
} lawn_engine_params_t;

typedef struct {
    uint64_t passes;
    uint64_t fired;          /* timers */
    uint64_t stalls;         /* passes that came late */
    lawn_time_t worst_stall; /* ticks between two passes */
} lawn_engine_stats_t;

/* Makes an engine without sources. `params` may be NULL and need not outlive
 * the call. INVALID_PARAM (also for a negative or NaN rate), NO_MEMORY.
 *
 * With LAWN_TRACE=FILE in the environment, what is done to the timers of the
 * engine's lawn is recorded in FILE, or FILE.1, FILE.2, ... for the next
 * engines of the process, to be replayed by lawn_bench (doc/trace.md). A pass
 * may then write to the file. IO when it cannot be opened. */
LAWN_API lawn_status_t lawn_engine_create(const lawn_engine_params_t *params,
                                          lawn_engine_t **engine_p);

/* Removes the sources and destroys the lawn (see lawn_destroy). Closes no
 * file descriptor of the caller's. Not from inside a pass, nor from another
 * advance or drain of its lawn (an assertion in debug builds, ignored in
 * release builds). NULL does nothing. */
LAWN_API void lawn_engine_destroy(lawn_engine_t *engine);

/* Adds a source, polled from the next pass on, in the order of adding. `fd`
 * becomes readable when the source may have work, and stays the caller's; with
 * -1 the source cannot wake a sleeping engine. `source_p` may be NULL.
 * INVALID_PARAM, NO_MEMORY, or IO for an fd that cannot be polled. */
LAWN_API lawn_status_t lawn_engine_add(lawn_engine_t *engine,
                                       lawn_poll_fn_t poll, void *arg, int fd,
                                       lawn_source_t **source_p);

/* Removes a source; it is not polled again, not even in the pass that runs.
 * Remove it before its fd is closed. */
LAWN_API void lawn_engine_remove(lawn_engine_t *engine, lawn_source_t *source);

/* One pass. Returns the work done: what the sources returned and the timers
 * fired; 0 means that there was nothing to do. Never blocks, never allocates.
 * Called from inside a pass it does nothing (an assertion in debug builds). */
LAWN_API unsigned lawn_engine_progress(lawn_engine_t *engine);

/* The time read by the latest pass; costs a load. Before the first pass, the
 * time of creation. */
LAWN_API lawn_time_t lawn_engine_now(const lawn_engine_t *engine);

/* The engine's lawn, for lawn_timer_start() with lawn_engine_now(). The time
 * of the pass is a little old: such a timer may be short by the length of the
 * pass so far, measured on the wall; lawn_engine_start() is not. */
LAWN_API lawn_t *lawn_engine_lawn(lawn_engine_t *engine);

/* lawn_timer_start() with the clock read here: exact wherever it is called. */
LAWN_API void lawn_engine_start(lawn_engine_t *engine, lawn_timer_t *timer,
                                lawn_time_t ttl);

/* lawn_timer_stop() on the engine's lawn. */
LAWN_API bool lawn_engine_stop(lawn_engine_t *engine, lawn_timer_t *timer);

/* lawn_next() of the engine's lawn. */
LAWN_API lawn_time_t lawn_engine_next(const lawn_engine_t *engine);

LAWN_API void lawn_engine_query(const lawn_engine_t *engine,
                                lawn_engine_stats_t *stats);

/*
 * Sleeping. A program that may block waits on lawn_engine_fd() with its own
 * poll() or epoll, after arming:
 *
 *     while (lawn_engine_progress(engine)) {
 *     }
 *     if (lawn_engine_arm(engine) == LAWN_OK) {
 *         poll(&(struct pollfd){lawn_engine_fd(engine), POLLIN, 0}, 1, -1);
 *     }
 *
 * or calls lawn_engine_wait(), which is that.
 */

/* Sets the fd's timer to the next deadline. BUSY when a timer is due or a
 * source's fd is readable: poll again instead of sleeping. IO when the kernel
 * refuses. Not from inside a pass, nor from another advance or drain of the
 * lawn: INVALID_PARAM. */
LAWN_API lawn_status_t lawn_engine_arm(lawn_engine_t *engine);

/* An epoll descriptor, readable when a source's fd is, or when the timer set
 * by the last arm has run out. The engine's: do not close it. -1, with errno,
 * when the kernel refuses. */
LAWN_API int lawn_engine_fd(lawn_engine_t *engine);

/* Arms and blocks until something is ready (LAWN_OK; also when something was
 * ready at once or a signal came) or `max_wait` ticks have passed (TIMED_OUT;
 * LAWN_TIME_INFINITY waits for ever). IO as arm. */
LAWN_API lawn_status_t lawn_engine_wait(lawn_engine_t *engine,
                                        lawn_time_t max_wait);

LAWN_END_DECLS

#endif
