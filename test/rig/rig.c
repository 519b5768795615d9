/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * What the linker puts between a session and lawn/conn.h; see rig.h. A call of
 * f() by the session is a call of __wrap_f() here, and __real_f() is f().
 *
 * Sessions begin and end on one thread, while no other thread has one running.
 */
#include "rig.h"

#include "session_internal.h"

#include <stdlib.h>

lawn_status_t __real_session_create(const session_config_t *config,
                                    const session_sender_t *sender,
                                    session_t **session_p);
void __real_session_destroy(session_t *session);
lawn_status_t __real_lawn_conn_open_sized(lawn_engine_t *engine,
                                          const lawn_conn_params_t *params,
                                          size_t params_size,
                                          const lawn_conn_ops_t *ops,
                                          size_t ops_size, lawn_conn_t *conn);
void __real_lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now);
void __real_lawn_conn_on_resend(lawn_conn_t *conn, lawn_time_t now,
                                lawn_time_t oldest);
void __real_lawn_conn_on_ack_oldest(lawn_conn_t *conn, lawn_time_t now,
                                    lawn_time_t sent_at, lawn_time_t oldest);
void __real_lawn_conn_on_echo(lawn_conn_t *conn, lawn_time_t now,
                              lawn_time_t sent_at);
void __real_lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now);

static rig_t *rigs;

rig_t *rig_of(const session_t *session)
{
    rig_t *rig = rigs;
    while (rig && rig->session != session) {
        rig = rig->next;
    }
    return rig;
}

static rig_connection_t *rigged(rig_t *rig, const lawn_conn_t *conn)
{
    const connection_t *c = (const connection_t *)conn;
    return &rig->connections[connection_id(rig->session, c)];
}

lawn_status_t __wrap_session_create(const session_config_t *config,
                                    const session_sender_t *sender,
                                    session_t **session_p)
{
    lawn_status_t status = __real_session_create(config, sender, session_p);
    if (status != LAWN_OK) {
        return status;
    }
    rig_t *rig = calloc(1, sizeof(*rig));
    rig_connection_t *connections =
        calloc(config->connections + 1, sizeof(*connections));
    if (!rig || !connections) {
        abort();
    }
    rig->session = *session_p;
    rig->connections = connections;
    rig->next = rigs;
    rigs = rig;
    return LAWN_OK;
}

void __wrap_session_destroy(session_t *session)
{
    __real_session_destroy(session);
    rig_t **link = &rigs;
    while (*link && (*link)->session != session) {
        link = &(*link)->next;
    }
    rig_t *rig = *link;
    if (rig) {
        *link = rig->next;
        free(rig->connections);
        free(rig);
    }
}

static void check_due(rig_t *rig, lawn_time_t due, lawn_time_t now)
{
    if (now < due) {
        ++rig->session->stats.early;
    } else {
        histogram_record(&rig->lateness, now - due);
    }
}

/* Counts the retransmissions within one pass, which has one time. */
static void note_burst(rig_t *rig, lawn_time_t now)
{
    if (now != rig->pass) {
        rig->pass = now;
        rig->pass_burst = 0;
    }
    if (++rig->pass_burst > rig->burst) {
        rig->burst = rig->pass_burst;
    }
}

/* Counts the retransmissions of one message within the RTO after a stall. There
 * should be one. A timer library that makes up for lost time would cause a
 * burst. */
static void note_resume(rig_t *rig, rig_connection_t *r, lawn_time_t now)
{
    lawn_engine_stats_t engine;
    lawn_engine_query(rig->session->engine, &engine);
    if (engine.stalls != rig->stalls_seen) {
        rig->stalls_seen = engine.stalls;
        rig->resumed_at = now;
        ++rig->resume_epoch;
    }
    if (rig->resume_epoch == 0) {
        return;
    }
    if (r->resume_epoch != rig->resume_epoch ||
        r->resume_message != r->messages) {
        r->resume_epoch = rig->resume_epoch;
        r->resume_message = r->messages;
        r->resume_count = 0;
        r->resume_end = rig->resumed_at + r->rto;
    }
    /* An RTO that was backed off without need is shorter again. */
    if (now < r->resume_end && now < rig->resumed_at + r->rto) {
        ++r->resume_count;
    }
    if (r->resume_count > rig->resume_max) {
        rig->resume_max = r->resume_count;
    }
}

static void note_timer(rig_connection_t *r, const lawn_conn_t *conn)
{
    r->rto = lawn_conn_rto(conn);
    r->armed = lawn_timer_deadline(&conn->retransmit);
}

/* One RTO after the oldest send, or the peer timeout. */
static lawn_time_t retransmit_due(const rig_t *rig, const rig_connection_t *r)
{
    lawn_time_t due = r->oldest + r->rto;
    lawn_time_t timeout = rig->session->config.timers.peer_timeout;
    if (timeout && r->unacked_since + timeout < due) {
        due = r->unacked_since + timeout;
    }
    return due;
}

static void retransmit(lawn_conn_t *conn, lawn_time_t now, unsigned attempt)
{
    rig_t *rig = rig_of(conn->context);
    rig_connection_t *r = rigged(rig, conn);
    bool evidence = lawn_conn_lost_before(conn, now) != 0;
    lawn_time_t due = retransmit_due(rig, r);
    if (due < r->armed || (evidence && r->newest > r->oldest)) {
        due = r->armed; /* how long evidence waits is the connection's matter */
    }
    check_due(rig, due, now);
    note_burst(rig, now);
    if (!evidence) {
        note_resume(rig, r, now);
    }
    r->oldest = now; /* unless on_resend says otherwise */
    note_timer(r, conn);
    session_conn_ops.retransmit(conn, now, attempt);
}

static void probe(lawn_conn_t *conn, lawn_time_t now, unsigned count)
{
    rig_t *rig = rig_of(conn->context);
    rig_connection_t *r = rigged(rig, conn);
    const lawn_conn_params_t *timers = &rig->session->config.timers;
    if (count == 1) {
        r->probe_due = r->heard + r->idle;
        rig->session->stats.early += r->idle < timers->keepalive_idle;
    }
    check_due(rig, r->probe_due, now);
    r->probe_due = now + timers->keepalive_interval;
    session_conn_ops.probe(conn, now, count);
}

static void dead(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    rig_t *rig = rig_of(conn->context);
    rig_connection_t *r = rigged(rig, conn);
    session_t *s = rig->session;
    lawn_time_t due = retransmit_due(rig, r);
    if (reason == LAWN_CONN_KEEPALIVE) {
        due = r->probe_due;
    } else if (reason == LAWN_CONN_PEER_TIMEOUT) {
        due = r->unacked_since + s->config.timers.peer_timeout;
    }
    check_due(rig, due, now);
    if (conn != &s->control->conn) {
        histogram_record(&rig->silence, lawn_engine_now(s->engine) - r->heard);
    }
    session_conn_ops.dead(conn, now, reason);
}

lawn_status_t __wrap_lawn_conn_open_sized(lawn_engine_t *engine,
                                          const lawn_conn_params_t *params,
                                          size_t params_size,
                                          const lawn_conn_ops_t *ops,
                                          size_t ops_size, lawn_conn_t *conn)
{
    static const lawn_conn_ops_t between = {
        .retransmit = retransmit,
        .probe = probe,
        .dead = dead,
    };
    if (ops != &session_conn_ops || ops_size != sizeof(between)) {
        abort();
    }
    rig_connection_t *r = rigged(rig_of(conn->context), conn);
    r->heard = lawn_engine_now(engine);
    r->oldest = LAWN_TIME_INFINITY;
    lawn_status_t status = __real_lawn_conn_open_sized(
        engine, params, params_size, &between, ops_size, conn);
    if (status == LAWN_OK) {
        r->idle = lawn_timer_deadline(&conn->keepalive) - conn->heard_at;
    }
    return status;
}

/* What is sent in one pass has an order of ticks, and so times that are still
 * to come. A connection takes them for the present. */
static lawn_time_t past(lawn_time_t oldest, lawn_time_t now)
{
    return oldest > now && oldest != LAWN_TIME_INFINITY ? now : oldest;
}

void __wrap_lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now)
{
    rig_connection_t *r = rigged(rig_of(conn->context), conn);
    ++r->messages;
    if (r->oldest == LAWN_TIME_INFINITY) {
        r->oldest = now;
        r->unacked_since = now;
    }
    __real_lawn_conn_on_send(conn, now);
    note_timer(r, conn);
}

void __wrap_lawn_conn_on_resend(lawn_conn_t *conn, lawn_time_t now,
                                lawn_time_t oldest)
{
    rig_connection_t *r = rigged(rig_of(conn->context), conn);
    r->oldest = past(oldest, now);
    __real_lawn_conn_on_resend(conn, now, oldest);
    note_timer(r, conn);
}

static rig_connection_t *note_ack(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t sent_at)
{
    rig_t *rig = rig_of(conn->context);
    rig_connection_t *r = rigged(rig, conn);
    r->heard = now;
    if (sent_at <= now) { /* else there is no echo, or it is forged */
        r->newest = sent_at > r->newest ? sent_at : r->newest;
    }
    return r;
}

void __wrap_lawn_conn_on_ack_oldest(lawn_conn_t *conn, lawn_time_t now,
                                    lawn_time_t sent_at, lawn_time_t oldest)
{
    rig_connection_t *r = note_ack(conn, now, sent_at);
    if (sent_at <= now) {
        histogram_record(&rig_of(conn->context)->rtt, now - sent_at);
    }
    r->unacked_since = now;
    r->oldest = past(oldest, now);
    __real_lawn_conn_on_ack_oldest(conn, now, sent_at, oldest);
    note_timer(r, conn);
}

void __wrap_lawn_conn_on_echo(lawn_conn_t *conn, lawn_time_t now,
                              lawn_time_t sent_at)
{
    rig_connection_t *r = note_ack(conn, now, sent_at);
    __real_lawn_conn_on_echo(conn, now, sent_at);
    note_timer(r, conn);
}

void __wrap_lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now)
{
    rigged(rig_of(conn->context), conn)->heard = now;
    __real_lawn_conn_on_receive(conn, now);
}
