// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0

#include "peers/eal.h"

#include <cerrno>
#include <vector>

#include <sched.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_timer.h>

namespace bench
{

const char *start_eal(const std::string &lcores)
{
    cpu_set_t allowed;
    const bool is_pinned = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
    std::string arguments[] = {
        program_invocation_short_name,
        "--lcores=" + lcores,
        "--no-huge",
        "--no-pci",
        "--no-shconf",
        "--no-telemetry",
        "--log-level=error",
    };
    std::vector<char *> argv;
    for (std::string &argument : arguments) {
        argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    const int argc = static_cast<int>(argv.size() - 1);
    const bool is_up =
        rte_eal_init(argc, argv.data()) >= 0 && rte_timer_subsystem_init() == 0;
    if (is_pinned) {
        sched_setaffinity(0, sizeof(allowed), &allowed);
    }
    return is_up ? nullptr : rte_strerror(rte_errno);
}

} // namespace bench
