/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The protocol, without a transport. It has many logical connections over one
 * pair of queues. Each connection is a ping-pong of a few messages at a time,
 * with a lawn_conn for its timers and a lawn_flight for what is under way.
 *
 *     client                                    server
 *       DATA 1 at 17 -------------------------->  deliver 1
 *       flight_ack(1, 17)  <--------------------  ACK 1, 17
 *       deliver 1  <----------------------------  DATA 1 at 5
 *       ACK 1, 5 ------------------------------>  flight_ack(1, 5)
 *       DATA 2 at 31 ---- lost
 *       (the timer sends DATA 2 again)
 *       ...
 *       FIN ----------------------------------->  (when all is acknowledged)
 *       over  <-------------------------- FIN_ACK  over after some silence
 *
 * With a window of n, the client has sent up to n messages that are not
 * answered. Each message is acknowledged singly and at once, by the time of the
 * transmission that has arrived.
 *
 * How Lawn is embedded:
 *   - The transport drains its completion queue in a source of the engine, and
 *     passes each datagram to session_receive(). All datagrams that have
 *     arrived are read before a timer expires, so an ACK that is there stops
 *     its timer. Then the transport calls session_flush(), which sends.
 *   - The engine reads the clock once per pass. The session takes the time from
 *     lawn_engine_now(), which is a load.
 *   - An ACK costs one lawn_flight_ack(), and a first transmission costs one
 *     lawn_flight_send(). Each is a few stores, for any number of connections.
 *     So the session need not batch these calls or sweep its connections.
 *   - The first message of a connection inherits what others have measured.
 *   - All connections share one path. In a silence of the path, the RTOs of
 *     many connections expire, and nothing may be lost. So a message is sent
 *     again only if something that was sent later, on whatever connection, has
 *     been answered. If nothing was, the peer is asked, once for all, or one
 *     message is sent again for all, if few are under way.
 *
 *   - With a rate, one pacer has the bytes of all messages. A message is taken
 *     from it when there is room for it in the send queue, and not before. ACKs
 *     and probes do not wait. The pacer's timer does nothing: it wakes a
 * program that sleeps, and the poll of that pass sends.
 *
 * Nothing is allocated after session_create(). Threads: only the engine's
 * thread may call these functions.
 */
#ifndef PINGPONG_SESSION_H
#define PINGPONG_SESSION_H

#include <lawn/flight.h>
#include <lawn/pacer.h>
#include <lawn/stats.h>

LAWN_BEGIN_DECLS

typedef struct session session_t;

/* How a transport sends. */
typedef struct {
    /* Returns room for one datagram, or NULL while the send queue is full. If
     * there was no send() since the last call, it may return the same room. */
    void *(*buffer)(void *arg);
    /* Sends the first `length` bytes of what buffer() returned last. */
    void (*send)(void *arg, size_t length);
    void *arg;
    /* The transport delivers everything once and in order, or fails as a whole.
     * The session then acknowledges and retransmits nothing, and only keepalive
     * timers run. */
    bool reliable;
} session_sender_t;

typedef struct {
    bool is_client;
    bool oneway;          /* only the client has messages to send */
    uint32_t connections; /* 1 to SESSION_MAX_CONNECTIONS */
    uint32_t iters;       /* messages per connection and direction, from 1 */
    uint32_t size;        /* bytes of payload */
    uint32_t window;      /* messages under way on a connection, 1 to 256 */
    /* How many messages of the client may be unacknowledged at a time, over all
     * connections; 0: no limit. Keep it below the peer's receive queue. It
     * opens slowly. */
    uint32_t total_window;
    /* For this time after the start, the connections are open and the client
     * sends nothing but probes and answers. */
    lawn_time_t idle;
    uint64_t run; /* the number of this run, the same on both sides */
    double drop;  /* share of own sends lost on purpose, 0 <= drop < 1 */
    uint64_t seed;
    lawn_time_t linger; /* silence after which a server is over */
    lawn_conn_params_t timers;
    lawn_pacer_params_t pacing; /* of our messages; rate 0: none */
} session_config_t;

#define SESSION_MAX_CONNECTIONS 1000000u
#define SESSION_MAX_ITERS 1000000000u
#define SESSION_MAX_WINDOW 256u

typedef struct {
    uint64_t delivered;
    uint64_t expected;
    uint64_t dropped;         /* own sends lost on purpose */
    uint64_t retransmissions; /* messages sent again */
    uint64_t asked;           /* questions whether a message is lost */
    /* Of the connections that were closed, from lawn_conn_query(). */
    uint64_t spurious;
    uint64_t by_evidence;
    uint64_t undone;
    uint64_t excused;
    uint64_t duplicates;
    uint64_t malformed;
    uint64_t foreign;
    uint64_t probes_sent;
    uint64_t probes_answered;
    /* Violations of delivery. Each of these must be 0. */
    uint64_t gaps;
    uint64_t repeats;
    uint64_t corrupt;
    uint64_t early; /* timers fired before their deadline */
    uint32_t dead;
    uint32_t dead_by[4]; /* by lawn_conn_reason_t; 0: the transport failed */
    /* The longest time from the last datagram of a connection to its death. */
    lawn_time_t silence_max;
    lawn_histogram_t rtt;
} session_stats_t;

/* Makes a session of idle connections. `config` and `sender` are copied.
 * Returns INVALID_PARAM or NO_MEMORY on failure. */
lawn_status_t session_create(const session_config_t *config,
                             const session_sender_t *sender,
                             session_t **session_p);

/* Opens all connections on `engine`, and lets the client send. The engine must
 * outlive the session. May be called once: after that, it returns BUSY. Returns
 * INVALID_PARAM for timers that lawn_conn_open() refuses, or a rate that
 * lawn_pacer_init() refuses. */
lawn_status_t session_start(session_t *session, lawn_engine_t *engine);

/* Stops all timers and frees the session. NULL does nothing. */
void session_destroy(session_t *session);

/* Call it for each datagram that has arrived, whatever its content is. */
void session_receive(session_t *session, const void *datagram, size_t length);

/* Call it when the transport has dropped a datagram that is not from the
 * peer. */
void session_count_foreign(session_t *session);

/* Sends what is ready to be sent, up to a fixed number of messages. Call it in
 * every pass, after session_receive() for all datagrams that have arrived. */
void session_flush(session_t *session);

/* Whether another session_flush() would send more at once. If so, do not
 * sleep. */
bool session_can_send(const session_t *session);

/* Call it when the transport has failed for good. Every connection that is
 * still open is then dead. */
void session_fail(session_t *session);

/* Whether the session is over: it sends nothing more. */
bool session_is_over(const session_t *session);

/* Whether all messages were delivered here, and the peer has acknowledged all
 * of ours. */
bool session_is_complete(const session_t *session);

/* Whether a message was lost, repeated or altered, or a timer fired early. */
bool session_is_violated(const session_t *session);

const session_config_t *session_config(const session_t *session);
const session_stats_t *session_stats(const session_t *session);

LAWN_END_DECLS

#endif
