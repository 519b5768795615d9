/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the session share: session.c begins and ends it,
 * session_send.c and session_receive.c are its two directions, and
 * session_timers.c is what Lawn calls.
 */
#ifndef PINGPONG_SESSION_INTERNAL_H
#define PINGPONG_SESSION_INTERNAL_H

#include "session.h"
#include "wire.h"

LAWN_BEGIN_DECLS

/* Times of transmission that are kept per connection, to measure the round
 * trip of whichever attempt an ACK names. */
#define ATTEMPTS_KEPT 4u

/* Datagrams that a connection waits to send. They are flags and not a queue:
 * a datagram is made when there is room for it, with the newest state. */
enum {
    WANT_REPLY = 1,
    WANT_FIN = 2,
    WANT_FIN_ACK = 4,
    WANT_RETRANSMIT = 8,
    WANT_PROBE = 16,
    WANT_ACK = 32
};

/* A connection that is closed has finished, but still repeats its last ACK. */
typedef enum { CONNECTION_CLOSED, CONNECTION_OPEN, CONNECTION_DEAD } state_t;

typedef struct connection {
    /* First, so that a lawn_conn_t of ours is a connection_t. */
    lawn_conn_t conn;
    struct connection *next_urgent;
    struct connection *next_fresh;
    lawn_time_t sent_at[ATTEMPTS_KEPT]; /* by attempt, modulo */
    lawn_time_t first_sent;             /* attempt 0 of what is outstanding */
    lawn_time_t heard;                  /* last valid datagram */
    /* When the timers may fire at the earliest, by our own reckoning. */
    lawn_time_t retransmit_due;
    lawn_time_t probe_due;
    lawn_time_t retransmit_rto; /* with which the timer was started */
    lawn_time_t resume_end;     /* of the RTO that ran when a stall ended */
    uint32_t sent;              /* latest message sent */
    uint32_t acked;             /* latest message acknowledged */
    uint32_t delivered;         /* latest message delivered */
    uint32_t resume_epoch;
    uint32_t resume_seq;
    uint16_t attempt; /* of message `sent` */
    uint16_t echo;    /* attempt in which message `delivered` came last */
    uint8_t want;
    uint8_t resume_count;
    uint8_t state;
    bool in_urgent;
    bool in_fresh;
    bool prompt; /* message `delivered` came and was not answered yet */
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
    uint32_t finished;   /* and that have done it */
    queue_t urgent;      /* whatever must not wait for the window */
    queue_t fresh;       /* first transmissions */
    uint32_t fresh_count;
    uint64_t random;
    lawn_timer_t linger;
    lawn_timer_t idle; /* while it runs, nothing fresh is sent */
    lawn_time_t burst_pass;
    uint32_t burst;
    uint32_t resume_epoch;
    uint64_t stalls_seen;
    lawn_time_t resumed_at;
    session_stats_t stats;
    /* Has no messages but FIN. Open when all others are finished. */
    connection_t *control;
    connection_t *connections;
};

extern const lawn_conn_ops_t session_conn_ops;

static inline uint32_t connection_id(const session_t *s, const connection_t *c)
{
    return (uint32_t)(c - s->connections);
}

/* Has `want` sent by a flush to come. */
void session_request(session_t *s, connection_t *c, unsigned want);

/* Has the next message of a connection sent, if it is its turn. True if the
 * window is open for it, so that it soon carries the ACK for what was just
 * delivered. */
bool session_request_next(session_t *s, connection_t *c);

/* Stops the timers of a connection that is open. */
void session_close_connection(connection_t *c);

/* Ends a connection if it has no more to do, or since its peer is dead. */
void session_check_finished(session_t *s, connection_t *c);
void session_connection_died(session_t *s, connection_t *c, unsigned reason);
void session_end(session_t *s);

LAWN_END_DECLS

#endif
