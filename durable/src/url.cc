// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Texts of users. No message repeats a password.

#include "src/url.h"

#include "src/codec.h"

#include <arpa/inet.h>
#include <lawn/durable.h>

#include <charconv>
#include <cmath>

namespace lawn::durable
{

namespace
{

constexpr unsigned default_port = 6379;
constexpr unsigned default_sentinel_port = 26379;
constexpr size_t max_name_space = 64;
constexpr size_t max_path = 107; // of a unix socket, in Linux
constexpr int max_replicas = 100;

bool starts_with(std::string_view text, std::string_view prefix)
{
    return text.substr(0, prefix.size()) == prefix;
}

// Takes `prefix` off `text_p` if it begins with it.
bool skip(std::string_view *text_p, std::string_view prefix)
{
    if (!starts_with(*text_p, prefix)) {
        return false;
    }
    text_p->remove_prefix(prefix.size());
    return true;
}

// Digits only, to at most `max`.
bool parse_number(std::string_view text, unsigned max, unsigned *number_p)
{
    const char *const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, *number_p);
    return !text.empty() && error == std::errc() && last == end &&
           *number_p <= max;
}

bool has_control(std::string_view text)
{
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
            return true;
        }
    }
    return false;
}

// What a message may show of a user's text.
std::string quote(std::string_view text)
{
    constexpr size_t longest = 64;
    std::string result = "'";
    for (const char c : text.substr(0, longest)) {
        result += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
    }
    return result + (text.size() > longest ? "...'" : "'");
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const int letter = (c | 0x20) - 'a';
    return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

// Decodes %40 and the like, for passwords with special characters.
bool decode(std::string_view text, std::string *decoded_p)
{
    decoded_p->clear();
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            *decoded_p += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0) {
            return false;
        }
        *decoded_p += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return true;
}

bool parse_db(std::string_view text, unsigned *db_p, std::string *error_p)
{
    constexpr unsigned max_db = 1000000;
    if (!parse_number(text, max_db, db_p)) {
        *error_p = "the database in the URL is not a number";
        return false;
    }
    return true;
}

bool parse_user(std::string_view text, Url *url_p, std::string *error_p)
{
    const size_t colon = text.find(':');
    const bool is_good = colon != text.npos &&
                         decode(text.substr(0, colon), &url_p->user) &&
                         decode(text.substr(colon + 1), &url_p->password) &&
                         !url_p->password.empty();
    if (!is_good) {
        *error_p = "what is before the @ in the URL is not user:password, or "
                   "not encoded as in %40";
    }
    return is_good;
}

// host, host:port, [::1], [::1]:port. What is wrong is not shown: a password
// may be where a host or a port should be, as in redis://user:password.
bool parse_host(std::string_view text, unsigned port, Endpoint *endpoint_p,
                std::string *error_p)
{
    constexpr unsigned max_port = 65535;
    std::string_view host;
    if (skip(&text, "[")) {
        const size_t end = text.find(']');
        if (end == text.npos) {
            *error_p = "the URL has no ] after the address";
            return false;
        }
        host = text.substr(0, end);
        text.remove_prefix(end + 1);
    } else {
        host = text.substr(0, text.find(':'));
        text.remove_prefix(host.size());
    }
    if (host.empty() || host.find_first_of(" @?#/") != host.npos) {
        *error_p = "the URL names no host";
        return false;
    }
    endpoint_p->host = host;
    endpoint_p->port = port;
    if (!text.empty() && (!skip(&text, ":") ||
                          !parse_number(text, max_port, &endpoint_p->port) ||
                          endpoint_p->port == 0)) {
        *error_p = "the port in the URL is not 1 to 65535";
        return false;
    }
    return true;
}

bool parse_unix(std::string_view text, Url *url_p, std::string *error_p)
{
    skip(&text, "//"); // unix:///path is common, too
    const size_t query = text.find('?');
    const std::string_view path = text.substr(0, query);
    if (path.empty() || path.size() > max_path) {
        *error_p = "the path of the socket in the URL is empty, or longer than "
                   "107 bytes";
        return false;
    }
    if (path.substr(0, path.find('/')).find('@') != path.npos) {
        *error_p = "a unix: URL has no user and no password";
        return false;
    }
    url_p->endpoints = {Endpoint{std::string(path), 0}};
    if (query == text.npos) {
        return true;
    }
    text.remove_prefix(query + 1);
    if (!skip(&text, "db=")) {
        *error_p = "the URL has something other than db=N after the ?";
        return false;
    }
    return parse_db(text, &url_p->db, error_p);
}

bool parse_tcp(std::string_view text, Url *url_p, std::string *error_p)
{
    const size_t at = text.rfind('@');
    if (at != text.npos) {
        if (!parse_user(text.substr(0, at), url_p, error_p)) {
            return false;
        }
        text.remove_prefix(at + 1);
    }
    const size_t slash = text.find('/');
    std::string_view host = text.substr(0, slash);
    url_p->endpoints.resize(1);
    if (host.empty()) {
        host = "127.0.0.1";
    }
    if (!parse_host(host, default_port, &url_p->endpoints[0], error_p)) {
        return false;
    }
    const bool has_db = slash != text.npos && slash + 1 < text.size();
    return !has_db || parse_db(text.substr(slash + 1), &url_p->db, error_p);
}

bool parse_sentinel(std::string_view text, Url *url_p, std::string *error_p)
{
    const size_t at = text.rfind('@');
    if (at != text.npos) {
        if (!parse_user(text.substr(0, at), url_p, error_p)) {
            return false;
        }
        text.remove_prefix(at + 1);
    }
    const size_t slash = text.find('/');
    if (slash == text.npos || slash + 1 == text.size()) {
        *error_p = "the URL names no master: sentinel://host:port/master";
        return false;
    }
    std::string_view hosts = text.substr(0, slash);
    std::string_view master = text.substr(slash + 1);
    const size_t second = master.find('/');
    if (second != master.npos && second + 1 < master.size() &&
        !parse_db(master.substr(second + 1), &url_p->db, error_p)) {
        return false;
    }
    url_p->master = master.substr(0, second);
    if (url_p->master.empty()) {
        *error_p = "the URL names no master: sentinel://host:port/master";
        return false;
    }
    for (;;) {
        const size_t comma = hosts.find(',');
        Endpoint endpoint;
        if (!parse_host(hosts.substr(0, comma), default_sentinel_port,
                        &endpoint, error_p)) {
            return false;
        }
        url_p->endpoints.push_back(endpoint);
        if (comma == hosts.npos) {
            return true;
        }
        hosts.remove_prefix(comma + 1);
    }
}

// A name, or an address, of which the URL of a target has no more than a URL
// may.
bool is_host(std::string_view host, bool is_bracketed)
{
    if (is_bracketed) {
        in6_addr address;
        const std::string text(host.substr(0, host.find('%'))); // of a zone
        return inet_pton(AF_INET6, text.c_str(), &address) == 1;
    }
    std::string decoded;
    return decode(host, &decoded) && !has_control(decoded) &&
           decoded.find_first_of(" !\"#$%&'()*+,/:;<=>?@[\\]^`{|}") ==
               decoded.npos;
}

// What is between http:// and the path: host and port, after a user.
bool is_authority(std::string_view text)
{
    const size_t at = text.find('@');
    if (at != text.npos) {
        // A second one would be for whoever reads it to understand.
        text.remove_prefix(at + 1);
    }
    Endpoint endpoint;
    std::string error;
    return parse_host(text, 80, &endpoint, &error) &&
           is_host(endpoint.host, text[0] == '[');
}

} // namespace

std::string Endpoint::text() const
{
    if (port == 0) {
        return host;
    }
    const bool is_v6 = host.find(':') != host.npos;
    return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

bool parse_url(std::string_view text, Url *url_p, std::string *error_p)
{
    *url_p = Url();
    if (has_control(text)) {
        *error_p = "the URL has a control character";
        return false;
    }
    if (skip(&text, "redis://")) {
        return parse_tcp(text, url_p, error_p);
    }
    if (skip(&text, "unix:")) {
        return parse_unix(text, url_p, error_p);
    }
    if (skip(&text, "sentinel://")) {
        return parse_sentinel(text, url_p, error_p);
    }
    *error_p = is_tls_url(text)
                   ? "TLS (rediss:) is not supported: the hiredis library that "
                     "this program uses has none"
                   : "the URL does not begin with redis://, unix: or "
                     "sentinel://";
    return false;
}

bool is_tls_url(std::string_view text)
{
    return starts_with(text, "rediss:");
}

bool parse_duration(std::string_view text, uint64_t *usec_p,
                    std::string *error_p)
{
    struct Unit {
        std::string_view name;
        double usec;
    };
    static constexpr Unit units[] = {{"us", 1},     {"ms", 1e3},
                                     {"s", 1e6},    {"m", 60e6},
                                     {"h", 3600e6}, {"d", 86400e6}};
    constexpr double longest = 100 * 366 * 86400e6;
    *error_p = quote(text) + " is not a duration such as 250ms, 2s, 5m, 3h or "
                             "10d";
    double number = 0;
    const char *const end = text.data() + text.size();
    const auto [last, error] =
        std::from_chars(text.data(), end, number, std::chars_format::fixed);
    // from_chars() would take "inf" and "-1".
    if (text.empty() || text[0] < '0' || text[0] > '9' ||
        error != std::errc()) {
        return false;
    }
    const std::string_view unit(last, static_cast<size_t>(end - last));
    for (const Unit &i : units) {
        if (unit == i.name || (unit.empty() && text == "0")) {
            const double usec = std::ceil(number * i.usec);
            if (usec > longest) {
                *error_p = quote(text) + " is more than a hundred years";
                return false;
            }
            *usec_p = static_cast<uint64_t>(usec);
            error_p->clear();
            return true;
        }
    }
    return false;
}

bool parse_durability(std::string_view text, int *durability_p,
                      std::string *error_p)
{
    const std::string_view whole = text;
    if (text == "async" || text == "fsync") {
        *durability_p =
            text == "async" ? LAWN_DURABLE_ASYNC : LAWN_DURABLE_FSYNC;
        return true;
    }
    unsigned replicas = 0;
    if (skip(&text, "replicated:") &&
        parse_number(text, max_replicas, &replicas) && replicas > 0) {
        *durability_p = static_cast<int>(replicas);
        return true;
    }
    *error_p = quote(whole) + " is not async, fsync, or replicated:N with N "
                              "from 1 to 100";
    return false;
}

bool check_durability(int durability)
{
    return durability >= LAWN_DURABLE_FSYNC && durability <= max_replicas;
}

bool check_name_space(std::string_view text, std::string *error_p)
{
    bool is_good = !text.empty() && text.size() <= max_name_space;
    for (const char c : text) {
        is_good = is_good &&
                  ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                   (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-');
    }
    if (!is_good) {
        *error_p = "the namespace " + quote(text) +
                   " is not 1 to 64 of A-Z a-z 0-9 . _ -";
    }
    return is_good;
}

bool check_id(std::string_view text, std::string *error_p)
{
    const bool is_good = id_is_valid(text);
    if (!is_good) {
        *error_p = quote(text) + " is not 1 to 255 bytes without spaces and "
                                 "control characters";
    }
    return is_good;
}

bool check_target(std::string_view text, std::string *error_p)
{
    std::string_view rest = text;
    const bool is_http = skip(&rest, "http://") || skip(&rest, "https://");
    const bool is_known = is_http || skip(&rest, "stream:");
    const std::string_view authority =
        is_http ? rest.substr(0, rest.find_first_of("/?#")) : "";
    const bool is_good = is_known && !rest.empty() &&
                         (is_http ? is_authority(authority) : rest[0] != '/') &&
                         text.size() <= max_target && !has_control(text) &&
                         text.find(' ') == text.npos;
    if (!is_good) {
        const bool has_user = authority.find('@') != authority.npos;
        *error_p = "the target " + (has_user ? "" : quote(text) + " ") +
                   "is not http://HOST..., https://HOST... or stream:KEY of at "
                   "most 2048 bytes";
    }
    return is_good;
}

} // namespace lawn::durable
