// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See beside.h.

#include "beside.h"

#include "arguments.h"

#include <unistd.h>

namespace lawnctl
{

std::string own_program()
{
    char path[4096];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
    if (size <= 0 || size == sizeof(path)) {
        fail("cannot find this program in /proc/self/exe");
    }
    return std::string(path, static_cast<size_t>(size));
}

std::string program_beside(const std::string &name)
{
    std::string directory = own_program();
    directory.erase(directory.rfind('/'));
    for (const std::string &path :
         {directory + "/" + name, directory + "/../" + name + "/" + name}) {
        if (access(path.c_str(), X_OK) == 0) {
            return path;
        }
    }
    return name;
}

} // namespace lawnctl
