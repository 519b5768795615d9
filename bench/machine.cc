// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The machine; see machine.h.

#include "machine.h"

#include <fstream>
#include <thread>

#include <sys/utsname.h>

namespace bench
{

namespace
{

// Some architectures do not tell the model: then their name.
std::string processor()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const size_t colon = line.find(": ");
        if (line.compare(0, 10, "model name") == 0 &&
            colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    utsname name = {};
    uname(&name);
    return name.machine;
}

} // namespace

std::string machine()
{
    const unsigned count = std::thread::hardware_concurrency();
#ifdef __clang__
    const std::string compiler = "clang " + std::to_string(__clang_major__);
#else
    const std::string compiler = "gcc " + std::to_string(__GNUC__);
#endif
    return processor() + ", " + std::to_string(count) +
           (count == 1 ? " processor, " : " processors, ") + compiler;
}

} // namespace bench
