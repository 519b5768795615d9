// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ops that a connection calls, each with whether it was right to, and what
// it must change in the model, for conn_fuzz.cc.

#ifndef LAWN_TEST_FUZZ_CONN_OPS_H
#define LAWN_TEST_FUZZ_CONN_OPS_H

#include "conn_model.h"

namespace fuzz
{

// The RTO after an attempt.
inline void back_off(Model &m, lawn_time_t rto)
{
    if (m.params.rto_fixed != 0) {
        FUZZ_CHECK(rto == m.params.rto_fixed);
        return;
    }
    const Bounds end = m.limit();
    const double wanted = static_cast<double>(m.rto) * m.params.backoff;
    const double slack = 1 + wanted * 1e-12;
    const double got = static_cast<double>(rto);
    FUZZ_CHECK(rto <= end.most && rto >= std::min(m.rto, end.least));
    FUZZ_CHECK(got <= wanted + slack);
    FUZZ_CHECK(got >= wanted - slack || rto >= end.least);
    m.rto = rto;
}

// The timer had a reason to expire: evidence, or silence.
inline void check_cause(const Model &m, lawn_time_t now, bool by_evidence)
{
    FUZZ_CHECK(m.is_open && m.waits);
    FUZZ_CHECK(now >= m.retransmit_due);
    const Bounds lost = m.lost_at();
    if (by_evidence) {
        FUZZ_CHECK(m.has_evidence() && now >= lost.least);
    } else {
        FUZZ_CHECK(!m.has_evidence() || now < lost.most);
        FUZZ_CHECK(now >= m.silence_end().least || now >= m.peer_end().least);
    }
}

// In `retransmit`, which messages are lost besides the oldest.
inline void check_lost_before(const Model &m, const lawn_conn_t *conn,
                              lawn_time_t now, bool has_evidence)
{
    const lawn_time_t before = lawn_conn_lost_before(conn, now);
    if (!has_evidence) {
        FUZZ_CHECK(before == 0);
        return;
    }
    const Bounds age = m.path.evidence_age();
    const auto young = [now](lawn_time_t a) { return now > a ? now - a : 0; };
    FUZZ_CHECK(before >= std::min(m.newest(), young(age.most)));
    FUZZ_CHECK(before <= std::min(m.newest(), young(age.least)));
}

inline void retransmitted(Model &m, const lawn_conn_t *conn, lawn_time_t now,
                          unsigned attempt, const Moment &at)
{
    const lawn_conn_stats_t stats = stats_of(conn);
    const bool by_evidence = stats.by_evidence != m.stats.by_evidence;
    check_cause(m, now, by_evidence);
    // By evidence of on_echo alone, it is an attempt all the same. It may be
    // one if an ACK has given evidence, too, or had when the echo came.
    const bool is_attempt = attempt != m.attempt;
    const bool is_by_ack = by_evidence && m.newest_acked > m.oldest;
    FUZZ_CHECK(is_attempt || is_by_ack || (by_evidence && m.is_mixed));
    FUZZ_CHECK(!is_attempt || !is_by_ack || m.newest_echoed > m.newest_acked);
    const bool is_excused = stats.excused != m.stats.excused;
    // One may be given again for the same stall, after something was heard. It
    // is given only when the peer would be dead.
    FUZZ_CHECK(!is_excused || m.may_excuse(at) || !m.may_die(now) ||
               (!m.excuse.is_given && now < m.excuse_end()));
    if (!is_excused) {
        const unsigned most = m.params.max_retries;
        FUZZ_CHECK(now < m.peer_end().most);
        FUZZ_CHECK(!is_attempt || most == 0 || m.attempt < most ||
                   now < m.excuse_end());
    }
    m.excuse.is_given |= is_excused;
    FUZZ_CHECK(attempt == m.attempt + is_attempt);
    if (is_attempt) {
        m.first_attempted_at = m.attempt == 0 ? now : m.first_attempted_at;
        m.attempted_at = now;
        m.attempt = attempt;
        m.is_silent = true;
        m.is_backed_off = true;
        back_off(m, stats.rto);
    }
    ++m.stats.retransmissions;
    m.stats.by_evidence += by_evidence;
    m.stats.excused += is_excused;
    m.resent_at = now;
    m.oldest = now;
    m.transmitted(now);
    m.started(conn, at);
    check_lost_before(m, conn, now, by_evidence);
}

inline void asked(Model &m, const lawn_conn_t *conn, lawn_time_t now,
                  const Moment &at)
{
    FUZZ_CHECK(m.is_open && m.waits && m.may_ask());
    FUZZ_CHECK(now >= m.retransmit_due);
    FUZZ_CHECK(now >= after(m.oldest, m.path.ask_age()).least);
    FUZZ_CHECK(now < m.silence_end().most && now < m.peer_end().most);
    ++m.stats.asked;
    m.asked_at = now;
    m.started(conn, at);
}

// `seen` is when a timer that is started now counts from.
inline void probed(Model &m, const lawn_conn_t *conn, lawn_time_t now,
                   unsigned count, lawn_time_t seen, const Moment &at)
{
    FUZZ_CHECK(m.is_open && m.keeps_alive());
    FUZZ_CHECK(now >= m.keepalive_due());
    const bool is_last = m.probe == m.params.keepalive_probes;
    FUZZ_CHECK(count == (is_last ? m.probe : m.probe + 1));
    const bool is_excused = stats_of(conn).excused != m.stats.excused;
    FUZZ_CHECK(is_excused == is_last);
    FUZZ_CHECK(!is_excused || m.may_excuse_probing(at));
    m.excuse_probing.is_given |= is_excused;
    m.stats.excused += is_excused;
    ++m.stats.probes;
    m.probe = count;
    m.probed_at = seen;
    m.excuse_probing.sent(seen, m.params.keepalive_interval);
}

inline void died(Model &m, lawn_time_t now, lawn_conn_reason_t reason,
                 const Moment &at)
{
    FUZZ_CHECK(m.is_open); // so it comes once
    // By evidence in which on_echo had a part.
    const bool was_lost = m.has_evidence() &&
                          m.newest_echoed > m.newest_acked &&
                          now >= m.lost_at().least;
    switch (reason) {
    case LAWN_CONN_PEER_TIMEOUT:
        FUZZ_CHECK(m.waits && now >= m.retransmit_due);
        FUZZ_CHECK(now >= m.peer_end().least);
        FUZZ_CHECK(!m.may_excuse(at) && m.may_die(now));
        break;
    case LAWN_CONN_RETRY_EXCEEDED:
        FUZZ_CHECK(m.waits && now >= m.retransmit_due);
        FUZZ_CHECK(now < m.peer_end().most);
        FUZZ_CHECK(now >= m.silence_end().least || was_lost);
        FUZZ_CHECK(m.params.max_retries != 0);
        FUZZ_CHECK(m.attempt >= m.params.max_retries);
        FUZZ_CHECK(!m.may_excuse(at) && m.may_die(now));
        break;
    case LAWN_CONN_KEEPALIVE:
        FUZZ_CHECK(m.keeps_alive() && now >= m.keepalive_due());
        FUZZ_CHECK(m.probe == m.params.keepalive_probes);
        FUZZ_CHECK(!m.may_excuse_probing(at) &&
                   m.excuse_probing.is_over(now, m.params.keepalive_interval));
        break;
    default:
        FUZZ_CHECK(!"a reason");
    }
    m.is_open = false;
}

} // namespace fuzz

#endif
