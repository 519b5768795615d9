/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/engine.h - the polling-progress engine: for programs that poll sources
 * of work (completion queues, rings) and have timers beside them. One lawn, and
 * one reading of the clock per pass.
 *
 *     lawn_engine_create(NULL, &engine);
 *     lawn_engine_add(engine, poll_my_queue, queue, -1, NULL);
 *     lawn_engine_start(engine, &timer, lawn_time_from_usec(500));
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
 * The engine's time is its clock's, and does not go back when the clock does.
 * When a counter goes back by more than a millisecond, as it may when a machine
 * is suspended or a guest migrated or restored (lawn/time.h), the engine adds
 * an offset from then on: its time goes on from the latest pass, and each timer
 * keeps what remained of it then. A timer is so late by no more than what the
 * engine did not see: the time between the pass before and the reading that
 * found the step. Smaller steps, the skew between two processors, are waited
 * for. A clock that jumps forward makes timers due, and the pass late. All
 * times that an engine takes and gives, its lawn's included, are on the
 * engine's time.
 *
 * No hidden threads, no signals. Threads: an engine belongs to one at a time,
 * but for lawn_engine_time() and the timers of its box; engines are independent
 * of each other. Only create, add and box allocate; only create, add, remove,
 * destroy, arm, fd and wait call the kernel.
 *
 * A child of fork() has an engine of its own in what it inherits, timers and
 * sources included, and nothing that it does to it is felt by the parent. It
 * asks for lawn_engine_fd() anew; its calls are not traced. A program, child or
 * not, may close the engine's descriptors unasked, as daemons do with all: the
 * next arm, wait, fd or add opens new ones, which lawn_engine_fd() tells, and
 * no file that has got their numbers meanwhile is touched.
 */
#ifndef LAWN_ENGINE_H
#define LAWN_ENGINE_H

#include <lawn/shared.h>
#include <lawn/stats.h>
#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_engine lawn_engine_t;
typedef struct lawn_source lawn_source_t;

/* Polls something (a completion queue, a ring) without blocking and returns
 * how much work it did, as ucp_worker_progress does; 0 is none. It may add and
 * remove sources, itself included, and do anything to timers. It may not run
 * or destroy its engine. */
typedef unsigned (*lawn_poll_fn_t)(void *arg);

/* A clock, in ticks. It may stand still; what the engine does when it goes back
 * is told above. Called by the engine's thread, and by those that call
 * lawn_engine_time(). */
typedef lawn_time_t (*lawn_clock_fn_t)(void *arg);

/* Zero-filled is the default of everything. Times are ticks. */
typedef struct {
    lawn_clock_fn_t clock; /* NULL: lawn_get_time() */
    void *clock_arg;
    double ticks_per_sec; /* of `clock`; 0: lawn_time_sec_value() */
    /* Most timers touched per pass: fired, moved, or let go after a pause
     * (lawn_advance); 0: 64. Work left over is done by the next pass, after it
     * has polled. */
    unsigned budget;
    /* A pass this long after the one before is a stall; 0: 10 ms. */
    lawn_time_t stall_threshold;
    lawn_params_t lawn; /* of the engine's lawn */
    /* Measure how long each poll of a source takes. That reads the clock twice
     * more for each source in each pass. */
    bool time_sources;
    /* Not NULL: a statistics page of this name (its first 63 bytes), for
     * lawn_top to show. Without, there is one where LAWN_STATS=NAME is in the
     * environment. It is a file in /dev/shm that the user alone may read, and
     * that lawn_engine_destroy() removes; every 10 ms, and before it sleeps,
     * the engine copies there what it counts. IO, and a line on stderr that
     * says why, when there can be none. */
    const char *stats_name;
} lawn_engine_params_t;

/* Counted since creation, or since lawn_engine_reset_stats(). */
typedef struct {
    uint64_t passes;
    uint64_t fired;          /* timers */
    uint64_t stalls;         /* passes that came late */
    lawn_time_t worst_stall; /* ticks between two passes, of those */
    uint64_t clock_steps;    /* times that the clock has gone back by > 1 ms */
    lawn_time_t worst_step;  /* ticks, the farthest */
    uint64_t moved;          /* timers touched that did not fire */
    uint64_t budget_ends;    /* passes that left over what was due */
    lawn_time_t worst_pass;  /* ticks between two passes, of all */
    lawn_time_t worst_late;  /* ticks between a deadline and the pass of it */
    /* With `time_sources`: the longest poll, in ticks, and what was polled, the
     * addresses given to lawn_engine_add(). */
    lawn_time_t worst_poll;
    uint64_t worst_poll_fn;
    uint64_t worst_poll_arg;
} lawn_engine_stats_t;

/* Makes an engine without sources. `params` may be NULL and need not outlive
 * the call. INVALID_PARAM (also for a negative or NaN rate), NO_MEMORY.
 *
 * With LAWN_TRACE=FILE in the environment, what is done to the timers of the
 * engine's lawn is recorded in FILE, or FILE.1, FILE.2, ... for the next
 * engines of the process, to be replayed by lawn_bench (doc/trace.md). A pass
 * may then write to the file. IO when it cannot be opened, and a line on stderr
 * that says why. */
static inline lawn_status_t
lawn_engine_create(const lawn_engine_params_t *params,
                   lawn_engine_t **engine_p);
LAWN_API lawn_status_t lawn_engine_create_sized(
    const lawn_engine_params_t *params, size_t size, lawn_engine_t **engine_p);

/* Removes the sources and destroys the lawn (see lawn_destroy). Closes the
 * engine's own file descriptors, and none of the caller's, also where those
 * have got the numbers of what the caller had closed. Not from inside a pass,
 * nor from another advance or drain of its lawn, nor while it is a worker
 * (lawn/group.h): an assertion in debug builds, ignored in release builds. NULL
 * does nothing. */
LAWN_API void lawn_engine_destroy(lawn_engine_t *engine);

/* Adds a source, polled from the next pass on, in the order of adding. `fd`
 * becomes readable when the source may have work, and stays the caller's; with
 * -1 the source cannot wake a sleeping engine. `source_p` may be NULL.
 * INVALID_PARAM, NO_MEMORY, or IO for an fd that cannot be polled. */
LAWN_API lawn_status_t lawn_engine_add(lawn_engine_t *engine,
                                       lawn_poll_fn_t poll, void *arg, int fd,
                                       lawn_source_t **source_p);

/* Removes a source, and frees it; it is not polled again, not even in the pass
 * that runs. Remove it before its fd is closed. Cannot fail. */
LAWN_API void lawn_engine_remove(lawn_engine_t *engine, lawn_source_t *source);

/* One pass. Returns the work done: what the sources returned, and the timers
 * touched, fired or only moved, UINT_MAX at most. 0 means that there was
 * nothing to do, so a loop that goes on until then leaves nothing that is due.
 * Never blocks, never allocates, cannot fail. Called from inside a pass it does
 * nothing (an assertion in debug builds). */
LAWN_API unsigned lawn_engine_progress(lawn_engine_t *engine);

/* The time read by the latest pass, in ticks; costs a load. Before the first
 * pass, the time of creation. It is as old as the pass: a timer started with it
 * may be short by that much on the wall. The engine's thread only. */
LAWN_API lawn_time_t lawn_engine_now(const lawn_engine_t *engine);

/* The engine's time now, in ticks, from any thread while the engine lives;
 * reads the clock, with no lock and no system call of its own. Never before the
 * latest pass that the thread knows of. Between two passes it may be ahead of
 * where the time goes on if the clock goes back then. */
LAWN_API lawn_time_t lawn_engine_time(const lawn_engine_t *engine);

/* The engine's lawn, for lawn_timer_start() with lawn_engine_now(). The time
 * of the pass is a little old: such a timer may be short by the length of the
 * pass so far, measured on the wall; lawn_engine_start() is not. Not for
 * lawn_get_time(), which may have gone back. */
LAWN_API lawn_t *lawn_engine_lawn(lawn_engine_t *engine);

/* The box of the engine, for timers that other threads start and stop
 * (lawn/shared.h), with deadlines on lawn_engine_time(). Each pass drains it
 * before it expires timers, of `budget` messages at most. A sleeping engine
 * wakes for a deadline before the one that it sleeps until, and for a retired
 * timer; that costs the other thread two system calls. The engine's: made by
 * the first call, which allocates, and destroyed with it. NULL when there is no
 * memory. The engine's thread. */
LAWN_API lawn_box_t *lawn_engine_box(lawn_engine_t *engine);

/* lawn_timer_start() with the clock read here: exact wherever it is called.
 * `ttl` is in ticks; LAWN_TIME_INFINITY is never. So are the 2^32 ticks below
 * it, a negative difference in disguise, but for an assertion in debug builds.
 * Cannot fail, never allocates. */
LAWN_API void lawn_engine_start(lawn_engine_t *engine, lawn_timer_t *timer,
                                lawn_time_t ttl);

/* lawn_timer_stop() on the engine's lawn. */
LAWN_API bool lawn_engine_stop(lawn_engine_t *engine, lawn_timer_t *timer);

/* lawn_next() of the engine's lawn: when to make a pass at the latest, or
 * earlier; 0 when a pass has ended at its budget. */
LAWN_API lawn_time_t lawn_engine_next(const lawn_engine_t *engine);

/* What the engine has counted, as of the end of a pass: all of one, but for
 * `passes` and `worst_late`, which may be of a later one. Timers of shards and
 * of shared memory that the engine runs as a passenger are not among `fired`.
 * Any thread while the engine lives; waits for no lock. */
static inline void lawn_engine_query(const lawn_engine_t *engine,
                                     lawn_engine_stats_t *stats);
LAWN_API void lawn_engine_query_sized(const lawn_engine_t *engine,
                                      lawn_engine_stats_t *stats, size_t size);

/* Copies the histogram of how late timers have fired, in ticks: each by the
 * time of its pass less its deadline. A timer that was started with a deadline
 * already past is as late as that. Any thread while the engine lives. */
LAWN_API void lawn_engine_query_lateness(const lawn_engine_t *engine,
                                         lawn_histogram_t *late);

/* Begins to count anew: the statistics and the histogram are as after creation.
 * The engine's thread. */
LAWN_API void lawn_engine_reset_stats(lawn_engine_t *engine);

/* How many timers are due and have not fired: after a pass that has ended at
 * its budget, those that it has left over; 0 otherwise. Looks at each of them
 * (lawn_backlog in lawn/stats.h). The engine's thread, between passes. */
LAWN_API size_t lawn_engine_backlog(const lawn_engine_t *engine);

/* Records from now on what is done to the timers of the engine's lawn in the
 * file `path`, which it replaces, as LAWN_TRACE does from the beginning
 * (doc/trace.md). A timer that runs already has a start there, of what remains
 * of it. Ends a recording under way first, and does only that when `path` is
 * NULL. Allocates, and takes time for every timer that runs; each call to a
 * timer takes some tens of nanoseconds more until it ends. NO_MEMORY; IO, with
 * errno, when the file cannot be opened or another process records to it;
 * INVALID_PARAM from inside an advance or a drain. The engine's thread. */
LAWN_API lawn_status_t lawn_engine_trace(lawn_engine_t *engine,
                                         const char *path);

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

/* Sets the fd's timer to the next deadline, with the clock read just before it
 * is set. BUSY when a timer is due or a source's fd is readable: poll again
 * instead of sleeping. IO, with errno, when the kernel refuses. Not from inside
 * a pass, nor from another advance or drain of the lawn: INVALID_PARAM. Costs
 * three system calls, a fourth where the deadline is another than before, and a
 * look at no more than 256 timers. Where those do not tell the earliest
 * deadline, the fd wakes the program before it, for passes that move more than
 * 256 timers, each at most 21 times: timers that were started together wake it
 * at most 21 times before they fire, however many they are. */
LAWN_API lawn_status_t lawn_engine_arm(lawn_engine_t *engine);

/* An epoll descriptor, readable when a source's fd is, or when the timer set
 * by the last arm has run out. The engine's: do not close it. The same one from
 * call to call, but for what is said above of fork() and of those who close it
 * nevertheless. -1, with errno, when the kernel refuses. */
LAWN_API int lawn_engine_fd(lawn_engine_t *engine);

/* Arms and blocks until something is ready (LAWN_OK; also when something was
 * ready at once or a signal came) or `max_wait` ticks have passed (TIMED_OUT;
 * LAWN_TIME_INFINITY waits for ever). IO as arm. */
LAWN_API lawn_status_t lawn_engine_wait(lawn_engine_t *engine,
                                        lawn_time_t max_wait);

static inline lawn_status_t
lawn_engine_create(const lawn_engine_params_t *params, lawn_engine_t **engine_p)
{
    return lawn_engine_create_sized(params, sizeof(*params), engine_p);
}

static inline void lawn_engine_query(const lawn_engine_t *engine,
                                     lawn_engine_stats_t *stats)
{
    lawn_engine_query_sized(engine, stats, sizeof(*stats));
}

LAWN_END_DECLS

#endif
