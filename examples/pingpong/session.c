/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The life of a session, from the opening of its connections to the last
 * FIN_ACK. A session ends when both sides know that all messages were
 * delivered, or when no connection is alive.
 */
#include "session_internal.h"

#include <stdlib.h>

/* Messages that the client sends, over all connections, before the first is
 * acknowledged. */
#define FIRST_WINDOW 64u

lawn_status_t session_create(const session_config_t *config,
                             const session_sender_t *sender,
                             session_t **session_p)
{
    if (!config || !sender || !session_p || !sender->buffer || !sender->send ||
        config->connections == 0 ||
        config->connections > SESSION_MAX_CONNECTIONS || config->iters == 0 ||
        config->iters > SESSION_MAX_ITERS || config->window == 0 ||
        config->window > SESSION_MAX_WINDOW ||
        !(config->drop >= 0 && config->drop < 1)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    session_t *s = calloc(1, sizeof(*s));
    if (!s) {
        return LAWN_ERR_NO_MEMORY;
    }
    size_t connections = (size_t)config->connections + 1;
    size_t slots = connections * config->window;
    s->connections = calloc(connections, sizeof(*s->connections));
    s->slots = calloc(slots, sizeof(*s->slots));
    bool holds = config->window > 1 && config->size != 0;
    s->held = holds ? calloc(slots, config->size) : NULL;
    if (!s->connections || !s->slots || (holds && !s->held)) {
        session_destroy(s);
        return LAWN_ERR_NO_MEMORY;
    }
    s->config = *config;
    s->sender = *sender;
    s->control = &s->connections[config->connections];
    s->unfinished = config->connections;
    s->to_send = config->oneway && !config->is_client ? 0 : config->iters;
    s->to_deliver = config->oneway && config->is_client ? 0 : config->iters;
    s->stats.expected = (uint64_t)s->to_deliver * config->connections;
    s->random = config->seed;
    s->window = config->total_window ? config->total_window : UINT32_MAX;
    if (config->total_window > FIRST_WINDOW) {
        s->window = FIRST_WINDOW;
    }
    *session_p = s;
    return LAWN_OK;
}

static lawn_status_t open_connection(session_t *s, connection_t *c)
{
    c->conn.context = s;
    lawn_status_t status = lawn_conn_open(s->engine, &s->config.timers,
                                          &session_conn_ops, &c->conn);
    if (status == LAWN_OK) {
        status = lawn_flight_init(&c->flight, &c->conn, &session_flight_ops);
        c->state = CONNECTION_OPEN;
        c->heard = lawn_engine_now(s->engine);
    }
    return status;
}

/* A closed connection keeps its statistics until it is opened again. */
static void add_stats(session_t *s, const connection_t *c)
{
    lawn_conn_stats_t stats;
    lawn_conn_query(&c->conn, &stats);
    s->stats.spurious += stats.spurious;
    s->stats.by_evidence += stats.by_evidence;
    s->stats.undone += stats.undone;
    s->stats.excused += stats.excused;
}

void session_close_connection(session_t *s, connection_t *c)
{
    if (c->state == CONNECTION_OPEN) {
        c->state = CONNECTION_CLOSED;
        lawn_conn_close(&c->conn);
        add_stats(s, c);
    }
}

/* The silence after a FIN was long enough: the client no longer needs a
 * FIN_ACK. */
static void linger_expired(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    session_end(lawn_container_of(timer, session_t, linger));
}

static void may_go_on(lawn_pacer_t *pacer, lawn_time_t now)
{
    (void)pacer;
    (void)now;
}

lawn_status_t session_start(session_t *s, lawn_engine_t *engine)
{
    if (s->state != SESSION_IDLE) {
        return LAWN_ERR_BUSY;
    }
    if (s->config.pacing.rate != 0) {
        lawn_status_t status = lawn_pacer_init(
            &s->pacer, lawn_engine_lawn(engine), &s->config.pacing, may_go_on);
        if (status != LAWN_OK) {
            return status;
        }
    }
    s->engine = engine;
    s->state = SESSION_RUNNING;
    s->started_at = lawn_engine_now(engine);
    lawn_timer_init(&s->linger, linger_expired);
    lawn_timer_init(&s->idle, NULL); /* only whether it runs matters */
    lawn_timer_init(&s->asking, NULL);
    s->patience = s->config.timers.rto_initial;
    for (uint32_t i = 0; i < s->config.connections; ++i) {
        lawn_status_t status = open_connection(s, &s->connections[i]);
        if (status != LAWN_OK) {
            session_end(s);
            return status;
        }
    }
    for (uint32_t i = 0; i < s->config.connections; ++i) {
        session_request_next(s, &s->connections[i]);
    }
    if (s->config.is_client && s->config.idle) {
        lawn_engine_start(engine, &s->idle, s->config.idle);
    }
    return LAWN_OK;
}

void session_end(session_t *s)
{
    s->state = SESSION_OVER;
    s->urgent.head = NULL;
    s->fresh.head = NULL;
    for (int list = 0; list < LIST_COUNT; ++list) {
        s->first[list] = NULL;
    }
    for (uint32_t i = 0; i <= s->config.connections; ++i) {
        session_close_connection(s, &s->connections[i]);
    }
    lawn_engine_stop(s->engine, &s->linger);
    lawn_engine_stop(s->engine, &s->idle);
    lawn_engine_stop(s->engine, &s->asking);
    lawn_pacer_stop(&s->pacer);
}

void session_destroy(session_t *s)
{
    if (!s) {
        return;
    }
    if (s->engine) {
        session_end(s);
    }
    free(s->connections);
    free(s->slots);
    free(s->held);
    free(s);
}

/* Nothing is left to be sent or received, and the timers of the connections are
 * stopped. The timers of the control connection now take over. The client's
 * timers repeat the FIN until it is answered. The server's timers find out if
 * no FIN will come. */
static void begin_to_close(session_t *s)
{
    if (open_connection(s, s->control) != LAWN_OK) {
        session_end(s);
    } else if (s->config.is_client) {
        s->state = SESSION_CLOSING;
        session_request(s, s->control, WANT_FIN);
    }
}

static void one_less(session_t *s)
{
    if (--s->unfinished == 0 && s->state == SESSION_RUNNING) {
        if (s->stats.dead) {
            session_end(s);
        } else {
            begin_to_close(s);
        }
    }
}

void session_check_finished(session_t *s, connection_t *c)
{
    if (c->state != CONNECTION_OPEN || c->acked != s->to_send ||
        c->delivered != s->to_deliver) {
        return;
    }
    session_close_connection(s, c);
    ++s->finished;
    one_less(s);
}

void session_connection_died(session_t *s, connection_t *c, unsigned reason)
{
    session_close_connection(s, c);
    c->state = CONNECTION_DEAD;
    c->want = 0;
    if (c == s->control) {
        /* The peer left without FIN or FIN_ACK. All messages are delivered, so
         * this does no harm. */
        session_end(s);
        return;
    }
    lawn_time_t silence = lawn_engine_now(s->engine) - c->heard;
    if (silence > s->stats.silence_max) {
        s->stats.silence_max = silence;
    }
    ++s->stats.dead;
    ++s->stats.dead_by[reason];
    s->outstanding -= (uint32_t)c->flight.count;
    one_less(s);
}

void session_fail(session_t *s)
{
    for (uint32_t i = 0; i < s->config.connections; ++i) {
        if (s->connections[i].state == CONNECTION_OPEN) {
            session_connection_died(s, &s->connections[i], 0);
        }
    }
    session_end(s);
}

void session_count_foreign(session_t *s)
{
    ++s->stats.foreign;
}

bool session_is_over(const session_t *s)
{
    return s->state == SESSION_OVER;
}

bool session_is_complete(const session_t *s)
{
    return s->finished == s->config.connections;
}

bool session_is_violated(const session_t *s)
{
    const session_stats_t *stats = &s->stats;
    return stats->gaps || stats->repeats || stats->corrupt || stats->early;
}

const session_config_t *session_config(const session_t *s)
{
    return &s->config;
}

const session_stats_t *session_stats(const session_t *s)
{
    return &s->stats;
}
