// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What a Redis server says and is told, as text.

#ifndef LAWN_TEST_DURABLE_RESP_H
#define LAWN_TEST_DURABLE_RESP_H

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lawn_test::resp
{

using Words = std::vector<std::string>;

inline const char *const nobody = "*-1\r\n";

inline std::string number(int64_t value)
{
    return ":" + std::to_string(value) + "\r\n";
}

inline std::string bulk(std::string_view value)
{
    std::string reply = "$" + std::to_string(value.size()) + "\r\n";
    reply.append(value);
    return reply + "\r\n";
}

inline std::string list(const std::vector<std::string> &elements)
{
    std::string reply = "*" + std::to_string(elements.size()) + "\r\n";
    for (const std::string &i : elements) {
        reply += i;
    }
    return reply;
}

// To HELLO, of a master in this mode.
inline std::string hello(const char *mode)
{
    return list({bulk("proto"), number(2), bulk("mode"), bulk(mode),
                 bulk("role"), bulk("master")});
}

inline int64_t integer(std::string_view text)
{
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// Takes a command off `in`, if it is there as a whole.
inline bool take_command(std::string *in, Words *words)
{
    size_t at = 0;
    const auto line = [&](char mark, int64_t *value) {
        const size_t end = in->find("\r\n", at);
        if (end == in->npos || (*in)[at] != mark) {
            return false;
        }
        *value = integer(std::string_view(*in).substr(at + 1, end - at - 1));
        at = end + 2;
        return true;
    };
    int64_t count = 0;
    if (in->empty() || !line('*', &count)) {
        return false;
    }
    words->clear();
    for (; count > 0; --count) {
        int64_t size = 0;
        if (at >= in->size() || !line('$', &size) ||
            in->size() < at + static_cast<size_t>(size) + 2) {
            return false;
        }
        words->push_back(in->substr(at, static_cast<size_t>(size)));
        at += static_cast<size_t>(size) + 2;
    }
    in->erase(0, at);
    return true;
}

} // namespace lawn_test::resp

#endif
