/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The receiving half of a session. Like any transport on top of Lawn, it
 * ignores what is not valid, and tells lawn_conn that the peer lives and what
 * the peer has acknowledged.
 */
#include "session_internal.h"

#include "pattern.h"

#include <string.h>

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
        return is_control && !s->config.is_client && header->seq == 1;
    case WIRE_FIN_ACK:
        return is_control && s->config.is_client && header->seq == c->sent;
    case WIRE_PROBE:
    case WIRE_PROBE_REPLY:
        return true;
    case WIRE_ACK:
        return !is_control && !s->sender.reliable && header->seq <= c->sent;
    case WIRE_DATA:
        return !is_control && header->seq <= s->to_deliver &&
               header->length == s->config.size;
    }
    return false;
}

/* The peer has answered what was sent at `sent_at`. Returns false if nothing
 * can have been. */
static bool note_answer(session_t *s, lawn_time_t sent_at, lawn_time_t now)
{
    bool is_known = sent_at >= s->started_at && sent_at <= now;
    if (is_known && sent_at > s->newest) {
        s->newest = sent_at;
        /* A pass after a stall polls twice, with one time. */
        s->patience = sent_at < now ? now - sent_at : s->patience;
    }
    return is_known;
}

/* An ACK of one message. It echoes the time of the transmission that it
 * answers, so its round trip may also be measured if the message was sent
 * again. */
static void take_ack(session_t *s, connection_t *c, const wire_header_t *header,
                     lawn_time_t now)
{
    slot_t *slot = slot_of(s, c, header->seq);
    lawn_time_t sent_at = header->time;
    bool is_known = note_answer(s, sent_at, now);
    if (is_known && sent_at > c->newest) {
        c->newest = sent_at;
    }
    if (slot->seq != header->seq) {
        /* Once more one of an older message, whose slot was used again. */
        lawn_flight_ack_covered(&c->flight, now, sent_at);
        return;
    }
    if (!lawn_flight_ack(&c->flight, &slot->in_flight, now, sent_at)) {
        return;
    }
    if (is_known) {
        lawn_histogram_add(&s->stats.rtt, now - sent_at);
        s->known = c;
    }
    c->unacked_since = now;
    --s->outstanding;
    session_open_window(s);
    while (c->acked < c->sent &&
           !slot_of(s, c, c->acked + 1)->in_flight.link.next) {
        ++c->acked;
    }
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

static uint8_t *held_payload(session_t *s, const slot_t *slot)
{
    return s->held ? s->held + (size_t)(slot - s->slots) * s->config.size
                   : NULL;
}

/* Delivers what arrived before its turn, and whose turn it is now. */
static void deliver_held(session_t *s, connection_t *c)
{
    slot_t *slot;
    while ((slot = slot_of(s, c, c->delivered + 1))->has_arrived) {
        slot->has_arrived = false;
        deliver(s, c, held_payload(s, slot));
    }
}

/* The round trip over a reliable transport: a message is the answer to what was
 * sent in its slot. */
static void measure_answer(session_t *s, const slot_t *slot, lawn_time_t now)
{
    if (!s->config.oneway && slot->seq != 0) {
        lawn_histogram_add(&s->stats.rtt, now - slot->in_flight.sent_at);
    }
}

/* Takes a message. Returns true if the sender may wait for an ACK. */
static bool take_data(session_t *s, connection_t *c,
                      const wire_header_t *header, const uint8_t *payload)
{
    slot_t *slot = slot_of(s, c, header->seq);
    if (header->seq > c->delivered + s->config.window) {
        ++s->stats.gaps; /* no window goes so far */
        return false;
    }
    if (header->seq <= c->delivered || slot->has_arrived) {
        ++s->stats.duplicates;
        s->stats.repeats += s->sender.reliable;
        return true;
    }
    if (header->seq == c->delivered + 1) {
        deliver(s, c, payload);
        deliver_held(s, c);
        return true;
    }
    s->stats.gaps += s->sender.reliable;
    slot->has_arrived = true;
    if (s->held) {
        memcpy(held_payload(s, slot), payload, s->config.size);
    }
    return true;
}

/* An ACK is owed, of each transmission. Of more than two that wait, only the
 * first and the last are acknowledged. */
static void owe_ack(session_t *s, connection_t *c, const wire_header_t *header)
{
    slot_t *slot = slot_of(s, c, header->seq);
    if (slot->is_in[LIST_OWED] && slot->owed == header->seq) {
        slot->again = header->time;
        return;
    }
    slot->owed = header->seq;
    slot->echo = header->time;
    slot->again = 0;
    session_put(s, LIST_OWED, slot);
}

/* An answer to the first probe that waits for one. */
static void owe_reply(session_t *s, connection_t *c,
                      const wire_header_t *header)
{
    if (!(c->want & WANT_REPLY)) {
        c->probed_at = header->time;
    }
    session_request(s, c, WANT_REPLY);
}

static void receive_message(session_t *s, connection_t *c,
                            const wire_header_t *header, const uint8_t *payload)
{
    if (c->state == CONNECTION_DEAD || s->state == SESSION_LINGERING) {
        return;
    }
    lawn_time_t now = lawn_engine_now(s->engine);
    c->heard = now;
    if (header->type == WIRE_ACK) {
        take_ack(s, c, header, now);
    } else {
        lawn_conn_on_receive(&c->conn, now);
    }
    if (header->type == WIRE_DATA) {
        if (s->sender.reliable) {
            measure_answer(s, slot_of(s, c, header->seq), now);
        }
        if (take_data(s, c, header, payload) && !s->sender.reliable) {
            owe_ack(s, c, header);
        }
    } else if (header->type == WIRE_PROBE) {
        owe_reply(s, c, header);
    }
    s->stats.probes_answered += header->type == WIRE_PROBE_REPLY;
    session_note_due(s, c);
    session_request_next(s, c);
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
        owe_reply(s, c, header);
    } else if (header->type == WIRE_PROBE_REPLY) {
        /* Before it is open, it only asks for others. */
        s->stats.probes_answered += c->state == CONNECTION_OPEN;
        (void)note_answer(s, header->time, now);
    } else if (header->type == WIRE_FIN_ACK) {
        session_end(s);
    } else if (header->type == WIRE_FIN) {
        if (s->state == SESSION_RUNNING) {
            s->state = SESSION_LINGERING;
            for (uint32_t i = 0; i <= s->config.connections; ++i) {
                session_close_connection(s, &s->connections[i]);
            }
            lawn_timer_start(lawn_engine_lawn(s->engine), &s->linger, now,
                             s->config.linger);
        }
        /* A complete FIN replaces every ACK that was lost on the way. */
        if ((header->flags & WIRE_FLAG_COMPLETE) &&
            s->stats.delivered == s->stats.expected) {
            s->finished = s->config.connections;
        }
        owe_ack(s, c, header);
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
