// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The draws, and what they do; see fault.h.

#include "faults.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace sim
{

Faults::Faults(Shared &shared, Hosts &hosts)
    : shared_(shared), hosts_(hosts), random_(shared.random.split())
{
}

void Faults::begin(Nsec now)
{
    for (uint32_t kind = 0; kind < fault_count; ++kind) {
        schedule(kind, now);
    }
}

void Faults::stop()
{
    is_stopped_ = true;
}

// How many things there are that may have it.
uint64_t Faults::victims(Fault kind) const
{
    const uint64_t hosts = shared_.scenario.hosts;
    switch (kind) {
    case Fault::burst:
        return hosts * (hosts - 1);
    case Fault::partition:
        return hosts * (hosts - 1) / 2;
    case Fault::kill:
        return shared_.scenario.connections;
    default:
        return hosts;
    }
}

void Faults::schedule(uint32_t kind, Nsec now)
{
    const Nsec gap = shared_.scenario.gaps[kind];
    if (gap == never || is_stopped_) {
        return;
    }
    const Nsec mean = gap / victims(static_cast<Fault>(kind));
    shared_.events.add(now + random_.around(std::max(mean, usec)),
                       Happening::fault, kind);
}

void Faults::strike(uint32_t kind, Nsec now)
{
    if (is_stopped_) {
        return;
    }
    const Fault fault = static_cast<Fault>(kind);
    bool is_done = false;
    switch (fault) {
    case Fault::burst:
    case Fault::partition:
        is_done = strike_path(fault, now);
        break;
    case Fault::kill:
        is_done = kill_end(now);
        break;
    default:
        is_done = strike_host(fault, now);
        break;
    }
    shared_.counters.faults[kind] += is_done;
    schedule(kind, now);
}

bool Faults::strike_host(Fault kind, Nsec now)
{
    const uint64_t index = random_.below(hosts_.size());
    Host &host = *hosts_[index];
    const Standing &standing = host.standing();
    if (!standing.is_up || standing.is_stalled || standing.is_frozen) {
        return false;
    }
    const uint32_t whom = static_cast<uint32_t>(index);
    Nsec span = 0;
    switch (kind) {
    case Fault::stall:
    case Fault::suspend:
        span = random_.magnitude(5 * msec, longest_stall);
        host.stall(now, kind == Fault::suspend);
        shared_.events.add(now + span, Happening::resume, whom, host.boots());
        break;
    case Fault::crash:
        span = random_.between(sec, longest_downtime);
        host.crash(now);
        shared_.events.add(now + span, Happening::restart, whom);
        break;
    default:
        return strike_clock(kind, host, now);
    }
    tell(kind, index, now, span);
    return true;
}

bool Faults::strike_clock(Fault kind, Host &host, Nsec now)
{
    Nsec span = 0;
    switch (kind) {
    case Fault::jump: {
        span = random_.magnitude(msec, longest_stall);
        const lawn_time_t ticks = host.ticks(span);
        host.standing().jumped_at = now;
        host.adjust_clock(
            now, [=](Clock &clock) { clock.step_forward(now, ticks); });
        break;
    }
    case Fault::step_back: {
        span = random_.magnitude(usec, 100 * msec);
        const lawn_time_t ticks = host.ticks(span);
        host.adjust_clock(now,
                          [=](Clock &clock) { clock.step_back(now, ticks); });
        break;
    }
    case Fault::freeze:
        span = random_.magnitude(msec, sec);
        host.adjust_clock(now, [=](Clock &clock) { clock.freeze(now); });
        host.standing().is_frozen = true;
        shared_.events.add(now + span, Happening::thaw, host.index(),
                           host.boots());
        break;
    default: {
        const uint64_t wrong = random_.below(2 * max_ppm + 1);
        const uint64_t rate =
            host.rate() * (1000000 - max_ppm + wrong) / 1000000;
        host.adjust_clock(now,
                          [=](Clock &clock) { clock.set_rate(now, rate); });
        break;
    }
    }
    tell(kind, host.index(), now, span);
    return true;
}

bool Faults::strike_path(Fault kind, Nsec now)
{
    const uint64_t hosts = hosts_.size();
    const uint64_t from = random_.below(hosts);
    const uint64_t to = (from + 1 + random_.below(hosts - 1)) % hosts;
    const uint32_t a = static_cast<uint32_t>(from);
    const uint32_t b = static_cast<uint32_t>(to);
    Nsec span = 0;
    if (kind == Fault::burst) {
        span = random_.magnitude(100 * msec, 10 * sec);
        const uint64_t loss = random_.between(200000, 900000);
        shared_.network.begin_burst(a, b, now + span,
                                    static_cast<uint32_t>(loss));
    } else {
        span = random_.magnitude(100 * msec, 3 * minute);
        shared_.network.cut(a, b, now + span);
        if (random_.one_in(2)) {
            shared_.network.cut(b, a, now + span);
        }
    }
    tell(kind, from * hosts + to, now, span);
    return true;
}

bool Faults::kill_end(Nsec now)
{
    const uint64_t index =
        random_.below(uint64_t{2} * shared_.scenario.connections);
    const uint32_t end = static_cast<uint32_t>(index);
    Host &host = *hosts_[shared_.link_of(end).host[end % 2]];
    if (!host.standing().is_up || host.standing().is_stalled ||
        shared_.state_of(end) != EndState::open) {
        return false;
    }
    host.kill(end, now);
    return true;
}

void Faults::end(const Event &event, Nsec now)
{
    Host &host = *hosts_[event.index];
    if (event.what == Happening::restart) {
        host.boot(now);
    } else if (event.boot != host.boots() || !host.standing().is_up) {
        return; // it crashed meanwhile
    } else if (event.what == Happening::resume) {
        host.resume(now);
    } else {
        host.standing().is_frozen = false;
        host.adjust_clock(now, [=](Clock &clock) { clock.thaw(now); });
    }
}

void Faults::tell(Fault kind, uint64_t whom, Nsec now, Nsec span)
{
    const size_t index = static_cast<size_t>(kind);
    shared_.checker.note(now, static_cast<unsigned>(index), whom, span);
    if (shared_.is_verbose) {
        printf("%" PRIu64 ".%09" PRIu64 " s: %s: %" PRIu64 ", %.6f s\n",
               now / sec, now % sec, fault_name(index), whom,
               static_cast<double>(span) / static_cast<double>(sec));
    }
}

} // namespace sim
