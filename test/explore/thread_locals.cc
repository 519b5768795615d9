// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the thread-local variables (thread_locals.h).

#include "thread_locals.h"

#include <link.h>

namespace explore
{

namespace
{

ThreadLocals find_thread_locals()
{
    ThreadLocals found;
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *arg) {
            auto *const locals = static_cast<ThreadLocals *>(arg);
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                if (info->dlpi_phdr[i].p_type == PT_TLS) {
                    locals->at = static_cast<char *>(info->dlpi_tls_data);
                    locals->size = info->dlpi_phdr[i].p_memsz;
                }
            }
            return 1; // the program is the first
        },
        &found);
    found.at_first.assign(found.at, found.at + found.size);
    return found;
}

} // namespace

const ThreadLocals &thread_locals()
{
    static const ThreadLocals found = find_thread_locals();
    return found;
}

} // namespace explore
