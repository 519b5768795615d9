// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The two timers of a connection. Their rules come from:
//   - RTO and backoff: RFC 6298; what it learns beyond that is in rto.h. Its
//     section 3, Karn's rule, says which round trips may be measured. That the
//     ACK echoes the time of sending is RFC 7323, sections 3 and 4.
//   - The timer runs from the oldest unacknowledged send: RFC 7765. Evidence of
//     a loss, and `ask`: RACK and TLP, RFC 8985. A back-off that is taken back:
//     RFC 4015.
//   - Peer timeout: the user timeout of TCP (RFC 793, 3.8; RFC 5482). It counts
//     from the first unanswered send, or from the latest ACK if that is later.
//   - Keepalive: RFC 1122, 4.2.3.6, with the idle time, interval and number of
//     probes of TCP implementations.
//
// A connection is open while `profile` is set. Calls on a closed connection do
// nothing, even if it was closed because its peer is dead: the transport may
// still be draining its queues.
//
// Here a connection begins and ends. reports.cc has what it is told, expiry.cc
// what its timers do, rto.h what it learns, and profile.h what it shares.

#include "conn/conn_impl.h"
#include "conn/state.h"

#include "clock/convert.h"
#include "engine/inside.h"

#include <stddef.h>

using namespace lawn;

namespace
{

// Programs embed a connection: while the soname stays, it does not grow.
static_assert(sizeof(void *) != 8 || sizeof(lawn_conn_t) <= 256, "");
static_assert(offsetof(lawn_conn_t, context) == 0, "");

lawn_conn_params_t defaults(double ticks_per_sec)
{
    lawn_conn_params_t params = {};
    params.rto_initial = ticks_from(100, 1000, ticks_per_sec);
    params.rto_max = ticks_from(10, 1, ticks_per_sec);
    params.backoff = 2;
    params.peer_timeout = ticks_from(30, 1, ticks_per_sec);
    params.keepalive_idle = ticks_from(5, 1, ticks_per_sec);
    params.keepalive_interval = ticks_from(1, 1, ticks_per_sec);
    params.keepalive_probes = 3;
    params.keepalive_jitter = ticks_from(1, 1, ticks_per_sec);
    return params;
}

// What a connection counts in 16 bits.
unsigned at_most_16_bits(unsigned limit)
{
    return limit < UINT16_MAX ? limit : UINT16_MAX;
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
    const bool jitters = params.rto_jitter >= 0 && params.rto_jitter <= 1;
    return backs_off && has_rto && params.rto_min <= params.rto_max &&
           can_probe && jitters;
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
    if (conn->profile) {
        return LAWN_ERR_BUSY;
    }
    if (!given) {
        params = defaults(engine->ticks_per_sec);
    }
    params.max_retries = at_most_16_bits(params.max_retries);
    params.keepalive_probes = at_most_16_bits(params.keepalive_probes);
    lawn_conn_profile *const profile = share_profile(engine, params, ops);
    if (!profile) {
        return LAWN_ERR_NO_MEMORY;
    }
    void *const context = conn->context;
    *conn = {};
    conn->context = context;
    conn->profile = profile;
    conn->flags = is_open;
    conn->heard_at = lawn_engine_now(engine);
    conn->since = later_of(conn->heard_at, 1);
    conn->oldest = LAWN_TIME_INFINITY;
    conn->rto = rto_clamp(profile->params.rto_initial, profile->rto_min,
                          rto_limit(conn));
    conn->samples_left = window;
    lawn_timer_init(&conn->retransmit, retransmit_expired);
    lawn_timer_init(&conn->keepalive, keepalive_expired);
    if (profile->params.keepalive_idle != 0) {
        conn->heard_at = read_clock(engine);
        lawn_timer_start(profile->lawn, &conn->keepalive, conn->heard_at,
                         idle_of(conn));
    }
    return LAWN_OK;
}

void lawn_conn_close(lawn_conn_t *conn)
{
    if (!conn || !conn->profile) {
        return;
    }
    lawn_timer_stop(conn->profile->lawn, &conn->retransmit);
    lawn_timer_stop(conn->profile->lawn, &conn->keepalive);
    unshare_profile(conn->profile);
    conn->profile = nullptr;
    conn->flags = 0;
}

bool lawn_conn_is_open(const lawn_conn_t *conn)
{
    return conn && conn->profile;
}

lawn_status_t lawn_conn_inherit(lawn_conn_t *conn, const lawn_conn_t *known)
{
    if (!conn || !known || !conn->profile) {
        return LAWN_ERR_INVALID_PARAM;
    }
    if (conn->srtt != 0) {
        return LAWN_ERR_BUSY;
    }
    if (known->srtt == 0) {
        return LAWN_OK;
    }
    conn->srtt = known->srtt;
    conn->rttvar = known->rttvar;
    memcpy(conn->late, known->late, sizeof(conn->late));
    memcpy(conn->overtaken, known->overtaken, sizeof(conn->overtaken));
    conn->samples_left = known->samples_left;
    conn->margin = known->margin;
    set(&conn->modes, known->modes & (is_full | overtakes | overtook));
    set(&conn->flags, is_due); // the first ACK is its own
    if (conn->attempt == 0) {
        set_rto(conn);
    }
    if (conn->oldest != LAWN_TIME_INFINITY) {
        start_retransmit(conn, lawn_engine_now(conn->profile->engine));
    }
    return LAWN_OK;
}

lawn_time_t lawn_conn_rto(const lawn_conn_t *conn)
{
    return conn->rto;
}

void lawn_conn_on_spurious(lawn_conn_t *conn)
{
    if (conn->profile) {
        count_spurious(conn);
    }
}

void lawn_conn_query_sized(const lawn_conn_t *conn, lawn_conn_stats_t *stats,
                           size_t size)
{
    const lawn_conn_stats_t known = {
        conn->count[retransmissions],
        conn->count[spurious],
        conn->count[probes],
        conn->rto,
        conn->srtt >> 3,
        conn->rttvar >> 2,
        conn->heard_at,
        // Before the first open, all is zero.
        conn->retransmit.expired && conn->oldest != LAWN_TIME_INFINITY
            ? conn->unacked_since
            : LAWN_TIME_INFINITY,
        conn->count[by_evidence],
        conn->count[asked],
        conn->count[undone],
        conn->count[excused],
    };
    copy_known(stats, size, &known, sizeof(known));
}

const lawn_conn_t *lawn::conn_of_retransmit(const lawn_timer_t *timer)
{
    return timer->expired == retransmit_expired
               ? reinterpret_cast<const lawn_conn_t *>(
                     reinterpret_cast<const char *>(timer) -
                     offsetof(lawn_conn_t, retransmit))
               : nullptr;
}

const lawn_conn_t *lawn::conn_of_keepalive(const lawn_timer_t *timer)
{
    return timer->expired == keepalive_expired
               ? reinterpret_cast<const lawn_conn_t *>(
                     reinterpret_cast<const char *>(timer) -
                     offsetof(lawn_conn_t, keepalive))
               : nullptr;
}
