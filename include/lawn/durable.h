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
 * A stop that was answered `stopped` is never followed by a first delivery.
 * Every operation may be repeated with the same id. A repeat is harmless.
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
 *   - BUSY: the namespace is full, or is being drained. Nothing was done.
 *   - NO_MEMORY: Redis is at its maxmemory. Nothing was done.
 *   - NO_ELEM (update, replay): no such timer, or not that generation.
 *   - UNSUPPORTED: the server cannot give that durability, or has a function
 *     library of another version. Nothing was done.
 *   - INVALID_PARAM: the store refuses the argument or this client: another
 *     number of shards, a wrong password.
 *   - CORRUPT: what is stored under our keys, or the answer, is not ours.
 *   - IO, TIMED_OUT: unknown: it may or may not have been done. Repeat it with
 *     the same id.
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
#include <lawn/stats.h>

#include <stdbool.h>

LAWN_BEGIN_DECLS

typedef struct lawn_durable lawn_durable_t;
typedef struct lawn_durable_consumer lawn_durable_consumer_t;
typedef struct lawn_durable_pump lawn_durable_pump_t;

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
    uint64_t connect_timeout_us; /* 0: 5 s */
    uint64_t request_timeout_us; /* 0: 5 s */
    /* The first program that opens a namespace records the rest. Later ones
     * are given what is recorded. */
    uint64_t max_pending;       /* timers; 0: no bound but memory */
    uint64_t max_payload_bytes; /* of all timers; 0: no bound but memory */
    uint64_t keep_us;    /* how long the end of a timer is remembered, at least;
                          * 0: one hour */
    uint64_t keep_count; /* how many ends per shard, at most; 0: 100,000 */
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

/* Returns one line that says what keeps requests from being answered now. NULL:
 * nothing is wrong, or the first attempt to connect is still under way. Valid
 * until the next call. */
LAWN_API const char *lawn_durable_error(const lawn_durable_t *durable);

/* Returns the number of shards, or 0 as long as the store has not been reached
 * and checked for the first time. */
LAWN_API unsigned lawn_durable_shards(const lawn_durable_t *durable);

/* Returns an estimate of the store's clock; 0 before the first answer. It may
 * be behind by about the time a request takes. In a Cluster it is the clock of
 * the node that has the first shard. */
LAWN_API int64_t lawn_durable_now(const lawn_durable_t *durable);

/* The result of a request. It is valid during the call only. A later version
 * may add fields at the end. */
typedef struct {
    lawn_status_t status;
    const char *error; /* one line; NULL if the status is OK */
    lawn_durable_state_t state;
    uint64_t generation; /* grows with each start of the shard. It repeats only
                          * if starts are lost by a failover to a server whose
                          * clock is behind by more than that took. */
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
    uint64_t token; /* not 0: names this start. A start of the same id with the
                     * token of the current generation changes nothing, and is
                     * answered like the first. Take a random number. */
    unsigned max_attempts; /* 0: 10; at most 65,535 */
    /* In whole milliseconds, rounded up; at most 49 days. */
    uint64_t backoff_min_us; /* 0: 1 s */
    uint64_t backoff_max_us; /* 0: 10 min */
    lawn_durable_misfire_t misfire;
    uint64_t misfire_us; /* for SKIP; as the back-offs */
    uint64_t every_us;   /* not 0: fires again and again; at least 1 ms */
    const char *cron;    /* not NULL: five fields, as cron has them. Fires again
                          * and again. If `due_us` and `delay_us` are 0, the
                          * first time is the expression's next one. */
    const char *zone;    /* of `cron`: an IANA name; NULL: UTC */
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
 * attempt, it had been delivered before.) UNKNOWN: there is no such timer.
 * Everything else: it was too late. Repeats are answered like the first. Fails
 * as a start does. */
LAWN_API lawn_status_t lawn_durable_stop(lawn_durable_t *durable,
                                         const char *id, int durability,
                                         lawn_durable_fn_t done, void *arg);

typedef struct {
    const char *id;
    uint64_t generation; /* as a start, an update or a get has told it */
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
 * state and the generation are those that it has. A repeat of the latest update
 * is answered like that, until the timer ends. Fails as a start does. */
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

/* Counts the pending timers of all shards: `done` gets `count`. Fails as a
 * start does. */
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

/*
 * Consumers. All consumers of one group share the work: each delivery goes to
 * one of them. Every group gets every delivery. The namespace's first group is
 * the one whose answers count; other groups only read, and their answers are
 * taken and change nothing.
 */

/* What a consumer gets. It belongs to the library, and is valid until it is
 * answered or its consumer is closed; with `no_answer`, during the call only.
 */
typedef struct {
    const char *id;
    uint64_t generation;
    int64_t due_us;
    int64_t fired_us;    /* when it fired, by the store's clock; never before
                          * `due_us` */
    unsigned attempt;    /* 1: the first */
    unsigned deliveries; /* how often this attempt was given to a consumer; each
                          * time counts against max_attempts */
    const char *target;  /* NULL: the namespace's consumers */
    const void *payload;
    size_t payload_size;
} lawn_durable_delivery_t;

/* Is given a delivery. It must be answered, now or later. If that does not
 * happen within the lease, the delivery goes to another consumer, too. */
typedef void (*lawn_durable_deliver_fn_t)(
    void *arg, const lawn_durable_delivery_t *delivery);

/* A zero-filled structure selects all defaults. */
typedef struct {
    const char *group; /* NULL: "lawn"; what an id may be */
    const char *name;  /* NULL: host, process and a number; one per consumer */
    bool pushes;       /* read what has fired for targets, as lawnd does */
    bool no_answer;    /* deliveries cannot be answered, and stay in the stream
                        * as delivered. In the first group they come again when
                        * their lease is over, to it or to another, and each
                        * time counts against max_attempts. */
    unsigned max_in_flight; /* 0: 256 are unanswered at most */
    uint64_t lease_us;      /* 0: 30 s; from 10 ms to 11 days */
    uint64_t limit; /* not 0: stops after so many deliveries. What it has read
                     * beyond them, it gives back. */
} lawn_durable_consume_t;

/* Makes a consumer. A new group begins with the oldest entry of the stream. The
 * first group of a namespace stays the first, even if it never answers. Returns
 * INVALID_PARAM or NO_MEMORY. */
static inline lawn_status_t
lawn_durable_consume(lawn_durable_t *durable,
                     const lawn_durable_consume_t *consume,
                     lawn_durable_deliver_fn_t deliver, void *arg,
                     lawn_durable_consumer_t **consumer_p);
LAWN_API lawn_status_t lawn_durable_consume_sized(
    lawn_durable_t *durable, const lawn_durable_consume_t *consume, size_t size,
    lawn_durable_deliver_fn_t deliver, void *arg,
    lawn_durable_consumer_t **consumer_p);

typedef enum {
    LAWN_DURABLE_DONE = 0,   /* the timer ends with SUCCESS */
    LAWN_DURABLE_RETRY = 1,  /* pending again; DEAD after the last attempt */
    LAWN_DURABLE_REJECT = 2, /* the timer ends with FAIL */
    LAWN_DURABLE_DEFER = 3   /* pending again; this was no attempt */
} lawn_durable_answer_t;

/* The delay of a retry that backs off exponentially, with full jitter. */
#define LAWN_DURABLE_BACKOFF UINT64_MAX

/* Answers a delivery, which is then no longer valid. `delay_us` counts for
 * RETRY and DEFER only. `error` (NULL: none) goes to the dead letter if there
 * is one; at most 1,024 bytes of it are kept. `done` may be NULL; it gets the
 * state of the timer. NO_ELEM: the lease was over and another consumer has
 * answered, or the timer was started anew. Returns INVALID_PARAM if the
 * delivery is not one that waits for an answer, or NO_MEMORY. */
LAWN_API lawn_status_t lawn_durable_answer(
    lawn_durable_consumer_t *consumer, const lawn_durable_delivery_t *delivery,
    lawn_durable_answer_t answer, uint64_t delay_us, const char *error,
    lawn_durable_fn_t done, void *arg);

/* Starts the lease of a delivery anew. For work that takes longer. Does nothing
 * if the delivery is not one that waits for an answer. */
LAWN_API void lawn_durable_extend(lawn_durable_consumer_t *consumer,
                                  const lawn_durable_delivery_t *delivery);

/* Takes no more deliveries. Those given can still be answered. */
LAWN_API void lawn_durable_consumer_stop(lawn_durable_consumer_t *consumer);

/* Returns how many deliveries are given and not answered, or answered and not
 * acknowledged by the store. */
LAWN_API size_t
lawn_durable_consumer_in_flight(const lawn_durable_consumer_t *consumer);

/* Frees a consumer. What it has not answered goes to others when its lease is
 * over. Answers that the store has not acknowledged are sent once more, and
 * their functions are called with IO from within. NULL does nothing. */
LAWN_API void lawn_durable_consumer_close(lawn_durable_consumer_t *consumer);

/*
 * Pumps move due timers to the streams. A namespace needs one, and may have
 * any number: none is special, and each can die at any time.
 */

/* A zero-filled structure selects all defaults. */
typedef struct {
    const char *name;     /* NULL: host, process and a number; one per pump */
    uint64_t prefetch_us; /* 0: 100 ms. Due times that near are held here. */
    uint64_t coalesce_us; /* 0: 1 ms between two calls for a shard */
} lawn_durable_pump_params_t;

/* What a pump has counted. A later version may add fields at the end. */
typedef struct {
    uint64_t fired;   /* timers */
    uint64_t calls;   /* of the store */
    uint64_t wakeups; /* polls that have found something to do for the pump */
    uint64_t missed;  /* skipped or ended by their misfire policy */
    uint64_t errors;  /* calls that have failed */
    lawn_histogram_t lateness_us;   /* of firing, by the store's clock */
    lawn_histogram_t round_trip_us; /* of a call of the store */
} lawn_durable_pump_stats_t;

/* Makes a pump. It fires timers in lawn_durable_poll() as soon as the store is
 * reached. Returns INVALID_PARAM, also for times of more than an hour, or
 * NO_MEMORY. */
static inline lawn_status_t
lawn_durable_pump_start(lawn_durable_t *durable,
                        const lawn_durable_pump_params_t *params,
                        lawn_durable_pump_t **pump_p);
LAWN_API lawn_status_t lawn_durable_pump_start_sized(
    lawn_durable_t *durable, const lawn_durable_pump_params_t *params,
    size_t size, lawn_durable_pump_t **pump_p);

/* Reads what a pump has counted. */
static inline void lawn_durable_pump_query(const lawn_durable_pump_t *pump,
                                           lawn_durable_pump_stats_t *stats);
LAWN_API void lawn_durable_pump_query_sized(const lawn_durable_pump_t *pump,
                                            lawn_durable_pump_stats_t *stats,
                                            size_t size);

/* Frees a pump. Others take its shards over. NULL does nothing. */
LAWN_API void lawn_durable_pump_close(lawn_durable_pump_t *pump);

/*
 * For operators.
 */

/* One timer or dead letter of a list. Valid during the call only. */
typedef struct {
    const char *id;
    lawn_durable_state_t state;
    uint64_t generation;
    int64_t due_us; /* of a timer that has ended: when it ended */
    unsigned attempt;
    const void *payload; /* of a dead letter; NULL: not known */
    size_t payload_size;
    const char *reason; /* of a dead letter: one word; NULL: none */
    const char *error;  /* of a dead letter: the last error; NULL: none */
} lawn_durable_item_t;

typedef void (*lawn_durable_item_fn_t)(void *arg,
                                       const lawn_durable_item_t *item);

/* Calls `each` for timers in `state` (UNKNOWN: in any), at most `limit` of them
 * (0: all), then `done` with their count. It takes them in steps, so what
 * changes meanwhile may be seen or not. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_list(lawn_durable_t *durable,
                                         lawn_durable_state_t state,
                                         uint64_t limit,
                                         lawn_durable_item_fn_t each,
                                         lawn_durable_fn_t done, void *arg);

/* Calls `each` for the dead letters, the oldest of each shard first, at most
 * `limit` of them (0: all), then `done` with their count. Fails as a start
 * does. */
LAWN_API lawn_status_t lawn_durable_list_dead(lawn_durable_t *durable,
                                              uint64_t limit,
                                              lawn_durable_item_fn_t each,
                                              lawn_durable_fn_t done,
                                              void *arg);

/* Starts a dead timer anew, due now, with its payload and all attempts; once,
 * also if it was periodic. `done` gets the new generation, or NO_ELEM if there
 * is no such dead letter or a newer timer of this id. A repeat is answered like
 * the first, until the timer ends. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_replay(lawn_durable_t *durable,
                                           const char *id,
                                           lawn_durable_fn_t done, void *arg);

/* Sums over all shards. A later version may add fields at the end. */
typedef struct {
    lawn_status_t status;
    const char *error; /* one line; NULL if the status is OK */
    unsigned shards;
    uint64_t pending;
    uint64_t due;           /* of these: due and not yet fired */
    uint64_t in_flight;     /* fired and not answered, of both streams */
    uint64_t dead;          /* dead letters */
    uint64_t payload_bytes; /* counted only if max_payload_bytes was set */
    /* counted since the namespace was made */
    uint64_t started;
    uint64_t stopped;
    uint64_t fired;
    uint64_t succeeded;
    uint64_t failed;
    uint64_t retried;
    uint64_t died;
    uint64_t missed;
    uint64_t corrupt; /* timers and deliveries that could not be read, as
                       * somebody else has written there. Those timers are
                       * gone, the deliveries are dead letters. */
} lawn_durable_stats_t;

typedef void (*lawn_durable_stats_fn_t)(void *arg,
                                        const lawn_durable_stats_t *stats);

/* Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_stats(lawn_durable_t *durable,
                                          lawn_durable_stats_fn_t done,
                                          void *arg);

/* Begins (or, with false, ends) the draining of the namespace. While it is
 * drained, new starts of all clients are answered with BUSY; what is pending
 * goes on. Fails as a start does. */
LAWN_API lawn_status_t lawn_durable_drain(lawn_durable_t *durable, bool begin,
                                          lawn_durable_fn_t done, void *arg);

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

static inline lawn_status_t
lawn_durable_consume(lawn_durable_t *durable,
                     const lawn_durable_consume_t *consume,
                     lawn_durable_deliver_fn_t deliver, void *arg,
                     lawn_durable_consumer_t **consumer_p)
{
    return lawn_durable_consume_sized(durable, consume, sizeof(*consume),
                                      deliver, arg, consumer_p);
}

static inline lawn_status_t
lawn_durable_pump_start(lawn_durable_t *durable,
                        const lawn_durable_pump_params_t *params,
                        lawn_durable_pump_t **pump_p)
{
    return lawn_durable_pump_start_sized(durable, params, sizeof(*params),
                                         pump_p);
}

static inline void lawn_durable_pump_query(const lawn_durable_pump_t *pump,
                                           lawn_durable_pump_stats_t *stats)
{
    lawn_durable_pump_query_sized(pump, stats, sizeof(*stats));
}

LAWN_END_DECLS

#endif
