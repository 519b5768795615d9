/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The life of a session, from the opening of its connections to the last
 * FIN_ACK. A session ends when both sides know that all messages were
 * delivered, or when no connection is alive.
 */
#include "session_internal.h"

#include <stdlib.h>

lawn_status_t session_create(const session_config_t *config,
                             const session_sender_t *sender,
                             session_t **session_p)
{
    if (!config || !sender || !session_p || !sender->buffer || !sender->send ||
        config->connections == 0 ||
        config->connections > SESSION_MAX_CONNECTIONS || config->iters == 0 ||
        config->iters > SESSION_MAX_ITERS ||
        !(config->drop >= 0 && config->drop < 1)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    session_t *s = calloc(1, sizeof(*s));
    if (!s) {
        return LAWN_ERR_NO_MEMORY;
    }
    s->connections = calloc(config->connections + 1, sizeof(*s->connections));
    if (!s->connections) {
        free(s);
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
    *session_p = s;
    return LAWN_OK;
}

static lawn_status_t open_connection(session_t *s, connection_t *c)
{
    c->conn.context = s;
    lawn_status_t status = lawn_conn_open(s->engine, &s->config.timers,
                                          &session_conn_ops, &c->conn);
    if (status == LAWN_OK) {
        c->state = CONNECTION_OPEN;
        c->heard = lawn_engine_now(s->engine);
    }
    return status;
}

void session_close_connection(connection_t *c)
{
    if (c->state == CONNECTION_OPEN) {
        c->state = CONNECTION_CLOSED;
        lawn_conn_close(&c->conn);
    }
}

/* The silence after a FIN was long enough: the client no longer needs a
 * FIN_ACK. */
static void linger_expired(lawn_timer_t *timer, lawn_time_t now)
{
    (void)now;
    session_end(lawn_container_of(timer, session_t, linger));
}

lawn_status_t session_start(session_t *s, lawn_engine_t *engine)
{
    if (s->state != SESSION_IDLE) {
        return LAWN_ERR_BUSY;
    }
    s->engine = engine;
    s->state = SESSION_RUNNING;
    lawn_timer_init(&s->linger, linger_expired);
    lawn_timer_init(&s->idle, NULL); /* only whether it runs matters */
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
    s->fresh_count = 0;
    for (uint32_t i = 0; i <= s->config.connections; ++i) {
        session_close_connection(&s->connections[i]);
    }
    lawn_engine_stop(s->engine, &s->linger);
    lawn_engine_stop(s->engine, &s->idle);
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
    session_close_connection(c);
    ++s->finished;
    one_less(s);
}

void session_connection_died(session_t *s, connection_t *c, unsigned reason)
{
    lawn_conn_close(&c->conn);
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
    s->outstanding -= c->acked != c->sent;
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
