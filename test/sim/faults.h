// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What happens to hosts, clocks, paths and ends, how often and for how long.

#ifndef LAWN_TEST_SIM_FAULTS_H
#define LAWN_TEST_SIM_FAULTS_H

#include "host.h"
#include "shared.h"

#include <memory>
#include <vector>

namespace sim
{

constexpr Nsec longest_downtime = minute; // of a host that crashed

class Faults
{
public:
    using Hosts = std::vector<std::unique_ptr<Host>>;

    Faults(Shared &shared, Hosts &hosts);

    void begin(Nsec now);
    void stop();

    void strike(uint32_t kind, Nsec now);

    // The end of a stall, a freeze or a downtime.
    void end(const Event &event, Nsec now);

private:
    uint64_t victims(Fault kind) const;
    void schedule(uint32_t kind, Nsec now);
    // False when the chosen one has faults enough.
    bool strike_host(Fault kind, Nsec now);
    bool strike_clock(Fault kind, Host &host, Nsec now);
    bool strike_path(Fault kind, Nsec now);
    bool kill_end(Nsec now);
    void tell(Fault kind, uint64_t whom, Nsec now, Nsec span);

    Shared &shared_;
    Hosts &hosts_;
    Random random_;
    bool is_stopped_ = false;
};

} // namespace sim

#endif
