// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong over two SoftRoCE devices, rxe0 on veth v0 and rxe1 on v1, as
// ci/softroce provides them; LAWN_PINGPONG names the program. The server is on
// rxe1, the client on rxe0. Outcomes are asserted, and times only where they
// are promised: never early, and within the bound that the program's own
// clock is measured against.

#include "foreign_sender.h"
#include "pingpong_process.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace
{

using e2e::Arguments;
using e2e::Process;
using e2e::shell;

constexpr int gave_up = 1;
constexpr int bad_usage = 2;
constexpr int peer_dead = 3;

const char *const connections = "1000";
const char *const iters = "20";
constexpr double messages = 1000.0 * 20;

// Where a fifth is lost each way, a probe in three brings no answer: with few
// probes, some of a thousand connections would be taken for dead.
const Arguments patient = {"--keepalive", "2s,200ms,20"};

Arguments operator+(Arguments a, const Arguments &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

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

    // Each test has a TCP port of its own: the last one's may linger.
    void run(const Arguments &options)
    {
        static int port = 7500;
        const Arguments all =
            options + Arguments{"--port", std::to_string(++port)};
        server_ =
            std::make_unique<Process>(Arguments{"--device", "rxe1"} + all);
        expect_within_a_minute(*server_, "waiting for a client");
        client_ = std::make_unique<Process>(Arguments{"--device", "rxe0"} +
                                            all + Arguments{"127.0.0.1"});
    }

    void wait_until_under_way()
    {
        expect_within_a_minute(*client_, "connected:");
        expect_within_a_minute(*server_, "connected:");
        // They have met; now wait for messages to flow.
        const uint64_t before = e2e::received_packets("rxe0");
        for (int msec = 0; e2e::received_packets("rxe0") < before + 100;
             ++msec) {
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

    std::unique_ptr<Process> server_;
    std::unique_ptr<Process> client_;

private:
    bool has_netem_ = false;
};

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
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("losses injected"), 0);
        EXPECT_GT(process->number("retransmissions"), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Percent, SoftRoceLoss,
                         testing::Values("1", "5", "20"));

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
    run({"--connections", connections, "--iters", "60", "--peer-timeout", "20s",
         "--keepalive", "10s,1s,3"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_both_succeed(1000 * 60);
    EXPECT_GE(server_->number("stalls"), 1);
    EXPECT_LE(server_->number("max per connection on resume"), 1);
}

TEST_F(SoftRoce, OwnStallKillsNobody)
{
    // Longer than the peer timeout: it was us who were away, not the peer.
    run({"--connections", connections, "--iters", "60", "--peer-timeout", "20s",
         "--keepalive", "10s,1s,3"});
    wait_until_under_way();
    client_->signal(SIGSTOP);
    sleep(2);
    client_->signal(SIGCONT);
    expect_both_succeed(1000 * 60);
    EXPECT_GE(client_->number("stalls"), 1);
    EXPECT_LE(client_->number("max per connection on resume"), 1);
}

TEST_F(SoftRoce, DeathOfThePeerIsFoundByEveryConnection)
{
    run({"--connections", connections, "--iters", "1000000", "--keepalive",
         "1s,200ms,3", "--keepalive-jitter", "500ms", "--peer-timeout", "60s"});
    wait_until_under_way();
    sleep(1);
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_EQ(client_->number("dead connections"), 1000);
    EXPECT_EQ(client_->number("early firings"), 0);
    EXPECT_EQ(client_->number("dead by keepalive"), 1000);
    // idle 1 s + interval 200 ms x 3 probes + jitter 500 ms, and the wait for
    // the poll that saw each of the four.
    EXPECT_GE(client_->number("death found min"), 1.6);
    EXPECT_LE(client_->number("death found max"),
              2.1 + 4 * client_->number("lateness max") / 1000);
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
    run({"--mode", "rc", "--connections", "10", "--iters", "5000",
         "--keepalive", "10s,1s,3"});
    wait_until_under_way();
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_both_succeed(10 * 5000);
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
    run({"--connections", "100", "--iters", "300", "--keepalive", "10s,1s,3"});
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
    for (const uint32_t qpn : e2e::ud_queue_pairs("rxe1")) {
        sent += sender.send_to("rxe1", qpn, 200);
    }
    EXPECT_GE(sent, 200U);
    expect_both_succeed(100 * 300);
    EXPECT_GT(server_->number("foreign ignored"), 0);
}

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
    expect_refused({"--connections", "99999999999999999999"}, bad_usage,
                   "connections");
    expect_refused({"host", "another"}, bad_usage, "another");
}

TEST_F(SoftRoceRefusal, OfWhatTheMachineHasNot)
{
    expect_refused({"--device", "mlx5_0"}, gave_up, "mlx5_0");
    expect_refused({"--device", "rxe0", "--gid-index", "200"}, gave_up, "GID");
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

TEST_F(SoftRoceRefusal, OfAPeerThatDisagrees)
{
    Process server({"--device", "rxe1", "--port", "7497", "--iters", "5"});
    ASSERT_TRUE(server.wait_for("waiting for a client"));
    Process client(
        {"--device", "rxe0", "--port", "7497", "--iters", "6", "127.0.0.1"});
    EXPECT_EQ(client.wait(30), gave_up);
    EXPECT_EQ(server.wait(30), gave_up);
    EXPECT_NE(client.output().find("iters"), std::string::npos);
}

} // namespace
