// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The last step of the tutorial, over verbs: client and server are in one
// program, on one device.

#include "softroce_fixture.h"

namespace
{

using namespace e2e;

TEST(SoftRoceTutorial, FindsLossesAndTheDeadServer)
{
    Process process({}, LAWN_TUTORIAL);
    EXPECT_EQ(process.wait(60), 0);
    const std::string output = process.output();
    EXPECT_EQ(output.find("1000 messages, "), 0u) << output;
    EXPECT_NE(output.find("the server is dead: keepalive\n"), std::string::npos)
        << output;
}

} // namespace
