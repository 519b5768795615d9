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

void Witness::open(const Scene &scene, lawn_time_t idle, lawn_time_t rto)
{
    const lawn_conn_params_t &terms = scene.terms;
    *this = Witness();
    idle_ = idle;
    rto_ = rto;
    const lawn_time_t wanted =
        terms.rto_fixed != 0
            ? terms.rto_fixed
            : std::clamp(terms.rto_initial, terms.rto_min, terms.rto_max);
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
    if (idle_ != 0) {
        keepalive_ = heard_ + idle_;
    }
}

void Witness::start_retransmit(const Scene &scene)
{
    lawn_time_t ttl = rto_;
    if (scene.terms.peer_timeout != 0) {
        ttl = std::min(ttl, unacked_since_ + scene.terms.peer_timeout -
                                scene.pass.now);
    }
    retransmit_ = scene.pass.now + ttl;
}

void Witness::send(const Scene &scene)
{
    if (retransmit_ == LAWN_TIME_INFINITY) {
        unacked_since_ = scene.pass.now;
        absent_when_sent_ = scene.pass.absent;
        start_retransmit(scene);
    }
}

void Witness::ack(const Scene &scene, lawn_time_t sample, bool all_acked,
                  lawn_time_t rto, lawn_time_t usec_ticks)
{
    hear(scene);
    attempt_ = 0;
    check_sample(scene, sample, rto, usec_ticks);
    rto_ = rto;
    retransmit_ = LAWN_TIME_INFINITY;
    if (!all_acked) {
        send(scene);
    }
}

// RFC 6298, section 2. The library rounds to ticks what is exact here.
void Witness::check_sample(const Scene &scene, lawn_time_t sample,
                           lawn_time_t rto, lawn_time_t usec_ticks)
{
    const lawn_conn_params_t &terms = scene.terms;
    const double rounding = 32;
    const double r = static_cast<double>(sample);
    double wanted = static_cast<double>(rto_);
    if (sample != 0) {
        rttvar_ =
            srtt_ == 0 ? r / 2 : 0.75 * rttvar_ + 0.25 * std::abs(srtt_ - r);
        srtt_ = srtt_ == 0 ? r : 0.875 * srtt_ + 0.125 * r;
        if (terms.rto_fixed == 0) {
            wanted =
                srtt_ + std::max(static_cast<double>(usec_ticks), 4 * rttvar_);
            wanted = std::clamp(wanted, static_cast<double>(terms.rto_min),
                                static_cast<double>(terms.rto_max));
        }
    }
    const double error = std::abs(static_cast<double>(rto) - wanted);
    if (error > rounding + wanted * 1e-9) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "RTO is %" PRIu64 " ticks, not %.0f", rto,
                                wanted);
    }
}

void Witness::check_backoff(const Scene &scene, lawn_time_t rto) const
{
    const lawn_conn_params_t &terms = scene.terms;
    const double longer = static_cast<double>(rto_) * terms.backoff;
    const double wanted =
        terms.rto_fixed != 0
            ? static_cast<double>(rto_)
            : std::min(longer, static_cast<double>(terms.rto_max));
    if (std::abs(static_cast<double>(rto) - wanted) > 1 + wanted * 1e-9) {
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

// "If the stall took all the time in which the first retransmission should
// have been made and answered, the peer timeout waits for one more RTO."
bool Witness::is_excused(const Scene &scene) const
{
    return attempt_ == 0 && retransmit_ + rto_ <= scene.pass.stalled_at;
}

bool Witness::retransmit(const Scene &scene, unsigned attempt, lawn_time_t rto)
{
    check_expiry(scene, retransmit_, "retransmission");
    const bool was_over = is_over(scene);
    if (was_over) {
        if (!is_excused(scene)) {
            scene.checker.violation(scene.pass.at, scene.end,
                                    "retransmits after the peer timeout");
        }
        unacked_since_ = scene.pass.now - scene.terms.peer_timeout + rto_;
        absent_when_sent_ = scene.pass.absent;
    }
    const unsigned most = scene.terms.max_retries;
    if (attempt != ++attempt_ || (most != 0 && attempt > most)) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "attempt %u instead of %u, of at most %u",
                                attempt, attempt_, most);
    }
    check_backoff(scene, rto);
    rto_ = rto;
    start_retransmit(scene);
    return was_over;
}

void Witness::probe(const Scene &scene, unsigned count)
{
    check_expiry(scene, keepalive_, "probe");
    if (count != ++probe_ || count > scene.terms.keepalive_probes) {
        scene.checker.violation(scene.pass.at, scene.end,
                                "probe %u instead of %u, of at most %u", count,
                                probe_, scene.terms.keepalive_probes);
    }
    keepalive_ = scene.pass.now + scene.terms.keepalive_interval;
}

void Witness::die(const Scene &scene, lawn_conn_reason_t reason)
{
    const lawn_conn_params_t &terms = scene.terms;
    bool has_reason = false;
    switch (reason) {
    case LAWN_CONN_KEEPALIVE:
        check_expiry(scene, keepalive_, "death by keepalive");
        has_reason = idle_ != 0 && probe_ == terms.keepalive_probes;
        break;
    case LAWN_CONN_PEER_TIMEOUT:
        check_expiry(scene, retransmit_, "death by peer timeout");
        has_reason = is_over(scene) && !is_excused(scene);
        break;
    case LAWN_CONN_RETRY_EXCEEDED:
        check_expiry(scene, retransmit_, "death by retries");
        has_reason = terms.max_retries != 0 && attempt_ == terms.max_retries;
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

lawn_time_t Witness::silence_bound(const Scene &scene) const
{
    return idle_ +
           scene.terms.keepalive_interval * scene.terms.keepalive_probes +
           (scene.pass.absent - absent_when_heard_);
}

unsigned Witness::share_of_bound(const Scene &scene) const
{
    return idle_ == 0 ? 0
                      : static_cast<unsigned>((scene.pass.now - heard_) * 100 /
                                              silence_bound(scene));
}

// Each of the bounds is exact: what a host's absence adds is counted.
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
    if (timeout != 0 && retransmit_ != LAWN_TIME_INFINITY &&
        pass.now - unacked_since_ >
            timeout + (pass.absent - absent_when_sent_)) {
        scene.checker.violation(pass.at, scene.end,
                                "not dead after %" PRIu64
                                " ticks without an ACK, bound %" PRIu64,
                                pass.now - unacked_since_, timeout);
    }
}

void Witness::look(const Scene &scene) const
{
    check_pending(scene, keepalive_, "keepalive");
    check_pending(scene, retransmit_, "retransmission");
    check_bounds(scene);
}

} // namespace sim
