// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The passes of a host; see host.h.

#include "host.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace sim
{

namespace
{

constexpr Nsec pass_time = usec; // of a pass that has more to do

// Ticks per second: of TSCs, of the counters of ARM machines, of a
// nanosecond clock.
constexpr uint64_t rates[] = {1000000000, 2100000000, 2893202000, 3700000000,
                              25000000,   54000000,   1000000000, 2400000000};

lawn_conn_params_t terms_of(const Timing &timing, const Host &host)
{
    lawn_conn_params_t terms = {};
    terms.rto_initial = host.ticks(timing.rto_initial);
    terms.rto_min = host.ticks(timing.rto_min);
    terms.rto_max = host.ticks(timing.rto_max);
    terms.rto_fixed = host.ticks(timing.rto_fixed);
    terms.backoff = timing.backoff_percent / 100.0;
    terms.max_retries = timing.max_retries;
    terms.peer_timeout = host.ticks(timing.peer_timeout);
    terms.keepalive_idle = host.ticks(timing.idle);
    terms.keepalive_interval = host.ticks(timing.interval);
    terms.keepalive_probes = timing.probes;
    return terms;
}

} // namespace

Host::Host(Shared &shared, uint32_t index)
    : shared_(shared), index_(index), sleeps_(index % 8 == 3),
      rate_(rates[shared.random.below(std::size(rates))]),
      stall_threshold_(ticks(shared.scenario.stall_threshold)),
      wake_(shared.wakes[index])
{
    for (const Timing &timing : shared.scenario.timing) {
        terms_.push_back(terms_of(timing, *this));
    }
}

Host::~Host()
{
    lawn_engine_destroy(engine_);
}

void Host::boot(Nsec at)
{
    const lawn_time_t start = shared_.random.magnitude(sec, UINT64_MAX / 8);
    const uint64_t wrong = shared_.random.below(2 * max_ppm + 1);
    clock_ = Clock(at, start, rate_ * (1000000 - max_ppm + wrong) / 1000000);
    reading_ = start;
    offset_ = 0;
    steps_ = 0;
    lawn_engine_params_t params = {};
    params.clock = [](void *arg) { return static_cast<Host *>(arg)->reading_; };
    params.clock_arg = this;
    params.ticks_per_sec = static_cast<double>(rate_);
    params.budget = shared_.scenario.budget;
    params.stall_threshold = stall_threshold_;
    const auto poll = [](void *arg) {
        return static_cast<Host *>(arg)->poll();
    };
    if (lawn_engine_create(&params, &engine_) != LAWN_OK ||
        lawn_engine_add(engine_, poll, this, -1, nullptr) != LAWN_OK) {
        fprintf(stderr, "lawn_sim: no memory for an engine\n");
        exit(1);
    }
    // A quarter of the ends may have a packet in the queue: now and then a
    // stall is too long for it.
    batch_ = sleeps_ ? SIZE_MAX : std::max<size_t>(16, ends_.size() / 8);
    ++boots_;
    stall_at_ = LAWN_TIME_INFINITY;
    pass_ = {};
    pass_.at = at;
    pass_.now = start;
    pass_.stalled_at = LAWN_TIME_INFINITY;
    is_full_ = false;
    standing().is_up = true;
    after_absence(at);
}

void Host::crash(Nsec at)
{
    lawn_engine_destroy(engine_);
    engine_ = nullptr;
    pass_.at = at;
    queue_.clear();
    taken_ = 0;
    opening_.clear();
    wake_ = never;
    standing() = {};
    for (const uint32_t end : ends_) {
        (*shared_.ends)[end].is_open = false;
        if (shared_.state_of(end) != EndState::closed) {
            shared_.set_closed(end, false);
        }
    }
}

void Host::stall(Nsec at, bool suspends)
{
    pass(at);
    if (suspends) {
        clock_.freeze(at);
    }
    standing().is_stalled = true;
    wake_ = never;
}

void Host::resume(Nsec at)
{
    clock_.thaw(at);
    standing().is_stalled = false;
    standing().stalled_until = at;
    after_absence(at);
}

void Host::open(uint32_t end, Nsec at)
{
    shared_.link_of(end).state[end % 2] = EndState::opening;
    opening_.push_back(end);
    pass(at);
}

void Host::kill(uint32_t end, Nsec at)
{
    pass(at);
    if (shared_.state_of(end) == EndState::open) {
        close_end((*shared_.ends)[end]);
        shared_.set_closed(end, false);
    }
    after_absence(at);
}

void Host::arrive(const Packet &packet, Nsec at)
{
    const Standing &own = standing();
    if (!own.is_up) {
        ++shared_.counters.stale;
        return;
    }
    if (own.is_stalled && waiting() / 2 >= batch_) {
        ++shared_.counters.overflows;
        shared_.link_of(packet.to).faulted_at = at;
        return;
    }
    queue_.push_back(packet);
    pass(at);
}

void Host::send(uint32_t from, Kind kind, uint32_t number, uint64_t content,
                lawn_time_t stamp)
{
    Link &link = shared_.link_of(from);
    const uint32_t to = peer_of(from);
    const Packet packet = {to, link.incarnation, number, kind, content, stamp};
    if (!shared_.network.send(packet, index_, link.host[to % 2], pass_.at)) {
        link.faulted_at = pass_.at;
    }
}

const lawn_conn_params_t &Host::terms(uint32_t end) const
{
    return terms_[shared_.link_of(end).timing];
}

Scene Host::scene(uint32_t end)
{
    return {shared_.checker, pass_, terms(end), end};
}

bool Host::is_waiting(uint32_t end) const
{
    // Only a pass that was late must have emptied the queue.
    return pass_.is_late &&
           std::any_of(queue_.begin() + static_cast<ptrdiff_t>(taken_),
                       queue_.end(), [&](const Packet &packet) {
                           return packet.to == end &&
                                  packet.incarnation ==
                                      shared_.link_of(end).incarnation;
                       });
}

unsigned Host::poll()
{
    unsigned work = 0;
    ++polls_;
    if (is_before_) {
        return 0;
    }
    std::vector<uint32_t> opening;
    opening.swap(opening_);
    for (const uint32_t end : opening) {
        Link &link = shared_.link_of(end);
        link.state[end % 2] = EndState::open;
        link.opened_at[end % 2] = pass_.at;
        open_end((*shared_.ends)[end], *this, end);
        ++work;
    }
    for (size_t i = 0; i < batch_ && taken_ < queue_.size(); ++i, ++work) {
        const Packet packet = queue_[taken_++];
        End &end = (*shared_.ends)[packet.to];
        if (end.is_open && end.incarnation == packet.incarnation) {
            ++shared_.counters.received;
            receive(end, packet);
        } else {
            ++shared_.counters.stale;
        }
    }
    if (taken_ == queue_.size()) {
        queue_.clear();
        taken_ = 0;
    }
    polled_ += work;
    return work;
}

void Host::pass(Nsec at)
{
    const Standing &own = standing();
    if (!own.is_up || own.is_stalled) {
        return;
    }
    if (at == pass_.at) {
        after_absence(at);
        return;
    }
    if (!sleeps_) {
        catch_up(at);
    }
    progress(at, std::max(pass_.now, time_at(at - 1)));
    plan(at);
}

// The passes before `at` that found nothing to do, but for most of them: as
// many as it takes for none to be late.
void Host::catch_up(Nsec at)
{
    const Nsec step = shared_.scenario.stall_threshold / 4 * 3;
    is_before_ = true;
    while (at - pass_.at > step) {
        const Nsec then = pass_.at + step;
        progress(then, std::max(pass_.now, time_at(then - 1)));
        if (fired_ != 0 || pass_.is_late) {
            shared_.checker.violation(then, no_end,
                                      "host %u: fired %u timers before "
                                      "lawn_engine_next()",
                                      index_, fired_);
        }
    }
    is_before_ = false;
}

void Host::after_absence(Nsec at)
{
    progress(at, pass_.now);
    plan(at);
}

void Host::progress(Nsec at, lawn_time_t covered)
{
    Counters &counters = shared_.counters;
    const bool is_woken = at == wake_ && waiting() == 0 && opening_.empty();
    const lawn_time_t before = pass_.now;
    pass_.at = at;
    pass_.now = go_on(at);
    pass_.covered = covered;
    pass_.is_backlog = is_full_;
    pass_.absent += pass_.now - (is_full_ ? before : std::max(before, covered));
    pass_.is_late = pass_.now >= stall_at_;
    if (pass_.is_late) {
        pass_.stalled_at = pass_.now;
    }
    stall_at_ = pass_.now + stall_threshold_;
    polls_ = 0;
    polled_ = 0;
    fired_ = 0;
    const unsigned work = lawn_engine_progress(engine_);
    const unsigned touched = work - polled_;
    is_full_ = touched == shared_.scenario.budget;

    ++counters.passes;
    counters.idle_passes += is_woken && !pass_.is_backlog && work == 0;
    counters.stalled_passes += pass_.is_late;
    counters.full_passes += is_full_;
    counters.fired += fired_;
    counters.moved += touched - fired_;
    counters.most_touched = std::max<uint64_t>(counters.most_touched, touched);
    check_pass(touched, is_woken);
}

// The time that the engine goes on with: it takes a clock that has gone back by
// more than a millisecond for one that has been set, and else waits for it.
lawn_time_t Host::go_on(Nsec at)
{
    reading_ = clock_.read(at);
    const lawn_time_t now = time_at(at);
    if (now >= pass_.now) {
        return now;
    }
    if (pass_.now - now > ticks(msec)) {
        offset_ += pass_.now - now;
        ++steps_;
    }
    return pass_.now;
}

void Host::check_pass(unsigned touched, bool is_woken)
{
    Checker &checker = shared_.checker;
    if (polls_ != (pass_.is_late ? 2U : 1U)) {
        checker.violation(pass_.at, no_end, "host %u: polled %u times, %s",
                          index_, polls_, pass_.is_late ? "late" : "in time");
    }
    if (fired_ > touched || touched > shared_.scenario.budget) {
        checker.violation(pass_.at, no_end,
                          "host %u: touched %u timers and fired %u, budget %u",
                          index_, touched, fired_, shared_.scenario.budget);
    }
    lawn_engine_stats_t stats;
    lawn_engine_query(engine_, &stats);
    if (stats.clock_steps != steps_) {
        checker.violation(pass_.at, no_end,
                          "host %u: %" PRIu64
                          " steps of the clock, not %" PRIu64,
                          index_, stats.clock_steps, steps_);
    }
    if (lawn_engine_now(engine_) != pass_.now) {
        checker.violation(pass_.at, no_end,
                          "host %u: takes %" PRIu64 " for %" PRIu64, index_,
                          lawn_engine_now(engine_), pass_.now);
    }
    if (!is_full_ && lawn_engine_next(engine_) <= pass_.now) {
        checker.violation(pass_.at, no_end, "host %u: timers left", index_);
    }
    if (is_woken && ((is_asleep_ && touched == 0) ||
                     (is_settled_ && fired_ == 0 && !is_full_))) {
        checker.violation(pass_.at, no_end, "host %u: woken for nothing",
                          index_);
    }
}

void Host::plan(Nsec at)
{
    is_asleep_ = false;
    is_settled_ = false;
    if (is_full_ || waiting() != 0) {
        wake_ = at + pass_time;
        return;
    }
    if (sleeps_) {
        const lawn_status_t status = lawn_engine_arm(engine_);
        is_asleep_ = status == LAWN_OK;
        if (!is_asleep_) {
            shared_.checker.violation(at, no_end, "host %u: cannot sleep: %s",
                                      index_, lawn_status_string(status));
        }
        is_settled_ = is_asleep_ && check_sleep();
    }
    const lawn_time_t next = lawn_engine_next(engine_);
    if (is_asleep_) {
        stall_at_ = next < LAWN_TIME_INFINITY - stall_threshold_
                        ? next + stall_threshold_
                        : LAWN_TIME_INFINITY;
    }
    wake_ =
        next == LAWN_TIME_INFINITY ? never : clock_.when(next - offset_, at);
}

// Now and then, and the more seldom the more ends there are, since every one is
// looked at: true when it sleeps until something is due exactly. A keepalive
// timer is not moved when something is heard, so it may wake the host earlier.
bool Host::check_sleep()
{
    const uint64_t gap = std::max<uint64_t>(64, ends_.size() / 16);
    if (shared_.counters.passes % gap != 0) {
        return false;
    }
    lawn_time_t earliest = LAWN_TIME_INFINITY;
    for (const uint32_t index : ends_) {
        const End &end = (*shared_.ends)[index];
        if (end.is_open) {
            earliest =
                std::min({earliest, end.witness.due(), end.think_deadline});
        }
    }
    const lawn_time_t next = lawn_engine_next(engine_);
    if (next > earliest) {
        shared_.checker.violation(pass_.at, no_end, "host %u: sleeps too long",
                                  index_);
    }
    return next == earliest;
}

void Host::sweep(Nsec at)
{
    const Standing &own = standing();
    if (!own.is_up || own.is_stalled || is_full_) {
        return;
    }
    Pass seen = pass_;
    seen.at = at;
    if (at > pass_.at) {
        seen.now = std::max(pass_.now, time_at(at - 1));
    }
    seen.covered = seen.now;
    for (const uint32_t index : ends_) {
        const End &end = (*shared_.ends)[index];
        if (end.is_open) {
            const Scene scene = {shared_.checker, seen, terms(index), index};
            end.witness.look(scene);
            check_pending(scene, end.think_deadline, "message");
        }
    }
}

void Host::check_structure(Nsec at)
{
    const lawn_status_t status =
        engine_ ? lawn_check(lawn_engine_lawn(engine_)) : LAWN_OK;
    if (status != LAWN_OK) {
        shared_.checker.violation(at, no_end, "host %u: lawn_check(): %s",
                                  index_, lawn_status_string(status));
    }
}

} // namespace sim
