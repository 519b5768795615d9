/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The callbacks that Lawn calls when a timer of a connection has expired. They
 * also check that no timer expires early. The check computes the deadlines
 * itself, from the times of sending and receiving, and takes only the RTO from
 * the library. It must not rely on the library that it checks.
 */
#include "session_internal.h"

static session_t *session_of(const connection_t *c)
{
    return c->conn.context;
}

static void check_due(session_t *s, lawn_time_t due, lawn_time_t now)
{
    if (now < due) {
        ++s->stats.early;
    } else {
        histogram_record(&s->stats.lateness, now - due);
    }
}

/* Counts the retransmissions within one pass, which has one time, and those of
 * one message within the RTO after a stall. After a stall there should be one
 * retransmission. A timer library that makes up for lost time would cause a
 * burst. */
static void note_burst(session_t *s, connection_t *c, lawn_time_t now)
{
    if (now != s->burst_pass) {
        s->burst_pass = now;
        s->burst = 0;
    }
    if (++s->burst > s->stats.burst) {
        s->stats.burst = s->burst;
    }

    lawn_engine_stats_t engine;
    lawn_engine_query(s->engine, &engine);
    if (engine.stalls != s->stalls_seen) {
        s->stalls_seen = engine.stalls;
        s->resumed_at = now;
        ++s->resume_epoch;
    }
    if (s->resume_epoch == 0) {
        return;
    }
    if (c->resume_epoch != s->resume_epoch || c->resume_seq != c->sent) {
        c->resume_epoch = s->resume_epoch;
        c->resume_seq = c->sent;
        c->resume_count = 0;
        c->resume_end = s->resumed_at + c->retransmit_rto;
    }
    if (now < c->resume_end && c->resume_count < UINT8_MAX) {
        ++c->resume_count;
    }
    if (c->resume_count > s->stats.resume_max) {
        s->stats.resume_max = c->resume_count;
    }
}

/* The timer is already running again, with the RTO that lawn_conn_rto()
 * returns. */
static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    (void)attempt;
    check_due(s, c->retransmit_due, now);
    note_burst(s, c, now);
    c->retransmit_rto = lawn_conn_rto(conn);
    c->retransmit_due = now + c->retransmit_rto;
    session_request(s, c, c == s->control ? WANT_FIN : WANT_RETRANSMIT);
}

static void probe(lawn_conn_t *conn, lawn_time_t now, unsigned count)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    if (count == 1) {
        /* conn->idle includes this connection's share of the jitter. */
        c->probe_due = c->heard + conn->idle;
        s->stats.early += conn->idle < s->config.timers.keepalive_idle;
    }
    check_due(s, c->probe_due, now);
    c->probe_due = now + s->config.timers.keepalive_interval;
    session_request(s, c, WANT_PROBE);
}

/* At this point no timer of the connection runs. */
static void dead(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    connection_t *c = (connection_t *)conn;
    session_t *s = session_of(c);
    lawn_time_t due = c->retransmit_due;
    if (reason == LAWN_CONN_KEEPALIVE) {
        due = c->probe_due;
    } else if (reason == LAWN_CONN_PEER_TIMEOUT) {
        due = c->first_sent + s->config.timers.peer_timeout;
    }
    check_due(s, due, now);
    session_connection_died(s, c, reason);
}

const lawn_conn_ops_t session_conn_ops = {
    .retransmit = retransmit,
    .probe = probe,
    .dead = dead,
};
