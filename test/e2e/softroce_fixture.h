// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Two ping-pongs on two SoftRoCE devices, rxe0 on veth v0 and rxe1 on v1, as
// ci/softroce provides them; LAWN_PINGPONG names the program. The server is on
// rxe1, the client on rxe0. Outcomes are asserted, and times only where they
// are promised: never early, and within the bound that the program's own
// clock is measured against.

#ifndef LAWN_TEST_E2E_SOFTROCE_FIXTURE_H
#define LAWN_TEST_E2E_SOFTROCE_FIXTURE_H

#include "pingpong_process.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace e2e
{

const char *const connections = "1000";
const char *const iters = "20";
constexpr double messages = 1000.0 * 20;

class SoftRoce : public testing::Test
{
protected:
    ~SoftRoce() override
    {
        if (has_netem_) {
            shell("tc qdisc del dev v0 root");
            shell("tc qdisc del dev v1 root");
        }
    }

    // Ends the test if not: nothing after it would make sense.
    static void expect_within_a_minute(Process &process, const char *text)
    {
        if (!process.wait_for(text)) {
            throw std::runtime_error(std::string("no \"") + text +
                                     "\" in: " + process.output());
        }
    }

    // Each test has a port of its own: the last one's may linger.
    static std::string next_port()
    {
        static int port = 7500;
        return std::to_string(++port);
    }

    // Unless a test says otherwise, no peer is dead for a minute: a process may
    // be kept from its processor for 40 s where the machine emulates two that
    // are both busy (seen after a link went down and up).
    const Arguments unhurried_ = {"--keepalive", "60s,1s,3", "--peer-timeout",
                                  "90s"};

    void run(const Arguments &options)
    {
        const Arguments all =
            unhurried_ + options + Arguments{"--port", next_port()};
        server_ =
            std::make_unique<Process>(Arguments{"--device", "rxe1"} + all);
        expect_within_a_minute(*server_, "waiting for a client");
        client_ = std::make_unique<Process>(Arguments{"--device", "rxe0"} +
                                            all + Arguments{"127.0.0.1"});
    }

    void wait_until_connected()
    {
        expect_within_a_minute(*client_, "connected:");
        expect_within_a_minute(*server_, "connected:");
    }

    void wait_until_under_way()
    {
        wait_until_connected();
        // They have met; now wait for messages to flow.
        const uint64_t before = received_packets("rxe0");
        for (int msec = 0; received_packets("rxe0") < before + 100; ++msec) {
            if (msec == 60'000) {
                throw std::runtime_error("no messages flow");
            }
            usleep(1000);
        }
    }

    // Spoils both directions of the wire, below RDMA.
    void netem(const std::string &how)
    {
        has_netem_ = true;
        shell("tc qdisc add dev v0 root netem limit 100000 " + how);
        shell("tc qdisc add dev v1 root netem limit 100000 " + how);
    }

    static void expect_all_delivered(const Process &process, double count)
    {
        EXPECT_EQ(process.number("delivered"), count);
        EXPECT_NE(process.summary("delivered").find("in order, exactly once"),
                  std::string::npos);
        EXPECT_EQ(process.number("early firings"), 0);
        EXPECT_EQ(process.number("dead connections"), 0);
    }

    void expect_both_succeed(double count = messages)
    {
        EXPECT_EQ(client_->wait(), 0);
        EXPECT_EQ(server_->wait(), 0);
        expect_all_delivered(*client_, count);
        expect_all_delivered(*server_, count);
    }

    // The client, of a server that was killed while messages flowed.
    void expect_all_found_dead_by_keepalive(double count)
    {
        EXPECT_EQ(client_->wait(), peer_dead);
        EXPECT_EQ(client_->number("dead connections"), count);
        EXPECT_EQ(client_->number("dead by keepalive"), count);
        EXPECT_EQ(client_->number("early firings"), 0);
        // Idle 1 s + interval 200 ms x 3 probes + jitter 500 ms.
        EXPECT_GE(client_->number("death found min"), 1.6);
        EXPECT_LE(client_->number("death found max"),
                  2.1 + client_->death_delay(3, 0.2));
    }

    // The keepalive that the above is about.
    const Arguments lively_ = {"--keepalive",        "1s,200ms,3",
                               "--keepalive-jitter", "500ms",
                               "--peer-timeout",     "60s"};

    std::unique_ptr<Process> server_;
    std::unique_ptr<Process> client_;

private:
    bool has_netem_ = false;
};

class SoftRoceRefusal : public SoftRoce
{
protected:
    static void expect_refused(const Arguments &arguments, int status,
                               const std::string &because)
    {
        Process process(arguments);
        EXPECT_EQ(process.wait(30), status);
        const std::string output = process.output();
        EXPECT_EQ(output.rfind("pingpong_verbs: ", 0), 0U) << output;
        EXPECT_NE(output.find(because), std::string::npos) << output;
        EXPECT_EQ(output.find('\n'), output.size() - 1)
            << "one line: " << output;
    }
};

} // namespace e2e

#endif
