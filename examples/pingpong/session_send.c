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

/* How many messages a flush, and so a pass, may send. They count from the time
 * of the pass, which must not be much older than they are. Answers do not: they
 * are as many as what was received. */
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

/* Sends one datagram. `seq` and `time` are its own, or of what it answers. */
static bool transmit(session_t *s, connection_t *c, wire_type_t type,
                     uint32_t seq, uint64_t time)
{
    uint8_t *datagram = s->sender.buffer(s->sender.arg);
    if (!datagram) {
        return false;
    }
    unsigned flags = s->config.is_client ? WIRE_FLAG_CLIENT : 0;
    if (type == WIRE_FIN && session_is_complete(s)) {
        flags |= WIRE_FLAG_COMPLETE;
    }
    wire_header_t header = {
        .type = type,
        .flags = flags,
        .run = s->config.run,
        .connection = connection_id(s, c),
        .seq = seq,
        .time = time,
        .length = type == WIRE_DATA ? s->config.size : 0,
    };
    if (s->config.drop > 0 && is_dropped(s)) {
        ++s->stats.dropped;
        return true;
    }
    pattern_fill(datagram + WIRE_HEADER_SIZE, header.length,
                 pattern_seed(header.connection, seq, s->config.is_client));
    s->sender.send(s->sender.arg, wire_encode(&header, datagram));
    return true;
}

/* A message is a DATA, or the FIN. */
static bool transmit_message(session_t *s, connection_t *c, uint32_t seq,
                             lawn_time_t sent_at)
{
    return transmit(s, c, c == s->control ? WIRE_FIN : WIRE_DATA, seq, sent_at);
}

/* Sends the next message for the first time. A connection that has measured
 * nothing begins with what another one has. Here the retransmit timer
 * starts. */
static bool transmit_fresh(session_t *s, connection_t *c)
{
    lawn_time_t now = lawn_engine_now(s->engine);
    slot_t *slot = slot_of(s, c, c->sent + 1);
    if (!transmit_message(s, c, c->sent + 1, now)) {
        return false;
    }
    slot->seq = ++c->sent;
    if (s->sender.reliable) {
        slot->in_flight.sent_at = now;
        c->acked = c->sent;
        return true;
    }
    if (c->sent == 1 && s->known) {
        (void)lawn_conn_inherit(&c->conn, &s->known->conn);
    }
    if (c->flight.count == 0) {
        c->unacked_since = now;
    }
    lawn_flight_send(&c->flight, &slot->in_flight, now);
    session_note_due(s, c);
    ++s->outstanding;
    return true;
}

/* In a silence of the peer, one message is sent again in each round trip: it
 * has paused, or all is lost. Without this, each connection would send again.
 */
static bool must_wait(const session_t *s)
{
    return s->heard < s->sent_again_at &&
           lawn_engine_now(s->engine) < s->sent_again_at + s->round_trip;
}

/* Sends the first of the lost messages again, unless it was acknowledged
 * meanwhile, or its connection has died. Its time is that of its loss, from
 * which its timer runs. */
static bool transmit_again(session_t *s)
{
    slot_t *slot = s->lost;
    size_t id = (size_t)(slot - s->slots) / s->config.window;
    connection_t *c = &s->connections[id];
    if (slot->lost == slot->seq && slot->in_flight.link.next &&
        c->state == CONNECTION_OPEN) {
        if (!transmit_message(s, c, slot->seq, slot->in_flight.sent_at)) {
            return false;
        }
        s->sent_again_at = lawn_engine_now(s->engine);
        ++s->stats.retransmissions;
    }
    s->lost = slot->next_lost;
    slot->in_lost = false;
    return true;
}

void session_send_again(session_t *s, slot_t *slot)
{
    slot->lost = slot->seq;
    if (!slot->in_lost) {
        slot->in_lost = true;
        slot->next_lost = NULL;
        *(s->lost ? &s->last_lost->next_lost : &s->lost) = slot;
        s->last_lost = slot;
    }
}

/* Sends the ACK that has been owed for longest. */
static bool transmit_ack(session_t *s, connection_t *c)
{
    wire_type_t type = c == s->control ? WIRE_FIN_ACK : WIRE_ACK;
    const slot_t *slot = slot_of(s, c, c->first_owed);
    if (!transmit(s, c, type, slot->owed, slot->echo)) {
        return false;
    }
    c->first_owed = (uint16_t)((c->first_owed + 1u) % s->config.window);
    --c->owed;
    return true;
}

/* Sends the first of the datagrams that `c` waits to send. */
static bool transmit_wanted(session_t *s, connection_t *c)
{
    unsigned want = c->want & (0u - c->want);
    bool sent = false;
    bool has_more = false;
    switch (want) {
    case WANT_REPLY:
        sent = transmit(s, c, WIRE_PROBE_REPLY, 0, 0);
        break;
    case WANT_ACK:
        sent = transmit_ack(s, c);
        has_more = c->owed != 0;
        break;
    case WANT_FIN:
        sent = transmit_fresh(s, c);
        break;
    default:
        sent = transmit(s, c, WIRE_PROBE, 0, 0);
        s->stats.probes_sent += sent;
        break;
    }
    if (sent && !has_more) {
        c->want &= (uint8_t)~want;
    }
    return sent;
}

static bool is_its_turn(const session_t *s, const connection_t *c)
{
    uint32_t window = s->config.window;
    if (c->state != CONNECTION_OPEN || c->sent == s->to_send ||
        c->sent - c->acked == window) {
        return false;
    }
    if (s->config.oneway) {
        return true;
    }
    return s->config.is_client ? c->sent < c->delivered + window
                               : c->sent < c->delivered;
}

static bool window_is_open(const session_t *s)
{
    return !s->config.is_client ||
           ((s->config.idle == 0 || !lawn_timer_is_active(&s->idle)) &&
            s->outstanding < s->window);
}

/* By a quarter in each round trip. Queues grow as slowly, so a connection may
 * inherit the round trip of another one: it is nearly true still. */
void session_open_window(session_t *s)
{
    if (++s->acks >= 4 && s->window < s->config.total_window) {
        s->acks = 0;
        ++s->window;
    }
}

/* Each of these returns false when the send queue is full. */
static bool flush_urgent(session_t *s)
{
    connection_t *c;
    while ((c = s->urgent.head) != NULL) {
        while (c->want) {
            if (!transmit_wanted(s, c)) {
                return false;
            }
        }
        s->urgent.head = c->next_urgent;
        c->in_urgent = false;
    }
    return true;
}

static bool flush_lost(session_t *s, unsigned *budget)
{
    for (; s->lost && !must_wait(s) && *budget > 0; --*budget) {
        if (!transmit_again(s)) {
            return false;
        }
    }
    return true;
}

static void flush_fresh(session_t *s, unsigned budget)
{
    connection_t *c;
    for (; (c = s->fresh.head) != NULL && window_is_open(s); --budget) {
        if (budget == 0 || (is_its_turn(s, c) && !transmit_fresh(s, c))) {
            return;
        }
        s->fresh.head = c->next_fresh;
        c->in_fresh = false;
        if (is_its_turn(s, c)) {
            push_fresh(s, c);
        }
        session_check_finished(s, c);
    }
}

void session_flush(session_t *s)
{
    unsigned budget = FLUSH_BUDGET;
    if (flush_urgent(s) && flush_lost(s, &budget)) {
        flush_fresh(s, budget);
    }
}

bool session_can_send(const session_t *s)
{
    bool has_more = s->urgent.head || (s->lost && !must_wait(s)) ||
                    (s->fresh.head && window_is_open(s));
    return has_more && s->sender.buffer(s->sender.arg) != NULL;
}

void session_request(session_t *s, connection_t *c, unsigned want)
{
    c->want |= (uint8_t)want;
    push_urgent(s, c);
}

void session_request_next(session_t *s, connection_t *c)
{
    if (is_its_turn(s, c)) {
        push_fresh(s, c);
    }
}
