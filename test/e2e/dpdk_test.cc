// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong over DPDK, by drivers that need no device: net_ring within one
// process, net_memif and net_af_packet (on a veth pair) between two.
// LAWN_PINGPONG names the program. Outcomes are asserted, and times only where
// they are promised: never early, and within the bound that the program's own
// clock is measured against.
//
// All runs in a network namespace of its own, as root (of a user namespace).

#include "dpdk_fixture.h"
#include "foreign_frames.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace
{

using e2e::af_packet;
using e2e::Arguments;
using e2e::bad_usage;
using e2e::Dpdk;
using e2e::eal;
using e2e::expect_within_a_minute;
using e2e::gave_up;
using e2e::memif;
using e2e::patient;
using e2e::peer_dead;
using e2e::Process;
using e2e::Transport;
using e2e::operator+;

const char *const connections = "1000";
const char *const iters = "20";
constexpr double messages = 1000.0 * 20;

const testing::Environment *const added =
    testing::AddGlobalTestEnvironment(new e2e::Namespace);

// One process prints two summaries, the client's and the server's.
std::vector<double> both(const Process &process, const std::string &name)
{
    std::vector<double> values;
    std::istringstream lines(process.output());
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind(name + "  ", 0) == 0) {
            values.push_back(strtod(line.c_str() + name.size(), nullptr));
        }
    }
    return values;
}

using Two = std::vector<double>;

class DpdkRings : public testing::TestWithParam<const char *>
{
};

TEST_P(DpdkRings, LossIsRepaired)
{
    Process process(Arguments{"--connections", connections, "--iters", iters,
                              "--drop", GetParam()} +
                    patient);
    EXPECT_EQ(process.wait(), 0);
    EXPECT_EQ(both(process, "delivered"), (Two{messages, messages}));
    EXPECT_EQ(both(process, "early firings"), (Two{0, 0}));
    EXPECT_EQ(both(process, "dead connections"), (Two{0, 0}));
    EXPECT_EQ(process.output().find("VIOLATED"), std::string::npos);
    for (const char *name : {"losses injected", "retransmissions"}) {
        const Two counts = both(process, name);
        ASSERT_EQ(counts.size(), 2U);
        EXPECT_GT(counts[0], 0) << name;
        EXPECT_GT(counts[1], 0) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Percent, DpdkRings, testing::Values("1", "5", "20"));

// Lawn's clock is then not EAL's, which harms nothing here, but is said.
TEST(DpdkClock, ThatDiffersIsTold)
{
    setenv("LAWN_CLOCK", "clock_gettime", 1);
    Process process({"--connections", "10", "--iters", "100"});
    unsetenv("LAWN_CLOCK");
    EXPECT_EQ(process.wait(), 0);
    EXPECT_EQ(both(process, "delivered"), (Two{1000, 1000}));
    EXPECT_NE(process.output().find("Lawn 1000000000 (clock_gettime)"),
              std::string::npos);

    Process same({"--connections", "10", "--iters", "100"});
    EXPECT_EQ(same.wait(), 0);
    EXPECT_EQ(same.output().find("note:"), std::string::npos);
}

// It would take hours, and ends at once, with what was done until then.
TEST(DpdkSignal, EndsBothSides)
{
    for (const int number : {SIGINT, SIGTERM}) {
        Process process({"--iters", "1000000000"});
        expect_within_a_minute(process, "connected: client");
        process.signal(number);
        EXPECT_EQ(process.wait(30), 128 + number);
        EXPECT_EQ(both(process, "early firings"), (Two{0, 0}));
    }
}

class DpdkLoss
    : public Dpdk,
      public testing::WithParamInterface<std::tuple<Transport, const char *>>
{
};

TEST_P(DpdkLoss, IsRepaired)
{
    run(std::get<0>(GetParam()),
        Arguments{"--connections", connections, "--iters", iters, "--drop",
                  std::get<1>(GetParam())} +
            patient);
    expect_both_succeed(messages);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("losses injected"), 0);
        EXPECT_GT(process->number("retransmissions"), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Over, DpdkLoss,
                         testing::Combine(testing::Values(memif, af_packet),
                                          testing::Values("1", "5", "20")));

class DpdkPeer : public Dpdk, public testing::WithParamInterface<Transport>
{
protected:
    void run_long(const Arguments &of_server, const Arguments &of_client)
    {
        run(GetParam(),
            {"--connections", connections, "--iters",
             std::to_string(GetParam().stalled_iters)},
            of_server, of_client);
        wait_until_under_way();
    }

    // Of which `stalled` was stopped meanwhile.
    void expect_to_go_on(const Process &stalled)
    {
        expect_both_succeed(1000.0 * GetParam().stalled_iters);
        EXPECT_GE(stalled.number("stalls"), 1);
        EXPECT_GE(stalled.number("worst stall"), 1.9);
        EXPECT_LE(stalled.number("max per connection on resume"), 1);
    }

    const Arguments tolerant_ = {"--peer-timeout", "30s", "--keepalive",
                                 "10s,1s,3"};
};

TEST_P(DpdkPeer, StallIsSurvived)
{
    run_long(tolerant_, tolerant_);
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_to_go_on(*server_);
}

// Away for longer than the peer timeout, and than it takes to probe: it was us
// who were away, not the peer.
TEST_P(DpdkPeer, IsNotBlamedForOurOwnStall)
{
    run_long(tolerant_, {"--peer-timeout", "3s", "--keepalive", "1s,600ms,3",
                         "--keepalive-jitter", "100ms"});
    client_->signal(SIGSTOP);
    sleep(4);
    client_->signal(SIGCONT);
    expect_to_go_on(*client_);
}

TEST_P(DpdkPeer, DeathIsFoundByEveryConnection)
{
    run(GetParam(),
        {"--connections", connections, "--iters", "1000000", "--keepalive",
         "1s,200ms,3", "--keepalive-jitter", "500ms", "--peer-timeout", "60s"});
    wait_until_under_way();
    sleep(1);
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_EQ(client_->number("dead connections"), 1000);
    EXPECT_EQ(client_->number("early firings"), 0);
    EXPECT_EQ(client_->number("dead by keepalive"), 1000);
    // idle 1 s + interval 200 ms x 3 probes + jitter 500 ms
    EXPECT_GE(client_->number("death found min"), 1.6);
    EXPECT_LE(client_->number("death found max"),
              2.1 + client_->death_delay(3, 0.2));
}

TEST_P(DpdkPeer, MayLeaveWhenWeDo)
{
    run(GetParam(), {"--iters", "1000000000"});
    wait_until_under_way();
    client_->signal(SIGINT);
    server_->signal(SIGINT);
    EXPECT_EQ(client_->wait(30), 128 + SIGINT);
    EXPECT_EQ(server_->wait(30), 128 + SIGINT);
    EXPECT_GT(client_->number("delivered"), 0);
}

INSTANTIATE_TEST_SUITE_P(Over, DpdkPeer, testing::Values(memif, af_packet),
                         [](const auto &test) { return test.param.name; });

// What is no frame of the peer's is counted, and changes nothing: of another
// protocol, from a stranger, and garbage in the peer's own name.
TEST_F(Dpdk, ForeignFramesAreCountedAndIgnored)
{
    run(af_packet, {"--connections", "100", "--iters", "5000"});
    wait_until_under_way();
    EXPECT_EQ(e2e::send_foreign_frames("v0", "v1", 300), 300U);
    expect_both_succeed(100 * 5000);
    EXPECT_GE(server_->number("foreign ignored"), 200);
    EXPECT_GE(server_->number("malformed ignored"), 100);
}

class DpdkRefusal : public Dpdk
{
protected:
    static void expect_refused(const Arguments &arguments, int status,
                               const std::string &because)
    {
        Process process(arguments);
        EXPECT_EQ(process.wait(30), status);
        const std::string output = process.output();
        EXPECT_EQ(output.rfind("pingpong_dpdk: ", 0), 0U) << output;
        EXPECT_NE(output.find(because), std::string::npos) << output;
        EXPECT_EQ(output.find('\n'), output.size() - 1)
            << "one line: " << output;
    }
};

TEST_F(DpdkRefusal, OfBadArguments)
{
    expect_refused({"--no-such-option"}, bad_usage, "no-such-option");
    expect_refused({"--no-huge", "--", "--iters", "0"}, bad_usage, "iters");
    expect_refused({"--iters", "12x"}, bad_usage, "12x");
    expect_refused({"--drop", "100"}, bad_usage, "drop");
    expect_refused({"--rto", "5 parsecs"}, bad_usage, "rto");
    expect_refused({"--connections", "0"}, bad_usage, "connections");
    expect_refused({"--device", "rxe0"}, bad_usage, "device");
    expect_refused({"--events"}, bad_usage, "events");
    expect_refused({"host", "another"}, bad_usage, "another");
}

TEST_F(DpdkRefusal, OfWhatEalCannotBring)
{
    expect_refused({"localhost"}, gave_up, "no port to reach localhost");
    expect_refused(eal("--vdev=net_no_such_driver0", false), gave_up,
                   "cannot start EAL");
    expect_refused(eal("--vdev=net_memif0,role=nobody", false), gave_up,
                   "could not make a port");
    expect_refused(eal("--vdev=net_af_packet0,iface=nowhere", false), gave_up,
                   "could not make a port");
    expect_refused(eal("--no-hpet", false), gave_up, "two lcores");
    expect_refused(eal("stray", false), gave_up, "stray");
    expect_refused({"--size", "9000"}, gave_up, "holds at most");
}

TEST_F(DpdkRefusal, OfAServerThatIsNotThere)
{
    const Arguments client = eal(af_packet.client, true);
    expect_refused(client + Arguments{"--port", "7599", "127.0.0.1"}, gave_up,
                   "refused");
    expect_refused(client + Arguments{"no-such-host.invalid"}, gave_up,
                   "no-such-host.invalid");
}

TEST_F(DpdkRefusal, OfAPortInUse)
{
    Process first(eal(af_packet.server, false) + Arguments{"--port", "7598"});
    ASSERT_TRUE(first.wait_for("waiting for a client"));
    expect_refused(eal(af_packet.client, true) + Arguments{"--port", "7598"},
                   gave_up, "in use");
}

TEST_F(DpdkRefusal, OfAPeerThatDisagrees)
{
    Process server(eal(memif.server, false) +
                   Arguments{"--port", "7597", "--iters", "5"});
    ASSERT_TRUE(server.wait_for("waiting for a client"));
    Process client(eal(memif.client, true) +
                   Arguments{"--port", "7597", "--iters", "6", "127.0.0.1"});
    EXPECT_EQ(client.wait(30), gave_up);
    EXPECT_EQ(server.wait(30), gave_up);
    EXPECT_NE(client.output().find("iters"), std::string::npos);
}

TEST_F(DpdkRefusal, IsNoneOfHelp)
{
    Process process({"--help"});
    EXPECT_EQ(process.wait(30), 0);
    const std::string output = process.output();
    EXPECT_NE(output.find("Usage: pingpong_dpdk"), std::string::npos);
    EXPECT_NE(output.find("--vdev=net_memif0"), std::string::npos);
    EXPECT_EQ(output.find("--ib-port"), std::string::npos);
}

} // namespace
