/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/durable_consumer.h - consumers, which are given the timers that have
 * fired. Part of lawn/durable.h.
 *
 *     lawn_durable_consume(durable, &consume, deliver, NULL, &consumer);
 *     ...
 *     lawn_durable_answer(consumer, delivery, LAWN_DURABLE_DONE, 0, NULL,
 *                         answered, NULL);
 *
 * All consumers of one group share the work: each delivery goes to one of them.
 * Every group gets every delivery. The namespace's first group is the one whose
 * answers count; other groups only read, and their answers are taken and change
 * nothing.
 *
 * Threads: as lawn/durable.h says.
 */
#ifndef LAWN_DURABLE_CONSUMER_H
#define LAWN_DURABLE_CONSUMER_H

#include <lawn/durable.h>

LAWN_BEGIN_DECLS

typedef struct lawn_durable_consumer lawn_durable_consumer_t;

/* What a consumer gets. It belongs to the library, and is valid until it is
 * answered, it was given to `lost`, or its consumer is closed; with
 * `no_answer`, during the call only. */
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

/* Is given a delivery. It must be answered, now or later. When it has been
 * unanswered for its lease, the lease is lost: the delivery takes no place of
 * `max_in_flight` any more, lawn_durable_consumer_lost() counts it, and a
 * consumer of the group takes it over and is given it anew. That may be this
 * one. Each time counts as an attempt. So for work that takes longer than the
 * lease, call lawn_durable_extend(). */
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
    /* 0: 30 s; from 10 ms to 11 days. How long a delivery must have been
     * unanswered before this consumer takes it over. The lease that counts is
     * that of the consumer that takes a delivery over. Give all consumers of a
     * group the same one. */
    uint64_t lease_us;
    uint64_t limit; /* not 0: stops after so many deliveries. What it has read
                     * beyond them, it gives back. */
    /* Is told of each delivery whose lease is lost, which is no longer valid
     * after the call: the program must not answer it. NULL: nobody is told, and
     * a lost delivery stays valid until it is answered. Such an answer counts
     * if nobody else has answered before. A program that forgets deliveries
     * keeps their memory then. */
    lawn_durable_deliver_fn_t lost;
} lawn_durable_consume_t;

/* Makes a consumer. A new group begins with the oldest entry of the stream. The
 * first group of a namespace stays the first, even if it never answers. A shard
 * that it cannot join or read is left out, and tried again about each second;
 * lawn_durable_error() says why. Returns INVALID_PARAM or NO_MEMORY. */
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
    LAWN_DURABLE_RETRY = 1,  /* pending again; DEAD after the last attempt. Of
                              * a periodic timer, an occurrence is not tried
                              * again if that would be after the next one, if
                              * the timer was updated meanwhile, or if an
                              * occurrence before it waits to be tried again:
                              * that one, or the next, supersedes it. */
    LAWN_DURABLE_REJECT = 2, /* the timer ends with FAIL */
    LAWN_DURABLE_DEFER = 3   /* pending again; this delivery was no attempt */
} lawn_durable_answer_t;

/* The delay of a retry that backs off exponentially, with full jitter. */
#define LAWN_DURABLE_BACKOFF UINT64_MAX

/* Answers a delivery, which is then no longer valid. `delay_us` counts for
 * RETRY and DEFER only. `error` (NULL: none) goes to the dead letter if there
 * is one; at most 1,024 bytes of it are kept. `done` may be NULL; it gets the
 * state of the timer. NO_ELEM: the lease was over and another consumer has
 * answered, or no attempt was left, or the timer was started anew. Returns
 * INVALID_PARAM if the delivery is not one that waits for an answer, or
 * NO_MEMORY. */
LAWN_API lawn_status_t lawn_durable_answer(
    lawn_durable_consumer_t *consumer, const lawn_durable_delivery_t *delivery,
    lawn_durable_answer_t answer, uint64_t delay_us, const char *error,
    lawn_durable_fn_t done, void *arg);

/* Starts the lease of a delivery anew. For work that takes longer. Does nothing
 * if the delivery is not one that waits for an answer, or if its lease is lost.
 * If another consumer has taken it over, it is lost. */
LAWN_API void lawn_durable_extend(lawn_durable_consumer_t *consumer,
                                  const lawn_durable_delivery_t *delivery);

/* Takes no more deliveries. Those given can still be answered. */
LAWN_API void lawn_durable_consumer_stop(lawn_durable_consumer_t *consumer);

/* Returns how many deliveries are given, not answered and not lost, or answered
 * and not acknowledged by the store. */
LAWN_API size_t
lawn_durable_consumer_in_flight(const lawn_durable_consumer_t *consumer);

/* Returns how many leases of given deliveries were lost: the program has not
 * answered in time, or not at all. */
LAWN_API uint64_t
lawn_durable_consumer_lost(const lawn_durable_consumer_t *consumer);

/* Frees a consumer. What it has not answered goes to others when its lease is
 * over. Answers that the store has not acknowledged are sent once more, and
 * their functions are called with IO from within. NULL does nothing. */
LAWN_API void lawn_durable_consumer_close(lawn_durable_consumer_t *consumer);

static inline lawn_status_t
lawn_durable_consume(lawn_durable_t *durable,
                     const lawn_durable_consume_t *consume,
                     lawn_durable_deliver_fn_t deliver, void *arg,
                     lawn_durable_consumer_t **consumer_p)
{
    return lawn_durable_consume_sized(durable, consume, sizeof(*consume),
                                      deliver, arg, consumer_p);
}

LAWN_END_DECLS

#endif
