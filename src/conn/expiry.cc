// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// When the timers of a connection expire, and what happens then. The retransmit
// timer waits for whatever is first: that silence or evidence says that the
// oldest is lost, that the peer may be asked, or that the peer timeout is over.
//
// Every op may free the connection. So it is called last, when the timer runs
// again or both timers are stopped.

#include "conn/conn_impl.h"

#include "base/mix.h"
#include "base/probe.h"
#include "clock/convert.h"
#include "engine/inside.h"

#include <stddef.h>

using namespace lawn;

namespace
{

__extension__ typedef unsigned __int128 uint128;

// So many samples show that a path keeps its order, if none was overtaken.
constexpr unsigned least_samples = 128;

// Returns a share of `jitter`, from 0 to all of it. It depends only on the
// address of `conn` and on the seed.
lawn_time_t jitter_of(const lawn_conn_t *conn, lawn_time_t jitter)
{
    const uint64_t hash =
        mix64(reinterpret_cast<uintptr_t>(conn) ^ conn->profile->seed);
    return static_cast<lawn_time_t>((uint128{jitter} + 1) * hash >> 64);
}

// When silence alone says that the oldest is lost. After an attempt, one RTO is
// waited for, whatever the window (RFC 6298, 5.4 to 5.6).
lawn_time_t rto_end(const lawn_conn_t *conn)
{
    const double jitter = conn->profile->params.rto_jitter;
    const lawn_time_t from = conn->flags & is_silent
                                 ? later_of(conn->oldest, conn->resent_at)
                                 : conn->oldest;
    const lawn_time_t end = add_saturating(from, conn->rto);
    if (LAWN_LIKELY(jitter == 0)) {
        return end;
    }
    const double most = jitter * static_cast<double>(conn->rto);
    return add_saturating(end, jitter_of(conn, ticks_from(most, 1, 1)));
}

// When the peer timeout is over. After a stall, one transmission is waited for.
lawn_time_t peer_end(const lawn_conn_t *conn)
{
    const lawn_time_t end =
        add_saturating(conn->unacked_since, conn->profile->peer_timeout);
    return conn->modes & is_awaited
               ? later_of(end, add_saturating(conn->resent_at, conn->rto))
               : end;
}

// When the oldest, which was overtaken, is old enough to be lost.
lawn_time_t lost_at(const lawn_conn_t *conn)
{
    return earlier_of(rto_end(conn),
                      add_saturating(conn->oldest, evidence_age(conn)));
}

// The same, and the evidence stands for 1/64 of SRTT: at the end of a pause all
// answers come at once, in any order. If the timer waits for that already, it
// goes on.
lawn_time_t evidence_end(const lawn_conn_t *conn, lawn_time_t now)
{
    const lawn_time_t stands = conn->flags & is_overtaken
                                   ? lawn_timer_deadline(&conn->retransmit)
                                   : add_saturating(now, conn->srtt >> 9);
    return later_of(lost_at(conn), stands);
}

bool is_lost(const lawn_conn_t *conn, lawn_time_t now)
{
    return conn->newest > conn->oldest && now >= lost_at(conn);
}

void die(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    const auto dead = conn->profile->ops.dead;
    note_conn(conn->profile->engine, &lawn_engine_stats_t::conn_dead);
    trace_conn(conn->profile->engine, "dead", &conn->retransmit, reason);
    lawn_conn_close(conn);
    LAWN_PROBE(dead, conn, reason, now);
    if (dead) {
        dead(conn, now, reason);
    }
}

// True if a stall of the program is to be excused, and none is yet. What the
// peer answered may not have been heard: something was sent at `sent_at`,
// before the stall, or has been unanswered for less than `wait` since. What has
// waited since a time after the stall has nothing to do with it.
bool excuse(lawn_conn_t *conn, lawn_time_t now, lawn_time_t sent_at,
            lawn_time_t wait, lawn_time_t since, uint8_t flag)
{
    const lawn_time_t stalled_at = conn->profile->engine->stalled_at;
    if (stalled_at == LAWN_TIME_INFINITY || conn->flags & flag) {
        return false;
    }
    if (sent_at >= stalled_at &&
        (stalled_at <= since || now >= add_saturating(sent_at, wait))) {
        return false;
    }
    set(&conn->flags, flag);
    count(conn, excused);
    LAWN_PROBE(excuse, conn, stalled_at, now);
    return true;
}

// Sends again what is lost. RFC 6298, 5.4 to 5.6, if there is no evidence: back
// off, restart. This is one attempt, however many RTOs have passed. The next
// RTO counts from `now`.
void retransmit(lawn_conn_t *conn, lawn_time_t now, bool evidence)
{
    const lawn_conn_params_t &params = conn->profile->params;
    const bool is_attempt = !evidence || (conn->flags & is_by_echo);
    if (!(conn->modes & is_awaited) ||
        now >= add_saturating(conn->resent_at, conn->rto)) {
        clear(&conn->modes, is_awaited);
        const bool is_late = now >= peer_end(conn);
        const bool is_last = is_attempt && params.max_retries != 0 &&
                             conn->attempt >= params.max_retries;
        if (is_late || is_last) {
            // The one excuse is kept until the peer would be dead. A busy
            // machine stalls a program for a moment again and again.
            const lawn_time_t sent_at = later_of(conn->oldest, conn->resent_at);
            if (!excuse(conn, now, sent_at, conn->rto, conn->unacked_since,
                        is_excused)) {
                die(conn, now,
                    is_late ? LAWN_CONN_PEER_TIMEOUT
                            : LAWN_CONN_RETRY_EXCEEDED);
                return;
            }
            set(&conn->modes, is_awaited);
        }
    }
    if (is_attempt) {
        if (conn->attempt == 0 && conn->newest == 0) {
            conn->backed_off_at = now;
        }
        if (conn->attempt != UINT16_MAX) {
            ++conn->attempt;
        }
        set(&conn->flags, is_silent | is_due);
        set(&conn->modes, is_backed_off);
        conn->rto = rto_back_off(conn->rto, params.backoff, rto_limit(conn));
    }
    clear(&conn->modes, has_evidence);
    if (evidence) {
        count(conn, by_evidence);
        set(&conn->modes, has_evidence);
        LAWN_PROBE(evidence, conn, conn->oldest, now);
    }
    count(conn, retransmissions);
    clear(&conn->flags, is_overtaken);
    conn->resent_at = now;
    conn->oldest = now;
    start_retransmit(conn, now);
    LAWN_PROBE(retransmit, conn, conn->attempt, now);
    if (conn->profile->ops.retransmit) {
        conn->profile->ops.retransmit(conn, now, conn->attempt);
    }
}

void ask(lawn_conn_t *conn, lawn_time_t now)
{
    count(conn, asked);
    LAWN_PROBE(ask, conn, conn->oldest, now);
    conn->asked_at = now;
    start_retransmit(conn, now);
    conn->profile->ops.ask(conn, now);
}

} // namespace

lawn_time_t lawn::evidence_age(const lawn_conn_t *conn)
{
    const bool is_known =
        conn->modes & is_full || conn->samples_left < window - least_samples;
    if (is_known && !(conn->modes & (overtakes | overtook))) {
        return 0; // the path keeps its order
    }
    const lawn_time_t srtt = conn->srtt >> 3;
    const lawn_time_t errors =
        tail_of(conn->overtaken, conn->modes & is_full, conn->srtt);
    const lawn_time_t usual =
        srtt +
        later_of(errors, later_of(conn->profile->granularity, srtt >> 3));
    // When a pause ends, or the route has become longer, the samples of late
    // know more than the average.
    const lawn_time_t recent = span_of(conn->recent_rtt);
    return later_of(usual, recent + (recent >> 5));
}

lawn_time_t lawn::idle_of(const lawn_conn_t *conn)
{
    const lawn_conn_params_t &params = conn->profile->params;
    return add_saturating(params.keepalive_idle,
                          jitter_of(conn, params.keepalive_jitter));
}

void lawn::start_retransmit(lawn_conn_t *conn, lawn_time_t now)
{
    lawn_time_t deadline;
    if (conn->newest > conn->oldest) {
        deadline = evidence_end(conn, now);
        set(&conn->flags, is_overtaken);
    } else {
        deadline = rto_end(conn);
        if (may_ask(conn)) {
            deadline = earlier_of(deadline,
                                  add_saturating(conn->oldest, ask_age(conn)));
        }
    }
    lawn_timer_start_at(conn->profile->lawn, &conn->retransmit, now,
                        earlier_of(deadline, peer_end(conn)));
}

void lawn::retransmit_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_conn_t *const conn = reinterpret_cast<lawn_conn_t *>(
        reinterpret_cast<char *>(timer) - offsetof(lawn_conn_t, retransmit));
    const bool evidence = is_lost(conn, now);
    if (evidence || now >= rto_end(conn) || now >= peer_end(conn)) {
        retransmit(conn, now, evidence);
    } else if (may_ask(conn) &&
               now >= add_saturating(conn->oldest, ask_age(conn))) {
        ask(conn, now);
    } else {
        start_retransmit(conn, now);
    }
}

void lawn::keepalive_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_conn_t *const conn = reinterpret_cast<lawn_conn_t *>(
        reinterpret_cast<char *>(timer) - offsetof(lawn_conn_t, keepalive));
    const lawn_conn_profile &profile = *conn->profile;
    const lawn_conn_params_t &params = profile.params;
    const lawn_time_t idle_end = add_saturating(conn->heard_at, idle_of(conn));
    if (now < idle_end) {
        lawn_timer_start_at(profile.lawn, timer, now, idle_end);
        return;
    }
    if (conn->probe >= params.keepalive_probes) {
        const lawn_time_t probed_at =
            lawn_timer_deadline(timer) - params.keepalive_interval;
        if (!excuse(conn, now, probed_at, params.keepalive_interval, now,
                    is_excused_probing)) {
            die(conn, now, LAWN_CONN_KEEPALIVE);
            return;
        }
    } else {
        conn->probe++;
        set(&conn->flags, is_probing);
    }
    count(conn, probes);
    lawn_timer_start(profile.lawn, timer, now, params.keepalive_interval);
    if (profile.ops.probe) {
        profile.ops.probe(conn, now, conn->probe);
    }
}
