// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A network on virtual time, 1 tick = 1 ns: it delays packets, loses some, and
// has outages. What it does depends on a seed alone.

#ifndef LAWN_TEST_UNIT_TRANSPORT_NET_H
#define LAWN_TEST_UNIT_TRANSPORT_NET_H

#include <lawn/conn.h>

#include <algorithm>
#include <queue>
#include <vector>

namespace lawn_transport
{

constexpr lawn_time_t usec = 1000;
constexpr lawn_time_t msec = 1000 * usec;
constexpr lawn_time_t sec = 1000 * msec;
constexpr lawn_time_t never = LAWN_TIME_INFINITY;

struct Packet {
    enum Kind { data, ack, nack, asking, answer, probe, alive };
    Kind kind;
    uint32_t id;      // of the message; in a cumulative ACK, of the next one
    lawn_time_t time; // of this sending; in what answers it, the same
};

// What a network is like. Shares are of packets, in each direction.
struct Weather {
    lawn_time_t round_trip = 10 * usec;
    bool keeps_order = true;
    double loss = 0;
    uint64_t seed = 1;
    uint32_t hole = UINT32_MAX; // no message of this number gets through
};

class Net
{
public:
    explicit Net(const Weather &weather) : weather_(weather)
    {
    }

    // All packets that are sent in this time are lost.
    void fail(lawn_time_t from, lawn_time_t to)
    {
        fails_from_ = from;
        fails_to_ = to;
    }

    bool has_failed(lawn_time_t now) const
    {
        return now >= fails_from_ && now < fails_to_;
    }

    void to_peer(lawn_time_t now, const Packet &packet)
    {
        const bool falls =
            packet.kind == Packet::data && packet.id == weather_.hole;
        put(&to_peer_, now, packet, falls);
    }

    void to_program(lawn_time_t now, const Packet &packet)
    {
        put(&to_program_, now, packet, false);
    }

    // When the next packet arrives.
    lawn_time_t at_peer() const
    {
        return to_peer_.next();
    }

    lawn_time_t at_program() const
    {
        return to_program_.next();
    }

    Packet take_at_peer()
    {
        return to_peer_.pop();
    }

    Packet take_at_program()
    {
        return to_program_.pop();
    }

private:
    struct Arrival {
        lawn_time_t at;
        uint64_t serial;
        Packet packet;

        bool operator<(const Arrival &other) const
        {
            return at != other.at ? at > other.at : serial > other.serial;
        }
    };

    struct Lane {
        std::priority_queue<Arrival> arrivals;
        lawn_time_t latest = 0;

        lawn_time_t next() const
        {
            return arrivals.empty() ? never : arrivals.top().at;
        }

        Packet pop()
        {
            const Packet packet = arrivals.top().packet;
            arrivals.pop();
            return packet;
        }
    };

    // Half a round trip, give or take an eighth of that, or a quarter of it if
    // the order is not kept.
    void put(Lane *lane, lawn_time_t now, const Packet &packet, bool falls)
    {
        if (share() < weather_.loss || falls || has_failed(now)) {
            return;
        }
        const double spread = weather_.keeps_order ? 0.125 : 0.25;
        const double half = static_cast<double>(weather_.round_trip) / 2;
        const double takes = half * (1 + spread * (2 * share() - 1));
        lawn_time_t at = now + static_cast<lawn_time_t>(takes);
        if (weather_.keeps_order) {
            at = std::max(at, lane->latest);
            lane->latest = at;
        }
        lane->arrivals.push({at, serial_++, packet});
    }

    // From 0 to 1, by splitmix64.
    double share()
    {
        uint64_t x = weather_.seed += 0x9e3779b97f4a7c15U;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
        return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
    }

    Weather weather_;
    Lane to_peer_;
    Lane to_program_;
    uint64_t serial_ = 0;
    lawn_time_t fails_from_ = never;
    lawn_time_t fails_to_ = never;
};

} // namespace lawn_transport

#endif
