// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The two timers of a connection. Their rules come from:
//   - RTO, its backoff and its restarts: RFC 6298 (rto.h has the arithmetic).
//     Its section 3, Karn's rule, says which round trips may be measured. That
//     the ACK echoes the time of sending is RFC 7323, sections 3 and 4.
//   - Peer timeout: the user timeout of TCP (RFC 793, 3.8; RFC 5482). It counts
//     from the oldest unacknowledged send, or from the latest ACK if that is
//     later.
//   - Keepalive: RFC 1122, 4.2.3.6, with the idle time, interval and number of
//     probes of TCP implementations.
//
// A connection is open while `engine` is set. Calls on a closed connection do
// nothing, even if it was closed because its peer is dead: the transport may
// still be draining its queues.
//
// Every op may free the connection. So it is called last, when the timer runs
// again or both timers are stopped.

#include "conn/rto.h"

#include "base/mix.h"
#include "base/probe.h"
#include "clock/convert.h"
#include "engine/engine.h"

#include <lawn/conn.h>

#include <limits.h>
#include <stddef.h>

using namespace lawn;

namespace
{

// Programs embed a connection: while the soname stays, it does not grow.
static_assert(sizeof(void *) != 8 || sizeof(lawn_conn_t) == 336, "");
static_assert(offsetof(lawn_conn_t, context) == 0, "");

lawn_conn_params_t defaults(double ticks_per_sec)
{
    lawn_conn_params_t params = {};
    params.rto_initial = ticks_from(100, 1000, ticks_per_sec);
    params.rto_min = ticks_from(1, 1000, ticks_per_sec);
    params.rto_max = ticks_from(10, 1, ticks_per_sec);
    params.backoff = 2;
    params.peer_timeout = ticks_from(30, 1, ticks_per_sec);
    params.keepalive_idle = ticks_from(5, 1, ticks_per_sec);
    params.keepalive_interval = ticks_from(1, 1, ticks_per_sec);
    params.keepalive_probes = 3;
    params.keepalive_jitter = ticks_from(1, 1, ticks_per_sec);
    return params;
}

bool params_are_valid(const lawn_conn_params_t &params)
{
    // A factor that is NaN or infinite fails here, too.
    const bool backs_off = params.backoff >= 1 && params.backoff <= __DBL_MAX__;
    const bool has_rto = params.rto_fixed != 0 ||
                         (params.rto_initial != 0 && params.rto_max != 0);
    const bool can_probe =
        params.keepalive_idle == 0 ||
        (params.keepalive_probes != 0 && params.keepalive_interval != 0);
    return backs_off && has_rto && params.rto_min <= params.rto_max &&
           can_probe;
}

// Returns a share of `jitter`, from 0 to all of it. The share depends only on
// the address of `conn`.
lawn_time_t jitter_of(const lawn_conn_t *conn, lawn_time_t jitter)
{
    const uint64_t hash = mix64(reinterpret_cast<uintptr_t>(conn));
    return static_cast<lawn_time_t>((uint128{jitter} + 1) * hash >> 64);
}

// When the peer timeout is over, if there is one.
lawn_time_t peer_end(const lawn_conn_t *conn)
{
    const lawn_time_t end =
        add_saturating(conn->unacked_since, conn->params.peer_timeout);
    return later_of(end, conn->excused_until);
}

// Starts the retransmit timer. It expires after the RTO, or exactly when the
// peer timeout is over if that is earlier. The callers have seen to it that the
// peer timeout is not over yet.
void start_retransmit(lawn_conn_t *conn, lawn_time_t now)
{
    // Both count from `now`, also if the lawn has seen a later time.
    lawn_time_t deadline = add_saturating(now, conn->rto);
    if (conn->params.peer_timeout != 0) {
        deadline = earlier_of(deadline, peer_end(conn));
    }
    lawn_timer_start_at(conn->engine->lawn, &conn->retransmit, now, deadline);
}

void received(lawn_conn_t *conn, lawn_time_t now)
{
    conn->probe = 0;
    conn->heard_at = later_of(conn->heard_at, now);
    if (conn->idle != 0) {
        lawn_timer_start(conn->engine->lawn, &conn->keepalive, now, conn->idle);
    }
}

// A round trip cannot be longer than the connection has been open. A tighter
// bound would be wrong: something that was sent before the connection was last
// idle may arrive late, and be answered together with something newer.
bool can_have_taken(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt)
{
    // One tick more is allowed: 0 means no sample, so a round trip within one
    // tick is given as 1.
    const lawn_time_t more_than = rtt - 1;
    if (LAWN_LIKELY(now >= conn->since && more_than <= now - conn->since)) {
        return true;
    }
    // `now` may be the time of a pass, and the round trip may have ended later.
    // The engine's time is never before `since`, for it does not go back.
    return more_than <= read_clock(conn->engine) - conn->since;
}

// Something new was acknowledged. `rtt` is the sample, or 0 if there is none.
void acked(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt, bool all_acked)
{
    received(conn, now);
    conn->attempt = 0;
    // `now` may be the time of a pass, before that of an ACK read later.
    conn->acked_at = later_of(conn->acked_at, now);
    conn->excused_until = 0;
    if (rtt != 0) {
        const lawn_conn_params_t &params = conn->params;
        const Rtt measured = rtt_update({conn->srtt, conn->rttvar}, rtt);
        conn->srtt = measured.srtt;
        conn->rttvar = measured.rttvar;
        if (params.rto_fixed == 0) {
            // The clock's ticks are much finer, but it is a polling loop that
            // measures the round trip. So G is a microsecond.
            conn->rto = rto_from_rtt(measured, conn->engine->usec,
                                     params.rto_min, params.rto_max);
        }
    }
    if (all_acked) {
        conn->unacked_since = LAWN_TIME_INFINITY;
        lawn_timer_pause(conn->engine->lawn, &conn->retransmit); // 5.2
    } else {
        // 5.3. The time of the oldest remaining send is not known here, but
        // the peer has just shown that it lives.
        conn->unacked_since = conn->acked_at;
        start_retransmit(conn, now);
    }
}

void die(lawn_conn_t *conn, lawn_time_t now, lawn_conn_reason_t reason)
{
    lawn_conn_close(conn);
    LAWN_PROBE(dead, conn, reason, now);
    if (conn->ops.dead) {
        conn->ops.dead(conn, now, reason);
    }
}

// True if a stall took all the time in which the program should have made the
// first retransmission and waited for its answer. A peer that could not be
// heard is not dead. True at most once until something is acknowledged, so that
// a program that always polls late still finds a dead peer.
bool was_absent(const lawn_conn_t *conn)
{
    const lawn_time_t deadline = lawn_timer_deadline(&conn->retransmit);
    return conn->attempt == 0 &&
           add_saturating(deadline, conn->rto) <= conn->engine->stalled_at;
}

// RFC 6298, 5.4 to 5.6: retransmit, back off, restart. This is one attempt,
// however many RTOs have passed. The next RTO counts from `now`.
void retransmit_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_conn_t *const conn = reinterpret_cast<lawn_conn_t *>(
        reinterpret_cast<char *>(timer) - offsetof(lawn_conn_t, retransmit));
    const lawn_conn_params_t &params = conn->params;
    if (params.peer_timeout != 0 && now >= peer_end(conn)) {
        if (!was_absent(conn)) {
            die(conn, now, LAWN_CONN_PEER_TIMEOUT);
            return;
        }
        conn->excused_until = add_saturating(now, conn->rto);
    }
    if (params.max_retries != 0 && conn->attempt >= params.max_retries) {
        die(conn, now, LAWN_CONN_RETRY_EXCEEDED);
        return;
    }
    conn->retransmitted_at = conn->attempt == 0 ? now : conn->retransmitted_at;
    conn->attempt += conn->attempt != UINT_MAX;
    conn->retransmissions++;
    if (params.rto_fixed == 0) {
        conn->rto = rto_back_off(conn->rto, params.backoff, params.rto_max);
    }
    start_retransmit(conn, now);
    LAWN_PROBE(retransmit, conn, conn->attempt, now);
    if (conn->ops.retransmit) {
        conn->ops.retransmit(conn, now, conn->attempt);
    }
}

void keepalive_expired(lawn_timer_t *timer, lawn_time_t now)
{
    lawn_conn_t *const conn = reinterpret_cast<lawn_conn_t *>(
        reinterpret_cast<char *>(timer) - offsetof(lawn_conn_t, keepalive));
    if (conn->probe >= conn->params.keepalive_probes) {
        die(conn, now, LAWN_CONN_KEEPALIVE);
        return;
    }
    conn->probe++;
    conn->probes++;
    lawn_timer_start(conn->engine->lawn, timer, now,
                     conn->params.keepalive_interval);
    if (conn->ops.probe) {
        conn->ops.probe(conn, now, conn->probe);
    }
}

} // namespace

const char *lawn_conn_reason_string(lawn_conn_reason_t reason)
{
    switch (reason) {
    case LAWN_CONN_RETRY_EXCEEDED:
        return "retry exceeded";
    case LAWN_CONN_PEER_TIMEOUT:
        return "peer timeout";
    case LAWN_CONN_KEEPALIVE:
        return "keepalive";
    }
    return "unknown reason";
}

void lawn_conn_params_init_sized(lawn_conn_params_t *params, size_t size)
{
    const lawn_conn_params_t known = defaults(lawn_time_sec_value());
    copy_known(params, size, &known, sizeof(known));
}

lawn_status_t lawn_conn_open_sized(lawn_engine_t *engine,
                                   const lawn_conn_params_t *given,
                                   size_t params_size,
                                   const lawn_conn_ops_t *given_ops,
                                   size_t ops_size, lawn_conn_t *conn)
{
    lawn_conn_params_t params;
    lawn_conn_ops_t ops;
    if (!read_known(given, params_size, &params) ||
        !read_known(given_ops, ops_size, &ops)) {
        return LAWN_ERR_UNSUPPORTED;
    }
    if (!engine || !given_ops || !conn ||
        (given && !params_are_valid(params))) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (conn->engine) {
        return LAWN_ERR_BUSY;
    }
    void *const context = conn->context;
    *conn = {};
    conn->context = context;
    conn->engine = engine;
    conn->since = lawn_engine_now(engine);
    conn->heard_at = conn->since;
    conn->unacked_since = LAWN_TIME_INFINITY;
    conn->params = given ? params : defaults(engine->ticks_per_sec);
    conn->ops = ops;
    const lawn_conn_params_t &own = conn->params;
    conn->rto = own.rto_fixed != 0
                    ? own.rto_fixed
                    : rto_clamp(own.rto_initial, own.rto_min, own.rto_max);
    lawn_timer_init(&conn->retransmit, retransmit_expired);
    lawn_timer_init(&conn->keepalive, keepalive_expired);
    if (own.keepalive_idle != 0) {
        conn->idle = add_saturating(own.keepalive_idle,
                                    jitter_of(conn, own.keepalive_jitter));
        received(conn, read_clock(engine));
    }
    return LAWN_OK;
}

void lawn_conn_close(lawn_conn_t *conn)
{
    if (!conn || !conn->engine) {
        return;
    }
    lawn_timer_stop(conn->engine->lawn, &conn->retransmit);
    lawn_timer_stop(conn->engine->lawn, &conn->keepalive);
    conn->engine = nullptr;
}

void lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now)
{
    if (!conn->engine) {
        return;
    }
    // Sends may be reported in any order.
    conn->since = earlier_of(conn->since, now);
    conn->unacked_since =
        earlier_of(conn->unacked_since, later_of(now, conn->acked_at));
    // RFC 6298, 5.1. A timer that already runs is not restarted.
    if (!lawn_timer_is_active(&conn->retransmit)) {
        start_retransmit(conn, now);
    }
}

void lawn_conn_on_ack(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt,
                      bool all_acked)
{
    if (!conn->engine) {
        return;
    }
    const bool is_true = rtt == 0 || can_have_taken(conn, now, rtt);
    LAWN_ASSERT(is_true && "a round trip longer than the connection is open");
    acked(conn, now, is_true ? rtt : 0, all_acked);
}

void lawn_conn_on_ack_of(lawn_conn_t *conn, lawn_time_t now,
                         lawn_time_t sent_at, bool all_acked)
{
    if (!conn->engine) {
        return;
    }
    // A false echo is a mistake of the peer, not of this program: no assertion.
    const bool is_sample =
        sent_at != 0 && sent_at >= conn->since && sent_at < now;
    conn->spurious +=
        is_sample && conn->attempt != 0 && sent_at < conn->retransmitted_at;
    acked(conn, now, is_sample ? now - sent_at : 0, all_acked);
}

void lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now)
{
    if (conn->engine) {
        received(conn, now);
    }
}

lawn_time_t lawn_conn_rto(const lawn_conn_t *conn)
{
    return conn->rto;
}

void lawn_conn_on_spurious(lawn_conn_t *conn)
{
    conn->spurious++;
}

void lawn_conn_query_sized(const lawn_conn_t *conn, lawn_conn_stats_t *stats,
                           size_t size)
{
    const lawn_conn_stats_t known = {
        conn->retransmissions,
        conn->spurious,
        conn->probes,
        conn->rto,
        conn->srtt,
        conn->rttvar,
        conn->heard_at,
        // Before the first open, all is zero.
        conn->retransmit.expired ? conn->unacked_since : LAWN_TIME_INFINITY,
    };
    copy_known(stats, size, &known, sizeof(known));
}
