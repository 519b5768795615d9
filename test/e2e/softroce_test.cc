// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong, polling: over lossy wires, past stalls, after deaths.

#include "foreign_sender.h"
#include "softroce_fixture.h"

#include <sys/resource.h>

namespace
{

using namespace e2e;

class SoftRoceLoss : public SoftRoce,
                     public testing::WithParamInterface<const char *>
{
};

TEST_P(SoftRoceLoss, IsRepaired)
{
    run(Arguments{"--connections", connections, "--iters", iters, "--drop",
                  GetParam()} +
        patient);
    expect_both_succeed();
    double losses = 0;
    double retransmissions = 0;
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("losses injected"), 0);
        EXPECT_GT(process->number("retransmissions"), 0);
        losses += process->number("losses injected");
        retransmissions += process->number("retransmissions");
    }
    EXPECT_LE(retransmissions, 2 * losses);
}

INSTANTIATE_TEST_SUITE_P(Percent, SoftRoceLoss,
                         testing::Values("1", "5", "20"));

class SoftRoceWindow : public SoftRoce,
                       public testing::WithParamInterface<const char *>
{
};

// However slow and uneven the machine is. Of 40,000 messages, ten may be sent
// twice.
TEST_P(SoftRoceWindow, SendsNothingTwiceWithoutLoss)
{
    run(Arguments{"--connections", "1000", "--iters", "20", "--window",
                  GetParam()} +
        patient);
    expect_both_succeed(1000 * 20);
    EXPECT_LE(client_->number("retransmissions") +
                  server_->number("retransmissions"),
              10);
}

INSTANTIATE_TEST_SUITE_P(Messages, SoftRoceWindow, testing::Values("1", "16"));

// With a window, most losses are found by what was sent later.
TEST_F(SoftRoce, AWindowIsRepairedByEvidence)
{
    run(Arguments{"--connections", "100", "--iters", "200", "--window", "16",
                  "--drop", "5"} +
        patient);
    expect_both_succeed();
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("by evidence"), 0);
    }
}

// 400 messages of 500 bytes and a header, at 100,000 bytes a second, are not
// faster. How much slower is the machine's business.
TEST_F(SoftRoce, ARateIsKept)
{
    run({"--oneway", "--connections", "4", "--iters", "100", "--window", "16",
         "--size", "500", "--rate", "100000"});
    EXPECT_EQ(client_->wait(), 0);
    EXPECT_EQ(server_->wait(), 0);
    expect_all_delivered(*server_, 400);
    EXPECT_GE(client_->number("elapsed"), 2.0);
}

// Loss, duplication, corruption and reordering from outside the program.
TEST_F(SoftRoce, NetemIsRepaired)
{
    netem("delay 1ms 1ms loss 5% duplicate 5% corrupt 5%");
    run(Arguments{"--connections", connections, "--iters", iters} + patient);
    expect_both_succeed();
    EXPECT_EQ(client_->number("losses injected"), 0);
    EXPECT_GT(client_->number("retransmissions") +
                  server_->number("retransmissions"),
              0);
    EXPECT_GT(client_->number("duplicates received") +
                  server_->number("duplicates received"),
              0);
}

TEST_F(SoftRoce, StallOfThePeerIsSurvived)
{
    run({"--connections", connections, "--iters", "30"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_both_succeed(1000 * 30);
    EXPECT_GE(server_->number("stalls"), 1);
    EXPECT_LE(server_->number("max per connection on resume"), 1);
    EXPECT_LE(client_->number("peer asked"), 500); // at doubling intervals
}

TEST_F(SoftRoce, OwnStallKillsNobody)
{
    run({"--connections", connections, "--iters", "30"});
    wait_until_under_way();
    client_->signal(SIGSTOP);
    sleep(2);
    client_->signal(SIGCONT);
    expect_both_succeed(1000 * 30);
    EXPECT_GE(client_->number("stalls"), 1);
    EXPECT_LE(client_->number("max per connection on resume"), 1);
}

TEST_F(SoftRoce, DeathOfThePeerIsFoundByEveryConnection)
{
    run(Arguments{"--connections", connections, "--iters", "1000000"} +
        lively_);
    wait_until_under_way();
    sleep(1);
    server_->signal(SIGKILL);
    expect_all_found_dead_by_keepalive(1000);
}

TEST_F(SoftRoce, RcPingPong)
{
    run({"--mode", "rc", "--connections", "100", "--iters", iters});
    expect_both_succeed(100 * 20);
}

TEST_F(SoftRoce, RcUnderLossIsTheHardwaresBusiness)
{
    netem("loss 2%");
    run({"--mode", "rc", "--connections", "100", "--iters", iters});
    expect_both_succeed(100 * 20);
}

// A side that only receives hears nothing from the hardware: keepalive does.
TEST_F(SoftRoce, RcDeathIsFoundByTheReceiver)
{
    run({"--mode", "rc", "--oneway", "--connections", "10", "--iters",
         "10000000", "--keepalive", "500ms,50ms,2", "--keepalive-jitter",
         "10ms"});
    wait_until_under_way();
    sleep(1);
    client_->signal(SIGKILL);
    EXPECT_EQ(server_->wait(), peer_dead);
    EXPECT_EQ(server_->number("dead connections"), 10);
    EXPECT_EQ(server_->number("early firings"), 0);
}

TEST_F(SoftRoce, RcStallIsSurvived)
{
    run({"--mode", "rc", "--connections", "10", "--iters", "2000"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_both_succeed(10 * 2000);
}

// A queue pair that fails with its link says so in one line; either way the
// program ends by itself and has delivered nothing twice or early.
TEST_F(SoftRoce, RcLinkDownAndUpIsSurvivedOrReported)
{
    run({"--mode", "rc", "--connections", "10", "--iters", "5000",
         "--keepalive", "1s,200ms,3"});
    wait_until_under_way();
    shell("ip link set v0 down && sleep 0.2 && ip link set v0 up");
    for (Process *process : {client_.get(), server_.get()}) {
        const int status = process->wait();
        EXPECT_TRUE(status == 0 || status == peer_dead) << status;
        EXPECT_EQ(process->number("early firings"), 0);
        if (status == peer_dead) {
            EXPECT_GT(process->number("dead connections"), 0);
            const double by_keepalive = process->number("dead by keepalive");
            const bool says_why =
                process->output().find("\npingpong_verbs: ") !=
                std::string::npos;
            EXPECT_TRUE(by_keepalive > 0 || says_why);
        }
    }
}

TEST_F(SoftRoce, UdLinkDownAndUpIsSurvived)
{
    run({"--connections", "100", "--iters", "300"});
    wait_until_under_way();
    shell("ip link set v0 down && sleep 0.5 && ip link set v0 up");
    expect_both_succeed(100 * 300);
}

// Anybody can send to a UD queue pair. What is no datagram of the peer's is
// counted, and changes nothing.
TEST_F(SoftRoce, ForeignDatagramsAreCountedAndIgnored)
{
    run({"--connections", "100", "--iters", "300"});
    wait_until_under_way();
    e2e::ForeignSender sender("rxe0");
    unsigned sent = 0;
    const std::vector<uint32_t> receivers = e2e::ud_queue_pairs("rxe1");
    ASSERT_FALSE(receivers.empty());
    for (const uint32_t qpn : receivers) {
        sent += sender.send_to("rxe1", qpn, 200);
    }
    EXPECT_EQ(sent, 200 * receivers.size());
    expect_both_succeed(100 * 300);
    // Some may be lost: they are datagrams.
    EXPECT_GT(server_->number("foreign ignored"), 0);
    EXPECT_LE(server_->number("foreign ignored"), sent);
}

TEST_F(SoftRoceRefusal, OfBadArguments)
{
    expect_refused({"--no-such-option"}, bad_usage, "no-such-option");
    expect_refused({"--iters", "0"}, bad_usage, "iters");
    expect_refused({"--iters", "12x"}, bad_usage, "12x");
    expect_refused({"--drop", "100"}, bad_usage, "drop");
    expect_refused({"--drop", "nan"}, bad_usage, "drop");
    expect_refused({"--mode", "uc"}, bad_usage, "uc");
    expect_refused({"--rto", "5 parsecs"}, bad_usage, "rto");
    expect_refused({"--connections", "0"}, bad_usage, "connections");
    expect_refused({"--window", "0"}, bad_usage, "window");
    expect_refused({"--rate", "-1"}, bad_usage, "rate");
    expect_refused({"--rate", "2000000000000"}, bad_usage, "rate");
    expect_refused({"--window", "257"}, bad_usage, "window");
    expect_refused({"--rto-min", "2s", "--rto-max", "1s"}, bad_usage,
                   "--rto-min");
    expect_refused({"--connections", "99999999999999999999"}, bad_usage,
                   "connections");
    expect_refused({"host", "another"}, bad_usage, "another");
}

TEST_F(SoftRoceRefusal, OfWhatTheMachineHasNot)
{
    expect_refused({"--device", "mlx5_0"}, gave_up, "mlx5_0");
    expect_refused({"--device", "rxe0", "--gid-index", "200"}, gave_up, "GID");
    expect_refused({"--device", "rxe0", "--gid-index", "256"}, gave_up,
                   "GIDs 0 to 255");
    expect_refused({"--device", "rxe0", "--gid-index", "-1"}, bad_usage,
                   "gid-index");
    expect_refused({"--device", "rxe0", "--ib-port", "9"}, gave_up, "port");
    expect_refused({"--device", "rxe0", "--size", "9000"}, gave_up, "MTU");
    expect_refused({"--device", "rxe0", "--port", "7499", "127.0.0.1"}, gave_up,
                   "refused");
    expect_refused({"--device", "rxe0", "no-such-host.invalid"}, gave_up,
                   "no-such-host.invalid");
}

TEST_F(SoftRoceRefusal, OfAPortInUse)
{
    Process first({"--device", "rxe1", "--port", "7498"});
    ASSERT_TRUE(first.wait_for("waiting for a client"));
    expect_refused({"--device", "rxe0", "--port", "7498"}, gave_up, "in use");
}

TEST_F(SoftRoceRefusal, OfAClientWhenNoDescriptorIsLeft)
{
    Process server({"--device", "rxe1", "--port", "7496"});
    ASSERT_TRUE(server.wait_for("waiting for a client"));
    const rlimit none = {0, 0};
    ASSERT_EQ(prlimit(server.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
    Process client({"--device", "rxe0", "--port", "7496", "127.0.0.1"});
    EXPECT_EQ(server.wait(30), gave_up);
    EXPECT_NE(server.output().find("cannot accept a client"),
              std::string::npos);
    EXPECT_EQ(client.wait(30), gave_up);
}

TEST_F(SoftRoceRefusal, OfAPeerThatDisagrees)
{
    for (const char *option : {"--iters", "--window"}) {
        Process server({"--device", "rxe1", "--port", "7497", option, "5"});
        ASSERT_TRUE(server.wait_for("waiting for a client"));
        Process client(
            {"--device", "rxe0", "--port", "7497", option, "6", "127.0.0.1"});
        EXPECT_EQ(client.wait(30), gave_up);
        EXPECT_EQ(server.wait(30), gave_up);
        EXPECT_NE(client.output().find(option), std::string::npos);
    }
}

} // namespace
