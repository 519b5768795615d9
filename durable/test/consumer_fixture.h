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

    // Of all that consumers have.
    void end_leases()
    {
        for (int shard = 0; shard < 4; ++shard) {
            const std::string key = "{test:" + std::to_string(shard) + "}:out";
            const Reply all =
                server->command({"XPENDING", key, "lawn", "-", "+", "1000"});
            for (const Reply &one : all.elements) {
                server->command({"XCLAIM", key, "lawn", one[1].string, "0",
                                 one[0].string, "IDLE", "1000000000",
                                 "JUSTID"});
            }
        }
    }

    // A timer that a dead consumer was given, and whose lease is over.
    void leave(const char *id)
    {
        {
            Taker dead(client);
            dead.answer = nullptr;
            dead.open();
            start(id, 0);
            run_until([&] { return dead.given.size() == 1; });
        }
        end_leases();
    }

    // A number that XPENDING shows of each entry that is not acknowledged: 2,
    // how long ago it was given, in milliseconds; 3, how often.
    std::vector<long long> all_pending(size_t field)
    {
        std::vector<long long> all;
        for (int shard = 0; shard < 4; ++shard) {
            const Reply reply = server->command(
                {"XPENDING", "{test:" + std::to_string(shard) + "}:out", "lawn",
                 "-", "+", "1000"});
            for (const Reply &entry : reply.elements) {
                all.push_back(entry[field].integer);
            }
        }
        return all;
    }

    // That of the one entry; -1: there is none.
    long long pending(size_t field)
    {
        const std::vector<long long> all = all_pending(field);
        return all.empty() ? -1 : all[0];
    }

    // Nothing that was read and not acknowledged is within a lease.
    bool is_given_back()
    {
        const std::vector<long long> idle = all_pending(2);
        return std::all_of(idle.begin(), idle.end(),
                           [](long long msec) { return msec >= 100000000; });
    }

    lawn_durable_pump_t *pump = add_pump(client);
    Taker taker{client};
};

} // namespace lawn_test

#endif
