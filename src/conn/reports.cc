// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a connection is told: of sends, of ACKs, and of what else was received.
// An ACK in good times goes straight through lawn_conn_on_ack_oldest(); for all
// that is rare, its flags have it go another way.

#include "conn/conn_impl.h"

#include "base/probe.h"
#include "engine/inside.h"

using namespace lawn;

namespace
{

// start_again() where the peer may be asked before the RTO is over.
void start_again_to_ask(lawn_conn_t *conn, lawn_time_t now)
{
    const lawn_conn_profile &profile = *conn->profile;
    if (LAWN_UNLIKELY(!profile.rto_is_first)) {
        start_retransmit(conn, now);
        return;
    }
    const lawn_time_t wait =
        may_ask(conn) ? earlier_of(conn->rto, ask_age(conn)) : conn->rto;
    lawn_timer_start_at(profile.lawn, &conn->retransmit, now,
                        add_saturating(conn->oldest, wait));
}

// start_retransmit() when something new was just sent or acknowledged. The peer
// timeout begins then. So it is not over before the RTO, which is no longer.
inline void start_again(lawn_conn_t *conn, lawn_time_t now)
{
    const lawn_conn_profile &profile = *conn->profile;
    if (LAWN_UNLIKELY(!profile.is_plain)) {
        start_again_to_ask(conn, now);
        return;
    }
    lawn_timer_start_at(profile.lawn, &conn->retransmit, now,
                        add_saturating(conn->oldest, conn->rto));
}

// A time in the future becomes now, which is the clock's: `now` may be the time
// of a pass, and a send may have been later. One before the open becomes the
// open.
LAWN_COLD_PATH void start_from(lawn_conn_t *conn, lawn_time_t now,
                               lawn_time_t oldest)
{
    const lawn_time_t latest =
        oldest > now ? read_clock(conn->profile->engine) : now;
    const lawn_time_t true_oldest =
        later_of(earlier_of(oldest, latest), conn->since);
    if (true_oldest != conn->oldest) {
        clear(&conn->flags, is_overtaken);
        conn->oldest = true_oldest;
    }
    start_retransmit(conn, now);
}

inline void end_retransmit(lawn_conn_t *conn)
{
    conn->oldest = LAWN_TIME_INFINITY;
    lawn_timer_pause(conn->profile->lawn, &conn->retransmit); // 5.2
}

// ---- What was heard

void received(lawn_conn_t *conn, lawn_time_t now)
{
    conn->heard_at = later_of(conn->heard_at, now);
    // A keepalive timer that waits for silence is not moved: it finds this when
    // it expires. One that waits for the answer to a probe may be too late.
    if (conn->flags & is_probing) {
        conn->probe = 0;
        lawn_timer_start_at(conn->profile->lawn, &conn->keepalive, now,
                            add_saturating(conn->heard_at, idle_of(conn)));
    }
    clear(&conn->flags,
          is_silent | is_probing | is_excused | is_excused_probing);
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
    // `since` is not 0, but the time may be.
    const lawn_time_t time =
        later_of(read_clock(conn->profile->engine), conn->since);
    return more_than <= time - conn->since;
}

// Whether something may have been sent then. An echo is the peer's word.
inline bool is_known(const lawn_conn_t *conn, lawn_time_t now,
                     lawn_time_t sent_at)
{
    return sent_at >= conn->since && sent_at <= now;
}

// A round trip from this on is the first one, or has an error that may matter
// beside the quarter of SRTT that is always added.
inline lawn_time_t least_great(const lawn_conn_t *conn)
{
    return (conn->srtt >> 3) + (conn->srtt >> 6);
}

void note_error(lawn_conn_t *conn, lawn_time_t now, lawn_time_t r,
                bool is_overtaken)
{
    const lawn_time_t mean = conn->srtt >> 3;
    lawn_time_t until = conn->late_until;
    add_error(conn->late, &until, r - mean, now - r, now);
    if (is_overtaken) {
        add_error(conn->overtaken, &conn->late_until, r - mean, now - r, now);
    }
    conn->late_until = later_of(until, conn->late_until);
    conn->margin =
        later_of(tail_of(conn->late, conn->modes & is_full, conn->srtt),
                 conn->profile->granularity);
}

void begin_next_window(lawn_conn_t *conn)
{
    conn->samples_left = window;
    const bool overtook_now = conn->modes & overtakes;
    clear(&conn->modes, overtakes | overtook);
    set(&conn->modes, is_full | (overtook_now ? overtook : 0));
    begin_window(conn->late);
    begin_window(conn->overtaken);
    conn->margin = later_of(tail_of(conn->late, true, conn->srtt),
                            conn->profile->granularity);
}

// The sample after the last one of a window finds that the window is over.
inline void count_sample(lawn_conn_t *conn)
{
    if (LAWN_UNLIKELY(--conn->samples_left == 0)) {
        set(&conn->flags, is_due);
    }
}

// Takes a round trip into all that is learnt from it. Returns false if it is no
// sample: the answer may have waited while this program did not run.
bool take_sample(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt,
                 bool is_overtaken)
{
    const lawn_engine_t *const engine = conn->profile->engine;
    if (engine->stalled_at == engine->now) {
        return false;
    }
    const lawn_time_t r = earlier_of(rtt, longest);
    if (conn->srtt == 0) {
        average_first(&conn->srtt, &conn->rttvar, later_of(r, 1));
        conn->margin = conn->profile->granularity;
        return true;
    }
    if (r >= least_great(conn)) {
        note_error(conn, now, r, is_overtaken);
    }
    if (conn->samples_left == 0) {
        begin_next_window(conn);
    }
    average(&conn->srtt, &conn->rttvar, r);
    count_sample(conn);
    return true;
}

// At the end of a pause, all answers come in a burst, in any order. Evidence
// counts only if it stands for longer than a burst (expiry.cc). So it does not
// matter how late something was that was overtaken in the burst alone. Returns
// true in a burst, but not for its first answer.
bool note_burst(lawn_conn_t *conn, lawn_time_t now)
{
    if (now - conn->burst_at < conn->srtt >> 9) {
        return true;
    }
    if (now >= add_saturating(conn->unacked_since, conn->srtt >> 3)) {
        conn->burst_at = now;
    }
    return false;
}

// If this answer is the first one that overtakes the oldest, the mean from
// before it is remembered: the oldest was sent when that was true.
void note_mean(lawn_conn_t *conn, lawn_time_t mean, lawn_time_t oldest)
{
    if (!(conn->flags & is_overtaken) && oldest < conn->newest) {
        conn->earlier_mean = code_of(mean);
    }
}

// True for what was overtaken because the route has become shorter: it took as
// long as was usual when it was sent. It says nothing of the new route. What
// was overtaken without end makes the mean from before forgotten.
bool was_usual_then(lawn_conn_t *conn, lawn_time_t r)
{
    const lawn_time_t mean = span_of(conn->earlier_mean);
    conn->earlier_mean = code_of(mean - (mean >> 6));
    return r < mean + (mean >> 3);
}

// The same for a transmission that an ACK names.
bool take_echo(lawn_conn_t *conn, lawn_time_t now, lawn_time_t sent_at)
{
    const lawn_time_t r = earlier_of(now - sent_at, longest);
    const bool is_overtaken = sent_at < conn->newest;
    const bool is_in = note_burst(conn, now);
    const bool teaches = is_overtaken && !is_in && !was_usual_then(conn, r);
    if (!take_sample(conn, now, r, teaches)) {
        return false;
    }
    // The greatest of late decays within some hundred samples.
    const lawn_time_t recent = span_of(conn->recent_rtt);
    const lawn_time_t rtt = later_of(recent - (recent >> 6), r);
    conn->recent_rtt = code_of(rtt);
    set(&conn->flags, rtt >= least_great(conn) ? is_due : 0);
    set(&conn->modes, is_overtaken ? overtakes : 0);
    return true;
}

// True for an ACK in good times, from which nothing but the averages is learnt.
inline bool is_usual(const lawn_conn_t *conn, lawn_time_t now,
                     lawn_time_t sent_at)
{
    if (LAWN_UNLIKELY(conn->flags != is_open)) {
        return false;
    }
    const lawn_engine_t *const engine = conn->profile->engine;
    const lawn_time_t bound = least_great(conn);
    return now - sent_at < bound && is_known(conn, now, sent_at) &&
           now >= conn->heard_at && engine->stalled_at != engine->now;
}

// Something new was acknowledged: attempts and the peer timeout begin anew.
void begin_anew(lawn_conn_t *conn, lawn_time_t now)
{
    received(conn, now);
    conn->attempt = 0;
    // A back-off that lasts is noticed by the ACK that ends it.
    clear(&conn->flags,
          is_by_echo | (conn->modes & is_backed_off ? 0 : is_due));
    set(&conn->modes, has_acked);
    clear(&conn->modes, is_awaited);
}

// There is a sample. If it is of something that was sent again without need, it
// takes the back-off back.
void end_back_off(lawn_conn_t *conn, bool was_needless)
{
    if (was_needless && conn->modes & is_backed_off) {
        count(conn, undone);
        LAWN_PROBE(undone, conn, conn->rto, conn->profile->engine->now);
    }
    set_rto(conn);
    clear(&conn->modes, is_backed_off);
}

// Whether an ACK of nothing new is the sign of a needless retransmission. What
// was sent in the latest one may answer it before anything new is acknowledged,
// with cumulative ACKs from behind a gap: that shows nothing.
bool is_needless(const lawn_conn_t *conn, lawn_time_t sent_at)
{
    if (sent_at == conn->asked_at) {
        return false;
    }
    return sent_at < conn->resent_at ||
           (sent_at == conn->resent_at && conn->attempt == 0);
}

// Sets the timer after an ACK. INFINITY: nothing is outstanding.
void restart(lawn_conn_t *conn, lawn_time_t now, lawn_time_t oldest)
{
    if (oldest == LAWN_TIME_INFINITY) {
        clear(&conn->flags, is_overtaken);
        end_retransmit(conn);
        return;
    }
    // `now` may be the time of a pass, before that of an ACK read later.
    conn->unacked_since = later_of(conn->unacked_since, now);
    start_from(conn, now, oldest);
}

// on_send for a send before something was heard or before the open: sends may
// be reported in any order. An ACK that has come since shows that the peer
// lived.
LAWN_COLD_PATH void sent_earlier(lawn_conn_t *conn, lawn_time_t now)
{
    const lawn_time_t since =
        conn->modes & has_acked ? later_of(now, conn->heard_at) : now;
    conn->since = earlier_of(conn->since, later_of(now, 1));
    if (conn->oldest == LAWN_TIME_INFINITY) {
        conn->oldest = now;
        conn->unacked_since = since;
        start_retransmit(conn, now);
    } else {
        conn->unacked_since = earlier_of(conn->unacked_since, since);
    }
}

// on_ack_oldest for all other ACKs.
LAWN_COLD_PATH void acked_unusually(lawn_conn_t *conn, lawn_time_t now,
                                    lawn_time_t sent_at, lawn_time_t oldest)
{
    if (!conn->profile) {
        return;
    }
    // Everything outstanding was last sent at `conn->oldest` or later. So what
    // was sent earlier has been sent again since, and that was not needed.
    const bool was_needless = sent_at < conn->oldest;
    begin_anew(conn, now);
    if (is_known(conn, now, sent_at)) {
        const lawn_time_t mean = conn->srtt >> 3;
        if (take_echo(conn, now, sent_at)) {
            end_back_off(conn, was_needless);
        }
        conn->newest = later_of(conn->newest, sent_at);
        note_mean(conn, mean, oldest);
    }
    restart(conn, now, oldest);
}

// After a usual ACK, where the oldest was overtaken or cannot be true.
LAWN_COLD_PATH void restart_after(lawn_conn_t *conn, lawn_time_t now,
                                  lawn_time_t sent_at, lawn_time_t oldest)
{
    // The mean from before the sample, of which average() took an eighth.
    note_mean(conn, (conn->srtt - (now - sent_at)) / 7, oldest);
    start_from(conn, now, oldest);
}

// As on_ack and on_ack_of: `rtt` is the sample, or 0 if there is none.
void acked(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt, bool all_acked,
           bool was_needless)
{
    begin_anew(conn, now);
    if (rtt != 0 && take_sample(conn, now, rtt, false)) {
        end_back_off(conn, was_needless);
    }
    // 5.3. The time of the oldest remaining send is not known here, but the
    // peer has just shown that it lives. `newest` stays 0: there is no
    // evidence.
    restart(conn, now, all_acked ? LAWN_TIME_INFINITY : conn->heard_at);
}

} // namespace

void lawn_conn_on_send(lawn_conn_t *conn, lawn_time_t now)
{
    if (!conn->profile) {
        return;
    }
    if (LAWN_UNLIKELY(now < conn->heard_at)) {
        sent_earlier(conn, now);
        return;
    }
    // RFC 6298, 5.1. A timer that already runs is not restarted.
    if (conn->oldest == LAWN_TIME_INFINITY) {
        conn->oldest = now;
        conn->unacked_since = now;
        start_again(conn, now);
    } else if (LAWN_UNLIKELY(now < conn->unacked_since)) {
        conn->unacked_since = now;
    }
}

void lawn_conn_on_ack_oldest(lawn_conn_t *conn, lawn_time_t now,
                             lawn_time_t sent_at, lawn_time_t oldest)
{
    if (LAWN_UNLIKELY(!is_usual(conn, now, sent_at))) {
        acked_unusually(conn, now, sent_at, oldest);
        return;
    }
    conn->heard_at = now;
    average(&conn->srtt, &conn->rttvar, now - sent_at);
    set_rto(conn);
    if (LAWN_LIKELY(sent_at > conn->newest)) {
        conn->newest = sent_at;
    } else if (sent_at < conn->newest) {
        set(&conn->modes, overtakes);
    }
    count_sample(conn);
    if (oldest == LAWN_TIME_INFINITY) {
        end_retransmit(conn);
        return;
    }
    conn->unacked_since = later_of(conn->unacked_since, now);
    if (LAWN_UNLIKELY(oldest > now || oldest < conn->newest)) {
        restart_after(conn, now, sent_at, oldest);
        return;
    }
    conn->oldest = oldest;
    start_again(conn, now);
}

void lawn_conn_on_echo(lawn_conn_t *conn, lawn_time_t now, lawn_time_t sent_at)
{
    if (!conn->profile) {
        return;
    }
    received(conn, now);
    if (!is_known(conn, now, sent_at)) {
        return;
    }
    const bool was_needless = is_needless(conn, sent_at);
    if (was_needless) {
        count_spurious(conn);
    }
    const lawn_time_t mean = conn->srtt >> 3;
    if (take_echo(conn, now, sent_at)) {
        const lawn_time_t backed_off = conn->rto;
        if (was_needless) {
            end_back_off(conn, true);
        } else {
            set_rto(conn);
            conn->rto = later_of(conn->rto, backed_off);
        }
    }
    if (sent_at > conn->newest) {
        if (conn->newest <= conn->oldest) {
            set(&conn->flags, is_by_echo);
        }
        conn->newest = sent_at;
        note_mean(conn, mean, conn->oldest);
    }
    if (conn->oldest != LAWN_TIME_INFINITY) {
        start_retransmit(conn, now);
    }
}

void lawn_conn_on_resend(lawn_conn_t *conn, lawn_time_t now, lawn_time_t oldest)
{
    if (!conn->profile) {
        return;
    }
    if (oldest == LAWN_TIME_INFINITY) {
        clear(&conn->flags, is_overtaken);
        end_retransmit(conn);
        return;
    }
    if (conn->oldest == LAWN_TIME_INFINITY) {
        conn->unacked_since = later_of(now, conn->heard_at);
    }
    start_from(conn, now, oldest);
}

lawn_time_t lawn_conn_lost_before(const lawn_conn_t *conn, lawn_time_t now)
{
    if (!conn->profile || !(conn->modes & has_evidence)) {
        return 0;
    }
    const lawn_time_t age = evidence_age(conn);
    return now > age ? earlier_of(conn->newest, now - age) : 0;
}

void lawn_conn_on_ack(lawn_conn_t *conn, lawn_time_t now, lawn_time_t rtt,
                      bool all_acked)
{
    if (!conn->profile) {
        return;
    }
    const bool is_true = rtt == 0 || can_have_taken(conn, now, rtt);
    LAWN_ASSERT(is_true && "a round trip longer than the connection is open");
    acked(conn, now, is_true ? rtt : 0, all_acked, false);
}

void lawn_conn_on_ack_of(lawn_conn_t *conn, lawn_time_t now,
                         lawn_time_t sent_at, bool all_acked)
{
    if (!conn->profile) {
        return;
    }
    // A false echo is a mistake of the peer, not of this program: no assertion.
    const bool is_sample = is_known(conn, now, sent_at) && sent_at != now;
    const bool was_needless =
        is_sample && conn->attempt != 0 && sent_at < conn->backed_off_at;
    if (was_needless) {
        count_spurious(conn);
    }
    acked(conn, now, is_sample ? now - sent_at : 0, all_acked, was_needless);
}

void lawn_conn_on_receive(lawn_conn_t *conn, lawn_time_t now)
{
    if (conn->profile) {
        received(conn, now);
    }
}
