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

/* Datagrams that a connection waits to send. They are flags and not a queue,
 * because a datagram is made when there is room for it, from the newest
 * state. */
enum { WANT_REPLY = 1, WANT_FIN = 2, WANT_PROBE = 4 };

/* A closed connection has finished, but still repeats its ACKs. */
typedef enum { CONNECTION_CLOSED, CONNECTION_OPEN, CONNECTION_DEAD } state_t;

/* Lists of slots, in the order in which they were put there. */
typedef enum {
    LIST_LATE, /* messages whose RTO is over */
    LIST_LOST, /* messages that are to be sent again */
    LIST_OWED, /* messages of the peer that are to be acknowledged */
    LIST_COUNT
} list_t;

/* One of the window's slots. Message n of either direction is in slot n %
 * window. */
typedef struct slot {
    /* This member is first, so that its address is that of the slot. */
    lawn_flight_message_t in_flight;
    lawn_time_t sent_at; /* the pass of the latest transmission, */
    lawn_time_t counted; /* and that from which its RTO counts */
    struct slot *next[LIST_COUNT];
    bool is_in[LIST_COUNT];
    bool has_arrived; /* the peer's message, before those of its turn */
    uint32_t seq;     /* of our message; 0: none yet */
    uint32_t late;    /* our message whose RTO is over, */
    uint32_t lost;    /* and that which is to be sent again */
    uint32_t owed;    /* a message of the peer that is to be acknowledged, */
    uint64_t echo;    /* the time that came with it, */
    uint64_t again;   /* and with a later transmission of it; 0: none */
} slot_t;

typedef struct connection {
    /* This member is first, so that its address is that of the connection. */
    lawn_conn_t conn;
    lawn_flight_t flight;
    struct connection *next_urgent;
    struct connection *next_fresh;
    /* Before this time, the retransmit timer must not fire without evidence. */
    lawn_time_t retransmit_due;
    lawn_time_t unacked_since; /* first send under way, or the latest ACK */
    lawn_time_t newest;        /* latest transmission that was acknowledged */
    lawn_time_t heard;         /* last valid datagram */
    uint64_t probed_at;        /* the time in the probe that waits longest */
    uint32_t sent;             /* latest message sent */
    uint32_t acked;            /* all messages up to it are acknowledged */
    uint32_t delivered;        /* latest message delivered */
    uint8_t want;
    uint8_t state;
    bool in_urgent;
    bool in_fresh;
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
    lawn_time_t started_at;
    uint32_t to_send;    /* messages per connection */
    uint32_t to_deliver; /* likewise */
    uint32_t outstanding;
    uint32_t window;     /* how many may be, of total_window */
    uint32_t acks;       /* since it was opened a bit more */
    uint32_t unfinished; /* connections that have more to do */
    uint32_t finished;   /* connections that have done everything */
    slot_t *first[LIST_COUNT];
    slot_t *last[LIST_COUNT];
    queue_t urgent;       /* what must not wait for the window */
    lawn_timer_t asking;  /* while it runs, what is late waits */
    lawn_time_t patience; /* for the next answer: a round trip, doubled */
    lawn_time_t newest;   /* latest transmission that was answered */
    queue_t fresh;        /* first transmissions */
    lawn_pacer_t pacer;   /* of messages; zero: there is no rate */
    uint64_t random;
    lawn_timer_t linger;
    lawn_timer_t idle; /* while it runs, nothing fresh is sent */
    session_stats_t stats;
    /* Has no messages except FIN. It is opened when all others are finished. */
    connection_t *control;
    connection_t *connections;
    slot_t *slots; /* of all connections */
    /* Payloads of messages that arrived before their turn; NULL: none can. */
    uint8_t *held;
    /* The latest to have measured the path, for those that have not. */
    const connection_t *known;
};

extern const lawn_conn_ops_t session_conn_ops;
extern const lawn_flight_ops_t session_flight_ops;

static inline uint32_t connection_id(const session_t *s, const connection_t *c)
{
    return (uint32_t)(c - s->connections);
}

static inline connection_t *connection_of(const session_t *s,
                                          const slot_t *slot)
{
    return &s->connections[(size_t)(slot - s->slots) / s->config.window];
}

static inline slot_t *slot_of(const session_t *s, const connection_t *c,
                              uint32_t seq)
{
    uint32_t window = s->config.window;
    return &s->slots[(size_t)connection_id(s, c) * window + seq % window];
}

/* Notes when the retransmit timer may fire at the earliest. */
void session_note_due(session_t *s, connection_t *c);

/* Something was acknowledged: opens the window a bit more. */
void session_open_window(session_t *s);

/* Whether a message whose RTO is over may still arrive. All connections share
 * one path, which keeps its order. So a message is lost if something that was
 * sent later, on whatever connection, has been answered. */
bool session_may_be_late(const session_t *s, const slot_t *slot);

/* Puts a slot at the end of a list, for a later flush, if it is not there. */
void session_put(session_t *s, list_t list, slot_t *slot);

/* Asks for `want` to be sent by a later flush. */
void session_request(session_t *s, connection_t *c, unsigned want);

/* Asks for the next messages of a connection to be sent, if it is this side's
 * turn. */
void session_request_next(session_t *s, connection_t *c);

/* Closes a connection and stops its timers, if it is open. */
void session_close_connection(session_t *s, connection_t *c);

/* These end a connection if it has no more to do, a connection whose peer is
 * dead, and the whole session. */
void session_check_finished(session_t *s, connection_t *c);
void session_connection_died(session_t *s, connection_t *c, unsigned reason);
void session_end(session_t *s);

LAWN_END_DECLS

#endif
