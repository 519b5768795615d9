/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The sending half of a session. To send something, the session sets a flag on
 * its connection, which is then in one of two lists. session_flush() makes the
 * datagram, after all datagrams that have arrived were read. A program that
 * answers each datagram at once would spend the pass sending, with a time that
 * grows old, while ACKs behind it are still unread.
 *
 * Nothing blocks while the send queue is full. The window also holds back the
 * first transmission of a message, but not ACKs, probes and retransmissions.
 */
#include "session_internal.h"

#include "pattern.h"

/* How many sends a flush, and so a pass, may make. The sends of a pass count
 * from the time of the pass, which must not be much older than they are. */
#define FLUSH_BUDGET 64u

static void push_urgent(session_t *s, connection_t *c)
{
    if (!c->in_urgent) {
        c->in_urgent = true;
        c->next_urgent = NULL;
        *(s->urgent.head ? &s->urgent.tail->next_urgent : &s->urgent.head) = c;
        s->urgent.tail = c;
    }
}

static void push_fresh(session_t *s, connection_t *c)
{
    if (!c->in_fresh) {
        ++s->fresh_count;
        c->in_fresh = true;
        c->next_fresh = NULL;
        *(s->fresh.head ? &s->fresh.tail->next_fresh : &s->fresh.head) = c;
        s->fresh.tail = c;
    }
}

/* A datagram that is dropped on purpose is lost as on the wire: all state
 * changes as if it had been sent. */
static bool is_dropped(session_t *s)
{
    double draw = (double)(pattern_next(&s->random) >> 11) * 0x1p-53;
    return draw < s->config.drop;
}

static bool transmit(session_t *s, connection_t *c, wire_type_t type,
                     uint32_t seq, uint16_t attempt)
{
    uint8_t *datagram = s->sender.buffer(s->sender.arg);
    if (!datagram) {
        return false;
    }
    unsigned flags = s->config.is_client ? WIRE_FLAG_CLIENT : 0;
    if (c->prompt) {
        flags |= WIRE_FLAG_PROMPT;
    }
    if (type == WIRE_FIN && session_is_complete(s)) {
        flags |= WIRE_FLAG_COMPLETE;
    }
    wire_header_t header = {
        .type = type,
        .flags = flags,
        .run = s->config.run,
        .connection = connection_id(s, c),
        .seq = seq,
        .ack = c->delivered,
        .attempt = attempt,
        .echo = c->echo,
        .length = seq ? s->config.size : 0,
    };
    /* Every datagram acknowledges, so a pure ACK is no longer needed. */
    c->prompt = false;
    c->want &= (uint8_t)~WANT_ACK;
    if (s->config.drop > 0 && is_dropped(s)) {
        ++s->stats.dropped;
        return true;
    }
    pattern_fill(datagram + WIRE_HEADER_SIZE, header.length,
                 pattern_seed(header.connection, seq, s->config.is_client));
    s->sender.send(s->sender.arg, wire_encode(&header, datagram));
    return true;
}

/* Call it for the first transmission of a message that needs an ACK. Here the
 * session calls lawn_conn_on_send(), and the retransmit timer starts. */
static void start_waiting(session_t *s, connection_t *c)
{
    lawn_time_t now = lawn_engine_now(s->engine);
    c->attempt = 0;
    c->sent_at[0] = now;
    if (!s->sender.reliable) {
        c->retransmit_due = now + lawn_conn_rto(&c->conn);
        lawn_conn_on_send(&c->conn, now);
    }
}

static bool transmit_fresh(session_t *s, connection_t *c)
{
    if (!transmit(s, c, WIRE_DATA, c->sent + 1, 0)) {
        return false;
    }
    ++c->sent;
    start_waiting(s, c);
    if (s->sender.reliable) {
        c->acked = c->sent;
    } else {
        ++s->outstanding;
    }
    return true;
}

static bool transmit_again(session_t *s, connection_t *c)
{
    uint16_t attempt =
        (uint16_t)(c->attempt < UINT16_MAX ? c->attempt + 1 : UINT16_MAX);
    if (!transmit(s, c, WIRE_DATA, c->sent, attempt)) {
        return false;
    }
    c->attempt = attempt;
    c->sent_at[attempt % ATTEMPTS_KEPT] = lawn_engine_now(s->engine);
    ++s->stats.retransmissions;
    return true;
}

static bool transmit_fin(session_t *s, connection_t *c)
{
    if (!transmit(s, c, WIRE_FIN, 0, 0)) {
        return false;
    }
    if (c->sent == 0) {
        c->sent = 1;
        start_waiting(s, c);
    } else {
        ++s->stats.retransmissions;
    }
    return true;
}

/* Sends the first of the datagrams that `c` waits to send. */
static bool transmit_wanted(session_t *s, connection_t *c)
{
    unsigned want = c->want & (0u - c->want);
    bool sent = false;
    switch (want) {
    case WANT_REPLY:
        sent = transmit(s, c, WIRE_PROBE_REPLY, 0, 0);
        break;
    case WANT_FIN:
        sent = transmit_fin(s, c);
        break;
    case WANT_FIN_ACK:
        sent = transmit(s, c, WIRE_FIN_ACK, 0, 0);
        break;
    case WANT_RETRANSMIT:
        sent = transmit_again(s, c);
        break;
    case WANT_PROBE:
        sent = transmit(s, c, WIRE_PROBE, 0, 0);
        s->stats.probes_sent += sent;
        break;
    default:
        sent = transmit(s, c, WIRE_ACK, 0, 0);
        break;
    }
    if (sent) {
        c->want &= (uint8_t)~want;
    }
    return sent;
}

static bool is_its_turn(const session_t *s, const connection_t *c)
{
    if (c->state != CONNECTION_OPEN || c->sent == s->to_send ||
        c->sent != c->acked) {
        return false;
    }
    if (s->config.oneway) {
        return true;
    }
    return s->config.is_client ? c->delivered == c->sent
                               : c->delivered > c->sent;
}

static bool window_is_open(const session_t *s)
{
    return !s->config.is_client ||
           ((s->config.idle == 0 || !lawn_timer_is_active(&s->idle)) &&
            (s->config.window == 0 || s->outstanding < s->config.window));
}

static void flush_urgent(session_t *s, unsigned *budget)
{
    connection_t *c;
    while ((c = s->urgent.head) != NULL) {
        for (; c->want; --*budget) {
            if (*budget == 0 || !transmit_wanted(s, c)) {
                *budget = 0;
                return;
            }
        }
        s->urgent.head = c->next_urgent;
        c->in_urgent = false;
    }
}

static void flush_fresh(session_t *s, unsigned *budget)
{
    connection_t *c;
    for (; (c = s->fresh.head) != NULL && window_is_open(s); --*budget) {
        if (*budget == 0 || (is_its_turn(s, c) && !transmit_fresh(s, c))) {
            return;
        }
        s->fresh.head = c->next_fresh;
        c->in_fresh = false;
        --s->fresh_count;
        if (is_its_turn(s, c)) {
            push_fresh(s, c);
        }
        session_check_finished(s, c);
    }
}

void session_flush(session_t *s)
{
    unsigned budget = FLUSH_BUDGET;
    flush_urgent(s, &budget);
    flush_fresh(s, &budget);
}

bool session_can_send(const session_t *s)
{
    bool has_more = s->urgent.head || (s->fresh.head && window_is_open(s));
    return has_more && s->sender.buffer(s->sender.arg) != NULL;
}

void session_request(session_t *s, connection_t *c, unsigned want)
{
    c->want |= (uint8_t)want;
    push_urgent(s, c);
}

bool session_request_next(session_t *s, connection_t *c)
{
    if (!is_its_turn(s, c) || c->in_fresh) {
        return false;
    }
    push_fresh(s, c);
    return !s->config.is_client || s->config.window == 0 ||
           s->outstanding + s->fresh_count <= s->config.window;
}
