/*
 * Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
 *
 * The sending half of a session. What is to be sent waits in a list: the slot
 * of an ACK or of a lost message, or a connection. session_flush() makes the
 * datagrams, after all that have arrived were read. A program that answers each
 * datagram at once would spend the pass sending, with a time that grows old,
 * while ACKs behind it are still unread.
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

/* With no more messages under way, it is as cheap to send one of them again as
 * to ask, and faster where it is lost. */
#define FEW_MESSAGES 16u

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

void session_put(session_t *s, list_t list, slot_t *slot)
{
    if (!slot->is_in[list]) {
        slot->is_in[list] = true;
        slot->next[list] = NULL;
        *(s->first[list] ? &s->last[list]->next[list] : &s->first[list]) = slot;
        s->last[list] = slot;
    }
}

static void take_first(session_t *s, list_t list)
{
    slot_t *slot = s->first[list];
    s->first[list] = slot->next[list];
    slot->is_in[list] = false;
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

static uint64_t paced_bytes(const session_t *s)
{
    return WIRE_HEADER_SIZE + s->config.size;
}

/* Whether there is room for a message, and its bytes may go. */
static bool take_message(session_t *s)
{
    return s->sender.buffer(s->sender.arg) != NULL &&
           lawn_pacer_take(&s->pacer, lawn_engine_now(s->engine),
                           paced_bytes(s));
}

/* A message is a DATA, or the FIN. `time` is that from which its timer runs. */
static bool transmit_message(session_t *s, connection_t *c, slot_t *slot,
                             lawn_time_t time)
{
    wire_type_t type = c == s->control ? WIRE_FIN : WIRE_DATA;
    bool is_sent = transmit(s, c, type, slot->seq, time);
    slot->sent_at = is_sent ? lawn_engine_now(s->engine) : slot->sent_at;
    return is_sent;
}

/* Sends the next message for the first time. A connection that has measured
 * nothing begins with what another one has. Here the retransmit timer
 * starts. */
static bool transmit_fresh(session_t *s, connection_t *c)
{
    lawn_time_t now = lawn_engine_now(s->engine);
    slot_t *slot = slot_of(s, c, c->sent + 1);
    if (!s->sender.buffer(s->sender.arg)) {
        return false;
    }
    slot->seq = ++c->sent;
    if (s->sender.reliable) {
        slot->in_flight.sent_at = now;
        c->acked = c->sent;
    } else {
        if (c->sent == 1 && s->known) {
            (void)lawn_conn_inherit(&c->conn, &s->known->conn);
        }
        if (c->flight.count == 0) {
            c->unacked_since = now;
        }
        lawn_flight_send(&c->flight, &slot->in_flight, now);
        slot->counted = now;
        session_note_due(s, c);
        ++s->outstanding;
    }
    return transmit_message(s, c, slot, slot->in_flight.sent_at);
}

/* Whether message `seq` of this slot is still under way. */
static bool is_under_way(const session_t *s, const slot_t *slot, uint32_t seq)
{
    return slot->seq == seq && slot->in_flight.link.next &&
           connection_of(s, slot)->state == CONNECTION_OPEN;
}

bool session_may_be_late(const session_t *s, const slot_t *slot)
{
    return s->outstanding > 1 && s->newest <= slot->sent_at;
}

/* The first of the late messages waits for the answer to a question. */
static bool must_wait(const session_t *s)
{
    const slot_t *slot = s->first[LIST_LATE];
    return lawn_timer_is_active(&s->asking) &&
           is_under_way(s, slot, slot->late) && session_may_be_late(s, slot);
}

static bool ask(session_t *s)
{
    if (!transmit(s, s->control, WIRE_PROBE, 0, lawn_engine_now(s->engine))) {
        return false;
    }
    ++s->stats.asked;
    return true;
}

static void wait_for_answer(session_t *s)
{
    lawn_time_t most = s->config.timers.rto_initial;
    lawn_timer_start(lawn_engine_lawn(s->engine), &s->asking,
                     lawn_engine_now(s->engine), s->patience);
    s->patience = s->patience < most / 2 ? 2 * s->patience : most;
}

/* In a silence of the path, the RTOs of all its connections expire. Then the
 * peer is asked, once for all of them. Its answer shows what is lost. A
 * question costs little, so the next one is soon. */
static bool judge_late(session_t *s)
{
    slot_t *slot = s->first[LIST_LATE];
    bool is_late = is_under_way(s, slot, slot->late);
    if (is_late && session_may_be_late(s, slot)) {
        bool is_sent_again = s->outstanding <= FEW_MESSAGES;
        if (!is_sent_again && !ask(s)) {
            return false;
        }
        wait_for_answer(s);
        if (!is_sent_again) {
            return true;
        }
    }
    take_first(s, LIST_LATE);
    if (is_late) {
        (void)lawn_flight_retransmit(&connection_of(s, slot)->flight,
                                     lawn_engine_now(s->engine), 1);
    }
    return true;
}

/* Sends the first of the lost messages again, unless it was acknowledged
 * meanwhile, or its connection has died. */
static bool transmit_again(session_t *s)
{
    slot_t *slot = s->first[LIST_LOST];
    if (is_under_way(s, slot, slot->lost)) {
        if (!take_message(s) ||
            !transmit_message(s, connection_of(s, slot), slot,
                              slot->in_flight.sent_at)) {
            return false;
        }
        ++s->stats.retransmissions;
    }
    take_first(s, LIST_LOST);
    return true;
}

/* Sends the ACK that has been owed for longest. If none overtakes another, the
 * peer sees what is lost. */
static bool transmit_ack(session_t *s)
{
    slot_t *slot = s->first[LIST_OWED];
    connection_t *c = connection_of(s, slot);
    wire_type_t type = c == s->control ? WIRE_FIN_ACK : WIRE_ACK;
    if (c->state != CONNECTION_DEAD &&
        !transmit(s, c, type, slot->owed, slot->echo)) {
        return false;
    }
    take_first(s, LIST_OWED);
    if (slot->again != 0) {
        slot->echo = slot->again;
        slot->again = 0;
        session_put(s, LIST_OWED, slot);
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
        sent = transmit(s, c, WIRE_PROBE_REPLY, 0, c->probed_at);
        break;
    case WANT_FIN:
        sent = transmit_fresh(s, c);
        break;
    default:
        sent = transmit(s, c, WIRE_PROBE, 0, lawn_engine_now(s->engine));
        s->stats.probes_sent += sent;
        break;
    }
    if (sent) {
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

/* Each of these returns false when the send queue is full, or messages must
 * wait for the rate. */
static bool flush_owed(session_t *s)
{
    while (s->first[LIST_OWED]) {
        if (!transmit_ack(s)) {
            return false;
        }
    }
    return true;
}

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

static bool flush_late(session_t *s)
{
    while (s->first[LIST_LATE] && !must_wait(s)) {
        if (!judge_late(s)) {
            return false;
        }
    }
    return true;
}

static bool flush_lost(session_t *s, unsigned *budget)
{
    for (; s->first[LIST_LOST] && *budget > 0; --*budget) {
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
        if (budget == 0 || (is_its_turn(s, c) &&
                            (!take_message(s) || !transmit_fresh(s, c)))) {
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
    if (flush_owed(s) && flush_urgent(s) && flush_late(s) &&
        flush_lost(s, &budget)) {
        flush_fresh(s, budget);
    }
}

bool session_can_send(const session_t *s)
{
    bool may_go = lawn_pacer_next(&s->pacer, paced_bytes(s)) <=
                  lawn_engine_now(s->engine);
    bool has_more = s->first[LIST_OWED] || s->urgent.head ||
                    (s->first[LIST_LOST] && may_go) ||
                    (s->first[LIST_LATE] && !must_wait(s)) ||
                    (s->fresh.head && window_is_open(s) && may_go);
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
