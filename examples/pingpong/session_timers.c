/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The callbacks that Lawn calls when a timer of a connection has expired. Two
 * of them count a timer that fires early, for the summary. They compute the
 * deadline from the times of sending and receiving, and take only the RTO from
 * the library, because the check must not rely on what it checks.
 */
#include "session_internal.h"

static session_t *session_of(const connection_t *c)
{
    return c->conn.context;
}

/* A message is lost. It is sent by the next flush that has room, but counts as
 * sent now. */
static bool resend(lawn_flight_t *flight, lawn_flight_message_t *message,
                   lawn_time_t now)
{
    slot_t *slot = (slot_t *)message;
    slot->counted = now;
    slot->lost = slot->seq;
    session_put(flight->conn->context, LIST_LOST, slot);
    return true; /* the flight is still there */
}

const lawn_flight_ops_t session_flight_ops = {.resend = resend};

/* An RTO or the peer timeout is over, unless there is evidence: something that
 * was sent later has been acknowledged. */
static bool is_early(const connection_t *c, lawn_time_t now)
{
    const lawn_flight_message_t *oldest = lawn_flight_oldest(&c->flight);
    if (!oldest) {
        return true;
    }
    bool evidence = lawn_conn_lost_before(&c->conn, now) != 0;
    return evidence ? c->newest <= oldest->sent_at : now < c->retransmit_due;
}

static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    slot_t *oldest = (slot_t *)lawn_flight_oldest(&c->flight);
    s->stats.early += is_early(c, now);
    bool evidence = lawn_conn_lost_before(conn, now) != 0;
    if (oldest && !evidence && session_may_be_late(s, oldest)) {
        oldest->late = oldest->seq;
        session_put(s, LIST_LATE, oldest);
        lawn_conn_on_resend(conn, now, oldest->in_flight.sent_at);
    } else {
        (void)lawn_flight_retransmit(&c->flight, now, attempt);
    }
    session_note_due(s, c);
}

void session_note_due(session_t *s, connection_t *c)
{
    const slot_t *oldest = (const slot_t *)lawn_flight_oldest(&c->flight);
    lawn_time_t timeout = s->config.timers.peer_timeout;
    if (!oldest) {
        return;
    }
    c->retransmit_due = oldest->counted + lawn_conn_rto(&c->conn);
    if (timeout && c->unacked_since + timeout < c->retransmit_due) {
        c->retransmit_due = c->unacked_since + timeout;
    }
}

static void probe(lawn_conn_t *conn, lawn_time_t now, unsigned count)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    const lawn_conn_params_t *timers = &s->config.timers;
    s->stats.early +=
        now - c->heard <
        timers->keepalive_idle + (count - 1) * timers->keepalive_interval;
    session_request(s, c, WANT_PROBE);
}

/* At this point no timer of the connection runs. */
static void dead(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    connection_t *c = (connection_t *)conn;
    (void)now;
    session_connection_died(session_of(c), c, reason);
}

const lawn_conn_ops_t session_conn_ops = {
    .retransmit = retransmit,
    .probe = probe,
    .dead = dead,
};
