// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Consumers with a pump, for tests.

#ifndef LAWN_TEST_DURABLE_CONSUMER_FIXTURE_H
#define LAWN_TEST_DURABLE_CONSUMER_FIXTURE_H

#include "flow_fixture.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lawn_test
{

class DurableConsumer : public Flow
{
protected:
    // Entries that the group has been given and not acknowledged.
    long long unacknowledged(const char *group)
    {
        long long sum = 0;
        for (int shard = 0; shard < 4; ++shard) {
            const Reply reply = server->command(
                {"XPENDING", "{test:" + std::to_string(shard) + "}:out",
                 group});
            sum += reply.is_error() ? 0 : reply[0].integer;
        }
        return sum;
    }

    // A number that XPENDING shows of the one entry that is not acknowledged:
    // 2, how long ago it was given, in milliseconds; 3, how often. -1: there is
    // none.
    long long pending(size_t field)
    {
        for (int shard = 0; shard < 4; ++shard) {
            const Reply reply = server->command(
                {"XPENDING", "{test:" + std::to_string(shard) + "}:out", "lawn",
                 "-", "+", "1"});
            if (reply.size() == 1) {
                return reply[0][field].integer;
            }
        }
        return -1;
    }

    // Nothing that was read and not acknowledged is within a lease.
    bool is_given_back()
    {
        for (int shard = 0; shard < 4; ++shard) {
            const Reply reply = server->command(
                {"XPENDING", "{test:" + std::to_string(shard) + "}:out", "lawn",
                 "-", "+", "1000"});
            for (const Reply &entry : reply.elements) {
                if (entry[2].integer < 100000000) {
                    return false;
                }
            }
        }
        return true;
    }

    lawn_durable_pump_t *pump = add_pump(client);
    Taker taker{client};
};

} // namespace lawn_test

#endif
