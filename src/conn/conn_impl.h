// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What conn.cc, which is told of sends and of what is heard, and expiry.cc,
// where the timers expire, know of a connection.

#ifndef LAWN_SRC_CONN_CONN_IMPL_H
#define LAWN_SRC_CONN_CONN_IMPL_H

#include "conn/profile.h"
#include "conn/rto.h"

#include "base/base.h"
#include "base/probe.h"
#include "engine/inside.h"

#include <lawn/conn.h>

#include <limits.h>

namespace lawn
{

constexpr uint16_t window = 4096; // samples

// Of lawn_conn_t.flags. In good times, only the first is set.
constexpr uint8_t is_open = 1;
constexpr uint8_t is_silent = 2;   // nothing heard since the latest attempt
constexpr uint8_t is_due = 4;      // attempts, a window's end, great samples
constexpr uint8_t is_probing = 8;  // `probe` is not 0
constexpr uint8_t is_excused = 16; // a stall is excused in `retransmit`
constexpr uint8_t is_excused_probing = 32; // and in keepalive
constexpr uint8_t is_by_echo = 64;         // all evidence is from on_echo
constexpr uint8_t is_overtaken = 128; // the oldest: the timer waits for more

// Of lawn_conn_t.modes.
constexpr uint8_t is_awaited = 64;   // an answer to what was sent after a stall
constexpr uint8_t is_full = 1;       // the first window of samples is
constexpr uint8_t has_evidence = 2;  // the latest retransmission was by it
constexpr uint8_t has_acked = 4;     // something was acknowledged
constexpr uint8_t is_backed_off = 8; // `rto` is
constexpr uint8_t overtakes = 16;    // some answers of this window of samples
constexpr uint8_t overtook = 32;     // and of the one before

inline void set(uint8_t *flags, int those)
{
    *flags = static_cast<uint8_t>(*flags | those);
}

inline void clear(uint8_t *flags, int those)
{
    *flags = static_cast<uint8_t>(*flags & ~those);
}

// What lawn_conn_t.count counts.
enum {
    retransmissions,
    spurious,
    probes,
    by_evidence,
    asked,
    undone,
    excused,
    count_size
};

static_assert(sizeof(lawn_conn_t::count) == count_size * sizeof(uint32_t), "");

// Where the engine counts the same.
constexpr uint64_t lawn_engine_stats_t::*numbers_of_engine[count_size] = {
    &lawn_engine_stats_t::conn_retransmissions,
    &lawn_engine_stats_t::conn_spurious,
    &lawn_engine_stats_t::conn_probes,
    &lawn_engine_stats_t::conn_by_evidence,
    &lawn_engine_stats_t::conn_asked,
    &lawn_engine_stats_t::conn_undone,
    &lawn_engine_stats_t::conn_excused,
};

// What a trace calls the same (doc/trace.md).
constexpr const char *names_in_trace[count_size] = {
    "resend", "needless", "probe", "evidence", "ask", "undo", "excuse",
};

// Only for what is rare, of an open connection.
inline void count(lawn_conn_t *conn, unsigned what)
{
    conn->count[what] += conn->count[what] != UINT_MAX;
    note_conn(conn->profile->engine, numbers_of_engine[what]);
    trace_conn(conn->profile->engine, names_in_trace[what], &conn->retransmit);
}

// There is a sign that a retransmission was not needed.
inline void count_spurious(lawn_conn_t *conn)
{
    count(conn, spurious);
    LAWN_PROBE(spurious, conn, conn->rto, conn->profile->engine->now);
}

// How long to wait for an answer, at most.
inline lawn_time_t rto_limit(const lawn_conn_t *conn)
{
    const lawn_conn_profile &profile = *conn->profile;
    if (profile.params.rto_fixed != 0) {
        return profile.rto_max;
    }
    return earlier_of(profile.rto_max,
                      earlier_of(profile.peer_timeout,
                                 later_of(profile.rto_share, conn->srtt >> 2)));
}

// Sets the RTO that the measurements ask for, without backoff. RFC 6298, 2.3 to
// 2.5, with a quarter of SRTT and the great errors as least margins.
inline void set_rto(lawn_conn_t *conn)
{
    const lawn_conn_profile &profile = *conn->profile;
    const lawn_time_t rto =
        (conn->srtt >> 3) +
        later_of(later_of(conn->rttvar, conn->srtt >> 5), conn->margin);
    conn->rto = rto;
    if (LAWN_UNLIKELY(rto < profile.rto_min || rto > profile.rto_limit)) {
        conn->rto = rto_clamp(rto, profile.rto_min, rto_limit(conn));
    }
}

// How old the oldest is when the peer may be asked: older than most get.
inline lawn_time_t ask_age(const lawn_conn_t *conn)
{
    return (conn->srtt >> 3) +
           later_of(conn->rttvar,
                    later_of(conn->profile->granularity, conn->srtt >> 5));
}

inline bool may_ask(const lawn_conn_t *conn)
{
    return conn->profile->ops.ask && conn->attempt == 0 && conn->srtt != 0 &&
           conn->asked_at <= conn->oldest;
}

// How old the oldest is when evidence says that it is lost. This is RACK with a
// reordering window that is learnt from what was overtaken. On a path that
// keeps its order there is none: what was overtaken is lost.
lawn_time_t evidence_age(const lawn_conn_t *conn);

// The idle time of this connection, with its share of the jitter.
lawn_time_t idle_of(const lawn_conn_t *conn);

// Starts the retransmit timer for whatever is next.
void start_retransmit(lawn_conn_t *conn, lawn_time_t now);

// What the timers call.
void retransmit_expired(lawn_timer_t *timer, lawn_time_t now);
void keepalive_expired(lawn_timer_t *timer, lawn_time_t now);

} // namespace lawn

#endif
