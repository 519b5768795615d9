// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A run: a world of hosts and connections from its beginning, through the
// faults, to a calm in which everything must come right again.

#ifndef LAWN_TEST_SIM_WORLD_H
#define LAWN_TEST_SIM_WORLD_H

#include "end.h"
#include "faults.h"
#include "host.h"
#include "shared.h"

#include <memory>
#include <vector>

namespace sim
{

class World
{
public:
    World(const Scenario &scenario, bool is_verbose);

    void run();

    const Shared &shared() const
    {
        return shared_;
    }

    // The world's time that has gone by.
    Nsec lived() const
    {
        return now_;
    }

private:
    void create_connections();
    void happen(const Event &event);
    void reopen(uint32_t connection);
    void collect_closed();
    void sweep();
    void check_end();
    void check_connection(uint32_t connection);

    Shared shared_;
    std::vector<End> ends_;
    std::vector<std::unique_ptr<Host>> hosts_;
    Faults faults_;
    Nsec now_;
    uint32_t sweeps_ = 0;
};

} // namespace sim

#endif
