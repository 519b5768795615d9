/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/durable.h - timers that outlive the process: kept in Redis, visible to
 * every machine, delivered at least once and never early.
 *
 *     lawn_durable_open(&params, &durable);          // .url, .name_space
 *     lawn_engine_add(engine, lawn_durable_poll, durable,
 *                     lawn_durable_fd(durable), NULL);
 *     lawn_durable_start(durable, &start, started, NULL); // .id, .delay_us
 *     lawn_durable_stop(durable, "order-17", LAWN_DURABLE_ASYNC, stopped,
 *                       NULL);
 *     lawn_durable_consume(durable, &consume, deliver, NULL, &consumer);
 *
 * A timer has an id, a due time and a payload. It is in one of these states:
 *   - pending: it waits for its due time, or for the next attempt.
 *   - delivered: it has fired, and no consumer has answered yet.
 *   - success, fail, stopped, dead: it has ended. Dead means that all attempts
 *     were used up, and that it is among the dead letters.
 *   - unknown: there is no such timer, or it ended so long ago that the store
 *     has forgotten it.
 * A start that the store has acknowledged survives what its durability names.
 * A stop that was answered `stopped` is never followed by a first delivery of
 * the start that it stopped. An earlier start of the id that has fired may
 * still be delivered. Every operation may be repeated with the same id. A
 * repeat is harmless.
 *
 * Times are microseconds: spans are unsigned, and times of day count from 1970
 * by the clock of the Redis server. No clock of a client decides when a timer
 * fires. Pumps (lawnd, or lawn_durable_pump_start()) move due timers to the
 * stream of what has fired. Without a pump, no timer fires.
 *
 * Answers. Each operation takes a function that is called exactly once with the
 * result, from lawn_durable_poll(), lawn_durable_wait(), a function ending in
 * `_sync`, lawn_durable_consumer_close(), or lawn_durable_close(). If the
 * operation itself returns an error, the function is not called. `done` may be
 * NULL. The statuses of a result:
 *   - OK: the store has done it, with the durability asked for.
 *   - BUSY: the namespace is full, or is being drained; `error` says which.
 *     Nothing was done. (A function that itself returns BUSY has made no
 *     request: `max_requests` are unanswered. Redis's error BUSY is no status:
 *     the request waits until the script that runs has ended.)
 *   - NO_MEMORY: Redis is at its maxmemory. Nothing was done.
 *   - NO_ELEM (update, replay): no such timer, or not that generation.
 *   - UNSUPPORTED: the server cannot give that durability, or has a function
 *     library of another version. Nothing was done.
 *   - INVALID_PARAM: the store refuses the argument or this client: another
 *     number of shards, a wrong password.
 *   - CORRUPT: what is stored under our keys, or the answer, is not ours.
 *   - IO, TIMED_OUT: unknown: it may or may not have been done. Repeat it with
 *     the same id.
 * Requests about one timer that are under way together, with one durability,
 * are done in the order of the calls. If the store refuses one for a moment, as
 * in a failover, it is sent again before the later ones. If a later one was
 * done already, the earlier one ends with IO. A get does not keep this order:
 * while an earlier request waits to be sent again, a get may be answered first,
 * and tells the state before that request.
 *
 * Threads: one thread at a time uses a lawn_durable_t and what belongs to it.
 * Different ones are independent. A function may be called from callbacks,
 * except where it says otherwise. All functions may allocate. The child of a
 * fork() must not use its parent's lawn_durable_t, nor close it: both would use
 * the same connections.
 */
#ifndef LAWN_DURABLE_H
#define LAWN_DURABLE_H

#include <lawn/base.h>

#include <stdbool.h>

LAWN_BEGIN_DECLS

typedef struct lawn_durable lawn_durable_t;

/* An id has 1 to 255 bytes. None is a space or a control character. */
#define LAWN_DURABLE_MAX_ID 255
#define LAWN_DURABLE_MAX_PAYLOAD 65536 /* bytes, any bytes */
#define LAWN_DURABLE_MAX_SHARDS 1024

typedef enum {
    LAWN_DURABLE_UNKNOWN = 0,
    LAWN_DURABLE_PENDING = 1,
    LAWN_DURABLE_DELIVERED = 2,
    LAWN_DURABLE_SUCCESS = 3,
    LAWN_DURABLE_FAIL = 4,
    LAWN_DURABLE_STOPPED = 5,
    LAWN_DURABLE_DEAD = 6
} lawn_durable_state_t;

/* Returns "pending", "delivered", and so on; "unknown" for other values. Any
 * thread may call it. */
LAWN_API const char *lawn_durable_state_string(lawn_durable_state_t state);

/* What an acknowledgement promises. A number n > 0 is `replicated:n`: n
 * replicas have it. */
#define LAWN_DURABLE_ASYNC 0    /* the server has it, in memory at least */
#define LAWN_DURABLE_FSYNC (-1) /* the server has it on its disk */

/* A zero-filled structure selects all defaults. */
typedef struct {
    /* redis://[[user]:password@]host[:port][/db], unix:/path[?db=N], or
     * sentinel://[[user]:password@]host:port[,host:port...]/master[/db]. The
     * user and password of a sentinel URL are those of the master. A server
     * that is part of a Redis Cluster is recognised. TLS is not supported.
     * NULL: redis://127.0.0.1:6379. */
    const char *url;
    const char *name_space; /* NULL: "lawn"; 1 to 64 of A-Z a-z 0-9 . _ - */
    unsigned shards; /* 0: as recorded, and 1 for a new namespace, 8 in a Redis
                      * Cluster. The number cannot change: another one than
                      * recorded is refused. */
    unsigned max_requests; /* 0: 65,536 may be unanswered */
    bool fail_fast; /* answer with IO as soon as the store cannot be reached,
                     * instead of waiting for it */
    /* 0: 5 s. If a host has several addresses, each has its share of it. */
    uint64_t connect_timeout_us;
    uint64_t request_timeout_us; /* 0: 5 s */
    /* The first program that opens a namespace records the rest. Later ones
     * are given what is recorded, whatever they say here. The two bounds are
     * divided among the shards, each of which has the same share, rounded up.
     * An id decides its shard. So one shard may be full, and answer BUSY, a
     * little before the namespace is full. The namespace never holds more than
     * the bound plus (shards - 1). */
    uint64_t max_pending;       /* timers; 0: no bound but memory */
    uint64_t max_payload_bytes; /* of all timers; 0: no bound but memory. Both
                                 * bound timers, and not what has fired: each
                                 * occurrence of a periodic timer stays in the
                                 * stream until it is answered. */
    uint64_t keep_us;    /* how long the end of a timer is remembered, at least;
                          * 0: one hour */
    uint64_t keep_count; /* A shard that has more ends than this may drop the
                          * oldest earlier. It never has more than twice as
                          * many, and one batch of answers. Of dead letters it
                          * has about as many at most: the oldest go for new
                          * ones. 0: 100,000 */
    /* Of this program alone: fail with UNSUPPORTED while a server may drop
     * timers when its memory is full, or keeps nothing on its disk, or may not
     * be asked. */
    bool require_safe_store;
} lawn_durable_params_t;

/* Makes a client. It checks the parameters and returns. Connecting goes on in
 * lawn_durable_poll(), again and again with growing pauses, for as long as the
 * client lives. Requests wait for the connection until they time out. A host
 * name is looked up with getaddrinfo(), which may block: use an address where
 * that matters. `params` may be NULL and need not outlive the call. Returns
 * INVALID_PARAM, UNSUPPORTED for `rediss:` URLs, NO_MEMORY, or IO if the kernel
 * has no descriptor left; lawn_durable_open_error() has the reason. */
static inline lawn_status_t
lawn_durable_open(const lawn_durable_params_t *params,
                  lawn_durable_t **durable_p);
LAWN_API lawn_status_t
lawn_durable_open_sized(const lawn_durable_params_t *params, size_t size,
                        lawn_durable_t **durable_p);

/* Returns a line that says why the latest lawn_durable_open() of the calling
 * thread has failed; "" if it has not. Valid until the thread's next call. */
LAWN_API const char *lawn_durable_open_error(void);

/* Returns a line that says why the latest call of the calling thread that
 * returned INVALID_PARAM did so; "" if none did. The functions ending in _sync
 * have it in the error of their result, too. Valid until the thread's next
 * call. */
LAWN_API const char *lawn_durable_refusal(void);

/* Closes the consumers and pumps that are left, calls the functions of all
 * requests that are not answered, with IO, and frees the client. Timers are in
 * the store and stay there. NULL does nothing. Not from callbacks: an assertion
 * in debug builds; in release builds the call does nothing. */
LAWN_API void lawn_durable_close(lawn_durable_t *durable);

/* Returns an epoll descriptor that is readable when there is something to do.
 * The client owns it. It stays the same. */
LAWN_API int lawn_durable_fd(const lawn_durable_t *durable);

/* Does what there is to do without blocking: sends, receives, calls back. This
 * is a lawn_poll_fn_t; `durable` is the lawn_durable_t. Returns the number of
 * replies and timers that it has handled. A call from a callback does nothing
 * and returns 0. */
LAWN_API unsigned lawn_durable_poll(void *durable);

/* Sleeps until there is something to do and does it. Returns OK, or TIMED_OUT
 * if there was nothing for `max_wait_us`; UINT64_MAX waits for ever. A signal
 * ends the sleep with OK. Not from callbacks: INVALID_PARAM. */
LAWN_API lawn_status_t lawn_durable_wait(lawn_durable_t *durable,
                                         uint64_t max_wait_us);

/* Returns one line that says what keeps requests from being answered now, or
 * the client's pumps and consumers from their work on a shard: a key of a wrong
 * type, a command that the server forbids, any other error that does not pass.
 * A refusal of Redis that may pass, such as its BUSY or NOREPLICAS, is told
 * when it has lasted for the time of a request. They go on by themselves when
 * that is mended. NULL: nothing is wrong, or the first attempt to connect is
 * still under way. Valid until the next call. */
LAWN_API const char *lawn_durable_error(const lawn_durable_t *durable);

/* Returns one line that says what the store does not do for this client,
 * although it answers: it may drop timers when its memory is full (its
 * maxmemory-policy), or a right is missing that is not needed for an answer,
 * such as that to publish. NULL: nothing, as far as is known. The store is
 * asked when it is reached and every 30 s. Valid until the next call. */
LAWN_API const char *lawn_durable_warning(const lawn_durable_t *durable);

/* Returns one line that says where timers were lost, and when this was seen:
 * keys of the namespace were removed, or the server has forgotten them. It
 * stays until an operator acknowledges it (lawn_durable_acknowledge()), in
 * other programs and later ones, too. NULL: none, as far as is known. A program
 * knows a shard that was made anew since it saw it first; one with a pump also
 * counts every 30 s whether timers are missing. What goes before a program has
 * been there, it cannot know. Valid until the next call. */
LAWN_API const char *lawn_durable_losses(const lawn_durable_t *durable);

/* Returns the number of shards, or 0 as long as the store has not been reached
 * and checked for the first time. */
LAWN_API unsigned lawn_durable_shards(const lawn_durable_t *durable);

/* Returns an estimate of the store's clock, in microseconds since 1970; 0
 * before the first answer. It may be behind by about the time a request takes.
 * In a Cluster it is the clock of the node that has the first shard. */
LAWN_API int64_t lawn_durable_now(const lawn_durable_t *durable);

/* The result of a request. It is valid during the call only. A later version
 * may add fields at the end. */
typedef struct {
    lawn_status_t status;
    const char *error; /* one line; NULL if the status is OK */
    lawn_durable_state_t state;
    uint64_t generation; /* Grows with each start of the shard. It can repeat
                          * only after a failover that lost starts, and only if
                          * the new server's clock is further behind than the
                          * failover took. */
    int64_t due_us;
    unsigned attempt; /* 1: the first */
    const void *payload;
    size_t payload_size;
    uint64_t count;
} lawn_durable_result_t;

typedef void (*lawn_durable_fn_t)(void *arg,
                                  const lawn_durable_result_t *result);

/* What happens to a timer that is found late, after an outage for example. */
typedef enum {
    LAWN_DURABLE_FIRE = 0,    /* it fires; a periodic one as often as missed */
    LAWN_DURABLE_SKIP = 1,    /* it is not fired if later than misfire_us */
    LAWN_DURABLE_COALESCE = 2 /* a periodic one fires once for all missed */
} lawn_durable_misfire_t;

typedef struct {
    const char *id;
    /* The due time: `due_us`, or `delay_us` from the store's now if `due_us` is
     * 0. */
    int64_t due_us;
    uint64_t delay_us;
    const void *payload;
    size_t payload_size;
    /* NULL: the namespace's consumers. "http://..." and "https://...": lawnd
     * posts the payload there. "stream:KEY": lawnd appends it to the stream KEY
     * of the same store. Not more than 2,048 bytes. */
    const char *target;
    int durability;
    uint64_t token; /* not 0: names this start. A start with the id and the
                     * token of one that there is, or was last, changes nothing.
                     * It is answered with the generation and the due time of
                     * the first, whatever the timer has come to since, and with
                     * its state. Take a random number. */
    unsigned max_attempts; /* 0: 10; at most 65,535 */
    /* In whole milliseconds, rounded up; at most 49 days. */
    uint64_t backoff_min_us; /* 0: 1 s */
    uint64_t backoff_max_us; /* 0: 10 min */
    lawn_durable_misfire_t misfire;
    uint64_t misfire_us; /* for SKIP; as the back-offs */
    uint64_t every_us;   /* not 0: fires again and again; at least 10 ms. One
                          * occurrence at a time waits to be tried again; see
                          * LAWN_DURABLE_RETRY. With FIRE, no more than 10,000
                          * occurrences may be past at the start, or at an
                          * update of the due time: INVALID_PARAM. */
    const char *cron;    /* not NULL: five fields, as cron has them. Fires again
                          * and again. If `due_us` and `delay_us` are 0, the
                          * first time is the expression's next one. */
    const char *zone;    /* of `cron`: an IANA name; NULL: UTC */
    bool until_known;    /* A start whose answer would be IO or TIMED_OUT is
                          * repeated, about five times a second, until the answer
                          * is certain or the client is closed. It needs a
                          * `token`: INVALID_PARAM. A delay counts from the
                          * repeat that is carried out. */
} lawn_durable_start_t;

/* Starts a timer, or starts it anew with a new generation if it is pending or
 * delivered. `done` gets the state (PENDING), the generation and the due time.
 * Everything in `start` is copied. Returns INVALID_PARAM, BUSY if max_requests
 * are unanswered, or NO_MEMORY. */
static inline lawn_status_t
lawn_durable_start(lawn_durable_t *durable, const lawn_durable_start_t *start,
                   lawn_durable_fn_t done, void *arg);
LAWN_API lawn_status_t lawn_durable_start_sized(
    lawn_durable_t *durable, const lawn_durable_start_t *start, size_t size,
    lawn_durable_fn_t done, void *arg);

/* Stops a timer. `done` gets the state. STOPPED: it was pending, and this
 * generation is never delivered for the first time. (If it waited for another
 * attempt, it had been delivered before.) Of a periodic timer, the generation
 * is above those of all occurrences that have fired. UNKNOWN: there is no such
 * timer. Everything else: it was too late. Repeats are answered like the first.
 * Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_stop(lawn_durable_t *durable,
                                         const char *id, int durability,
                                         lawn_durable_fn_t done, void *arg);

typedef struct {
    const char *id;
    uint64_t generation; /* that a start, an update or a get returned */
    int64_t due_us;      /* the new due time, if not 0 */
    uint64_t delay_us;   /* or from the store's now, if not 0 */
    bool set_payload;    /* false: the payload stays */
    const void *payload;
    size_t payload_size;
    int durability;
} lawn_durable_update_t;

/* Changes the due time or the payload of a pending timer, if its generation is
 * still the one given. `done` gets the new generation and the due time. If the
 * timer is not pending with that generation, the status is NO_ELEM, and the
 * state and the generation are those that it has. If the latest update is
 * repeated, the repeat is successful, too, until the timer ends. It gets the
 * same generation and due time; or if the timer has fired meanwhile, those of
 * the occurrence or the attempt to come. A new due time for a cron timer is
 * INVALID_PARAM: its expression has the times. Fails as a start does. */
static inline lawn_status_t
lawn_durable_update(lawn_durable_t *durable,
                    const lawn_durable_update_t *update, lawn_durable_fn_t done,
                    void *arg);
LAWN_API lawn_status_t lawn_durable_update_sized(
    lawn_durable_t *durable, const lawn_durable_update_t *update, size_t size,
    lawn_durable_fn_t done, void *arg);

/* Tells the state of a timer. `done` gets the generation, and, as long as the
 * timer has not ended, the due time, the attempt and the payload. The status is
 * OK also if the state is UNKNOWN. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_get(lawn_durable_t *durable, const char *id,
                                        lawn_durable_fn_t done, void *arg);

/* Counts the pending timers: `done` gets `count`. Of cron timers whose next
 * times are being sought, no more than 500 of a shard count. Asks each shard
 * with a call of its own. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_count(lawn_durable_t *durable,
                                          lawn_durable_fn_t done, void *arg);

/* The same for programs without a loop: each makes the request, and polls until
 * it is answered. Returns the status of the result, or that of the call.
 * `result_p` may be NULL. Its `error` and `payload` are valid until the next of
 * these calls. Not from callbacks: INVALID_PARAM. */
static inline lawn_status_t
lawn_durable_start_sync(lawn_durable_t *durable,
                        const lawn_durable_start_t *start,
                        lawn_durable_result_t *result_p);
static inline lawn_status_t
lawn_durable_update_sync(lawn_durable_t *durable,
                         const lawn_durable_update_t *update,
                         lawn_durable_result_t *result_p);
static inline lawn_status_t
lawn_durable_stop_sync(lawn_durable_t *durable, const char *id, int durability,
                       lawn_durable_result_t *result_p);
static inline lawn_status_t
lawn_durable_get_sync(lawn_durable_t *durable, const char *id,
                      lawn_durable_result_t *result_p);
static inline lawn_status_t
lawn_durable_count_sync(lawn_durable_t *durable,
                        lawn_durable_result_t *result_p);
LAWN_API lawn_status_t lawn_durable_start_sync_sized(
    lawn_durable_t *durable, const lawn_durable_start_t *start, size_t size,
    lawn_durable_result_t *result_p, size_t result_size);
LAWN_API lawn_status_t lawn_durable_update_sync_sized(
    lawn_durable_t *durable, const lawn_durable_update_t *update, size_t size,
    lawn_durable_result_t *result_p, size_t result_size);
LAWN_API lawn_status_t lawn_durable_stop_sync_sized(
    lawn_durable_t *durable, const char *id, int durability,
    lawn_durable_result_t *result_p, size_t result_size);
LAWN_API lawn_status_t lawn_durable_get_sync_sized(
    lawn_durable_t *durable, const char *id, lawn_durable_result_t *result_p,
    size_t result_size);
LAWN_API lawn_status_t lawn_durable_count_sync_sized(
    lawn_durable_t *durable, lawn_durable_result_t *result_p,
    size_t result_size);

static inline lawn_status_t
lawn_durable_open(const lawn_durable_params_t *params,
                  lawn_durable_t **durable_p)
{
    return lawn_durable_open_sized(params, sizeof(*params), durable_p);
}

static inline lawn_status_t
lawn_durable_start(lawn_durable_t *durable, const lawn_durable_start_t *start,
                   lawn_durable_fn_t done, void *arg)
{
    return lawn_durable_start_sized(durable, start, sizeof(*start), done, arg);
}

static inline lawn_status_t
lawn_durable_update(lawn_durable_t *durable,
                    const lawn_durable_update_t *update, lawn_durable_fn_t done,
                    void *arg)
{
    return lawn_durable_update_sized(durable, update, sizeof(*update), done,
                                     arg);
}

static inline lawn_status_t
lawn_durable_start_sync(lawn_durable_t *durable,
                        const lawn_durable_start_t *start,
                        lawn_durable_result_t *result_p)
{
    return lawn_durable_start_sync_sized(durable, start, sizeof(*start),
                                         result_p, sizeof(*result_p));
}

static inline lawn_status_t
lawn_durable_update_sync(lawn_durable_t *durable,
                         const lawn_durable_update_t *update,
                         lawn_durable_result_t *result_p)
{
    return lawn_durable_update_sync_sized(durable, update, sizeof(*update),
                                          result_p, sizeof(*result_p));
}

static inline lawn_status_t
lawn_durable_stop_sync(lawn_durable_t *durable, const char *id, int durability,
                       lawn_durable_result_t *result_p)
{
    return lawn_durable_stop_sync_sized(durable, id, durability, result_p,
                                        sizeof(*result_p));
}

static inline lawn_status_t
lawn_durable_get_sync(lawn_durable_t *durable, const char *id,
                      lawn_durable_result_t *result_p)
{
    return lawn_durable_get_sync_sized(durable, id, result_p,
                                       sizeof(*result_p));
}

static inline lawn_status_t
lawn_durable_count_sync(lawn_durable_t *durable,
                        lawn_durable_result_t *result_p)
{
    return lawn_durable_count_sync_sized(durable, result_p, sizeof(*result_p));
}

LAWN_END_DECLS

#include <lawn/durable_admin.h>
#include <lawn/durable_consumer.h>
#include <lawn/durable_pump.h>

#endif
