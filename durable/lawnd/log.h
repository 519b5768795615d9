// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the daemon writes to its standard error.

#ifndef LAWND_LOG_H
#define LAWND_LOG_H

#include <lawn/time.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lawnd
{

// One line, whatever `text` has: control characters are written as \xHH.
void log_line(std::string_view text);

// Lines that may come often: it writes one a second at most, which says how
// many it has left out before.
class SparseLog
{
public:
    void add(const std::string &text);

private:
    lawn_time_t next_ = 0;
    uint64_t left_out_ = 0;
};

} // namespace lawnd

#endif
