// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Explores a scenario (scenarios.h).

#include "scenarios.h"

#include "system.h"

#include <stdlib.h>

namespace explore
{

Result explore(const Scenario &scenario, const Limits &limits)
{
    const std::unique_ptr<Program> program = scenario.make();
    const Result result = explorer().explore(program.get(), limits);
    leave_system();
    return result;
}

void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

void expect_in_time(lawn_time_t due, lawn_time_t most_late)
{
    explorer().expect(now() >= due, "called early");
    explorer().expect(now() - due <= most_late, "called late");
}

} // namespace explore
