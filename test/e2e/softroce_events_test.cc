// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong with --events: a program that sleeps delivers, survives and
// finds out like one that polls, and does not wake for nothing. How late it
// wakes, and what it costs, is printed: emulated, the figures prove nothing.

#include "softroce_fixture.h"

#include <cstdio>

namespace
{

using namespace e2e;

class SoftRoceEvents : public SoftRoce
{
protected:
    void run_sleeping(const Arguments &options)
    {
        run(Arguments{"--events"} + options);
    }

    void expect_both_slept()
    {
        for (const Process *process : {client_.get(), server_.get()}) {
            EXPECT_GT(process->number("sleeps"), 0);
        }
    }

    void print_figures() const
    {
        for (const Process *process : {client_.get(), server_.get()}) {
            printf("%s: %s idle sleeps, %s spurious, cpu time %s; lateness p50 "
                   "%s, max %s\n",
                   process == client_.get() ? "client" : "server",
                   process->summary("idle sleeps").c_str(),
                   process->summary("idle spurious wake-ups").c_str(),
                   process->summary("idle cpu time").c_str(),
                   process->summary("rig lateness p50").c_str(),
                   process->summary("rig lateness max").c_str());
        }
    }
};

TEST_F(SoftRoceEvents, LossIsRepaired)
{
    run_sleeping(Arguments{"--connections", connections, "--iters", iters,
                           "--drop", "5"} +
                 patient);
    expect_both_succeed();
    expect_both_slept();
    EXPECT_GT(client_->number("retransmissions"), 0);
}

TEST_F(SoftRoceEvents, RcPingPong)
{
    run_sleeping({"--mode", "rc", "--connections", "100", "--iters", iters});
    expect_both_succeed(100 * 20);
    expect_both_slept();
}

TEST_F(SoftRoceEvents, StallOfThePeerIsSurvived)
{
    run_sleeping({"--connections", connections, "--iters", "30"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_both_succeed(1000 * 30);
    EXPECT_LE(server_->number("max per connection on resume"), 1);
    EXPECT_LE(client_->number("max per connection on resume"), 1);
}

TEST_F(SoftRoceEvents, DeathOfThePeerIsFoundByEveryConnection)
{
    run_sleeping(Arguments{"--connections", connections, "--iters", "1000000"} +
                 lively_);
    wait_until_under_way();
    sleep(1);
    server_->signal(SIGKILL);
    expect_all_found_dead_by_keepalive(1000);
    EXPECT_GT(client_->number("sleeps"), 0);
}

// Both sides are asleep when it happens.
TEST_F(SoftRoceEvents, DeathOfAnIdlePeerIsFoundByEveryConnection)
{
    run_sleeping(Arguments{"--connections", connections, "--iters", "1",
                           "--idle", "100s"} +
                 lively_);
    wait_until_connected();
    sleep(1);
    server_->signal(SIGKILL);
    expect_all_found_dead_by_keepalive(1000);
    EXPECT_GT(client_->number("sleeps"), 0);
}

// Ten thousand timers run, none of them due: nobody has a reason to wake.
TEST_F(SoftRoceEvents, IdleMeansAsleep)
{
    run_sleeping({"--connections", "10000", "--iters", "1", "--idle", "10s",
                  "--keepalive", "60s,1s,3", "--peer-timeout", "60s"});
    expect_both_succeed(10000);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_EQ(process->number("idle spurious wake-ups"), 0);
        EXPECT_GE(process->number("idle sleeps"), 1);
    }
    print_figures();
}

// Here they are due now and then: a sleeper's timers fire, and never early.
TEST_F(SoftRoceEvents, TimersWakeTheSleeper)
{
    run_sleeping({"--connections", "50", "--iters", "1", "--idle", "5s",
                  "--keepalive", "500ms,500ms,20", "--keepalive-jitter",
                  "500ms"});
    expect_both_succeed(50);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("timers fired"), 50);
        EXPECT_GT(process->number("probes answered"), 50);
    }
    print_figures();
}

// Without the signal's own descriptor, one that comes just before the sleep
// would be slept over.
TEST_F(SoftRoceEvents, ASignalEndsTheSleep)
{
    run_sleeping({"--connections", "10", "--iters", "1", "--idle", "1000s",
                  "--keepalive", "0"});
    wait_until_connected();
    sleep(1);
    client_->signal(SIGINT);
    EXPECT_EQ(client_->wait(30), 128 + SIGINT);
    server_->signal(SIGTERM);
    EXPECT_EQ(server_->wait(30), 128 + SIGTERM);
    EXPECT_EQ(client_->number("delivered"), 0);
}

TEST_F(SoftRoceEvents, TimeoutEndsTheSleep)
{
    run_sleeping({"--connections", "10", "--iters", "1", "--idle", "1000s",
                  "--keepalive", "0", "--timeout", "6s"});
    EXPECT_EQ(client_->wait(30), 5);
    EXPECT_EQ(server_->wait(30), 5);
    EXPECT_GE(client_->number("sleeps"), 1);
    EXPECT_EQ(client_->number("spurious wake-ups"), 0);
}

// Its descriptor stays readable until the event is read: then a sleeper that
// did not read it would spin.
TEST_F(SoftRoceEvents, AnAsynchronousEventIsReadAtOnce)
{
    run_sleeping({"--connections", "10", "--iters", "1", "--idle", "5s",
                  "--keepalive", "60s,1s,3"});
    wait_until_connected();
    sleep(1);
    shell("ip link set v0 down && sleep 0.2 && ip link set v0 up");
    EXPECT_TRUE(client_->wait_for("asynchronous event", 30));
    EXPECT_EQ(client_->output().find("\ndelivered"), std::string::npos);
    expect_both_succeed(10);
    EXPECT_LE(client_->number("idle sleeps"), 50);
}

} // namespace
