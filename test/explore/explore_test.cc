// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Explores all scenarios (scenarios.h).

#include "scenarios.h"

#include <gtest/gtest.h>

#include <iostream>

using namespace explore;

namespace
{

class Explore : public testing::TestWithParam<Scenario>
{
};

TEST_P(Explore, EveryOrderOfStepsIsRight)
{
    const Result result =
        explore::explore(GetParam(), usual_limits(GetParam().threads));
    EXPECT_EQ(result.violation, "") << result.report();
    EXPECT_TRUE(result.is_complete);
    std::cout << result.summary() << '\n';
}

const auto name_of = [](const testing::TestParamInfo<Scenario> &info) {
    return std::string(info.param.name);
};

INSTANTIATE_TEST_SUITE_P(Engine, Explore, testing::ValuesIn(engine_scenarios()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Group, Explore, testing::ValuesIn(group_scenarios()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Service, Explore,
                         testing::ValuesIn(service_scenarios()), name_of);
INSTANTIATE_TEST_SUITE_P(Shared, Explore, testing::ValuesIn(shared_scenarios()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Shm, Explore, testing::ValuesIn(shm_scenarios()),
                         name_of);

} // namespace
