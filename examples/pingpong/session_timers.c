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

/* The timer is already running again, with the RTO that lawn_conn_rto()
 * returns. */
static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    (void)attempt;
    s->stats.early += now < c->retransmit_due;
    c->retransmit_due = now + lawn_conn_rto(conn);
    session_request(s, c, c == s->control ? WANT_FIN : WANT_RETRANSMIT);
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
