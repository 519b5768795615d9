// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// lawnctl as its users run it, with a pump and a server of the test's own.

#ifndef LAWN_TEST_DURABLE_LAWNCTL_FIXTURE_H
#define LAWN_TEST_DURABLE_LAWNCTL_FIXTURE_H

#include "redis_server.h"

#include <lawn/durable.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lawn_test
{

inline std::string contents(const std::string &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline size_t lines(const std::string &text)
{
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// One run of lawnctl, or of another program; its output goes to files.
class Program
{
public:
    explicit Program(Words words, const char *program = getenv("LAWN_LAWNCTL"))
    {
        if (program == nullptr) {
            throw std::runtime_error("LAWN_LAWNCTL is not set");
        }
        words.insert(words.begin(), program);
        char directory[] = "/tmp/lawnctl-test-XXXXXX";
        if (mkdtemp(directory) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
        directory_ = directory;
        std::vector<char *> pointers;
        for (std::string &word : words) {
            pointers.push_back(word.data());
        }
        pointers.push_back(nullptr);
        pid_ = fork();
        if (pid_ == 0) {
            const int flags = O_WRONLY | O_CREAT;
            dup2(open((directory_ + "/out").c_str(), flags, 0600), 1);
            dup2(open((directory_ + "/err").c_str(), flags, 0600), 2);
            execv(program, pointers.data());
            _exit(127);
        }
    }

    ~Program()
    {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            wait();
        }
        unlink((directory_ + "/out").c_str());
        unlink((directory_ + "/err").c_str());
        rmdir(directory_.c_str());
    }

    Program(const Program &) = delete;
    Program &operator=(const Program &) = delete;

    // Its exit status; -1 if a signal has ended it.
    int wait()
    {
        int status = 0;
        if (pid_ > 0) {
            waitpid(pid_, &status, 0);
            pid_ = -1;
            status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
        return status_;
    }

    void signal(int number)
    {
        ::kill(pid_, number);
    }

    std::string out() const
    {
        return contents(directory_ + "/out");
    }

    std::string err() const
    {
        return contents(directory_ + "/err");
    }

private:
    std::string directory_;
    pid_t pid_ = -1;
    int status_ = 0;
};

class LawnctlTest : public testing::Test
{
protected:
    LawnctlTest()
    {
        const std::string url = server_.url();
        lawn_durable_params_t params = {};
        params.url = url.c_str();
        params.name_space = "test";
        EXPECT_EQ(lawn_durable_open(&params, &pump_client_), LAWN_OK);
        const lawn_durable_pump_params_t pump_params = {};
        lawn_durable_pump_t *pump = nullptr;
        EXPECT_EQ(lawn_durable_pump_start(pump_client_, &pump_params, &pump),
                  LAWN_OK);
        pump_ = std::thread([this] {
            while (!ends_) {
                lawn_durable_wait(pump_client_, 20000);
            }
        });
    }

    ~LawnctlTest() override
    {
        ends_ = true;
        pump_.join();
        lawn_durable_close(pump_client_);
    }

    Words with_store(const Words &words) const
    {
        Words all = {"--redis", server_.url(), "--namespace", "test"};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }

    std::string out_of(const Words &words, int status = 0)
    {
        Program run(with_store(words));
        EXPECT_EQ(run.wait(), status) << run.err();
        EXPECT_EQ(run.err(), "");
        return run.out();
    }

    RedisServer server_;

private:
    lawn_durable_t *pump_client_ = nullptr;
    std::atomic<bool> ends_{false};
    std::thread pump_;
};

// Refused with status 1, nothing on stdout, and one line on stderr.
inline void expect_refusal(const Words &words, const std::string &what)
{
    Program run(words);
    EXPECT_EQ(run.wait(), 1) << what;
    EXPECT_EQ(run.out(), "") << what;
    const std::string err = run.err();
    EXPECT_EQ(lines(err), 1u) << err;
    EXPECT_EQ(err.compare(0, 9, "lawnctl: "), 0) << err;
    EXPECT_NE(err.find(what), std::string::npos) << err;
}

} // namespace lawn_test

#endif
