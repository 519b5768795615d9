// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Text that users write: URLs of stores, durations, durabilities, names. Each
// function returns false and one line in `error_p` for what it does not take.

#ifndef LAWN_SRC_DURABLE_URL_H
#define LAWN_SRC_DURABLE_URL_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lawn::durable
{

struct Endpoint {
    std::string host; // a name, an address, or, with port 0, a path
    unsigned port = 0;

    bool operator==(const Endpoint &other) const
    {
        return host == other.host && port == other.port;
    }
    std::string text() const; // for messages: no password
};

struct Url {
    std::vector<Endpoint> endpoints; // several for sentinels only
    std::string master;              // not empty: ask sentinels for it
    std::string user;
    std::string password;
    unsigned db = 0;
};

bool parse_url(std::string_view text, Url *url_p, std::string *error_p);
// True for rediss: URLs, which parse_url() refuses.
bool is_tls_url(std::string_view text);

// 250us, 250ms, 2s, 5m, 3h, 10d, with fractions (1.5s), rounded up to whole
// microseconds; and 0. At most a hundred years.
bool parse_duration(std::string_view text, uint64_t *usec_p,
                    std::string *error_p);

// async, fsync, replicated:N as in lawn_durable_start_t.
bool parse_durability(std::string_view text, int *durability_p,
                      std::string *error_p);
bool check_durability(int durability);

bool check_name_space(std::string_view text, std::string *error_p);
// Also for the names of groups and consumers.
bool check_id(std::string_view text, std::string *error_p);
// http://..., https://..., stream:KEY.
bool check_target(std::string_view text, std::string *error_p);

} // namespace lawn::durable

#endif
