// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See json.h.

#include "json.h"

#include <cinttypes>
#include <cstdio>

namespace trace_file
{

void append_quoted(std::string *out, std::string_view text)
{
    *out += '"';
    for (const char c : text) {
        if (c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' ||
            c == '>' || c == '&') {
            char escape[8];
            snprintf(escape, sizeof(escape), "\\u%04x",
                     static_cast<unsigned char>(c));
            *out += escape;
        } else {
            *out += c;
        }
    }
    *out += '"';
}

void append_name(std::string *out, uint64_t name)
{
    char text[24];
    snprintf(text, sizeof(text), "\"%" PRIx64 "\"", name);
    *out += text;
}

void append_msec(std::string *out, uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, ns / 1'000'000,
             ns % 1'000'000);
    *out += text;
}

} // namespace trace_file
