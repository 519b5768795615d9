/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/engine.h - the polling-progress engine: for programs that poll sources
 * of work (completion queues, rings) and have timers beside them. An engine has
 * one lawn and reads the clock once per pass.
 *
 *     lawn_engine_create(NULL, &engine);
 *     lawn_engine_add(engine, poll_my_queue, queue, -1, NULL);
 *     lawn_engine_start(engine, &timer, lawn_time_from_usec(500));
 *     while (running) {
 *         lawn_engine_progress(engine);
 *     }
 *
 * A pass reads the clock, polls every source, and then expires timers by the
 * time that it read before the polls. It receives first, because an ACK that
 * has already arrived must stop its timer. If a pass comes late, because the
 * process was stopped or descheduled, it polls every source once more before it
 * expires timers. So a process does not take its own absence for the absence of
 * its peers.
 *
 * The engine's time follows its clock, but never goes back. All times that an
 * engine and its lawn take and return are the engine's time.
 *   - The clock may go back by more than a millisecond, when a machine is
 *     suspended, or a guest is migrated or restored (lawn/time.h). The engine's
 *     time then goes on from the latest pass or start, and each timer keeps the
 *     time that it still had then. So a timer is late by no more than the time
 *     between that and the first reading after the step.
 *   - A smaller step back is skew between two processors. The engine's time
 *     stands still until the clock has caught up.
 *   - If the clock jumps forward, timers become due, and the pass is late. A
 *     sleeping engine wakes for what is due after a suspend, whether its clock
 *     has gone on meanwhile or stood still.
 *
 * An engine has no hidden threads and uses no signals. Threads: one thread at a
 * time may use an engine, except for the functions below that any thread may
 * call, and for the timers of its box. Threads may use it in turn, if they
 * synchronise. While one is in a pass or in lawn_engine_wait(), no other may
 * use the engine or its lawn, not even if the first one waits for it. In debug
 * builds, start, stop, add, remove, progress, arm, wait, box and destroy assert
 * this, and that the engine was not destroyed, as long as its memory shows it.
 * Release builds cannot detect it. Engines are independent of each other.
 * Create, add, box and trace allocate. A pass allocates only if lawn_top begins
 * a trace in it. Create, add, remove, destroy, arm, fd, wait and trace call the
 * kernel. A pass calls it only to record a trace, to write a statistics page,
 * or to wake others for the shards and shared memory that it runs.
 *
 * The child of a fork() has its own engine in the memory that it inherits,
 * timers and sources included. Nothing that the child does to it affects the
 * parent. The child must call lawn_engine_fd() again. Its calls are not traced,
 * and it writes no statistics page. A program may also close the engine's
 * descriptors without a call to the engine, as daemons do that close all
 * descriptors. The next arm, wait, fd or add then opens new ones, and
 * lawn_engine_fd() returns the new descriptor. If other files have got the old
 * numbers meanwhile, the engine does not touch these files. A trace whose
 * descriptor was closed ends.
 */
#ifndef LAWN_ENGINE_H
#define LAWN_ENGINE_H

#include <lawn/shared.h>
#include <lawn/stats.h>
#include <lawn/timer.h>

LAWN_BEGIN_DECLS

typedef struct lawn_engine lawn_engine_t;
typedef struct lawn_source lawn_source_t;

/* Polls something (a completion queue, a ring) without blocking, and returns
 * how much work it did, as ucp_worker_progress does. 0 means none. The function
 * may add and remove sources, itself included, and may do anything to timers.
 * It must not run or destroy its engine. */
typedef unsigned (*lawn_poll_fn_t)(void *arg);

/* A clock, in ticks. It may stand still. What the engine does when the clock
 * goes back is said above. The engine's thread calls it, and so does each
 * thread that calls lawn_engine_time(). */
typedef lawn_time_t (*lawn_clock_fn_t)(void *arg);

/* A zero-filled structure selects all defaults. Times are in ticks. */
typedef struct {
    lawn_clock_fn_t clock; /* NULL: lawn_get_time() */
    void *clock_arg;
    double ticks_per_sec; /* of `clock`; 0: lawn_time_sec_value() */
    /* The most timers of the engine's lawn that a pass touches: fires, moves,
     * or lets go after a pause (lawn_advance); 0: 64. The next pass does the
     * work that is left over, after it has polled. Beside these, a pass takes
     * up to `budget` messages from the box, and as many from each lawn_shm_t:
     * twice as many after a stall, as it then polls twice. If the engine is a
     * worker of a group, the shards have a budget of their own. */
    unsigned budget;
    /* A pass this long after the pass before is a stall; 0: 10 ms. */
    lawn_time_t stall_threshold;
    lawn_params_t lawn; /* of the engine's lawn */
    /* Measure how long each poll of a source takes. This reads the clock twice
     * more for each source in each pass. */
    bool time_sources;
    /* The name of a statistics page (its first 63 bytes), which lawn_top shows.
     * If it is NULL, LAWN_STATS=NAME in the environment may give the name. The
     * page is a file in /dev/shm that only the user may read.
     * lawn_engine_destroy() removes it. The engine copies what it counts to the
     * page every 10 ms, and before it sleeps. If the page cannot be made,
     * lawn_engine_create() returns IO and writes the reason to stderr. */
    const char *stats_name;
} lawn_engine_params_t;

/* Counted since creation, or since lawn_engine_reset_stats(). */
typedef struct {
    uint64_t passes;
    uint64_t fired;          /* timers that fired */
    uint64_t stalls;         /* passes and sleeps that came late */
    lawn_time_t worst_stall; /* ticks, longest time before one of these */
    uint64_t clock_steps;    /* times that the clock went back by > 1 ms */
    lawn_time_t worst_step;  /* ticks, longest of these steps */
    uint64_t moved;          /* timers touched that did not fire */
    uint64_t budget_ends;    /* passes that left timers to touch to the next:
                              * due ones, or ones to move or forget */
    /* Ticks, the longest time between two passes. A sleep is not counted: the
     * time before it and the time after it are two times. */
    lawn_time_t worst_pass;
    lawn_time_t worst_late; /* ticks, longest from a deadline to its pass */
    /* With `time_sources`: the longest poll, in ticks, and the source that was
     * polled, by the two addresses given to lawn_engine_add(). */
    lawn_time_t worst_poll;
    uint64_t worst_poll_fn;
    uint64_t worst_poll_arg;
    /* What its connections have counted together, whether they are still open
     * or not: the fields of lawn_conn_stats_t (lawn/conn.h), and dead peers. */
    uint64_t conn_retransmissions;
    uint64_t conn_spurious;
    uint64_t conn_probes;
    uint64_t conn_by_evidence;
    uint64_t conn_asked;
    uint64_t conn_undone;
    uint64_t conn_excused;
    uint64_t conn_dead;
} lawn_engine_stats_t;

/* Makes an engine without sources. `params` may be NULL and need not outlive
 * the call. Returns INVALID_PARAM, also for a rate that is negative, infinite
 * or NaN, or NO_MEMORY.
 *
 * If LAWN_TRACE=FILE is in the environment, FILE records what is done to the
 * timers of the engine's lawn, so that lawn_bench can replay it (doc/trace.md).
 * The next engines of the process record to FILE.1, FILE.2, and so on. A pass
 * may then write to the file. If the file cannot be opened, the call returns IO
 * and writes the reason to stderr. */
static inline lawn_status_t
lawn_engine_create(const lawn_engine_params_t *params,
                   lawn_engine_t **engine_p);
LAWN_API lawn_status_t lawn_engine_create_sized(
    const lawn_engine_params_t *params, size_t size, lawn_engine_t **engine_p);

/* Removes the sources and destroys the lawn (see lawn_destroy). Closes the
 * engine's own file descriptors. If the caller has closed them and other files
 * have got their numbers, those files stay open. Must not be called from inside
 * a pass or from another advance or drain of the lawn. Must not be called while
 * the engine is a worker (lawn/group.h) or runs shared memory (lawn/shm.h).
 * In debug builds such a call fails an assertion. Release builds ignore it.
 * NULL does nothing. */
LAWN_API void lawn_engine_destroy(lawn_engine_t *engine);

/* Adds a source. Passes poll the sources in the order of adding, a new one from
 * the next pass on. `fd` becomes readable when the source may have work. It
 * stays the caller's. If `fd` is -1, the source cannot wake a sleeping engine.
 * `source_p` may be NULL. Returns INVALID_PARAM, NO_MEMORY, or IO if `fd`
 * cannot be polled. */
LAWN_API lawn_status_t lawn_engine_add(lawn_engine_t *engine,
                                       lawn_poll_fn_t poll, void *arg, int fd,
                                       lawn_source_t **source_p);

/* Removes a source and frees it. The source is not polled again, not even in
 * the pass that is running. Remove a source before closing its fd. Cannot
 * fail. */
LAWN_API void lawn_engine_remove(lawn_engine_t *engine, lawn_source_t *source);

/* Makes one pass. Returns the work done, at most UINT_MAX: the sum of what the
 * sources returned, plus the timers touched, whether they fired or only moved.
 * 0 means that there was nothing to do, so a loop that calls this until it
 * returns 0 leaves nothing due. It does not block and cannot fail. It allocates
 * only when lawn_top begins a trace. A call from inside a pass, or from inside
 * another advance or drain of the lawn, does nothing (an assertion in debug
 * builds). */
LAWN_API unsigned lawn_engine_progress(lawn_engine_t *engine);

/* Returns the time that the latest pass has read, in ticks; before the first
 * pass, the time of creation. It costs a load. The time is as old as the pass:
 * a timer that is started with it may be early by that much in real time.
 * Engine's thread only. */
LAWN_API lawn_time_t lawn_engine_now(const lawn_engine_t *engine);

/* Returns the engine's time now, in ticks. It reads the clock, and takes no
 * lock and makes no system call of its own. The result is never before the
 * latest pass that the thread knows of. If the clock goes back between two
 * passes, a time read before the step may be later than the time from which the
 * engine continues. Any thread, while the engine lives. */
LAWN_API lawn_time_t lawn_engine_time(const lawn_engine_t *engine);

/* Returns the engine's lawn, for lawn_timer_start() with lawn_engine_now().
 * That time is a little old: such a timer may be early, in real time, by the
 * length of the pass so far. A timer that lawn_engine_start() starts is not
 * early. Do not use lawn_get_time() here: it may go back, and the engine's time
 * does not. */
LAWN_API lawn_t *lawn_engine_lawn(lawn_engine_t *engine);

/* Returns the box of the engine, for timers that other threads start and stop
 * (lawn/shared.h). Their deadlines are on lawn_engine_time(). Each pass drains
 * the box before it expires timers: `budget` messages at most in each of its
 * polls. A sleeping engine wakes for a retired timer, and for a deadline before
 * the time until which it sleeps. That costs the other thread two system calls.
 * The first call makes the box and allocates. The engine owns the box and
 * destroys it. Returns NULL if there is no memory. Engine's thread only. */
LAWN_API lawn_box_t *lawn_engine_box(lawn_engine_t *engine);

/* Starts a timer as lawn_timer_start() does, and reads the clock for that, so
 * the deadline is exact wherever the call is made. `ttl` is in ticks.
 * LAWN_TIME_INFINITY never expires. The 2^32 values below it are negative
 * differences: an assertion in debug builds; in release builds they never
 * expire. Cannot fail. Does not allocate. */
LAWN_API void lawn_engine_start(lawn_engine_t *engine, lawn_timer_t *timer,
                                lawn_time_t ttl);

/* Calls lawn_timer_stop() on the engine's lawn. Returns true if the timer was
 * running. */
LAWN_API bool lawn_engine_stop(lawn_engine_t *engine, lawn_timer_t *timer);

/* Returns the time by which the next pass must run: lawn_next() of the engine's
 * lawn and of the shards that it runs. It may be earlier than the earliest
 * deadline. It is 0 when a pass has ended at its budget. */
LAWN_API lawn_time_t lawn_engine_next(const lawn_engine_t *engine);

/* Copies what the engine has counted. All values are of one moment, except
 * `passes` and `worst_late`, which may be of a later pass. `fired` does not
 * count the timers of a group's shards that the engine runs. Any thread, while
 * the engine lives. Waits for no lock. */
static inline void lawn_engine_query(const lawn_engine_t *engine,
                                     lawn_engine_stats_t *stats);
LAWN_API void lawn_engine_query_sized(const lawn_engine_t *engine,
                                      lawn_engine_stats_t *stats, size_t size);

/* Copies the histogram of how late timers have fired, in ticks. The lateness of
 * a timer is the time of its pass less its deadline. This also holds for a
 * timer that was started with a deadline in the past. Any thread, while the
 * engine lives. */
LAWN_API void lawn_engine_query_lateness(const lawn_engine_t *engine,
                                         lawn_histogram_t *late);

/* Resets the statistics and the histogram to what they are after creation.
 * Engine's thread only. */
LAWN_API void lawn_engine_reset_stats(lawn_engine_t *engine);

/* Returns how many timers are due and have not fired. After a pass that has
 * ended at its budget, these are the timers that the pass left over. Otherwise
 * there are none, except timers that were started since and are already due.
 * Looks at each of them (lawn_backlog in lawn/stats.h). Engine's thread only,
 * between passes. */
LAWN_API size_t lawn_engine_backlog(const lawn_engine_t *engine);

/* Records from now on what is done to the timers of the engine's lawn in the
 * file `path`, and replaces that file. LAWN_TRACE does the same from creation
 * on (doc/trace.md). A timer that already runs has a start in the trace, with
 * the TTL that remains. If a recording is under way, it ends first. If `path`
 * is NULL, the call does nothing else. It allocates, and takes time for every
 * timer that runs. Until the recording ends, each call to a timer takes some
 * tens of nanoseconds more. Returns NO_MEMORY; IO, with errno, if the file
 * cannot be opened, is a FIFO that nobody reads, or is one that another engine
 * records to, in this process or another; BUSY if the lawn has an observer of
 * the program's (lawn/observer.h); INVALID_PARAM from inside an advance or a
 * drain. Engine's thread only. */
LAWN_API lawn_status_t lawn_engine_trace(lawn_engine_t *engine,
                                         const char *path);

/*
 * Sleeping. A program that may block first arms the engine. Then it waits on
 * lawn_engine_fd() with its own poll() or epoll:
 *
 *     while (lawn_engine_progress(engine)) {
 *     }
 *     if (lawn_engine_arm(engine) == LAWN_OK) {
 *         poll(&(struct pollfd){lawn_engine_fd(engine), POLLIN, 0}, 1, -1);
 *     }
 *
 * lawn_engine_wait() arms and waits in one call.
 *
 * If the program was absent for `stall_threshold` or longer and then sleeps
 * without a pass, this is counted as a stall. But the next pass polls once:
 * when the sleep began, no timer was due and the fd of no source was readable.
 */

/* Sets the timer of the engine's fd to the next deadline, and reads the clock
 * just before. Returns BUSY if a timer is due, a message is in the box, or the
 * fd of a source is readable: make another pass instead of sleeping. Returns
 * IO, with errno, if the kernel refuses. Returns INVALID_PARAM from inside a
 * pass or another advance or drain of the lawn.
 *
 * It costs three system calls, and a fourth if the deadline has changed. It
 * looks at no more than 256 timers. If it has not found the earliest deadline
 * then, the fd wakes the program before that deadline. The passes after such an
 * early wake-up move more than 256 timers to narrower slots. A timer that is
 * re-armed once moves at most 21 times. So timers that were started together
 * cause at most 21 early wake-ups, whatever their number. */
LAWN_API lawn_status_t lawn_engine_arm(lawn_engine_t *engine);

/* Returns an epoll descriptor. It is readable when the fd of a source is
 * readable, or when the timer set by the last arm has run out. The engine owns
 * it: do not close it. Every call returns the same one, except after fork() or
 * after the program has closed it nevertheless (see above). Returns -1, with
 * errno, if the kernel refuses. */
LAWN_API int lawn_engine_fd(lawn_engine_t *engine);

/* Arms and blocks until something is ready, or until `max_wait` ticks have
 * passed; LAWN_TIME_INFINITY waits for ever. Returns LAWN_OK if something is
 * ready, also at once, or if a signal came. Returns TIMED_OUT if the time has
 * passed. Returns IO and INVALID_PARAM as lawn_engine_arm() does. */
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
