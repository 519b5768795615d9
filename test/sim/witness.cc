// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The rules of lawn/conn.h and lawn/timer.h, as their users read them; see
// witness.h.

#include "witness.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace sim
{

void check_expiry(const Scene &scene, lawn_time_t deadline, const char *what)
{
    const Pass &pass = scene.pass;
    if (deadline == LAWN_TIME_INFINITY) {
        scene.checker.violation(pass.at, scene.end, "%s without a timer", what);
    } else if (pass.now < deadline) {
        scene.checker.violation(pass.at, scene.end,
                                "%s early by %" PRIu64 " ticks", what,
                                deadline - pass.now);
    } else if (deadline <= pass.covered && !pass.is_backlog) {
        scene.checker.violation(pass.at, scene.end,
                                "%s late by %" PRIu64 " ticks", what,
                                pass.now - deadline);
    }
}

void check_pending(const Scene &scene, lawn_time_t deadline, const char *what)
{
    if (deadline <= scene.pass.covered) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "%s due for %" PRIu64 " ticks", what,
                                scene.pass.now - deadline);
    }
}

// "An RTO is at most a quarter of the peer timeout, or 2 SRTT if that is
// longer", and not longer than the peer timeout.
lawn_time_t Witness::longest_rto(const Scene &scene) const
{
    const lawn_conn_params_t &terms = scene.terms;
    if (terms.rto_fixed != 0) {
        return terms.rto_fixed;
    }
    if (terms.peer_timeout == 0) {
        return terms.rto_max;
    }
    const lawn_time_t two_srtt = static_cast<lawn_time_t>(2 * srtt_);
    return std::min({terms.rto_max, terms.peer_timeout,
                     std::max(terms.peer_timeout / 4, two_srtt)});
}

void Witness::open(const Scene &scene, lawn_time_t idle, lawn_time_t rto)
{
    const lawn_conn_params_t &terms = scene.terms;
    *this = Witness();
    idle_ = idle;
    rto_ = rto;
    const lawn_time_t wanted =
        terms.rto_fixed != 0
            ? terms.rto_fixed
            : std::min(longest_rto(scene),
                       std::max(terms.rto_initial, terms.rto_min));
    if (rto != wanted) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "first RTO is %" PRIu64 " ticks, not %" PRIu64,
                                rto, wanted);
    }
    hear(scene);
}

void Witness::hear(const Scene &scene)
{
    heard_ = scene.pass.now;
    absent_when_heard_ = scene.pass.absent;
    probe_ = 0;
    answer_.is_excused = false;
    probing_ = Wait();
    if (idle_ != 0) {
        keepalive_ = heard_ + idle_;
    }
}

void Witness::start_retransmit(const Scene &scene)
{
    retransmit_ = scene.pass.now + rto_;
    if (scene.terms.peer_timeout != 0) {
        retransmit_ = std::min(
            retransmit_, std::max(unacked_since_ + scene.terms.peer_timeout,
                                  answer_.excuse_end));
    }
}

void Witness::send(const Scene &scene)
{
    if (retransmit_ == LAWN_TIME_INFINITY) {
        unacked_since_ = scene.pass.now;
        absent_when_sent_ = scene.pass.absent;
        sent_at_ = scene.pass.now;
        start_retransmit(scene);
    }
}

void Witness::ack(const Scene &scene, lawn_time_t sample, bool all_acked,
                  lawn_time_t rto, lawn_time_t usec_ticks)
{
    hear(scene);
    attempt_ = 0;
    answer_ = Wait();
    // "What is read in the pass after a stall is no sample."
    const bool is_late = scene.pass.stalled_at == scene.pass.now;
    check_sample(scene, is_late ? 0 : sample, rto, usec_ticks);
    rto_ = rto;
    retransmit_ = LAWN_TIME_INFINITY;
    if (!all_acked) {
        send(scene);
    }
}

// RFC 6298, section 2, with a quarter of SRTT as the least margin. The library
// rounds to ticks what is exact here. Errors make the RTO longer, by at most
// 5/4 of the greatest, which is rounded up by less than a thousandth.
void Witness::check_sample(const Scene &scene, lawn_time_t sample,
                           lawn_time_t rto, lawn_time_t usec_ticks)
{
    const lawn_conn_params_t &terms = scene.terms;
    const double r = static_cast<double>(sample);
    double least = static_cast<double>(rto_);
    double most = least;
    if (sample != 0) {
        if (srtt_ != 0) {
            greatest_error_ = std::max(greatest_error_, r - srtt_);
        }
        rttvar_ =
            srtt_ == 0 ? r / 2 : 0.75 * rttvar_ + 0.25 * std::abs(srtt_ - r);
        srtt_ = srtt_ == 0 ? r : 0.875 * srtt_ + 0.125 * r;
    }
    if (sample != 0 && terms.rto_fixed == 0) {
        const double shortest = static_cast<double>(terms.rto_min);
        const double longest = static_cast<double>(longest_rto(scene));
        const double margin =
            std::max({static_cast<double>(usec_ticks), 4 * rttvar_, srtt_ / 4});
        least = std::min(std::max(srtt_ + margin, shortest), longest);
        most = srtt_ + std::max(margin, 1.252 * greatest_error_);
        most = std::min(std::max(most, shortest), longest);
    }
    const double rounding = 32;
    const double found = static_cast<double>(rto);
    if (found < least - rounding - least * 1e-9 ||
        found > most + rounding + most * 1e-9) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "RTO is %" PRIu64 " ticks, not %.0f to %.0f",
                                rto, least, most);
    }
}

void Witness::check_backoff(const Scene &scene, lawn_time_t rto) const
{
    const lawn_conn_params_t &terms = scene.terms;
    const double longer = static_cast<double>(rto_) * terms.backoff;
    const double wanted =
        terms.rto_fixed != 0
            ? static_cast<double>(rto_)
            : std::min(longer, static_cast<double>(longest_rto(scene)));
    // Where two SRTT are the limit, they are rounded in the library.
    const double rounding = longer <= wanted ? 1 : 32;
    if (std::abs(static_cast<double>(rto) - wanted) >
        rounding + wanted * 1e-9) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "RTO backed off to %" PRIu64 " ticks, not %.0f",
                                rto, wanted);
    }
}

// The peer timeout, that is.
bool Witness::is_over(const Scene &scene) const
{
    const lawn_time_t timeout = scene.terms.peer_timeout;
    return timeout != 0 && scene.pass.now >= unacked_since_ + timeout;
}

// "After a stall, no peer is dead until one transmission made after the stall
// has been unanswered for one RTO. Until something is heard, this excuses a
// peer once." A send that was waited for since a time after the stall has
// nothing to do with it.
bool Witness::may_excuse(const Scene &scene) const
{
    const lawn_time_t stalled_at = scene.pass.stalled_at;
    if (answer_.is_excused || stalled_at == LAWN_TIME_INFINITY) {
        return false;
    }
    return sent_at_ < stalled_at ||
           (unacked_since_ < stalled_at && scene.pass.now < sent_at_ + rto_);
}

// The same for probes.
bool Witness::may_excuse_probing(const Scene &scene) const
{
    return !probing_.is_excused &&
           scene.pass.stalled_at != LAWN_TIME_INFINITY &&
           probed_at_ < scene.pass.stalled_at;
}

bool Witness::retransmit(const Scene &scene, unsigned attempt, lawn_time_t rto)
{
    check_expiry(scene, retransmit_, "retransmission");
    const lawn_time_t now = scene.pass.now;
    const unsigned most = scene.terms.max_retries;
    const bool is_last = is_over(scene) || (most != 0 && attempt > most);
    const bool is_excused =
        is_last && now >= answer_.excuse_end && may_excuse(scene);
    if (!is_excused && now >= answer_.excuse_end) {
        answer_.excuse_end = 0;
        if (is_over(scene)) {
            scene.checker.violation(scene.pass.at, scene.end,
                                    "retransmits after the peer timeout");
        }
        if (most != 0 && attempt > most) {
            scene.checker.violation(scene.pass.at, scene.end,
                                    "attempt %u of at most %u", attempt, most);
        }
    }
    if (attempt != ++attempt_) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "attempt %u instead of %u", attempt, attempt_);
    }
    check_backoff(scene, rto);
    rto_ = rto;
    sent_at_ = now;
    if (is_excused) {
        answer_ = {true, now + rto, scene.pass.absent};
    }
    start_retransmit(scene);
    return is_excused;
}

bool Witness::probe(const Scene &scene, unsigned count)
{
    check_expiry(scene, keepalive_, "probe");
    const lawn_time_t now = scene.pass.now;
    const unsigned most = scene.terms.keepalive_probes;
    const bool is_excused = probe_ == most && may_excuse_probing(scene);
    probe_ += !is_excused;
    if (count != probe_ || count > most) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "probe %u instead of %u, of at most %u", count,
                                probe_, most);
    }
    probed_at_ = now;
    keepalive_ = now + scene.terms.keepalive_interval;
    if (is_excused) {
        probing_ = {true, keepalive_, scene.pass.absent};
    }
    return is_excused;
}

void Witness::die(const Scene &scene, lawn_conn_reason_t reason)
{
    const lawn_conn_params_t &terms = scene.terms;
    const bool is_waited_for =
        !may_excuse(scene) && scene.pass.now >= answer_.excuse_end;
    bool has_reason = false;
    switch (reason) {
    case LAWN_CONN_KEEPALIVE:
        check_expiry(scene, keepalive_, "death by keepalive");
        has_reason = idle_ != 0 && probe_ == terms.keepalive_probes &&
                     !may_excuse_probing(scene);
        break;
    case LAWN_CONN_PEER_TIMEOUT:
        check_expiry(scene, retransmit_, "death by peer timeout");
        has_reason = is_over(scene) && is_waited_for;
        break;
    case LAWN_CONN_RETRY_EXCEEDED:
        check_expiry(scene, retransmit_, "death by retries");
        has_reason = terms.max_retries != 0 && attempt_ >= terms.max_retries &&
                     is_waited_for;
        break;
    }
    if (!has_reason) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "no reason for death: %s, %u attempts, "
                                "%u probes",
                                lawn_conn_reason_string(reason), attempt_,
                                probe_);
    }
    check_bounds(scene);
}

// By when the peer must be dead, counted from when it was heard.
lawn_time_t Witness::silence_bound(const Scene &scene) const
{
    const lawn_time_t usual =
        idle_ + scene.terms.keepalive_interval * scene.terms.keepalive_probes +
        (scene.pass.absent - absent_when_heard_);
    return probing_.is_excused
               ? std::max(usual, probing_.excuse_end - heard_ +
                                     (scene.pass.absent - probing_.absent))
               : usual;
}

unsigned Witness::share_of_bound(const Scene &scene) const
{
    return idle_ == 0 ? 0
                      : static_cast<unsigned>((scene.pass.now - heard_) * 100 /
                                              silence_bound(scene));
}

// Each of the bounds is exact: what a host's absence adds is counted, and the
// one wait more for an excused stall.
void Witness::check_bounds(const Scene &scene) const
{
    const Pass &pass = scene.pass;
    if (idle_ != 0 && pass.now - heard_ > silence_bound(scene)) {
        scene.checker.violation(pass.at, scene.end,
                                "not dead after %" PRIu64
                                " ticks of silence, bound %" PRIu64,
                                pass.now - heard_, silence_bound(scene));
    }
    const lawn_time_t timeout = scene.terms.peer_timeout;
    if (timeout == 0 || retransmit_ == LAWN_TIME_INFINITY) {
        return;
    }
    const lawn_time_t end =
        std::max(unacked_since_ + timeout + (pass.absent - absent_when_sent_),
                 answer_.excuse_end + (pass.absent - answer_.absent));
    if (pass.now > end) {
        scene.checker.violation(
            pass.at, scene.end,
            "not dead after %" PRIu64 " ticks without an ACK, bound %" PRIu64,
            pass.now - unacked_since_, end - unacked_since_);
    }
}

void Witness::look(const Scene &scene) const
{
    check_pending(scene, keepalive_, "keepalive");
    check_pending(scene, retransmit_, "retransmission");
    check_bounds(scene);
}

lawn_time_t Witness::due() const
{
    return std::min(keepalive_, retransmit_);
}

} // namespace sim
