/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The receiving half of a session. Like any transport on top of Lawn, it
 * ignores what is not valid, and tells lawn_conn that the peer lives and what
 * the peer has acknowledged.
 */
#include "session_internal.h"

#include "pattern.h"

/* Whether a datagram of the peer is possible in the present state. */
static bool is_plausible(const session_t *s, const wire_header_t *header)
{
    if (header->connection > s->config.connections) {
        return false;
    }
    const connection_t *c = &s->connections[header->connection];
    bool is_control = c == s->control;
    switch (header->type) {
    case WIRE_FIN:
        return is_control && !s->config.is_client;
    case WIRE_FIN_ACK:
        return is_control && s->config.is_client && c->sent != 0;
    case WIRE_PROBE:
    case WIRE_PROBE_REPLY:
        break;
    case WIRE_ACK:
        if (is_control) {
            return false;
        }
        break;
    case WIRE_DATA:
        if (is_control || header->seq > s->to_deliver ||
            header->length != s->config.size) {
            return false;
        }
        break;
    }
    if (is_control) {
        return header->ack == 0;
    }
    return header->ack < c->sent ||
           (header->ack == c->sent && header->echo <= c->attempt);
}

static bool take_ack(session_t *s, connection_t *c, const wire_header_t *header,
                     lawn_time_t now)
{
    if (header->ack != c->sent || c->sent == 0) {
        return false;
    }
    /* The echo says which attempt this ACK answers. So a retransmission may
     * also be measured without breaking Karn's rule. */
    lawn_time_t rtt = 0;
    unsigned later = (unsigned)c->attempt - header->echo;
    if ((header->flags & WIRE_FLAG_PROMPT) && later < ATTEMPTS_KEPT) {
        rtt = now - c->sent_at[header->echo % ATTEMPTS_KEPT];
        rtt += rtt == 0;
    }
    bool is_new = c->acked != c->sent;
    bool is_answer = s->sender.reliable && header->type == WIRE_DATA;
    if (rtt && (is_new || is_answer)) {
        lawn_histogram_add(&s->stats.rtt, rtt);
    }
    if (!is_new) {
        return false;
    }
    c->acked = c->sent;
    c->want &= (uint8_t)~WANT_RETRANSMIT;
    --s->outstanding;
    s->stats.spurious += later;
    lawn_conn_on_ack(&c->conn, now, rtt, true);
    return true;
}

static bool payload_is(const session_t *s, const connection_t *c,
                       const uint8_t *payload, uint32_t seq)
{
    return pattern_matches(
        payload, s->config.size,
        pattern_seed(connection_id(s, c), seq, !s->config.is_client));
}

/* The application's part. It knows the expected message by its own count, and
 * looks only at the payload. */
static void deliver(session_t *s, connection_t *c, const uint8_t *payload)
{
    uint32_t due = ++c->delivered;
    ++s->stats.delivered;
    if (payload_is(s, c, payload, due)) {
        return;
    }
    if (payload_is(s, c, payload, due - 1)) {
        ++s->stats.repeats;
    } else {
        ++s->stats.corrupt;
    }
}

/* Returns true if this side owes the sender an ACK. The echo names the attempt
 * that arrived first. An attempt that arrives while the answer waits to be sent
 * did not cause the answer, and a round trip measured from it would be too
 * short. */
static bool take_data(session_t *s, connection_t *c,
                      const wire_header_t *header, const uint8_t *payload)
{
    if (header->seq > c->delivered + 1) {
        ++s->stats.gaps;
        return false;
    }
    if (header->seq == c->delivered + 1) {
        deliver(s, c, payload);
        c->prompt = false;
    } else {
        ++s->stats.duplicates;
        s->stats.repeats += s->sender.reliable;
    }
    if (c->prompt) {
        return false;
    }
    if (header->seq == c->delivered) {
        c->echo = header->attempt;
        c->prompt = true;
    }
    return !s->sender.reliable;
}

static void receive_message(session_t *s, connection_t *c,
                            const wire_header_t *header, const uint8_t *payload)
{
    if (c->state == CONNECTION_DEAD || s->state == SESSION_LINGERING) {
        return;
    }
    lawn_time_t now = lawn_engine_now(s->engine);
    c->heard = now;
    if (!take_ack(s, c, header, now) && c->state == CONNECTION_OPEN) {
        lawn_conn_on_receive(&c->conn, now);
    }
    bool owes_ack =
        header->type == WIRE_DATA && take_data(s, c, header, payload);
    if (header->type == WIRE_PROBE) {
        session_request(s, c, WANT_REPLY);
    }
    s->stats.probes_answered += header->type == WIRE_PROBE_REPLY;
    bool carried = session_request_next(s, c);
    if (owes_ack && !carried) {
        session_request(s, c, WANT_ACK);
    }
    session_check_finished(s, c);
}

static void receive_control(session_t *s, const wire_header_t *header)
{
    connection_t *c = s->control;
    lawn_time_t now = lawn_engine_now(s->engine);
    c->heard = now;
    if (c->state == CONNECTION_OPEN) {
        lawn_conn_on_receive(&c->conn, now);
    }
    if (header->type == WIRE_PROBE) {
        session_request(s, c, WANT_REPLY);
    } else if (header->type == WIRE_PROBE_REPLY) {
        ++s->stats.probes_answered;
    } else if (header->type == WIRE_FIN_ACK) {
        session_end(s);
    } else if (header->type == WIRE_FIN) {
        if (s->state == SESSION_RUNNING) {
            s->state = SESSION_LINGERING;
            for (uint32_t i = 0; i <= s->config.connections; ++i) {
                session_close_connection(&s->connections[i]);
            }
            lawn_timer_start(lawn_engine_lawn(s->engine), &s->linger, now,
                             s->config.linger);
        }
        /* A complete FIN replaces every ACK that was lost on the way. */
        if ((header->flags & WIRE_FLAG_COMPLETE) &&
            s->stats.delivered == s->stats.expected) {
            s->finished = s->config.connections;
        }
        session_request(s, c, WANT_FIN_ACK);
    }
}

void session_receive(session_t *s, const void *datagram, size_t length)
{
    if (s->state == SESSION_IDLE || s->state == SESSION_OVER) {
        return;
    }
    wire_header_t header;
    if (!wire_decode(datagram, length, &header)) {
        ++s->stats.malformed;
        return;
    }
    bool from_client = (header.flags & WIRE_FLAG_CLIENT) != 0;
    if (header.run != s->config.run || from_client == s->config.is_client) {
        ++s->stats.foreign;
        return;
    }
    if (!is_plausible(s, &header)) {
        ++s->stats.malformed;
        return;
    }
    if (s->state == SESSION_LINGERING) {
        lawn_timer_start(lawn_engine_lawn(s->engine), &s->linger,
                         lawn_engine_now(s->engine), s->config.linger);
    }
    connection_t *c = &s->connections[header.connection];
    if (c == s->control) {
        receive_control(s, &header);
    } else {
        receive_message(s, c, &header,
                        (const uint8_t *)datagram + WIRE_HEADER_SIZE);
    }
}
