// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What happens to a packet; see network.h.

#include "network.h"

namespace sim
{

Network::Network(const Scenario &scenario, Random random, EventQueue &events)
    : hosts_(scenario.hosts), weather_(scenario.weather), random_(random),
      events_(events), paths_(size_t{hosts_} * hosts_)
{
    for (Path &path : paths_) {
        path.delay = random_.magnitude(weather_.delay_min, weather_.delay_max);
    }
}

bool Network::send(const Packet &packet, uint32_t from, uint32_t to, Nsec now)
{
    const Path &way = path(from, to);
    ++stats_.sent;
    if (now < way.cut_until) {
        ++stats_.cut;
        return false;
    }
    const uint32_t loss = now < way.bad_until ? way.bad_ppm : weather_.loss_ppm;
    if (random_.chance_ppm(loss)) {
        ++stats_.lost;
        return false;
    }
    deliver(packet, way, now);
    if (random_.chance_ppm(weather_.duplicate_ppm)) {
        ++stats_.duplicated;
        deliver(packet, way, now);
    }
    return true;
}

void Network::deliver(const Packet &packet, const Path &path, Nsec now)
{
    Nsec at = now + path.delay + random_.below(path.delay);
    if (random_.chance_ppm(weather_.reorder_ppm)) {
        ++stats_.reordered;
        at += random_.below(weather_.reorder_max);
    }
    if (free_.empty()) {
        free_.push_back(static_cast<uint32_t>(in_flight_.size()));
        in_flight_.emplace_back();
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    in_flight_[slot] = packet;
    events_.add(at, Happening::arrival, slot);
}

Packet Network::take(uint32_t slot)
{
    free_.push_back(slot);
    return in_flight_[slot];
}

void Network::begin_burst(uint32_t from, uint32_t to, Nsec until,
                          uint32_t loss_ppm)
{
    path(from, to).bad_until = until;
    path(from, to).bad_ppm = loss_ppm;
}

void Network::cut(uint32_t from, uint32_t to, Nsec until)
{
    path(from, to).cut_until = until;
}

void Network::calm()
{
    weather_.loss_ppm = 0;
    weather_.duplicate_ppm = 0;
    weather_.reorder_ppm = 0;
    for (Path &path : paths_) {
        path.bad_until = 0;
        path.cut_until = 0;
    }
}

} // namespace sim
