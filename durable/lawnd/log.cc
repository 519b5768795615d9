// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See log.h.

#include "log.h"

#include <cstdio>

namespace lawnd
{

void log_line(std::string_view text)
{
    std::string line;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < ' ' || byte == 0x7f) {
            char hex[8];
            snprintf(hex, sizeof(hex), "\\x%02x", byte);
            line += hex;
        } else {
            line += c;
        }
    }
    fprintf(stderr, "lawnd: %s\n", line.c_str());
}

void SparseLog::add(const std::string &text)
{
    const lawn_time_t now = lawn_get_time();
    if (now < next_) {
        ++left_out_;
        return;
    }
    next_ = now + lawn_time_from_sec(1);
    log_line(left_out_ == 0 ? text
                            : text + " (and " + std::to_string(left_out_) +
                                  " more since the last such line)");
    left_out_ = 0;
}

} // namespace lawnd
