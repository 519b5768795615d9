// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Two ping-pong programs over DPDK: how to start them on a driver that needs no
// device, and in a network namespace of their own, and what both must have
// delivered.

#ifndef LAWN_TEST_E2E_DPDK_FIXTURE_H
#define LAWN_TEST_E2E_DPDK_FIXTURE_H

#include "pingpong_process.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace e2e
{

struct Transport {
    const char *name;
    const char *server;
    const char *client;
    int stalled_iters; // enough for more than a second
};

inline const Transport memif = {"Memif", "--vdev=net_memif0,role=server",
                                "--vdev=net_memif0,role=client", 3000};
inline const Transport af_packet = {"AfPacket",
                                    "--vdev=net_af_packet0,iface=v1",
                                    "--vdev=net_af_packet0,iface=v0", 500};

inline void PrintTo(const Transport &transport, std::ostream *out)
{
    *out << transport.name;
}

// Two sides that poll want a processor each; the last is the first where there
// is only one.
inline std::string processor(bool is_last)
{
    cpu_set_t allowed;
    int found = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &allowed)) {
                found = cpu;
                if (!is_last) {
                    break;
                }
            }
        }
    }
    return std::to_string(found);
}

inline Arguments eal(const char *device, bool is_last)
{
    return {"--no-huge",
            "--no-pci",
            "--no-shconf",
            "--no-telemetry",
            "--lcores=0@" + processor(is_last),
            device,
            "--"};
}

// Links v0 and v1. The driver makes a number of its process' and the link's
// that must differ between the two; with these indices it does.
class Namespace : public testing::Environment
{
public:
    void SetUp() override
    {
        ASSERT_EQ(unshare(CLONE_NEWNET), 0)
            << "run this as root, or under unshare -r";
        shell("ip link set lo up && "
              "ip link add v0 index 1000 type veth peer name v1 index 2000 && "
              "ip link set v0 up && ip link set v1 up");
    }
};

// Ends the test if not: nothing after it would make sense.
inline void expect_within_a_minute(Process &process, const char *text)
{
    if (!process.wait_for(text)) {
        throw std::runtime_error(std::string("no \"") + text +
                                 "\" in: " + process.output());
    }
}

inline void expect_all_delivered(const Process &process, double count)
{
    EXPECT_EQ(process.number("delivered"), count);
    EXPECT_NE(process.summary("delivered").find("in order, exactly once"),
              std::string::npos);
    EXPECT_EQ(process.number("early firings"), 0);
    EXPECT_EQ(process.number("dead connections"), 0);
}

class Dpdk : public testing::Test
{
protected:
    // Each test has a TCP port of its own: the last one's may linger.
    void run(const Transport &transport, const Arguments &options,
             const Arguments &of_server = {}, const Arguments &of_client = {})
    {
        static int port = 7600;
        const Arguments all =
            options + Arguments{"--port", std::to_string(++port)};
        server_ = std::make_unique<Process>(eal(transport.server, false) + all +
                                            of_server);
        expect_within_a_minute(*server_, "waiting for a client");
        client_ = std::make_unique<Process>(eal(transport.client, true) + all +
                                            of_client + Arguments{"127.0.0.1"});
    }

    // No counter of memif's is seen from here. Both poll from this line on.
    void wait_until_under_way()
    {
        expect_within_a_minute(*client_, "connected:");
        expect_within_a_minute(*server_, "connected:");
        usleep(100'000);
    }

    void expect_both_succeed(double count)
    {
        EXPECT_EQ(client_->wait(), 0);
        EXPECT_EQ(server_->wait(), 0);
        expect_all_delivered(*client_, count);
        expect_all_delivered(*server_, count);
    }

    std::unique_ptr<Process> server_;
    std::unique_ptr<Process> client_;
};

} // namespace e2e

#endif
