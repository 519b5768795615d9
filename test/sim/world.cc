// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// From event to event, and who sees to it that connections begin again; see
// world.h.

#include "world.h"

#include <algorithm>
#include <cinttypes>

namespace sim
{

namespace
{

constexpr Nsec beginning = sec;
constexpr Nsec opening_span = 10 * sec;
constexpr Nsec reopen_min = 50 * msec;
constexpr Nsec reopen_max = 3 * sec;
constexpr Nsec sweep_gap = minute;
constexpr uint32_t sweeps_per_check = 10;

} // namespace

World::World(const Scenario &scenario, bool is_verbose)
    : shared_(scenario), ends_(size_t{2} * scenario.connections),
      faults_(shared_, hosts_), now_(beginning)
{
    shared_.is_verbose = is_verbose;
    shared_.ends = &ends_;
    for (uint32_t i = 0; i < scenario.hosts; ++i) {
        hosts_.push_back(std::make_unique<Host>(shared_, i));
    }
    create_connections();
    for (const auto &host : hosts_) {
        host->boot(now_);
    }
}

void World::create_connections()
{
    const Scenario &scenario = shared_.scenario;
    Random &random = shared_.random;
    for (uint32_t i = 0; i < scenario.connections; ++i) {
        Link link = {};
        const uint64_t first = random.below(scenario.hosts);
        const uint64_t away = 1 + random.below(scenario.hosts - 1);
        link.host[0] = static_cast<uint32_t>(first);
        link.host[1] = static_cast<uint32_t>((first + away) % scenario.hosts);
        link.timing = static_cast<uint32_t>(random.below(timing_count));
        link.is_reopening = true;
        shared_.links.push_back(link);
        hosts_[link.host[0]]->add_end(2 * i);
        hosts_[link.host[1]]->add_end(2 * i + 1);
        shared_.events.add(now_ + random.below(opening_span), Happening::reopen,
                           i);
    }
}

void World::run()
{
    // In the calm, hosts come back, and what is gone is found and begins
    // again, which may take two rounds: an end finds it out, then its peer.
    const Nsec calm = now_ + shared_.scenario.duration;
    const Nsec quiet = calm + longest_downtime + 2 * shared_.horizon +
                       longest_think(shared_.scenario) + 2 * reopen_max;
    const Nsec end = quiet + shared_.horizon;
    shared_.events.add(calm, Happening::calm, 0);
    shared_.events.add(quiet, Happening::quiet, 0);
    shared_.events.add(now_ + sweep_gap, Happening::sweep, 0);
    faults_.begin(now_);
    const std::vector<Nsec> &wakes = shared_.wakes;
    for (;;) {
        const auto first = std::min_element(wakes.begin(), wakes.end());
        const Nsec wake = *first;
        const Nsec next = std::min(wake, shared_.events.next());
        if (next > end) {
            break;
        }
        now_ = next;
        if (shared_.events.next() <= wake) {
            happen(shared_.events.take());
        } else {
            hosts_[static_cast<size_t>(first - wakes.begin())]->pass(now_);
        }
        if (!shared_.closed.empty()) {
            collect_closed();
        }
    }
    now_ = end;
    check_end();
}

void World::happen(const Event &event)
{
    switch (event.what) {
    case Happening::arrival: {
        const Packet packet = shared_.network.take(event.index);
        const Link &link = shared_.link_of(packet.to);
        hosts_[link.host[packet.to % 2]]->arrive(packet, now_);
        break;
    }
    case Happening::reopen:
        reopen(event.index);
        break;
    case Happening::fault:
        faults_.strike(event.index, now_);
        break;
    case Happening::resume:
    case Happening::thaw:
    case Happening::restart:
        faults_.end(event, now_);
        break;
    case Happening::sweep:
        sweep();
        break;
    case Happening::calm:
        faults_.stop();
        shared_.network.calm();
        break;
    case Happening::quiet:
        shared_.is_quiet = true;
        break;
    }
}

void World::reopen(uint32_t connection)
{
    Link &link = shared_.links[connection];
    for (const uint32_t host : link.host) {
        if (!shared_.standing[host].is_up) {
            shared_.events.add(now_ + sec, Happening::reopen, connection);
            return;
        }
    }
    link.is_reopening = false;
    ++link.incarnation;
    link.state = {EndState::opening, EndState::opening};
    for (uint32_t side = 0; side < 2; ++side) {
        hosts_[link.host[side]]->open(2 * connection + side, now_);
    }
}

void World::collect_closed()
{
    for (const uint32_t end : shared_.closed) {
        Link &link = shared_.link_of(end);
        if (link.state[peer_of(end) % 2] == EndState::closed &&
            !link.is_reopening) {
            link.is_reopening = true;
            shared_.events.add(
                now_ + shared_.random.between(reopen_min, reopen_max),
                Happening::reopen, end / 2);
        }
    }
    shared_.closed.clear();
}

void World::sweep()
{
    ++sweeps_;
    for (const auto &host : hosts_) {
        host->sweep(now_);
        if (sweeps_ % sweeps_per_check == 0) {
            host->check_structure(now_);
        }
    }
    shared_.events.add(now_ + sweep_gap, Happening::sweep, 0);
}

void World::check_end()
{
    const Counters &counters = shared_.counters;
    sweep();
    for (uint32_t i = 0; i < shared_.scenario.connections; ++i) {
        check_connection(i);
    }
    if (counters.orphans != counters.found + counters.moot) {
        shared_.checker.violation(now_, no_end,
                                  "%" PRIu64 " ends lost their peer, %" PRIu64
                                  " found out, %" PRIu64 " went before",
                                  counters.orphans, counters.found,
                                  counters.moot);
    }
    // Each start and re-arm may be looked at before it is due, but not often,
    // and nearly never may there be nothing to be looked at any more.
    const uint64_t starts = counters.received + counters.fired;
    if (counters.idle_passes > starts / 50 || counters.moved > 4 * starts) {
        shared_.checker.violation(now_, no_end,
                                  "%" PRIu64 " passes for nothing, %" PRIu64
                                  " timers moved",
                                  counters.idle_passes, counters.moved);
    }
    if (counters.delivered < shared_.scenario.connections) {
        shared_.checker.violation(now_, no_end,
                                  "only %" PRIu64 " messages delivered",
                                  counters.delivered);
    }
}

// After the calm, each is open, and has delivered all that was sent.
void World::check_connection(uint32_t connection)
{
    const Link &link = shared_.links[connection];
    for (uint32_t side = 0; side < 2; ++side) {
        const uint32_t index = 2 * connection + side;
        const End &end = ends_[index];
        if (link.state[side] != EndState::open || !end.is_open) {
            shared_.checker.violation(now_, index, "not open at the end");
        } else if (!is_settled(end) ||
                   ends_[peer_of(index)].delivered != end.next) {
            shared_.checker.violation(now_, index,
                                      "%u messages sent, %u acknowledged, "
                                      "%" PRIu64 " delivered",
                                      end.next, end.unacked,
                                      ends_[peer_of(index)].delivered);
        }
    }
}

} // namespace sim
