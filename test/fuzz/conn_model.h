// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A connection by the rules of lawn/conn.h, for conn_fuzz.cc.
//
// What the estimator learns is read from the connection, and must lie within
// bounds (conn_path.h), as must the RTO after a sample. All else is computed
// here, and each of the connection's deadlines follows from that.

#ifndef LAWN_TEST_FUZZ_CONN_MODEL_H
#define LAWN_TEST_FUZZ_CONN_MODEL_H

#include "conn_path.h"

namespace fuzz
{

// What the engine knows.
struct Moment {
    lawn_time_t clock = 0;
    lawn_time_t now = 0;                         // of the latest pass
    lawn_time_t stalled_at = LAWN_TIME_INFINITY; // the latest stall
    uint64_t passes = 0;
};

// ---- Stalls

// The excuse for a stall of the program: no peer is dead until one transmission
// (or probe) that was made after the stall has been unanswered for one RTO (or
// interval). One is given until something is heard.
struct Excuse {
    bool is_given = false;
    bool has_stalled = false;                 // since something was heard
    lawn_time_t stall = LAWN_TIME_INFINITY;   // the first since then, or before
    lawn_time_t sent_at = LAWN_TIME_INFINITY; // the first transmission after it
    lawn_time_t waited = 0;                   // for its answer

    void stalled(lawn_time_t now)
    {
        if (!has_stalled && !is_given) {
            has_stalled = true;
            stall = now;
            sent_at = LAWN_TIME_INFINITY;
        }
    }

    void heard()
    {
        has_stalled = false;
        is_given = false;
    }

    void sent(lawn_time_t now, lawn_time_t wait)
    {
        if (stall != LAWN_TIME_INFINITY && now >= stall && now < sent_at) {
            sent_at = now;
            waited = wait;
        }
    }

    // The RTO may have become shorter since.
    bool is_over(lawn_time_t now, lawn_time_t wait) const
    {
        return stall == LAWN_TIME_INFINITY ||
               now >= add(sent_at, std::min(waited, wait));
    }

    // The program has stalled since `latest`, the latest transmission.
    bool may_be_given(const Moment &at, lawn_time_t latest) const
    {
        return !is_given && at.stalled_at != LAWN_TIME_INFINITY &&
               at.stalled_at > latest;
    }
};

// ---- The connection

struct Model {
    lawn_conn_params_t params = {};
    bool has_ask = false;
    bool knows_oldest = false; // calls on_ack_oldest and what belongs to it
    bool is_open = false;
    bool is_buried = false;
    Path path;
    lawn_conn_stats_t stats = {}; // as told last

    bool waits = false;           // something is outstanding
    lawn_time_t oldest = 0;       // of that
    lawn_time_t overtaken = 0;    // the oldest, if the timer waits for evidence
    lawn_time_t newest_acked = 0; // latest send that an ACK named,
    lawn_time_t newest_echoed = 0; // or that only an on_echo since has named
    bool is_mixed = false;         // there was evidence when such an echo came
    lawn_time_t unacked_since = 0;
    lawn_time_t since = 1;  // the open, or an earlier send
    bool has_acked = false; // has something been acknowledged
    lawn_time_t acked_at = 0;
    lawn_time_t heard_at = 0;
    lawn_time_t sent_at = 0; // the latest transmission
    lawn_time_t rto = 0;
    unsigned attempt = 0;
    bool is_backed_off = false; // the RTO is
    bool is_silent = false;     // nothing heard since the latest attempt
    lawn_time_t attempted_at = 0;
    lawn_time_t first_attempted_at = 0;
    lawn_time_t resent_at = 0; // latest retransmission
    lawn_time_t asked_at = 0;
    lawn_time_t retransmit_due = LAWN_TIME_INFINITY; // the timer's deadline
    uint64_t started_in = 0; // the latest pass in which that was set

    unsigned probe = 0;
    lawn_time_t idle = 0;
    lawn_time_t probed_at = 0;

    lawn_time_t stalled_at = LAWN_TIME_INFINITY; // the latest stall
    Excuse excuse;                               // of a stall, in `retransmit`,
    Excuse excuse_probing;                       // and in keepalive

    // The fixed share of the jitter, as it was seen with one RTO.
    lawn_time_t jittered_rto = 0;
    lawn_time_t jitter_seen = 0;

    //
    // When something is due.
    //

    bool keeps_alive() const
    {
        return params.keepalive_idle != 0;
    }

    bool has_peer_timeout() const
    {
        return params.peer_timeout != 0 &&
               params.peer_timeout != LAWN_TIME_INFINITY;
    }

    lawn_time_t newest() const
    {
        return std::max(newest_acked, newest_echoed);
    }

    bool has_evidence() const
    {
        return newest() > oldest;
    }

    lawn_time_t keepalive_due() const
    {
        return probe == 0 ? add(heard_at, idle)
                          : add(probed_at, params.keepalive_interval);
    }

    lawn_time_t due() const
    {
        return std::min(waits ? retransmit_due : LAWN_TIME_INFINITY,
                        keeps_alive() ? keepalive_due() : LAWN_TIME_INFINITY);
    }

    // The greatest RTO: a quarter of the peer timeout, or two SRTT if that is
    // longer, but not longer than the peer timeout.
    Bounds limit() const
    {
        if (!has_peer_timeout()) {
            return {params.rto_max, params.rto_max};
        }
        const auto with = [this](lawn_time_t two_srtt) {
            return std::min({params.rto_max, params.peer_timeout,
                             std::max(params.peer_timeout / 4, two_srtt)});
        };
        return {with(2 * path.srtt), with(2 * path.srtt + 1)};
    }

    Bounds clamp(Bounds wanted) const
    {
        if (params.rto_fixed != 0) {
            return {params.rto_fixed, params.rto_fixed};
        }
        const Bounds end = limit();
        return {std::min(std::max(wanted.least, params.rto_min), end.least),
                std::min(std::max(wanted.most, params.rto_min), end.most)};
    }

    lawn_time_t most_jitter() const
    {
        const double most = params.rto_jitter * static_cast<double>(rto);
        return most < 0x1p63 ? static_cast<lawn_time_t>(std::ceil(most))
                             : LAWN_TIME_INFINITY;
    }

    // One RTO after the oldest; or after the latest attempt, if nothing was
    // heard since. A retransmission by evidence since then may count, too.
    Bounds silence_end() const
    {
        Bounds from = {oldest, oldest};
        if (is_silent) {
            from = {std::max(oldest, attempted_at),
                    std::max(oldest, resent_at)};
        }
        return {add(from.least, rto), add(add(from.most, rto), most_jitter())};
    }

    // The peer timeout.
    Bounds peer_end() const
    {
        if (!has_peer_timeout()) {
            return {LAWN_TIME_INFINITY, LAWN_TIME_INFINITY};
        }
        const lawn_time_t end = add(unacked_since, params.peer_timeout);
        return {end, std::max(end, excuse_end())};
    }

    // Until then, a stall may be excused. Which of the transmissions after it
    // is waited for is not said, nor whether an ACK ends that.
    lawn_time_t excuse_end() const
    {
        const bool has_one =
            stats.excused != 0 ||
            (stalled_at != LAWN_TIME_INFINITY && stalled_at >= unacked_since);
        return has_one ? add(std::max(sent_at, oldest), rto) : 0;
    }

    bool may_ask() const
    {
        return has_ask && !has_evidence() && attempt == 0 && path.is_measured &&
               asked_at <= oldest;
    }

    // When the oldest, which was overtaken, is lost, if evidence has stood long
    // enough then.
    Bounds lost_at() const
    {
        return earlier_of(silence_end(), after(oldest, path.evidence_age()));
    }

    // Evidence stands for 1/64 of SRTT before it counts: from some time up to
    // `now`. If the timer waits for that already, it goes on.
    Bounds deadline(lawn_time_t now) const
    {
        Bounds end = silence_end();
        if (has_evidence()) {
            end = lost_at();
            end.most = std::max({end.most, add(now, path.srtt / 64 + 1),
                                 overtaken == oldest ? retransmit_due : 0});
        } else if (may_ask()) {
            end = earlier_of(end, after(oldest, path.ask_age()));
        }
        return earlier_of(end, peer_end());
    }

    bool may_excuse(const Moment &at) const
    {
        return excuse.may_be_given(at, std::max(oldest, resent_at));
    }

    bool may_excuse_probing(const Moment &at) const
    {
        return excuse_probing.may_be_given(at, probed_at);
    }

    // Not before the excuse for a stall is over, unless all that is outstanding
    // was sent after it.
    bool may_die(lawn_time_t now) const
    {
        return excuse.stall <= unacked_since || excuse.is_over(now, rto);
    }

    //
    // What has happened.
    //

    void stalled(lawn_time_t now)
    {
        stalled_at = now;
        excuse.stalled(now);
        excuse_probing.stalled(now);
        // These may have the time of the pass that is late.
        excuse.sent(sent_at, rto);
        excuse_probing.sent(probed_at, params.keepalive_interval);
    }

    void heard(lawn_time_t now)
    {
        heard_at = std::max(heard_at, now);
        probe = 0;
        is_silent = false;
        excuse.heard();
        excuse_probing.heard();
    }

    void transmitted(lawn_time_t now)
    {
        sent_at = std::max(sent_at, now);
        excuse.sent(now, rto);
    }

    // Whether something may have been sent then: what an echo says.
    bool is_known(lawn_time_t now, lawn_time_t echo) const
    {
        return echo >= since && echo <= now;
    }

    // A round trip of `rtt` that has ended by `end`; 1 is also one within a
    // tick.
    bool can_have_taken(lawn_time_t end, lawn_time_t rtt) const
    {
        return rtt <= 1 || (end >= since && rtt - 1 <= end - since);
    }

    // What cannot be true is made true.
    lawn_time_t true_oldest(lawn_time_t given, lawn_time_t now,
                            const Moment &at) const
    {
        const lawn_time_t latest = given > now ? std::max(now, at.clock) : now;
        return std::max(std::min(given, latest), since);
    }

    // The timer was started. Where one that was told of a late send runs from
    // is its own matter: it may wake early, and find nothing.
    void started(const lawn_conn_t *conn, const Moment &at,
                 bool may_wake_early = false)
    {
        const lawn_time_t found = lawn_timer_deadline(&conn->retransmit);
        Bounds wanted = deadline(at.clock);
        if (may_wake_early) {
            wanted.least = std::min(wanted.least, add(oldest, rto));
        }
        FUZZ_CHECK(wanted.hold(found));
        retransmit_due = found;
        started_in = at.passes;
        overtaken = has_evidence() ? oldest : 0;
        check_jitter(found);
    }

    // A deadline without evidence and `ask` has the connection's fixed share of
    // the jitter.
    void check_jitter(lawn_time_t found)
    {
        const lawn_time_t end = silence_end().least;
        const bool is_exact = !is_silent || attempted_at == resent_at;
        if (params.rto_jitter == 0 || !is_exact || may_ask() ||
            has_evidence() || found < end || found >= peer_end().least) {
            return;
        }
        FUZZ_CHECK(jittered_rto != rto || jitter_seen == found - end);
        jittered_rto = rto;
        jitter_seen = found - end;
    }
};

} // namespace fuzz

#endif
