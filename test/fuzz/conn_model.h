// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection by the rules of lawn/conn.h, for conn_fuzz.cc.

#ifndef LAWN_TEST_FUZZ_CONN_MODEL_H
#define LAWN_TEST_FUZZ_CONN_MODEL_H

#include "input.h"

#include <lawn/conn.h>

#include <algorithm>
#include <cmath>

namespace fuzz
{

constexpr lawn_time_t usec = 1000; // a tick is a nanosecond

// Deadlines after it never come.
constexpr lawn_time_t last_time = LAWN_TIME_INFINITY - 2;

inline lawn_time_t add(lawn_time_t a, lawn_time_t b)
{
    return a > last_time || b > last_time - a ? LAWN_TIME_INFINITY : a + b;
}

struct Model {
    lawn_conn_params_t params = {};
    bool is_open = false;
    bool is_buried = false;
    bool waits = false; // for an ACK
    lawn_time_t retransmit_due = 0;
    lawn_time_t keepalive_due = 0;
    lawn_time_t unacked_since = LAWN_TIME_INFINITY;
    lawn_time_t acked_at = 0;
    lawn_time_t excused_until = 0;
    lawn_time_t since = 0; // nothing was sent before
    lawn_time_t rto = 0;
    lawn_time_t least_rtt = LAWN_TIME_INFINITY;
    lawn_time_t most_rtt = 0;
    unsigned attempt = 0;
    unsigned probe = 0;
    uint64_t started_in = 0; // the latest pass in which a timer was

    lawn_time_t due() const
    {
        const lawn_time_t keepalive =
            keeps_alive() ? keepalive_due : LAWN_TIME_INFINITY;
        return std::min(waits ? retransmit_due : LAWN_TIME_INFINITY, keepalive);
    }

    bool keeps_alive() const
    {
        return params.keepalive_idle != 0;
    }

    lawn_time_t clamp(lawn_time_t time) const
    {
        return time < params.rto_min   ? params.rto_min
               : time > params.rto_max ? params.rto_max
                                       : time;
    }

    lawn_time_t peer_end() const
    {
        return params.peer_timeout == 0
                   ? LAWN_TIME_INFINITY
                   : std::max(add(unacked_since, params.peer_timeout),
                              excused_until);
    }

    // Something sent at `now` is unacknowledged.
    void wait(lawn_time_t now, uint64_t pass)
    {
        waits = true;
        started_in = pass;
        retransmit_due = std::min(add(now, rto), peer_end());
    }

    // A round trip of `rtt` that has ended by `end`; 1 is also one within a
    // tick.
    bool can_have_taken(lawn_time_t end, lawn_time_t rtt) const
    {
        return rtt <= 1 || (end >= since && rtt - 1 <= end - since);
    }

    // SRTT is an average of what was measured, RTTVAR one of differences.
    void measure(lawn_time_t rtt, lawn_time_t new_rto)
    {
        const bool is_first = most_rtt == 0;
        least_rtt = std::min(least_rtt, rtt);
        most_rtt = std::max(most_rtt, rtt);
        if (params.rto_fixed != 0) {
            return;
        }
        lawn_time_t most = most_rtt;
        for (int n = 0; n < 4; ++n) {
            most = add(most, most_rtt);
        }
        FUZZ_CHECK(new_rto >= clamp(add(least_rtt, usec)));
        FUZZ_CHECK(new_rto <= clamp(add(most, usec + 4)));
        if (is_first) {
            const lawn_time_t spread = rtt > UINT64_MAX / 2 ? rtt : rtt / 2 * 4;
            FUZZ_CHECK(new_rto == clamp(add(rtt, std::max(usec, spread))));
        }
        rto = new_rto;
    }

    void back_off(lawn_time_t new_rto)
    {
        if (params.rto_fixed != 0) {
            FUZZ_CHECK(new_rto == params.rto_fixed);
            return;
        }
        const double wanted =
            std::min(static_cast<double>(rto) * params.backoff,
                     static_cast<double>(params.rto_max));
        FUZZ_CHECK(new_rto >= rto && new_rto <= params.rto_max);
        FUZZ_CHECK(std::fabs(static_cast<double>(new_rto) - wanted) <=
                   1 + wanted * 1e-12);
        rto = new_rto;
    }

    // A stall took the time in which the first retransmission should have been
    // made and answered.
    bool was_absent(lawn_time_t stalled_at) const
    {
        return attempt == 0 && add(retransmit_due, rto) <= stalled_at;
    }
};

#ifdef NDEBUG
constexpr bool has_assertions = false;
#else
constexpr bool has_assertions = true;
#endif

// Tells `conn` of an ACK, when the clock shows `clock`. An odd `rtt` is given
// as a time of sending, and so is one that would fail an assertion. True if it
// is a sample by the rules.
inline bool ack(const Model &m, lawn_conn_t *conn, lawn_time_t now,
                lawn_time_t clock, lawn_time_t rtt, bool all_acked)
{
    const bool is_true = m.can_have_taken(clock, rtt);
    if (rtt % 2 == 0 && (is_true || !has_assertions)) {
        lawn_conn_on_ack(conn, now, rtt, all_acked);
        return rtt != 0 && is_true;
    }
    const lawn_time_t sent_at = now - rtt;
    lawn_conn_on_ack_of(conn, now, sent_at, all_acked);
    return sent_at != 0 && sent_at >= m.since && sent_at < now;
}

inline bool params_are_valid(const lawn_conn_params_t &p)
{
    if (!std::isfinite(p.backoff) || p.backoff < 1) {
        return false;
    }
    if (p.rto_fixed == 0 && (p.rto_initial == 0 || p.rto_max == 0)) {
        return false;
    }
    if (p.keepalive_idle != 0 &&
        (p.keepalive_probes == 0 || p.keepalive_interval == 0)) {
        return false;
    }
    return p.rto_min <= p.rto_max;
}

// Accepted ones, but for a few.
inline lawn_conn_params_t make_params(Input *input)
{
    const unsigned which = input->byte();
    lawn_conn_params_t p = {};
    p.rto_initial = add(1, input->number());
    p.rto_max = add(p.rto_initial, input->number());
    p.rto_min = which & 1 ? input->number() : 0;
    p.rto_fixed = which & 2 ? input->number() : 0;
    p.backoff = 1 + input->byte() / 32.0;
    p.max_retries = which & 4 ? input->byte() % 16 : 0;
    p.peer_timeout = which & 8 ? input->number() : 0;
    if (which & 16) {
        p.keepalive_idle = input->number();
        p.keepalive_interval = input->number();
        p.keepalive_probes = input->byte() % 4;
        p.keepalive_jitter = which & 32 ? input->number() : 0;
    }
    if ((which & 0xc0) == 0xc0) {
        p.rto_initial = input->number();
        p.rto_max = input->number();
        static constexpr double odd[] = {0, 0.999, -2, NAN, INFINITY, 1e300, 1};
        p.backoff = odd[input->byte() % 7];
    }
    return p;
}

} // namespace fuzz

#endif
