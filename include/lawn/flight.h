/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * lawn/flight.h - what is in flight on a connection: sent, not acknowledged.
 *
 *     lawn_flight_init(&peer->flight, &peer->conn, &ops);
 *     lawn_flight_send(&peer->flight, &request->message, now);
 *     lawn_flight_ack(&peer->flight, &request->message, now, echo);
 *     lawn_flight_retransmit(&peer->flight, now, attempt); // ops.retransmit
 *     lawn_flight_give_up(&peer->flight, &request->message, now);
 *
 * A connection holds only times (lawn/conn.h). This list is inside of the
 * transport's own messages, in the order of their latest sending: the first is
 * the oldest (RACK, RFC 8985). An ACK tells the connection:
 *   - A round trip, if it echoes `sent_at`, or if it echoes nothing (INFINITY)
 *     and the message was sent only once (Karn).
 *   - That the oldest is lost, if this was sent later. So of what is first sent
 *     in one pass, each has a `sent_at` that is a tick after that before. If
 *     ticks are longer than it takes to send one (milliseconds, and not the
 *     TSC's), these times run ahead of `now`, and an ACK of them says nothing.
 *   - That one of two sendings was needless, if it is the second (RFC 3522).
 *
 * A message that never gets through, while others do, may be larger than the
 * path's MTU. The 8th time that it is lost, with ACKs in between, `black_hole`
 * is told. Then its 16th, 32nd, ... loss sends it again, and each in a silence.
 *
 * Cumulative ACKs do not tell what has arrived behind a gap. So if
 * `is_cumulative`, a message keeps its place, and only the first is sent again.
 * Below is an ACK of all before a number. (One of ranges, as QUIC's, is not
 * cumulative, but also covers several, in any order, before ack_covered.)
 *     while ((message = lawn_flight_oldest(flight)) && is_before(message))
 *         lawn_flight_cover(flight, message); // and free it
 *     lawn_flight_ack_covered(flight, now, echo);
 * Go-back-N: `resend` sends all, and calls lawn_flight_send() for the others.
 *
 * All is O(1) but retransmit, O(what is lost). When the connection is closed,
 * only the list changes. Threads: only the engine's thread may call these.
 */
#ifndef LAWN_FLIGHT_H
#define LAWN_FLIGHT_H

#include <lawn/conn.h>

LAWN_BEGIN_DECLS

typedef struct lawn_flight lawn_flight_t;

/* Embed it in your message, and zero it at first. While it is in flight, do not
 * move or free it. Only read its fields. */
typedef struct {
    lawn_link_t link;    /* next is NULL: not in flight */
    lawn_time_t sent_at; /* the latest sending, or when it was left out */
    uint32_t losses;     /* with ACKs of others in between */
    uint32_t unanswered; /* transmissions without an ACK */
} lawn_flight_message_t;

/* `message` is lost. It may send, acknowledge, give up and free any message,
 * also this one, and close the connection; nothing more is then sent again.
 * Returns false if the flight or the connection may have been freed. */
typedef bool (*lawn_flight_lost_fn_t)(lawn_flight_t *flight,
                                      lawn_flight_message_t *message,
                                      lawn_time_t now);

typedef struct {
    lawn_flight_lost_fn_t resend;     /* now or soon: it counts as sent now */
    lawn_flight_lost_fn_t black_hole; /* instead of `resend`; or NULL */
    bool is_cumulative;
} lawn_flight_ops_t;

/* One per connection. Neither move nor init it while messages are in flight. */
struct lawn_flight {
    lawn_conn_t *conn;
    const lawn_flight_ops_t *ops;
    lawn_link_t messages;
    size_t count;        /* of messages in flight; may be read */
    lawn_time_t covered; /* the newest, INFINITY: unknown; 0: none covered */
    lawn_time_t latest;  /* first sending */
};

/* Makes an empty flight. `conn` may be closed; `ops` must stay. Returns
 * INVALID_PARAM, and changes nothing, if an argument or `resend` is NULL. */
static inline lawn_status_t lawn_flight_init(lawn_flight_t *flight,
                                             lawn_conn_t *conn,
                                             const lawn_flight_ops_t *ops)
{
    if (!flight || !conn || !ops || !ops->resend) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_link_t *const list = &flight->messages;
    const lawn_flight_t empty = {conn, ops, {list, list}, 0, 0, 0};
    *flight = empty;
    return LAWN_OK;
}

/* Returns the first message, or NULL if nothing is in flight. */
static inline lawn_flight_message_t *
lawn_flight_oldest(const lawn_flight_t *flight)
{
    void *const first = flight->messages.next;
    return flight->count ? (lawn_flight_message_t *)first : NULL;
}

/* Not for programs, as the next three. */
static inline lawn_time_t lawn_flight_oldest_at(const lawn_flight_t *flight)
{
    const lawn_flight_message_t *const first = lawn_flight_oldest(flight);
    return first ? first->sent_at : LAWN_TIME_INFINITY;
}

static inline void lawn_flight_remove(lawn_flight_t *flight, lawn_link_t *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = NULL;
    flight->count--;
}

static inline void lawn_flight_put(lawn_flight_t *flight,
                                   lawn_flight_message_t *message,
                                   lawn_time_t now)
{
    lawn_link_t *const link = &message->link;
    message->sent_at = now;
    if (link->next && !flight->ops->is_cumulative) {
        lawn_flight_remove(flight, link);
    }
    if (!link->next) {
        link->next = &flight->messages;
        link->prev = flight->messages.prev;
        link->prev->next = flight->messages.prev = link;
        flight->count++;
    }
}

static inline bool lawn_flight_lose(lawn_flight_t *flight, lawn_time_t now,
                                    bool is_silent)
{
    lawn_flight_message_t *const message = lawn_flight_oldest(flight);
    lawn_flight_put(flight, message, now);
    if (!is_silent) {
        message->losses += message->losses != UINT32_MAX;
        if (message->losses == 8 && flight->ops->black_hole) {
            return flight->ops->black_hole(flight, message, now);
        }
        if (message->losses > 8 && (message->losses & (message->losses - 1))) {
            return true;
        }
    }
    message->unanswered++;
    return flight->ops->resend(flight, message, now);
}

/* `message` is sent; if it is in flight, again, by the transport (a NACK). */
static inline void lawn_flight_send(lawn_flight_t *flight,
                                    lawn_flight_message_t *message,
                                    lawn_time_t now)
{
    if (message->link.next) {
        message->unanswered++;
        lawn_flight_put(flight, message, now);
        lawn_conn_on_resend(flight->conn, now, lawn_flight_oldest_at(flight));
        return;
    }
    flight->latest = now > flight->latest ? now : flight->latest + 1;
    message->losses = 0;
    message->unanswered = 1;
    lawn_flight_put(flight, message, flight->latest);
    lawn_conn_on_send(flight->conn, now);
}

/* An ACK covers `message`: takes it out. Call it for each that the ACK covers,
 * then lawn_flight_ack_covered(). Returns false if it is not in flight. */
static inline bool lawn_flight_cover(lawn_flight_t *flight,
                                     lawn_flight_message_t *message)
{
    if (!message->link.next) {
        return false;
    }
    const bool is_known = --message->unanswered == 0 && message->sent_at != 0;
    const lawn_time_t at = is_known ? message->sent_at : LAWN_TIME_INFINITY;
    flight->covered = at > flight->covered ? at : flight->covered;
    lawn_flight_remove(flight, &message->link);
    return true;
}

/* `echo` is the time of the transmission that the ACK answers, or INFINITY. If
 * nothing was covered, it is a sample and evidence, but not a success. */
static inline void lawn_flight_ack_covered(lawn_flight_t *flight,
                                           lawn_time_t now, lawn_time_t echo)
{
    const bool has_echo = echo != LAWN_TIME_INFINITY;
    if (flight->covered) {
        const lawn_time_t sent_at = has_echo ? echo : flight->covered;
        flight->covered = 0;
        lawn_conn_on_ack_oldest(flight->conn, now, sent_at,
                                lawn_flight_oldest_at(flight));
    } else if (has_echo) {
        lawn_conn_on_echo(flight->conn, now, echo);
    } else {
        lawn_conn_on_receive(flight->conn, now);
    }
}

/* An ACK of `message` alone. Returns false if it is not in flight: a later ACK.
 * Of what was freed or given up, call lawn_flight_ack_covered(). */
static inline bool lawn_flight_ack(lawn_flight_t *flight,
                                   lawn_flight_message_t *message,
                                   lawn_time_t now, lawn_time_t echo)
{
    const bool is_new = lawn_flight_cover(flight, message);
    if (!is_new && message->unanswered == 0) {
        echo = LAWN_TIME_INFINITY; /* an ACK that has come twice */
    } else if (!is_new && message->unanswered-- && echo == LAWN_TIME_INFINITY) {
        lawn_conn_on_spurious(flight->conn);
    }
    lawn_flight_ack_covered(flight, now, echo);
    return is_new;
}

/* Takes `message` out, if it is in flight, without an ACK. */
static inline void lawn_flight_give_up(lawn_flight_t *flight,
                                       lawn_flight_message_t *message,
                                       lawn_time_t now)
{
    if (message->link.next) {
        message->unanswered = 0;
        lawn_flight_remove(flight, &message->link);
        lawn_conn_on_resend(flight->conn, now, lawn_flight_oldest_at(flight));
    }
}

/* For `retransmit` of the connection, in it or later. Calls `resend` (or
 * `black_hole`) once for each message that is lost: the oldest, and each sent
 * before lawn_conn_lost_before(). Returns false only if one of these has. */
static inline bool lawn_flight_retransmit(lawn_flight_t *flight,
                                          lawn_time_t now, unsigned attempt)
{
    const lawn_time_t before = lawn_conn_lost_before(flight->conn, now);
    size_t left = flight->ops->is_cumulative ? !!flight->count : flight->count;
    while (left != 0 && lawn_conn_is_open(flight->conn)) {
        if (!lawn_flight_lose(flight, now, attempt > 1)) {
            return false;
        }
        left = lawn_flight_oldest_at(flight) < before ? left - 1 : 0;
    }
    lawn_conn_on_resend(flight->conn, now, lawn_flight_oldest_at(flight));
    return true;
}

LAWN_END_DECLS

#endif
