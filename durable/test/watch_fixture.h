// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A client whose time the test lets pass, for what it looks at now and then.

#ifndef LAWN_TEST_DURABLE_WATCH_FIXTURE_H
#define LAWN_TEST_DURABLE_WATCH_FIXTURE_H

#include "redis_server.h"

#include "src/handle.h"
#include "src/link_impl.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace lawn_test
{

class Watched : public testing::Test
{
protected:
    void open(bool require_safe_store = false)
    {
        server.command({"CONFIG", "SET", "save", "3600 1"});
        client->params.connect_timeout_us = 60000000;
        client->params.request_timeout_us = 60000000;
        client->params.require_safe_store = require_safe_store;
        ASSERT_EQ(client->loop.open(), LAWN_OK);
        lawn::durable::Url url;
        std::string error;
        ASSERT_TRUE(lawn::durable::parse_url(server.url(), &url, &error));
        client->params.max_requests = 16;
        client->link = std::make_unique<lawn::durable::LinkImpl>(
            client->loop, client->params, "test", std::move(url));
        poll_until([&] { return lawn_durable_shards(client) != 0; });
    }
    ~Watched() override
    {
        lawn_durable_close(client);
    }

    // More than the store is left alone for.
    static void let_time_pass()
    {
        ahead += lawn_time_from_sec(31);
    }

    void poll_until(const std::function<bool()> &is_done)
    {
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::minutes(2);
        while (!is_done() && std::chrono::steady_clock::now() < end) {
            pollfd fd = {lawn_durable_fd(client), POLLIN, 0};
            ::poll(&fd, 1, 1);
            lawn_durable_poll(client);
        }
        EXPECT_TRUE(is_done());
    }

    RedisServer server;
    lawn_durable_t *const client = new lawn_durable(shifted_time);

private:
    static lawn_time_t shifted_time()
    {
        return lawn_get_time() + ahead;
    }

    static inline lawn_time_t ahead = 0;
};

} // namespace lawn_test

#endif
