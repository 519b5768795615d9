/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The protocol, apart from any transport: many logical connections over one
 * pair of queues, each a ping-pong of window 1 with a lawn_conn for its time.
 *
 *     client                                    server
 *       DATA 1 -------------------------------->  deliver 1
 *       deliver 1  <------------- DATA 1, ack 1   on_send
 *       on_ack: timer paused
 *       DATA 2, ack 1 ------------------------->  on_ack, deliver 2
 *       (lost: the timer sends DATA 2 again)
 *       ...
 *       FIN ----------------------------------->  (when all is acknowledged)
 *       over  <-------------------------- FIN_ACK  over after some silence
 *
 * How Lawn is embedded, in the order in which a transport meets it:
 *   - the transport drains its completion queue from a source of the engine
 *     and hands each datagram to session_receive(). All that waits is read
 *     before any timer expires, so an ACK that is there stops its timer. Then
 *     it calls session_flush(), which sends;
 *   - time is read once per pass, by the engine. Everything here takes it from
 *     lawn_engine_now(), a load;
 *   - an ACK costs one lawn_conn_on_ack(), a first transmission one
 *     lawn_conn_on_send(): a few stores each, whatever the number of
 *     connections, so nothing has to be batched or swept.
 *
 * Nothing is allocated after session_create(). Threads: the engine's.
 */
#ifndef PINGPONG_SESSION_H
#define PINGPONG_SESSION_H

#include "histogram.h"

#include <lawn/conn.h>

LAWN_BEGIN_DECLS

typedef struct session session_t;

/* How a transport sends. */
typedef struct {
    /* Room for one datagram, or NULL while the send queue is full. Without a
     * send() in between it may return the same room again. */
    void *(*buffer)(void *arg);
    /* Sends the first `length` bytes of what buffer() returned last. */
    void (*send)(void *arg, size_t length);
    void *arg;
    /* Delivers everything once and in order, or fails as a whole: nothing is
     * acknowledged or retransmitted, and only keepalive timers run. */
    bool reliable;
} session_sender_t;

typedef struct {
    bool is_client;
    bool oneway;          /* only the client has messages to send */
    uint32_t connections; /* 1 to SESSION_MAX_CONNECTIONS */
    uint32_t iters;       /* messages per connection and direction, from 1 */
    uint32_t size;        /* bytes of payload */
    /* Most messages of the client's that are unacknowledged at a time, over
     * all connections; 0: no limit. Keep it below the peer's receive queue. */
    uint32_t window;
    /* For as long, the connections are there and the client sends nothing of
     * its own accord but probes. */
    lawn_time_t idle;
    uint64_t run; /* both sides' common number for this run */
    double drop;  /* share of own sends lost on purpose, 0 <= drop < 1 */
    uint64_t seed;
    lawn_time_t linger; /* silence after which a server is over */
    lawn_conn_params_t timers;
} session_config_t;

#define SESSION_MAX_CONNECTIONS 1000000u
#define SESSION_MAX_ITERS 1000000000u

typedef struct {
    uint64_t delivered;
    uint64_t expected;
    uint64_t dropped; /* own sends lost on purpose */
    uint64_t retransmissions;
    uint64_t spurious; /* retransmissions of what had arrived */
    uint64_t duplicates;
    uint64_t malformed;
    uint64_t foreign;
    uint64_t probes_sent;
    uint64_t probes_answered;
    /* Delivery violated: each of these must be 0. */
    uint64_t gaps;
    uint64_t repeats;
    uint64_t corrupt;
    uint64_t early; /* timers fired before their deadline */
    uint32_t burst; /* most retransmissions within one pass */
    /* Most retransmissions of one message within the RTO after a stall. */
    uint32_t resume_max;
    uint32_t dead;
    uint32_t dead_by[4]; /* by lawn_conn_reason_t; 0: the transport failed */
    histogram_t rtt;
    histogram_t lateness; /* of timers fired, behind their deadline */
    histogram_t silence;  /* of dead connections, since the last datagram */
} session_stats_t;

/* Makes a session of idle connections. The transport and the configuration are
 * copied. INVALID_PARAM, NO_MEMORY. */
lawn_status_t session_create(const session_config_t *config,
                             const session_sender_t *sender,
                             session_t **session_p);

/* Opens all connections on `engine`, which must outlive the session, and lets
 * the client send. Once. INVALID_PARAM for timers that lawn_conn_open()
 * refuses. */
lawn_status_t session_start(session_t *session, lawn_engine_t *engine);

/* Stops all timers. NULL does nothing. */
void session_destroy(session_t *session);

/* A datagram has come. Anything may be in it. */
void session_receive(session_t *session, const void *datagram, size_t length);

/* The transport has dropped a datagram that is not the peer's. */
void session_count_foreign(session_t *session);

/* Sends what there is to send, some of it at a time. To be called in every
 * pass, when all that has come was received. */
void session_flush(session_t *session);

/* Another session_flush() would send more at once: no time to sleep. */
bool session_can_send(const session_t *session);

/* The transport has failed for good: every connection still open is dead. */
void session_fail(session_t *session);

/* Nothing more will happen. */
bool session_is_over(const session_t *session);

/* All was delivered here, and the peer has acknowledged all of ours. */
bool session_is_complete(const session_t *session);

/* A message was lost, repeated or altered, or a timer fired early. */
bool session_is_violated(const session_t *session);

const session_config_t *session_config(const session_t *session);
const session_stats_t *session_stats(const session_t *session);

LAWN_END_DECLS

#endif
