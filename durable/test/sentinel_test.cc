// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A client that asks a sentinel for the master goes on after a failover,
// without a restart, and what was acknowledged as replicated is there.

#include "client_fixture.h"
#include "hostile_server.h"
#include "lawn-verify/server.h"
#include "redis_server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace
{

using namespace lawn_test;

// A redis-server in the mode of a sentinel, which needs a file of its own.
class Sentinel
{
public:
    Sentinel(const std::string &directory, int port, int master_port)
    {
        const std::string file = directory + "/sentinel.conf";
        std::ofstream(file)
            << "port " << port << "\nbind 127.0.0.1\nprotected-mode no\n"
            << "logfile " << directory << "/sentinel.log\ndir " << directory
            << "\nsentinel monitor mymaster 127.0.0.1 " << master_port
            << " 1\nsentinel down-after-milliseconds mymaster 1000\n"
               "sentinel failover-timeout mymaster 2000\n";
        const char *const server = getenv("LAWN_REDIS_SERVER");
        const std::string program = server ? server : "redis-server";
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            execlp(program.c_str(), program.c_str(), file.c_str(), "--sentinel",
                   nullptr);
            _exit(127);
        }
    }
    ~Sentinel()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Sentinel(const Sentinel &) = delete;
    Sentinel &operator=(const Sentinel &) = delete;

private:
    pid_t pid_;
};

class DurableSentinel : public testing::Test
{
protected:
    void SetUp() override
    {
        // A failover ends the connections of the fixture.
        signal(SIGPIPE, SIG_IGN);
    }

    std::string url(const char *master = "mymaster") const
    {
        // The first sentinel does not answer.
        return "sentinel://127.0.0.1:1,127.0.0.1:" +
               std::to_string(sentinel_port) + "/" + master;
    }

    static Words options(int port)
    {
        return {"--port",    std::to_string(port),         "--bind",
                "127.0.0.1", "--repl-diskless-sync-delay", "0"};
    }

    const int master_port = lawn_verify::free_port();
    RedisServer master{options(master_port)};
    const int replica_port = lawn_verify::free_port();
    RedisServer replica{options(replica_port)};
    const int sentinel_port = lawn_verify::free_port();
};

// The first sentinel is cut off from the others, and names a dead master.
TEST_F(DurableSentinel, AsksTheNextIfTheMasterIsNotThere)
{
    const auto name = [](HostileServer *sentinel, int port) {
        const std::string reply =
            "*2\r\n" + bulk("127.0.0.1") + bulk(std::to_string(port));
        sentinel->set_change([reply](const auto &command, std::string *answer) {
            *answer = command[0] == "SENTINEL" ? reply : *answer;
        });
        return "127.0.0.1:" + std::to_string(sentinel->port());
    };
    HostileServer alone{true};
    HostileServer other{true};
    Client client("sentinel://" + name(&alone, 1) + "," +
                  name(&other, master_port) + "/mymaster");
    EXPECT_EQ(client.start("a").status, LAWN_OK);
    EXPECT_EQ(lawn_durable_error(client), nullptr);
}

TEST_F(DurableSentinel, FollowsAFailover)
{
    replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master_port)});
    Sentinel sentinel(replica.directory(), sentinel_port, master_port);
    Client client(url());
    std::vector<std::pair<std::string, Result *>> results;
    const auto begin = [&] {
        const std::string id = "id-" + std::to_string(results.size());
        lawn_durable_start_t start = Client::in_an_hour(id.c_str());
        start.durability = 1;
        results.emplace_back(id, client.begin_start(start));
    };
    // The sentinel must know the replica before the master dies. (On a slow
    // machine it may take it for dead before.)
    client.run_until([&] {
        begin();
        Result *const first = results.back().second;
        client.run_until([first] { return first->is_answered; });
        return first->status == LAWN_OK;
    });
    client.run_until([&] {
        std::ifstream log(replica.directory() + "/sentinel.log");
        const std::string text{std::istreambuf_iterator<char>(log), {}};
        return text.find("+slave slave") != text.npos;
    });
    for (unsigned i = 0; i < 100; ++i) {
        begin();
    }
    const Result *const early = results[results.size() - 90].second;
    client.run_until([early] { return early->is_answered; });
    master.kill();
    client.run_until([&] { return client.start("after").status == LAWN_OK; });
    for (const auto &i : results) {
        client.run_until([&i] { return i.second->is_answered; });
        if (i.second->status == LAWN_OK) {
            EXPECT_EQ(client.get(i.first.c_str()).state, LAWN_DURABLE_PENDING);
        }
    }
    EXPECT_EQ(lawn_durable_error(client), nullptr);
}

TEST_F(DurableSentinel, SaysThatNobodyKnowsTheMaster)
{
    Sentinel sentinel(replica.directory(), sentinel_port, master_port);
    Client known(url());
    EXPECT_EQ(known.start("a").status, LAWN_OK);
    Client client(url("other"), [](lawn_durable_params_t *params) {
        params->fail_fast = true;
    });
    const Result result = client.start("a");
    EXPECT_EQ(result.status, LAWN_ERR_IO);
    EXPECT_NE(result.error.find("the sentinel at"), std::string::npos)
        << result.error;
}

} // namespace
