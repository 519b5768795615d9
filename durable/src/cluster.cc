// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The slot of a key is its CRC16 (XMODEM: polynomial 0x1021, initially 0)
// modulo the number of slots.

#include "src/cluster.h"

#include "src/session.h"

#include <charconv>

namespace lawn::durable
{

namespace
{

constexpr unsigned max_port = 65535;

bool parse_port(std::string_view text, unsigned *port_p)
{
    const char *const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, *port_p);
    return error == std::errc() && last == end && *port_p > 0 &&
           *port_p <= max_port;
}

// A node that does not know its own address says none: it is where it was
// asked. On a unix socket, that is this machine.
std::string host_of(std::string_view host, const Endpoint &from)
{
    if (!host.empty()) {
        return std::string(host);
    }
    return from.port == 0 ? "127.0.0.1" : from.host;
}

bool read_slot(const redisReply *reply, unsigned *slot_p)
{
    int64_t slot = 0;
    if (!number_of(reply, &slot) || slot < 0 || slot >= cluster_slots) {
        return false;
    }
    *slot_p = static_cast<unsigned>(slot);
    return true;
}

bool read_range(const redisReply &reply, const Endpoint &from,
                SlotRange *range_p)
{
    if (reply.type != REDIS_REPLY_ARRAY || reply.elements < 3) {
        return false;
    }
    const redisReply &master = *reply.element[2];
    int64_t port = 0;
    if (!read_slot(reply.element[0], &range_p->first) ||
        !read_slot(reply.element[1], &range_p->last) ||
        range_p->first > range_p->last || master.type != REDIS_REPLY_ARRAY ||
        master.elements < 2 || !number_of(master.element[1], &port) ||
        port <= 0 || port > max_port) {
        return false;
    }
    const std::string_view host = text_of(master.element[0]);
    range_p->master = {host_of(host, from), static_cast<unsigned>(port)};
    return true;
}

} // namespace

unsigned slot_of(std::string_view tag)
{
    unsigned crc = 0;
    for (const char c : tag) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
        }
    }
    return crc % cluster_slots;
}

bool read_slots(const redisReply *reply, const Endpoint &from,
                std::vector<SlotRange> *ranges_p)
{
    ranges_p->clear();
    if (reply->type != REDIS_REPLY_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < reply->elements; ++i) {
        SlotRange range;
        if (!read_range(*reply->element[i], from, &range)) {
            return false;
        }
        ranges_p->push_back(range);
    }
    return true;
}

bool read_redirection(std::string_view error, const Endpoint &from,
                      unsigned *slot_p, Endpoint *endpoint_p)
{
    const size_t space = error.find(' ');
    if (space == error.npos) {
        return false;
    }
    error.remove_prefix(space + 1);
    const size_t second = error.find(' ');
    const size_t colon = error.rfind(':');
    if (second == error.npos || colon == error.npos || colon < second) {
        return false;
    }
    const std::string_view host = error.substr(second + 1, colon - second - 1);
    const auto [last, failure] =
        std::from_chars(error.data(), error.data() + second, *slot_p);
    endpoint_p->host = host_of(host, from);
    return failure == std::errc() && last == error.data() + second &&
           *slot_p < cluster_slots &&
           parse_port(error.substr(colon + 1), &endpoint_p->port);
}

} // namespace lawn::durable
