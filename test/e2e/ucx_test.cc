// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The ping-pong over UCX. It delivers what is not dropped on purpose, so these
// cases are about what it does not do: repair such losses, sleep through them,
// and tell of a dead peer in time. Where a case needs messages to be under way
// when something happens, timers slow it down, not the machine: losses and a
// fixed RTO.

#include "ucx_fixture.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

namespace
{

using namespace e2e;

class UcxLoss
    : public Ucx,
      public testing::WithParamInterface<std::tuple<std::string, std::string>>
{
};

TEST_P(UcxLoss, IsRepaired)
{
    const std::string &percent = std::get<1>(GetParam());
    run(std::get<0>(GetParam()), Arguments{"--connections", connections,
                                           "--iters", "20", "--drop", percent} +
                                     patient);
    expect_delivered(connection_count * 20);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("losses injected"), 0);
        EXPECT_GT(process->number("retransmissions"), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(, UcxLoss,
                         testing::Combine(testing::ValuesIn(transports()),
                                          testing::Values("1", "5", "20")),
                         [](const auto &tested) {
                             return plain(std::get<0>(tested.param)) +
                                    "Percent" + std::get<1>(tested.param);
                         });

// Each with a program that polls and with one that sleeps.
class UcxPingPong
    : public Ucx,
      public testing::WithParamInterface<std::tuple<std::string, std::string>>
{
protected:
    static bool is_sleeping()
    {
        return std::get<1>(GetParam()) == sleeping;
    }
};

TEST_P(UcxPingPong, DeliversAll)
{
    run(GetParam(),
        Arguments{"--connections", connections, "--iters", "20"} + patient);
    expect_delivered(connection_count * 20);
    if (is_sleeping()) {
        EXPECT_GT(client_->number("sleeps") + server_->number("sleeps"), 0);
    }
}

// Above what any transport takes in one piece.
TEST_P(UcxPingPong, DeliversWhatIsLarge)
{
    run(GetParam(),
        Arguments{"--connections", "10", "--iters", "20", "--size", "200000"} +
            patient);
    expect_delivered(10 * 20);
}

TEST_P(UcxPingPong, StallOfThePeerIsSurvived)
{
    run(GetParam(), under_way);
    wait_until_connected();
    usleep(300'000);
    server_->signal(SIGSTOP);
    sleep(2);
    server_->signal(SIGCONT);
    expect_delivered(connection_count * 30);
    EXPECT_GE(client_->number("elapsed"), 2) << "over before the stall";
    EXPECT_LE(server_->number("max per connection on resume"), 1);
}

TEST_P(UcxPingPong, OwnStallIsSurvived)
{
    run(GetParam(), under_way);
    wait_until_connected();
    usleep(300'000);
    client_->signal(SIGSTOP);
    sleep(2);
    client_->signal(SIGCONT);
    expect_delivered(connection_count * 30);
    EXPECT_GE(client_->number("elapsed"), 2) << "over before the stall";
    EXPECT_LE(client_->number("max per connection on resume"), 1);
}

// Longer than it takes to find a dead peer: it was us who were away. An answer
// may take a second on a slow machine, which is what a probe waits.
TEST_P(UcxPingPong, OwnStallKillsNobody)
{
    run(GetParam(),
        {"--connections", "100", "--iters", "1", "--keepalive", "15s,1s,3"},
        {"--idle", "12s", "--keepalive", "1s,1s,4", "--keepalive-jitter", "0"});
    wait_until_connected();
    sleep(1);
    client_->signal(SIGSTOP);
    sleep(7);
    client_->signal(SIGCONT);
    expect_delivered(100);
    EXPECT_GE(client_->number("stalls"), 1);
}

TEST_P(UcxPingPong, DeathOfThePeerIsFoundByEveryConnection)
{
    run(GetParam(), lively + Arguments{"--iters", "1000000"});
    wait_until_connected();
    sleep(1);
    server_->signal(SIGKILL);
    expect_all_dead(false);
}

// As dead as can be, but for its kernel, which goes on to answer for it.
TEST_P(UcxPingPong, HangOfThePeerIsFoundByEveryConnection)
{
    run(GetParam(), lively + Arguments{"--iters", "1000000"});
    wait_until_connected();
    sleep(1);
    server_->signal(SIGSTOP);
    expect_all_dead(true);
}

// Nothing but probes has been sent, by either side.
TEST_P(UcxPingPong, HangOfAnIdlePeerIsFoundByEveryConnection)
{
    run(GetParam(), lively + Arguments{"--iters", "1", "--idle", "100s"});
    wait_until_connected();
    sleep(3);
    server_->signal(SIGSTOP);
    expect_all_dead(true);
    EXPECT_GT(client_->number("probes answered"), 0);
}

INSTANTIATE_TEST_SUITE_P(, UcxPingPong,
                         testing::Combine(testing::ValuesIn(transports()),
                                          testing::Values(polling, sleeping)),
                         [](const auto &tested) {
                             return plain(std::get<0>(tested.param)) +
                                    (std::get<1>(tested.param) == sleeping
                                         ? "Sleeping"
                                         : "Polling");
                         });

class UcxSleep : public Ucx, public testing::WithParamInterface<std::string>
{
};

// Ten thousand timers run, none of them due: neither Lawn nor UCX, with its
// threads, has a reason to wake. But UCX's thread does, a few times, while UD
// wires up, and for UD's own timer ten times a second: where the processor is
// emulated, that is no proof of anything.
constexpr double wire_up = 4;

TEST_P(UcxSleep, IdleMeansAsleep)
{
    run(GetParam(),
        {"--events", "--connections", "10000", "--iters", "1", "--idle", "10s",
         "--keepalive", "60s,1s,3", "--peer-timeout", "60s"});
    expect_delivered(10000);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GE(process->number("idle sleeps"), 1);
        if (is_verbs(GetParam())) {
            EXPECT_LE(process->number("idle spurious wake-ups"), wire_up);
        } else {
            EXPECT_EQ(process->number("idle spurious wake-ups"), 0);
            EXPECT_LT(process->number("idle cpu time"), 0.1) << "1 % of 10 s";
        }
        printf("%s idle sleeps, %s spurious, cpu time %s\n",
               process->summary("idle sleeps").c_str(),
               process->summary("idle spurious wake-ups").c_str(),
               process->summary("idle cpu time").c_str());
    }
}

TEST_P(UcxSleep, TimersAndProbesWakeTheSleeper)
{
    run(GetParam(),
        {"--events", "--connections", "50", "--iters", "1", "--idle", "5s",
         "--keepalive", "500ms,500ms,20", "--keepalive-jitter", "500ms"});
    expect_delivered(50);
    for (const Process *process : {client_.get(), server_.get()}) {
        EXPECT_GT(process->number("timers fired"), 50);
        EXPECT_GT(process->number("probes answered"), 50);
    }
}

INSTANTIATE_TEST_SUITE_P(, UcxSleep, testing::ValuesIn(transports()),
                         [](const auto &tested) {
                             return plain(tested.param);
                         });

class UcxRefusal : public Ucx
{
protected:
    static void expect_refused(const Arguments &arguments, int status,
                               const std::string &because)
    {
        Process process(arguments);
        EXPECT_EQ(process.wait(30), status);
        const std::string output = process.output();
        EXPECT_EQ(output.rfind("pingpong_ucx: ", 0), 0U) << output;
        EXPECT_NE(output.find(because), std::string::npos) << output;
        EXPECT_EQ(output.find('\n'), output.size() - 1)
            << "one line: " << output;
    }
};

TEST_F(UcxRefusal, OfBadArguments)
{
    expect_refused({"--no-such-option"}, bad_usage, "no-such-option");
    expect_refused({"--device", "rxe0"}, bad_usage, "device");
    expect_refused({"--mode", "rc"}, bad_usage, "mode");
    expect_refused({"--iters", "0"}, bad_usage, "iters");
    expect_refused({"--drop", "100"}, bad_usage, "drop");
    expect_refused({"--size", "1048577"}, bad_usage, "size");
    expect_refused({"--rto", "5 parsecs"}, bad_usage, "rto");
    expect_refused({"--connections", "0"}, bad_usage, "connections");
    expect_refused({"host", "another"}, bad_usage, "another");
}

TEST_F(UcxRefusal, OfWhatTheMachineHasNot)
{
    use_transport("carrier_pigeon", Side::client);
    expect_refused({}, gave_up, "carrier_pigeon");
    use_transport("tcp", Side::client);
    setenv("UCX_NET_DEVICES", "mlx5_7:1", 1);
    expect_refused({}, gave_up, "mlx5_7:1");
    use_transport("tcp", Side::client);
    expect_refused({"--port", "7699", "127.0.0.1"}, gave_up, "refused");
    expect_refused({"no-such-host.invalid"}, gave_up, "no-such-host.invalid");
}

TEST_F(UcxRefusal, OfNoServerIsWaitedOutIfWanted)
{
    use_transport("tcp", Side::client);
    const Arguments all = {"--port", "7695", "--iters", "5"};
    Process client(all + Arguments{"--wait", "60s", "127.0.0.1"});
    ASSERT_TRUE(client.wait_for("waiting for 127.0.0.1, port 7695"));
    Process server(all);
    EXPECT_EQ(client.wait(), 0);
    EXPECT_EQ(server.wait(), 0);
    const std::string output = client.output();
    const size_t first = output.find("waiting");
    EXPECT_EQ(output.find("waiting", first + 1), std::string::npos) << output;
}

TEST_F(UcxRefusal, IsNoneOfHelp)
{
    Process process({"--help"});
    EXPECT_EQ(process.wait(30), 0);
    const std::string output = process.output();
    EXPECT_NE(output.find("Usage: pingpong_ucx"), std::string::npos);
    EXPECT_NE(output.find("--port"), std::string::npos);
    for (const char *const of_verbs : {"--cm", "--mode", "--ib-port", "rdma"}) {
        EXPECT_EQ(output.find(of_verbs), std::string::npos) << of_verbs;
    }
}

TEST_F(UcxRefusal, OfAPortInUse)
{
    use_transport("tcp", Side::server);
    Process first({"--port", "7698"});
    ASSERT_TRUE(first.wait_for("waiting for a client"));
    expect_refused({"--port", "7698"}, gave_up, "in use");
}

// The one has no way to reach the other.
TEST_F(UcxRefusal, OfAPeerOnAnotherTransport)
{
    use_transport("tcp", Side::server);
    Process server({"--port", "7697"});
    ASSERT_TRUE(server.wait_for("waiting for a client"));
    use_transport("posix", Side::client);
    expect_refused({"--port", "7697", "127.0.0.1"}, gave_up, "unreachable");
    EXPECT_EQ(server.wait(30), gave_up);
}

TEST_F(UcxRefusal, OfAPeerThatDisagrees)
{
    use_transport("tcp", Side::server);
    Process server({"--port", "7696", "--iters", "5"});
    ASSERT_TRUE(server.wait_for("waiting for a client"));
    Process client({"--port", "7696", "--iters", "6", "127.0.0.1"});
    EXPECT_EQ(client.wait(30), gave_up);
    EXPECT_EQ(server.wait(30), gave_up);
    EXPECT_NE(client.output().find("iters"), std::string::npos);
}

} // namespace
