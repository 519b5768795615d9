// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The command line of lawnd.
#ifndef LAWND_OPTIONS_H
#define LAWND_OPTIONS_H

#include <cstdint>
#include <string>

namespace lawnd
{

struct Options {
    std::string url;
    std::string name_space;
    unsigned shards = 0;      // as recorded, or the default
    std::string listen;       // empty: no metrics
    uint64_t prefetch_us = 0; // 0: the library's default
    bool asks_for_help = false;
    bool require_safe_store = false;
    bool asks_for_version = false;
};

// Returns false and one line in *error if the command line is wrong.
bool parse_options(int argc, char **argv, Options *options, std::string *error);

extern const char *const help_text;

} // namespace lawnd

#endif
