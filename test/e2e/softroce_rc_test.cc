// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Requests with deadlines over RC, by examples/rc_deadline.c, whose server ends
// with an error if a request is lost or carried out twice. Whatever becomes of
// the peer, each request is reported once, and in time.

#include "softroce_fixture.h"

#include <cstdio>

namespace
{

using namespace e2e;

class SoftRoceRc : public SoftRoce
{
protected:
    struct Summary {
        double posted;
        double done;
        double not_done;
        double unknown;
        double found; // of the unknown, at the server
    };

    void run_rc(const Arguments &client, const Arguments &server = {})
    {
        const Arguments port = {"-p", next_port()};
        server_ = std::make_unique<Process>(
            Arguments{"-i", "rxe1"} + port + server, LAWN_RC_DEADLINE);
        expect_within_a_minute(*server_, "waiting for a client");
        client_ = std::make_unique<Process>(Arguments{"-i", "rxe0"} + port +
                                                client + Arguments{"127.0.0.1"},
                                            LAWN_RC_DEADLINE);
        expect_within_a_minute(*client_, "connected");
    }

    static double after(const std::string &output, const char *text)
    {
        const size_t at = output.rfind(text);
        return at == std::string::npos
                   ? -1
                   : std::stod(output.substr(at + strlen(text)));
    }

    // Each request is reported once, within its deadline and one poll, and the
    // flush and its poll. (A reset by the timeout of 100 ms would be later.)
    Summary summary() const
    {
        Summary sum = {-1, -1, -1, -1, -1};
        const std::string output = client_->output();
        const size_t at = output.find("posted ");
        if (at == std::string::npos ||
            sscanf(output.c_str() + at,
                   "posted %lf: %lf done, %lf not done, %lf unknown, of which "
                   "the server had %lf",
                   &sum.posted, &sum.done, &sum.not_done, &sum.unknown,
                   &sum.found) != 5) {
            ADD_FAILURE() << "no summary in: " << output;
            return sum;
        }
        EXPECT_EQ(sum.posted, sum.done + sum.not_done + sum.unknown);
        EXPECT_LE(sum.found, sum.unknown);
        EXPECT_LE(after(output, "latest report "),
                  2 * after(output, "longest pass ") + 100);
        return sum;
    }

    // All are carried out, by requests that are done or were found.
    Summary expect_all_done(double requests)
    {
        EXPECT_EQ(client_->wait(), 0);
        EXPECT_EQ(server_->wait(), 0);
        const Summary sum = summary();
        EXPECT_EQ(sum.done + sum.found, requests);
        return sum;
    }

    // A request each ms, so that there are some left on the fastest machine.
    const Arguments not_too_fast = {"-s", "1"};

    void cut()
    {
        netem("loss 100%");
    }

    static void mend()
    {
        shell("tc qdisc change dev v0 root netem loss 0%");
        shell("tc qdisc change dev v1 root netem loss 0%");
    }
};

TEST_F(SoftRoceRc, AllIsDone)
{
    run_rc({"-n", "2000", "-d", "10000"});
    const Summary sum = expect_all_done(2000);
    EXPECT_EQ(sum.posted, 2000);
    EXPECT_EQ(sum.unknown, 0);
}

// Retries of the device are without end. When the wire is whole again, the
// server has some of what was unknown, or none.
TEST_F(SoftRoceRc, AHostThatIsCutOffHangsNoRequest)
{
    run_rc({"-n", "3000", "-d", "300"}, not_too_fast);
    cut();
    expect_within_a_minute(*client_, "failed: deadline");
    mend();
    const Summary sum = expect_all_done(3000);
    EXPECT_GT(sum.unknown, 0);
    EXPECT_EQ(sum.not_done, 0);
}

TEST_F(SoftRoceRc, AProgramThatIsStoppedHangsNoRequest)
{
    run_rc({"-n", "1000", "-d", "300"}, not_too_fast);
    server_->signal(SIGSTOP);
    expect_within_a_minute(*client_, "failed: deadline");
    sleep(1);
    server_->signal(SIGCONT);
    const Summary sum = expect_all_done(1000);
    EXPECT_GT(sum.unknown, 0);
}

TEST_F(SoftRoceRc, AProgramThatDiesHangsNoRequest)
{
    run_rc({"-n", "1000000", "-d", "300", "-t", "3"});
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_NE(client_->output().find("failed: deadline"), std::string::npos);
    EXPECT_GT(summary().unknown, 0);
}

// The device gives up before the deadline: what it sent is unknown, too.
TEST_F(SoftRoceRc, TheDeviceMayGiveUpFirst)
{
    run_rc({"-n", "1000000", "-d", "60000", "-t", "3", "-r", "2"});
    server_->signal(SIGKILL);
    EXPECT_EQ(client_->wait(), peer_dead);
    EXPECT_NE(client_->output().find("failed: device, transport retry"),
              std::string::npos);
    const Summary sum = summary();
    EXPECT_GT(sum.unknown, 0);
    EXPECT_EQ(sum.not_done, 0);
}

// It posts a receive each 50 ms, and 16 requests wait for one.
TEST_F(SoftRoceRc, APeerThatIsSlowMissesDeadlines)
{
    run_rc({"-n", "40", "-d", "500"}, {"-s", "50"});
    const Summary sum = expect_all_done(40);
    EXPECT_GT(sum.unknown, 0);
    EXPECT_EQ(sum.not_done, 0);
}

// With a limit to the retries for want of a receive, the peer's device says
// that it has not carried out a request, and it has none behind that.
TEST_F(SoftRoceRc, WhatThePeerRefusesIsNotDone)
{
    run_rc({"-n", "40", "-d", "60000", "-q", "1"}, {"-s", "50"});
    const Summary sum = expect_all_done(40);
    EXPECT_GT(sum.not_done, 0);
}

// With nothing to send, the keepalive finds the host, in its time and not
// before.
TEST_F(SoftRoceRc, AHostThatIsCutOffIsFoundByKeepalive)
{
    run_rc({"-n", "100", "-k", "500", "-d", "2000", "-w", "5000"});
    sleep(1); // all is done, and the keepalive goes on
    cut();
    expect_within_a_minute(*client_, "failed: keepalive");
    mend();
    const double silence = after(
        client_->output(), "failed: keepalive, Work Request Flushed Error, ");
    const Summary sum = expect_all_done(100);
    EXPECT_EQ(sum.unknown, 0);
    EXPECT_GE(silence, 2.5);
    EXPECT_LE(silence, 2.6 + 3e-3 * after(client_->output(), "longest pass "));
}

TEST_F(SoftRoceRc, BadUsageIsRefused)
{
    const auto expect_refused = [](const Arguments &arguments, int status,
                                   const char *because) {
        Process process(arguments, LAWN_RC_DEADLINE);
        EXPECT_EQ(process.wait(30), status);
        const std::string output = process.output();
        EXPECT_NE(output.find(because), std::string::npos) << output;
    };
    expect_refused({"-n", "12x"}, bad_usage, "usage");
    expect_refused({"-x"}, bad_usage, "usage");
    expect_refused({"a", "b"}, bad_usage, "usage");
    expect_refused({"-i", "mlx5_0"}, gave_up, "mlx5_0");
    expect_refused({"-i", "rxe0", "a.b.c.d"}, gave_up, "a.b.c.d");
}

} // namespace
