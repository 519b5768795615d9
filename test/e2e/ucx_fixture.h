// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Two ping-pongs over UCX; LAWN_PINGPONG names the program. LAWN_UCX_TLS lists,
// between spaces, the values of UCX_TLS to run all cases with. One that has
// "verbs" in it goes over the devices rxe0 and rxe1 that ci/softroce provides.
// What is asked for and not there fails.

#ifndef LAWN_TEST_E2E_UCX_FIXTURE_H
#define LAWN_TEST_E2E_UCX_FIXTURE_H

#include "pingpong_process.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace e2e
{

const char *const connections = "1000";
constexpr double connection_count = 1000;

// A run of some seconds, whatever the machine: 60 messages of each connection
// in turn, of which one in three waits 100 ms or more.
inline const Arguments under_way = {
    "--connections",  connections, "--iters",     "30",
    "--drop",         "20",        "--rto-fixed", "100ms",
    "--peer-timeout", "30s",       "--keepalive", "10s,1s,20"};

// Found within idle 1 s + jitter 500 ms + interval 200 ms x 3 probes.
inline const Arguments lively = {
    "--connections",      connections, "--keepalive",    "1s,200ms,3",
    "--keepalive-jitter", "500ms",     "--peer-timeout", "60s"};
constexpr double earliest_death = 1.6;
constexpr double latest_death = 2.1;

const char *const polling = "";
const char *const sleeping = "--events";

inline std::vector<std::string> transports()
{
    const char *const list = getenv("LAWN_UCX_TLS");
    std::istringstream words(list && *list ? list : "tcp posix");
    std::vector<std::string> all;
    for (std::string word; words >> word;) {
        all.push_back(word);
    }
    return all;
}

// For the name of a case, where only letters and digits may be.
inline std::string plain(const std::string &text)
{
    std::string letters;
    for (const char c : text) {
        if (isalnum(static_cast<unsigned char>(c))) {
            letters += c;
        }
    }
    return letters;
}

enum class Side { client, server };

inline bool is_verbs(const std::string &transport)
{
    return transport.find("verbs") != std::string::npos;
}

inline void use_transport(const std::string &transport, Side side)
{
    setenv("UCX_TLS", transport.c_str(), 1);
    unsetenv("UCX_NET_DEVICES");
    if (is_verbs(transport)) {
        setenv("UCX_IB_GID_INDEX", "0", 1);
        setenv("UCX_NET_DEVICES", side == Side::client ? "rxe0:1" : "rxe1:1",
               1);
    } else if (transport == "tcp") {
        setenv("UCX_NET_DEVICES", "lo", 1);
    }
}

class Ucx : public testing::Test
{
protected:
    void run(const std::string &transport, const Arguments &options,
             const Arguments &of_client = {})
    {
        static int port = 7700;
        const Arguments all =
            options + Arguments{"--port", std::to_string(++port)};
        use_transport(transport, Side::server);
        server_ = std::make_unique<Process>(all);
        expect_within_a_minute(*server_, "waiting for a client");
        use_transport(transport, Side::client);
        client_ =
            std::make_unique<Process>(all + of_client + Arguments{"127.0.0.1"});
    }

    void run(const std::tuple<std::string, std::string> &how,
             const Arguments &options, const Arguments &of_client = {})
    {
        const std::string &flag = std::get<1>(how);
        run(std::get<0>(how),
            flag.empty() ? options : options + Arguments{flag}, of_client);
    }

    void wait_until_connected()
    {
        expect_within_a_minute(*client_, "connected:");
        expect_within_a_minute(*server_, "connected:");
    }

    void expect_delivered(double count)
    {
        for (Process *process : {client_.get(), server_.get()}) {
            EXPECT_EQ(process->wait(), 0);
            EXPECT_EQ(process->number("delivered"), count);
            EXPECT_NE(process->summary("delivered").find("exactly once"),
                      std::string::npos);
            EXPECT_EQ(process->number("early firings"), 0);
            EXPECT_EQ(process->number("dead connections"), 0);
            EXPECT_EQ(process->output().find("pingpong_ucx:"),
                      std::string::npos)
                << "a complaint";
        }
    }

    // By the client; `is_hung`: UCX cannot know.
    void expect_all_dead(bool is_hung)
    {
        EXPECT_EQ(client_->wait(), peer_dead);
        EXPECT_EQ(client_->number("dead connections"), connection_count);
        EXPECT_EQ(client_->number("early firings"), 0);
        EXPECT_LE(client_->number("death found max"),
                  latest_death + client_->death_delay(3, 0.2));
        if (is_hung) {
            EXPECT_EQ(client_->number("dead by keepalive"), connection_count);
            EXPECT_GE(client_->number("death found min"), earliest_death);
        } else {
            EXPECT_EQ(client_->number("dead by keepalive") +
                          client_->number("dead by transport"),
                      connection_count);
        }
    }

    std::unique_ptr<Process> server_;
    std::unique_ptr<Process> client_;

private:
    // Ends the test if not: nothing after it would make sense.
    static void expect_within_a_minute(Process &process, const char *text)
    {
        if (!process.wait_for(text)) {
            throw std::runtime_error(std::string("no \"") + text +
                                     "\" in: " + process.output());
        }
    }
};

} // namespace e2e

#endif
