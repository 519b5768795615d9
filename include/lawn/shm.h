/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/shm.h - timers that other processes start, and one process runs.
 *
 *     lawn_shm_create(engine, "/dev/shm/timers", NULL, &shm);   // the owner
 *
 *     lawn_shm_open("/dev/shm/timers", NULL, NULL, &client);    // a client
 *     lawn_shm_alloc(client, cookie, &timer);
 *     lawn_shm_start(client, timer, lawn_shm_time(client) + ttl);
 *     lawn_shm_wait(client, LAWN_TIME_INFINITY);
 *     while (lawn_shm_next(client, &event)) { ... event.cookie ... }
 *
 * The idea is that of lawn/shared.h, in memory that processes share. A timer is
 * a deadline that its client stores, and a plain timer in the owner's lawn,
 * which checks that deadline in time. Only a start with a deadline before the
 * plain timer's sends a message. Expired timers come back in a list of the
 * client. Callbacks are not possible across processes: a cookie tells which
 * timer has expired.
 *
 * The memory holds no pointers and no locks. A client may be killed between any
 * two of its instructions: the owner notices it, by a pidfd, and takes back
 * everything that the client had. If the client was still in lawn_shm_open(),
 * the owner may notice it only in a later pass. If the owner is gone,
 * lawn_shm_wait() tells the client. An owner that calls exec() without
 * lawn_shm_destroy() is gone, too, but its clients learn of that only when the
 * next owner comes. While a child of the old program lives, only the process
 * itself can be the next owner. Owner and clients run on one machine, in one
 * PID namespace, with one clock, on Linux 5.3 or later. They trust each other.
 *
 * A timer belongs to its client, and all threads of the client may start and
 * stop it. Times are ticks of the owner's engine: lawn_shm_time(). After a
 * fork() the child must use neither an owner nor a client of its parent. It may
 * open a client of its own. If the child runs an engine that it has inherited,
 * that engine runs no timers of the memory. lawn_shm_destroy() then frees the
 * child's copy of the owner, and lawn_shm_close() that of a client. Both leave
 * the memory and its files alone, and the descriptors, which exec() closes.
 *
 * Only lawn_shm_create() and lawn_shm_open() allocate. A timer in a call must
 * be the client's (an assertion in debug builds): release builds do nothing for
 * another one, and return false.
 */
#ifndef LAWN_SHM_H
#define LAWN_SHM_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_shm lawn_shm_t;
typedef struct lawn_shm_client lawn_shm_client_t;

/* A timer of a client. 0 is no timer. */
typedef uint32_t lawn_shm_timer_t;

/* Called in the owner's pass for a timer that has expired, with the client's
 * cookie and the deadline of the start. Returns when the timer expires next. If
 * it returns LAWN_TIME_INFINITY, the timer is stopped and its client gets the
 * event. If the client starts the timer during the call, that start counts, and
 * the client gets the event of this expiry as well. During the call, a stop of
 * the client returns false, although the timer may go on. If the client starts
 * and stops the timer during the call, the timer may go on, too. The engine's
 * thread calls this function, which may start and stop timers. */
typedef lawn_time_t (*lawn_shm_expired_fn_t)(void *arg, lawn_shm_timer_t timer,
                                             uint64_t cookie,
                                             lawn_time_t deadline,
                                             lawn_time_t now);

/* Zero-filled is the default of everything. */
typedef struct {
    unsigned timers;  /* of all clients together; 0: 65536. 112 bytes each */
    unsigned clients; /* at a time; 0: 64 */
    unsigned mode;    /* of all files, as open(2) takes it; 0: 0600 */
    lawn_shm_expired_fn_t expired; /* NULL: clients get all events */
    void *arg;                     /* of `expired` */
} lawn_shm_params_t;

typedef struct {
    lawn_shm_timer_t timer;
    uint64_t cookie;
    lawn_time_t deadline; /* of the start that has expired; identifies it */
} lawn_shm_event_t;

typedef struct {
    unsigned clients; /* that are open */
    unsigned timers;  /* that they have */
    uint64_t deaths;  /* clients that ended without lawn_shm_close() */
} lawn_shm_stats_t;

/* ---- The owner. */

/* Makes the memory and has `engine` run its timers. The memory is a file at
 * `path`, best on a tmpfs such as /dev/shm. Beside it there are FIFOs that wake
 * sleepers, named `path`.E.N with a number E of this owner's, with the file's
 * mode and group. The process may
 * change its directory later. If an earlier owner is gone, its files are
 * replaced, even if a child that it has forked still lives. An owner that is
 * killed in this call may leave FIFOs that nobody removes. In a directory such
 * as /tmp, the FIFO of a client that is another user stays if the client is
 * killed. Returns INVALID_PARAM, NO_MEMORY, BUSY if there is an owner, or IO
 * with errno. That is EEXIST if `path` is a file of another kind, or a symbolic
 * link to no file, which stays as it is. Only the engine's thread may call it,
 * outside a pass. */
static inline lawn_status_t lawn_shm_create(lawn_engine_t *engine,
                                            const char *path,
                                            const lawn_shm_params_t *params,
                                            lawn_shm_t **shm_p);
LAWN_API lawn_status_t lawn_shm_create_sized(lawn_engine_t *engine,
                                             const char *path,
                                             const lawn_shm_params_t *params,
                                             size_t size, lawn_shm_t **shm_p);

/* Stops all timers and removes the files. If somebody has put another file at
 * `path`, that one stays. Clients may still call any function: every start
 * returns false, and lawn_shm_wait() says that the owner is gone. Call it
 * before the engine is destroyed. Only the engine's thread may call it, outside
 * a pass. NULL does nothing. */
LAWN_API void lawn_shm_destroy(lawn_shm_t *shm);

/* Ends all timers that run, of all clients, as if they were due now. `expired`
 * is called for each, with a `now` that may be before `deadline`. The clients
 * get their events, whose deadlines may be still to come. Returns the number of
 * timers. It looks at all timers. A timer that is started meanwhile, in
 * `expired` for example, may be ended or not. Only the engine's thread may call
 * it; `expired` must not. The child of a fork has nothing to end. */
LAWN_API unsigned lawn_shm_drain(lawn_shm_t *shm);

/* Counts clients, timers and deaths. Only the engine's thread may call it. */
static inline void lawn_shm_query(const lawn_shm_t *shm,
                                  lawn_shm_stats_t *stats);
LAWN_API void lawn_shm_query_sized(const lawn_shm_t *shm,
                                   lawn_shm_stats_t *stats, size_t size);

/* The id that tells this owner from other owners and from their clients. It is
 * below 2^62 and never 0. Any thread may call it. */
LAWN_API uint64_t lawn_shm_owner_id(const lawn_shm_t *shm);

/* ---- Clients. */

/* Becomes a client of the owner at `path`. `clock(clock_arg)` must be the clock
 * of the owner's engine, or NULL if the engine uses lawn_get_time(). Returns
 * INVALID_PARAM, NO_MEMORY, NO_ELEM if there is no owner or `path` is a
 * symbolic link to its file, UNSUPPORTED if the owner has another version of
 * the memory or another clock, BUSY if there is no room for another client, or
 * IO with errno. That is EACCES, too, if the owner is a user that could not
 * open this client's FIFO. A process that calls exec() without lawn_shm_close()
 * keeps the client's place and timers until it ends. Any thread may call it. */
LAWN_API lawn_status_t lawn_shm_open(const char *path, lawn_clock_fn_t clock,
                                     void *clock_arg,
                                     lawn_shm_client_t **client_p);

/* Ends the client. The next pass that the owner begins stops its timers,
 * without a call of `expired`, and gives them and the client's place to others.
 * A pass that has begun may still call `expired`. An owner that sleeps is woken
 * for this. Other clients learn of it by lawn_shm_is_open(). Events that were
 * not polled are lost. No other call for the client may be in progress. NULL
 * does nothing. Any thread may call it. */
LAWN_API void lawn_shm_close(lawn_shm_client_t *client);

/* The id that tells this client from all other clients that the owner has had,
 * and, but for a chance of one in 2^29, from those of owners before it. It is
 * below 2^62 and never 0. Any thread may call it. */
LAWN_API uint64_t lawn_shm_id(const lawn_shm_client_t *client);

/* Whether the client with that id is still there. `id` may be that of any
 * client of the same owner. Returns false if that client was closed or has
 * died, and the owner has taken back everything that it had. If `id` is 0 or
 * the owner's own, the question is whether the owner is still there, which
 * takes a system call; the child of a fork that asks its parent's client about
 * the owner gets false. Any thread may call it. */
LAWN_API bool lawn_shm_is_open(const lawn_shm_client_t *client, uint64_t id);

/* The time of the owner's engine, in ticks. Any thread may call it. */
LAWN_API lawn_time_t lawn_shm_time(const lawn_shm_client_t *client);

/* Gets a stopped timer, whose events will have `cookie`. Returns BUSY if all
 * timers are taken. It may look at all timers. Any thread may call it. */
LAWN_API lawn_status_t lawn_shm_alloc(lawn_shm_client_t *client,
                                      uint64_t cookie,
                                      lawn_shm_timer_t *timer_p);

/* Stops a timer and gives it back. Other threads' calls for the timer must have
 * returned before. No call may be made for it any more, and it has no more
 * events. The owner's `expired` may still run for an expiry before the release,
 * and is not called for a later one. Other clients can get the timer when the
 * owner has seen the release and this client has called lawn_shm_next() after
 * that. Any thread may call it. */
LAWN_API void lawn_shm_release(lawn_shm_client_t *client,
                               lawn_shm_timer_t timer);

/* Gives a timer another cookie. The timer must be stopped and have no event to
 * come. Any thread may call it. */
LAWN_API void lawn_shm_set_cookie(lawn_shm_client_t *client,
                                  lawn_shm_timer_t timer, uint64_t cookie);

/* Starts `timer`, or re-arms it, to expire at `deadline`. A deadline in the
 * past is due at the owner's next pass. LAWN_TIME_INFINITY is never. Returns
 * false after the owner's lawn_shm_destroy(); it does not notice an owner that
 * was killed. It costs one exchange. If the owner needs a message, it costs two
 * more, and a write(2) if the owner sleeps. An event of an earlier start that
 * was not read yet may still come, or the later event may replace it: the
 * event's `deadline` tells to which start it belongs. Any thread may call it.
 *
 * If a client is stopped in the middle of a start, by a signal for example,
 * when it was about to wake the owner, the owner sleeps until its own deadline,
 * whatever else is started. */
LAWN_API bool lawn_shm_start(lawn_shm_client_t *client, lawn_shm_timer_t timer,
                             lawn_time_t deadline);

/* Stops `timer`. Returns true if the timer was running: that start will have no
 * event. Returns false if it was not running, or if its event is there or on
 * its way. It costs one exchange. Any thread may call it. */
LAWN_API bool lawn_shm_stop(lawn_shm_client_t *client, lawn_shm_timer_t timer);

/* Gets the next event. Events come in any order. Returns false if there is
 * none. It does not call the kernel. One thread at a time may call it. */
LAWN_API bool lawn_shm_next(lawn_shm_client_t *client, lawn_shm_event_t *event);

/* Waits until there is an event. It waits at most `max_wait` ticks of
 * lawn_get_time(), rounded up to a millisecond; 0 does not wait. More than 24
 * days, and LAWN_TIME_INFINITY, is for ever.
 * Returns OK if there may be an event, or TIMED_OUT. Returns NO_ELEM if the
 * owner is gone; events that it has sent can still be read. Returns IO with
 * errno, EINTR included. Only the thread that calls lawn_shm_next() may call
 * it. */
LAWN_API lawn_status_t lawn_shm_wait(lawn_shm_client_t *client,
                                     lawn_time_t max_wait);

static inline lawn_status_t lawn_shm_create(lawn_engine_t *engine,
                                            const char *path,
                                            const lawn_shm_params_t *params,
                                            lawn_shm_t **shm_p)
{
    return lawn_shm_create_sized(engine, path, params, sizeof(*params), shm_p);
}

static inline void lawn_shm_query(const lawn_shm_t *shm,
                                  lawn_shm_stats_t *stats)
{
    lawn_shm_query_sized(shm, stats, sizeof(*stats));
}

LAWN_END_DECLS

#endif
