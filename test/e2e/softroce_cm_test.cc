// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong with --cm: the two sides meet by rdma_cm, over the link-local
// address of v1, which is reached through v0.

#include "softroce_fixture.h"

#include <cstdio>

namespace
{

using namespace e2e;

class SoftRoceCm : public SoftRoceRefusal
{
protected:
    static std::string host()
    {
        FILE *const pipe = popen("ip -6 -o addr show dev v1 scope link", "r");
        char address[128] = "";
        if (!pipe || fscanf(pipe, "%*s %*s inet6 %127[^/]", address) != 1) {
            ADD_FAILURE() << "v1 has no link-local address";
        }
        if (pipe) {
            pclose(pipe);
        }
        return std::string(address) + "%v0";
    }

    void run_cm(const Arguments &options)
    {
        const Arguments all =
            unhurried_ + Arguments{"--cm", "--port", next_port()} + options;
        server_ = std::make_unique<Process>(all);
        expect_within_a_minute(*server_, "waiting for a client");
        client_ = std::make_unique<Process>(all + Arguments{host()});
    }
};

TEST_F(SoftRoceCm, RcPingPong)
{
    run_cm({"--mode", "rc", "--connections", "100", "--iters", iters});
    expect_both_succeed(100 * 20);
    EXPECT_NE(server_->output().find("server on rxe1"), std::string::npos);
    EXPECT_NE(client_->output().find("client on rxe0"), std::string::npos);
}

TEST_F(SoftRoceCm, UdPingPong)
{
    run_cm(Arguments{"--connections", connections, "--iters", iters, "--drop",
                     "5"} +
           patient);
    expect_both_succeed();
    EXPECT_GT(client_->number("retransmissions"), 0);
}

TEST_F(SoftRoceCm, Events)
{
    run_cm(
        {"--events", "--mode", "rc", "--connections", "100", "--iters", iters});
    expect_both_succeed(100 * 20);
    EXPECT_GT(client_->number("sleeps"), 0);
}

// No timer runs that could find it: the goodbye itself wakes the sleeper.
TEST_F(SoftRoceCm, RcDeathIsToldByTheKernel)
{
    run_cm({"--events", "--mode", "rc", "--connections", "10", "--iters", "1",
            "--idle", "1000s", "--keepalive", "0"});
    wait_until_connected();
    sleep(1);
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(30), peer_dead);
    EXPECT_EQ(client_->number("dead by transport"), 10);
    EXPECT_NE(client_->output().find("disconnected"), std::string::npos);
}

TEST_F(SoftRoceCm, RcDeathIsToldUnderWay)
{
    run_cm({"--mode", "rc", "--connections", "10", "--iters", "1000000"});
    wait_until_under_way();
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_EQ(client_->number("dead by transport"), 10);
}

// A process that hangs keeps its connection.
TEST_F(SoftRoceCm, RcSilenceIsFoundByKeepalive)
{
    run_cm({"--events", "--mode", "rc", "--connections", "10", "--iters",
            "1000000", "--keepalive", "500ms,50ms,2", "--keepalive-jitter",
            "10ms"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_EQ(client_->number("dead by keepalive"), 10);
    EXPECT_EQ(client_->number("early firings"), 0);
}

TEST_F(SoftRoceCm, UdDeathIsFoundByEveryConnection)
{
    run_cm(Arguments{"--connections", connections, "--iters", "1000000"} +
           lively_);
    wait_until_under_way();
    sleep(1);
    server_->signal(SIGKILL);
    expect_all_found_dead_by_keepalive(1000);
}

class SoftRoceCmMode : public SoftRoceCm,
                       public testing::WithParamInterface<const char *>
{
};

TEST_P(SoftRoceCmMode, TheServerIsWaitedFor)
{
    const Arguments all =
        unhurried_ + Arguments{"--cm",   "--port",   next_port(),
                               "--mode", GetParam(), "--iters",
                               "5",      "--wait",   "60s"};
    client_ = std::make_unique<Process>(all + Arguments{host()});
    expect_within_a_minute(*client_, ("waiting for " + host()).c_str());
    server_ = std::make_unique<Process>(all);
    expect_both_succeed(5);
}

TEST_P(SoftRoceCmMode, APeerThatDisagreesIsRefused)
{
    const Arguments all = {"--cm", "--port", next_port(), "--mode", GetParam()};
    server_ = std::make_unique<Process>(all + Arguments{"--iters", "5"});
    expect_within_a_minute(*server_, "waiting for a client");
    expect_refused(all + Arguments{"--iters", "6", host()}, gave_up,
                   "the peer runs with --iters 5, this side with --iters 6");
    EXPECT_EQ(server_->wait(30), gave_up);
    EXPECT_NE(server_->output().find("--iters 6, this side with --iters 5"),
              std::string::npos);
}

TEST_P(SoftRoceCmMode, NobodyListens)
{
    expect_refused(
        {"--cm", "--mode", GetParam(), "--port", next_port(), host()}, gave_up,
        "refused");
}

INSTANTIATE_TEST_SUITE_P(Mode, SoftRoceCmMode, testing::Values("rc", "ud"));

TEST_F(SoftRoceCm, WhatCannotBeIsRefused)
{
    expect_refused({"--cm", "--device", "rxe0"}, bad_usage, "--device");
    expect_refused({"--cm", "no-such-host.invalid"}, gave_up,
                   "no-such-host.invalid");
    expect_refused({"--cm", "192.0.2.1"}, gave_up, "192.0.2.1");
    Process first({"--cm", "--port", "7499"});
    ASSERT_TRUE(first.wait_for("waiting for a client"));
    expect_refused({"--cm", "--port", "7499"}, gave_up, "in use");
    first.signal(SIGINT);
    EXPECT_EQ(first.wait(30), 128 + SIGINT);
}

} // namespace
