// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Asks addr2line (places.h).

#include "places.h"

#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace explore
{

namespace
{

// Where the program was loaded.
uintptr_t base()
{
    uintptr_t found = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *arg) {
            *static_cast<uintptr_t *>(arg) = info->dlpi_addr;
            return 1; // the program is the first
        },
        &found);
    return found;
}

// In src/, from there on.
const char *within_src(const char *line)
{
    const char *file = line;
    while (const char *const next = strstr(file, "/src/")) {
        file = next + strlen("/src/");
    }
    const char *const name = strrchr(line, '/');
    return file != line ? file : name ? name + 1 : line;
}

// The steps that all go through say nothing of who makes them.
bool is_of_all(const char *line)
{
    return strstr(line, "base/atomics.h") != nullptr;
}

} // namespace

std::vector<std::string> lines_of(const std::vector<const void *> &places)
{
    char program[4096] = {};
    if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0) {
        return std::vector<std::string>(places.size());
    }
    std::string command = std::string("addr2line -a -i -e ") + program;
    for (const void *const place : places) {
        char text[32];
        snprintf(text, sizeof(text), " %#" PRIxPTR,
                 place ? reinterpret_cast<uintptr_t>(place) - 1 - base() : 0);
        command += text;
    }
    std::vector<std::string> lines;
    FILE *const names = popen(command.c_str(), "r");
    char line[512];
    while (names && fgets(line, sizeof(line), names)) {
        if (strncmp(line, "0x", 2) == 0) {
            lines.emplace_back();
        } else if (!lines.empty() && lines.back().empty() &&
                   strchr(line, '?') == nullptr && !is_of_all(line)) {
            line[strcspn(line, " \n")] = '\0';
            lines.back() = within_src(line);
        }
    }
    if (names) {
        pclose(names);
    }
    lines.resize(places.size());
    return lines;
}

} // namespace explore
