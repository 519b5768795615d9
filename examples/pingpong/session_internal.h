/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the session share. session.c begins and ends the session.
 * session_send.c and session_receive.c are its two directions. session_timers.c
 * has the callbacks that Lawn calls.
 */
#ifndef PINGPONG_SESSION_INTERNAL_H
#define PINGPONG_SESSION_INTERNAL_H

#include "session.h"
#include "wire.h"

LAWN_BEGIN_DECLS

/* How many times of transmission a connection keeps. An ACK names an attempt,
 * and its round trip is measured from that attempt's time. */
#define ATTEMPTS_KEPT 4u

/* Datagrams that a connection waits to send. They are flags and not a queue,
 * because a datagram is made when there is room for it, from the newest
 * state. */
enum {
    WANT_REPLY = 1,
    WANT_FIN = 2,
    WANT_FIN_ACK = 4,
    WANT_RETRANSMIT = 8,
    WANT_PROBE = 16,
    WANT_ACK = 32
};

/* A closed connection has finished, but still repeats its last ACK. */
typedef enum { CONNECTION_CLOSED, CONNECTION_OPEN, CONNECTION_DEAD } state_t;

typedef struct connection {
    /* This member is first, so that its address is that of the connection. */
    lawn_conn_t conn;
    struct connection *next_urgent;
    struct connection *next_fresh;
    lawn_time_t sent_at[ATTEMPTS_KEPT]; /* by attempt, modulo */
    /* Before this time, the retransmit timer must not fire. */
    lawn_time_t retransmit_due;
    lawn_time_t heard;  /* last valid datagram */
    uint32_t sent;      /* latest message sent */
    uint32_t acked;     /* latest message acknowledged */
    uint32_t delivered; /* latest message delivered */
    uint16_t attempt;   /* of message `sent` */
    uint16_t echo;      /* latest attempt of message `delivered` */
    uint8_t want;
    uint8_t state;
    bool in_urgent;
    bool in_fresh;
    bool prompt; /* message `delivered` has come and is not answered yet */
} connection_t;

typedef struct {
    connection_t *head;
    connection_t *tail;
} queue_t;

typedef enum {
    SESSION_IDLE,
    SESSION_RUNNING,
    SESSION_CLOSING,   /* client: FIN sent */
    SESSION_LINGERING, /* server: FIN received */
    SESSION_OVER
} session_state_t;

struct session {
    session_config_t config;
    session_sender_t sender;
    lawn_engine_t *engine;
    session_state_t state;
    uint32_t to_send;    /* messages per connection */
    uint32_t to_deliver; /* likewise */
    uint32_t outstanding;
    uint32_t unfinished; /* connections that have more to do */
    uint32_t finished;   /* connections that have done everything */
    queue_t urgent;      /* what must not wait for the window */
    queue_t fresh;       /* first transmissions */
    uint32_t fresh_count;
    uint64_t random;
    lawn_timer_t linger;
    lawn_timer_t idle; /* while it runs, nothing fresh is sent */
    session_stats_t stats;
    /* Has no messages except FIN. It is opened when all others are finished. */
    connection_t *control;
    connection_t *connections;
};

extern const lawn_conn_ops_t session_conn_ops;

static inline uint32_t connection_id(const session_t *s, const connection_t *c)
{
    return (uint32_t)(c - s->connections);
}

/* Asks for `want` to be sent by a later flush. */
void session_request(session_t *s, connection_t *c, unsigned want);

/* Asks for the next message of a connection to be sent, if it is this side's
 * turn. Returns true if the window is open for the message. The message then
 * soon carries the ACK for what was just delivered. */
bool session_request_next(session_t *s, connection_t *c);

/* Closes a connection and stops its timers, if it is open. */
void session_close_connection(connection_t *c);

/* These end a connection if it has no more to do, a connection whose peer is
 * dead, and the whole session. */
void session_check_finished(session_t *s, connection_t *c);
void session_connection_died(session_t *s, connection_t *c, unsigned reason);
void session_end(session_t *s);

LAWN_END_DECLS

#endif
