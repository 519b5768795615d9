// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The calls to a connection, each with what it must change in the model, for
// conn_fuzz.cc.

#ifndef LAWN_TEST_FUZZ_CONN_CALLS_H
#define LAWN_TEST_FUZZ_CONN_CALLS_H

#include "conn_model.h"

namespace fuzz
{

#ifdef NDEBUG
constexpr bool has_assertions = false;
#else
constexpr bool has_assertions = true;
#endif

// Nothing has changed but what the model knows of.
inline void check_conn(const Model &m, const lawn_conn_t *conn)
{
    const lawn_conn_stats_t s = stats_of(conn);
    FUZZ_CHECK(lawn_conn_is_open(conn) == m.is_open);
    FUZZ_CHECK(s.rto == m.rto && lawn_conn_rto(conn) == m.rto);
    FUZZ_CHECK(s.srtt == m.path.srtt && s.rttvar == m.path.rttvar);
    FUZZ_CHECK(s.heard_at == m.heard_at);
    FUZZ_CHECK(s.unacked_since ==
               (m.waits ? m.unacked_since : LAWN_TIME_INFINITY));
    FUZZ_CHECK(s.retransmissions == m.stats.retransmissions);
    FUZZ_CHECK(s.by_evidence == m.stats.by_evidence);
    FUZZ_CHECK(s.spurious == m.stats.spurious);
    FUZZ_CHECK(s.undone == m.stats.undone);
    FUZZ_CHECK(s.asked == m.stats.asked);
    FUZZ_CHECK(s.probes == m.stats.probes);
    FUZZ_CHECK(s.excused == m.stats.excused);
    FUZZ_CHECK(lawn_timer_is_active(&conn->retransmit) ==
               (m.is_open && m.waits));
    FUZZ_CHECK(lawn_timer_is_active(&conn->keepalive) ==
               (m.is_open && m.keeps_alive()));
    if (!m.is_open) {
        return;
    }
    FUZZ_CHECK(!m.waits ||
               lawn_timer_deadline(&conn->retransmit) == m.retransmit_due);
    // The timer is not moved by what is heard. It must not be late for that.
    FUZZ_CHECK(!m.keeps_alive() ||
               lawn_timer_deadline(&conn->keepalive) <= m.keepalive_due());
    FUZZ_CHECK(!m.keeps_alive() || m.probe == 0 ||
               lawn_timer_deadline(&conn->keepalive) == m.keepalive_due());
}

inline void opened(Model &m, lawn_conn_t *conn, const Moment &at)
{
    m.is_open = true;
    m.stalled_at = at.stalled_at;
    m.since = std::max(at.now, lawn_time_t{1});
    m.heard_at = m.keeps_alive() ? at.clock : at.now;
    m.rto = m.clamp({m.params.rto_initial, m.params.rto_initial}).least;
    if (m.keeps_alive()) {
        const lawn_time_t due = lawn_timer_deadline(&conn->keepalive);
        const lawn_time_t idle = m.params.keepalive_idle;
        const lawn_time_t most = add(idle, m.params.keepalive_jitter);
        FUZZ_CHECK(due >= add(m.heard_at, idle));
        FUZZ_CHECK(due <= add(m.heard_at, most));
        m.idle = due > last_time ? LAWN_TIME_INFINITY : due - m.heard_at;
    }
}

inline void send(Model &m, lawn_conn_t *conn, lawn_time_t now, const Moment &at)
{
    lawn_conn_on_send(conn, now);
    if (!m.is_open) {
        return;
    }
    // After an ACK, one that is told late may count from any receive since.
    Bounds unacked_since = {now, now};
    if (m.has_acked) {
        unacked_since = {std::max(now, m.acked_at), std::max(now, m.heard_at)};
    }
    if (m.waits) {
        unacked_since =
            earlier_of(unacked_since, {m.unacked_since, m.unacked_since});
    }
    m.unacked_since = stats_of(conn).unacked_since;
    FUZZ_CHECK(unacked_since.hold(m.unacked_since));
    m.since = std::min(m.since, std::max(now, lawn_time_t{1}));
    m.transmitted(now);
    if (!m.waits) {
        m.waits = true;
        m.oldest = now;
        m.started(conn, at, m.is_silent);
    }
}

inline void receive(Model &m, lawn_conn_t *conn, lawn_time_t now)
{
    lawn_conn_on_receive(conn, now);
    if (m.is_open) {
        m.heard(now);
    }
}

// What is heard in the pass after a stall is no sample.
inline bool may_measure(const Moment &at)
{
    return at.stalled_at != at.now;
}

// After an ACK. `oldest` is INFINITY if nothing is outstanding.
inline void restart(Model &m, const lawn_conn_t *conn, lawn_time_t now,
                    lawn_time_t oldest, const Moment &at)
{
    m.waits = oldest != LAWN_TIME_INFINITY;
    if (m.waits) {
        m.oldest = oldest;
        // The latest ACK, or a send after it, which may have read the clock
        // where the ACK has the time of the pass.
        const lawn_time_t most =
            std::max({m.acked_at, m.sent_at, m.unacked_since});
        m.unacked_since = stats_of(conn).unacked_since;
        FUZZ_CHECK((Bounds{now, most}.hold(m.unacked_since)));
        m.transmitted(m.oldest);
        m.started(conn, at);
    }
}

// The RTO after an ACK, which ends the back-off if it is a sample.
inline void set_rto(Model &m, const lawn_conn_t *conn, bool is_sample)
{
    const lawn_time_t rto = lawn_conn_rto(conn);
    FUZZ_CHECK(is_sample ? m.clamp(m.path.rto()).hold(rto) : rto == m.rto);
    m.rto = rto;
    m.is_backed_off = m.is_backed_off && !is_sample;
}

inline void begin_anew(Model &m, lawn_time_t now)
{
    m.heard(now);
    m.has_acked = true;
    m.acked_at = std::max(m.acked_at, now);
    m.attempt = 0;
}

// Only a sample takes a back-off back, and only if there was one. Where it may,
// whether it has is not modelled.
inline void check_undone(Model &m, const lawn_conn_stats_t &stats,
                         bool may_undo)
{
    const uint64_t undone = stats.undone - m.stats.undone;
    FUZZ_CHECK(undone <= (may_undo && m.is_backed_off));
    m.stats.undone = stats.undone;
}

// By on_ack and on_ack_of. An odd `rtt` is given as a time of sending, and so
// is one that would fail an assertion.
inline void ack(Model &m, lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt,
                bool all_acked, const Moment &at)
{
    const bool is_true = m.can_have_taken(at.clock, rtt);
    bool is_sample = false;
    bool is_spurious = false;
    if (rtt % 2 == 0 && (is_true || !has_assertions)) {
        lawn_conn_on_ack(conn, now, rtt, all_acked);
        is_sample = rtt != 0 && is_true;
    } else {
        const lawn_time_t sent_at = now - rtt;
        lawn_conn_on_ack_of(conn, now, sent_at, all_acked);
        is_sample = m.is_known(now, sent_at) && sent_at != now;
        is_spurious =
            is_sample && m.attempt != 0 && sent_at < m.first_attempted_at;
    }
    if (!m.is_open) {
        return;
    }
    is_sample = is_sample && may_measure(at);
    const lawn_conn_stats_t stats = stats_of(conn);
    if (is_sample) {
        m.path.measure(rtt, false, stats);
    }
    m.stats.spurious += is_spurious;
    check_undone(m, stats, is_spurious && is_sample);
    begin_anew(m, now);
    set_rto(m, conn, is_sample);
    // `now` may be the time of a pass, before something that was read later.
    restart(m, conn, now,
            all_acked ? LAWN_TIME_INFINITY : std::max(m.heard_at, m.since), at);
}

// By on_ack_oldest.
inline void ack_oldest(Model &m, lawn_conn_t *conn, lawn_time_t now,
                       lawn_time_t sent_at, lawn_time_t oldest,
                       const Moment &at)
{
    lawn_conn_on_ack_oldest(conn, now, sent_at, oldest);
    if (!m.is_open) {
        return;
    }
    const bool is_known = m.is_known(now, sent_at);
    const bool is_sample = is_known && may_measure(at);
    const lawn_conn_stats_t stats = stats_of(conn);
    if (is_sample) {
        m.path.measure(now - sent_at, sent_at < m.newest(), stats);
    }
    // That something was sent again, and its earlier transmission is answered,
    // is known of what the connection was told to be outstanding.
    check_undone(m, stats, is_sample);
    begin_anew(m, now);
    // What echoes have shown before counts as shown by this ACK.
    m.newest_acked = std::max(m.newest(), is_known ? sent_at : 0);
    m.newest_echoed = 0;
    m.is_mixed = false;
    set_rto(m, conn, is_sample);
    restart(m, conn, now,
            oldest == LAWN_TIME_INFINITY ? oldest
                                         : m.true_oldest(oldest, now, at),
            at);
}

// The RTO after on_echo. A sample, but nothing begins anew: only the sign of a
// needless retransmission takes back a back-off.
inline void set_rto_by_echo(Model &m, lawn_time_t rto, bool is_needless)
{
    const Bounds wanted = m.clamp(m.path.rto());
    FUZZ_CHECK(rto >= wanted.least);
    FUZZ_CHECK(rto <= std::max(wanted.most, is_needless ? 0 : m.rto));
    FUZZ_CHECK(is_needless || !m.is_backed_off || rto >= m.rto);
    m.rto = rto;
    m.is_backed_off = m.is_backed_off && !is_needless;
}

inline void echo(Model &m, lawn_conn_t *conn, lawn_time_t now,
                 lawn_time_t sent_at, const Moment &at)
{
    lawn_conn_on_echo(conn, now, sent_at);
    if (!m.is_open) {
        return;
    }
    m.heard(now);
    if (!m.is_known(now, sent_at)) {
        return;
    }
    const lawn_conn_stats_t stats = stats_of(conn);
    // The answer to an earlier `ask` may be taken for an ACK.
    const bool is_answer = sent_at == m.asked_at;
    const bool may_be_answer = is_answer || m.stats.asked > 1;
    const bool is_needless = stats.spurious != m.stats.spurious;
    if (!is_answer &&
        (sent_at < m.resent_at || (sent_at == m.resent_at && m.attempt == 0))) {
        FUZZ_CHECK(stats.spurious - m.stats.spurious == 1 || may_be_answer);
    } else {
        FUZZ_CHECK(!is_needless);
    }
    m.stats.spurious += is_needless;
    if (may_measure(at)) {
        m.path.measure(now - sent_at, sent_at < m.newest(), stats);
        check_undone(m, stats, is_needless);
        set_rto_by_echo(m, stats.rto, is_needless);
    }
    if (sent_at > m.newest()) {
        m.is_mixed |= m.waits && m.has_evidence();
        m.newest_echoed = sent_at;
    }
    if (m.waits) {
        m.started(conn, at);
    }
}

inline void resend(Model &m, lawn_conn_t *conn, lawn_time_t now,
                   lawn_time_t oldest, const Moment &at)
{
    lawn_conn_on_resend(conn, now, oldest);
    if (!m.is_open) {
        return;
    }
    const bool has_waited = m.waits;
    m.waits = oldest != LAWN_TIME_INFINITY;
    if (!m.waits) {
        return;
    }
    m.oldest = m.true_oldest(oldest, now, at);
    m.transmitted(m.oldest >= m.excuse.stall ? m.oldest : now);
    if (!has_waited) {
        // When it was first sent is not known.
        m.unacked_since = stats_of(conn).unacked_since;
        FUZZ_CHECK(m.unacked_since >= std::max(m.acked_at, m.since - 1));
        FUZZ_CHECK(m.unacked_since <=
                   std::max({m.heard_at, m.sent_at, m.since, now}));
    }
    m.started(conn, at);
}

inline void inherit(Model &m, lawn_conn_t *conn, const Model &from,
                    const lawn_conn_t *known, const Moment &at)
{
    const lawn_status_t status = lawn_conn_inherit(conn, known);
    if (!m.is_open) {
        FUZZ_CHECK(status == LAWN_ERR_INVALID_PARAM);
        return;
    }
    if (m.path.is_measured) {
        FUZZ_CHECK(status == LAWN_ERR_BUSY);
        return;
    }
    FUZZ_CHECK(status == LAWN_OK);
    if (!from.path.is_measured) {
        return;
    }
    m.path = from.path;
    const bool is_backed_off = m.is_backed_off;
    set_rto(m, conn, m.attempt == 0);
    m.is_backed_off = is_backed_off;
    if (m.waits) {
        m.started(conn, at);
    }
}

} // namespace fuzz

#endif
