// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of lawn.lua on a real server.

#include "redis_server.h"

#include "durable/script.h"

#include <gtest/gtest.h>

namespace
{

using lawn_test::RedisServer;
using lawn_test::Reply;

TEST(DurableStore, IsLoaded)
{
    RedisServer server;
    const Reply loaded =
        server.command({"FUNCTION", "LOAD", lawn::durable::script});
    EXPECT_EQ(loaded.string, "lawn") << to_string(loaded);
    const Reply version = server.command({"FCALL_RO", "lawn_version", "0"});
    EXPECT_EQ(version.integer, lawn::durable::script_version);
}

} // namespace
