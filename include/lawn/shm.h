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
 * The idea is that of lawn/shared.h, in memory that processes share: a timer is
 * a deadline that its client stores, and a plain timer in the owner's lawn that
 * looks at it no later than that. Only a start that the plain timer would come
 * too late for is a message. What has expired comes back by a list of the
 * client's. Callbacks are not possible across processes: a cookie tells which
 * timer it was.
 *
 * Nothing in the memory is a pointer or a lock. A client may be killed between
 * any two of its instructions: the owner notices, by a pidfd, and takes back
 * all that the client had. A client notices when the owner is gone:
 * lawn_shm_wait() says so. Both run on one machine, in one PID namespace, on
 * one clock, and Linux 5.3 or later; they trust each other.
 *
 * A timer is its client's, whose threads may all start and stop it. Times are
 * ticks of the owner's engine: lawn_shm_time(). After a fork() the child has
 * neither; it may open a client of its own.
 */
#ifndef LAWN_SHM_H
#define LAWN_SHM_H

#include <lawn/engine.h>

LAWN_BEGIN_DECLS

typedef struct lawn_shm lawn_shm_t;
typedef struct lawn_shm_client lawn_shm_client_t;

/* A timer of a client's. Zero is none. */
typedef uint32_t lawn_shm_timer_t;

/* Called in the owner's pass for a timer that has expired: with the client's
 * cookie, and the deadline that it was started with. Returns when the timer
 * expires next; LAWN_TIME_INFINITY: it is stopped, and its client gets the
 * event. While it is being called, a stop of the client's answers false,
 * although the timer may go on. The engine's thread; it may start and stop
 * timers. */
typedef lawn_time_t (*lawn_shm_expired_fn_t)(void *arg, lawn_shm_timer_t timer,
                                             uint64_t cookie,
                                             lawn_time_t deadline,
                                             lawn_time_t now);

/* Zero-filled is the default of everything. */
typedef struct {
    unsigned timers;  /* of all clients together; 0: 65536. 128 bytes each */
    unsigned clients; /* at a time; 0: 64 */
    unsigned mode;    /* of the file, as open(2) takes it; 0: 0600 */
    lawn_shm_expired_fn_t expired; /* NULL: clients get all events */
    void *arg;                     /* of it */
} lawn_shm_params_t;

typedef struct {
    lawn_shm_timer_t timer;
    uint64_t cookie;
    lawn_time_t deadline; /* of the start that has expired, which tells it */
} lawn_shm_event_t;

typedef struct {
    unsigned clients; /* that are there */
    unsigned timers;  /* that they have */
    uint64_t deaths;  /* clients that have ended without lawn_shm_close() */
} lawn_shm_stats_t;

/* ---- The owner. */

/* Makes the memory, a file at `path` (best on a tmpfs, such as /dev/shm), and
 * has `engine` run its timers. Beside it there are FIFOs by which sleepers are
 * woken, named `path`.PID.N. What an owner left there that is gone is replaced.
 * INVALID_PARAM, NO_MEMORY, BUSY when there is an owner, IO with errno. The
 * engine's thread, outside a pass. */
static inline lawn_status_t lawn_shm_create(lawn_engine_t *engine,
                                            const char *path,
                                            const lawn_shm_params_t *params,
                                            lawn_shm_t **shm_p);
LAWN_API lawn_status_t lawn_shm_create_sized(lawn_engine_t *engine,
                                             const char *path,
                                             const lawn_shm_params_t *params,
                                             size_t size, lawn_shm_t **shm_p);

/* Ends it, and removes the files. Clients may still call what they like: every
 * start is false, and lawn_shm_wait() says that the owner is gone. Before the
 * engine is destroyed. The engine's thread, outside a pass. NULL does nothing.
 */
LAWN_API void lawn_shm_destroy(lawn_shm_t *shm);

/* Counts clients, timers and deaths. The engine's thread. */
static inline void lawn_shm_query(const lawn_shm_t *shm,
                                  lawn_shm_stats_t *stats);
LAWN_API void lawn_shm_query_sized(const lawn_shm_t *shm,
                                   lawn_shm_stats_t *stats, size_t size);

/* ---- Clients. */

/* Becomes a client of the owner at `path`. `clock(clock_arg)` is that of the
 * owner's engine, and NULL if that has none: lawn_get_time(). INVALID_PARAM,
 * NO_MEMORY, NO_ELEM when there is no owner, UNSUPPORTED when it is another
 * version of this or on another clock, BUSY when there are as many clients as
 * there may be, IO with errno. Any thread. */
LAWN_API lawn_status_t lawn_shm_open(const char *path, lawn_clock_fn_t clock,
                                     void *clock_arg,
                                     lawn_shm_client_t **client_p);

/* Gives back all timers. No other call may be in progress. NULL does nothing.
 * Any thread. */
LAWN_API void lawn_shm_close(lawn_shm_client_t *client);

/* Tells this client from every other that the owner has had. Below 2^62, and
 * never 0. Any thread. */
LAWN_API uint64_t lawn_shm_id(const lawn_shm_client_t *client);

/* Whether the client of that id, any client's of the same owner, is still
 * there. False when it was closed, or has died, and the owner has taken back
 * all that it had. Any thread. */
LAWN_API bool lawn_shm_is_open(const lawn_shm_client_t *client, uint64_t id);

/* The time of the owner's engine, in ticks. Any thread. */
LAWN_API lawn_time_t lawn_shm_time(const lawn_shm_client_t *client);

/* Gets a timer, stopped; its events will have `cookie`. BUSY when all are
 * taken. Looks at up to all timers. Any thread. */
LAWN_API lawn_status_t lawn_shm_alloc(lawn_shm_client_t *client,
                                      uint64_t cookie,
                                      lawn_shm_timer_t *timer_p);

/* Stops a timer and gives it back; nothing may be called for it any more, and
 * no event of it will come. It is free for others when the owner has seen that,
 * and then lawn_shm_next() has been called. Any thread. */
LAWN_API void lawn_shm_release(lawn_shm_client_t *client,
                               lawn_shm_timer_t timer);

/* Gives a timer that is stopped, and has no event to come, another cookie. Any
 * thread. */
LAWN_API void lawn_shm_set_cookie(lawn_shm_client_t *client,
                                  lawn_shm_timer_t timer, uint64_t cookie);

/* Starts `timer`, or re-arms it, to expire at `deadline`; one that is past is
 * due at the owner's next pass, LAWN_TIME_INFINITY is never. False when the
 * owner is gone and has said so. One exchange, and where the owner has to be
 * told two more, and a write(2) if it sleeps. An event of an earlier start that
 * was not read yet may still come, or be replaced by the later one: its
 * `deadline` tells which it is. Any thread. */
LAWN_API bool lawn_shm_start(lawn_shm_client_t *client, lawn_shm_timer_t timer,
                             lawn_time_t deadline);

/* Stops `timer`. True: it was running, and that start will have no event.
 * False: it was not, or its event is there or on its way. One exchange. Any
 * thread. */
LAWN_API bool lawn_shm_stop(lawn_shm_client_t *client, lawn_shm_timer_t timer);

/* The next of what has expired, in any order; false when there is nothing. Does
 * not call the kernel. One thread at a time. */
LAWN_API bool lawn_shm_next(lawn_shm_client_t *client, lawn_shm_event_t *event);

/* Waits until there is an event, for `max_wait` ticks at most
 * (LAWN_TIME_INFINITY: for ever). OK: there may be one. TIMED_OUT. NO_ELEM: the
 * owner is gone; events that it has sent can still be read. IO with errno,
 * EINTR included. The thread that calls lawn_shm_next(). */
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
