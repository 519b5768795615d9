// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A ping-pong program as a child process; see pingpong_process.h.

#include "pingpong_process.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace e2e
{

namespace
{

using Clock = std::chrono::steady_clock;

// Programs of other processes can only be watched.
void pause_a_little()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

} // namespace

Process::Process(const Arguments &arguments, const char *program)
{
    char name[] = "/tmp/pingpong.XXXXXX";
    const int output = mkstemp(name);
    path_ = name;
    if (!program) {
        program = getenv("LAWN_PINGPONG");
    }
    std::vector<char *> argv = {const_cast<char *>("pingpong_verbs")};
    for (const std::string &argument : arguments) {
        argv.push_back(const_cast<char *>(argument.c_str()));
    }
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        dup2(output, STDOUT_FILENO);
        dup2(output, STDERR_FILENO);
        execv(program ? program : "", argv.data());
        perror("LAWN_PINGPONG");
        _exit(127);
    }
    close(output);
}

Process::~Process()
{
    if (!poll_exit()) {
        signal(SIGKILL);
        signal(SIGCONT);
        waitpid(pid_, nullptr, 0);
    }
    if (testing::Test::HasFailure()) {
        printf("--- output of process %d:\n%s---\n", pid_, output().c_str());
    }
    unlink(path_.c_str());
}

void Process::signal(int number) const
{
    if (!ended_) {
        kill(pid_, number);
    }
}

bool Process::poll_exit()
{
    if (!ended_) {
        ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
    }
    return ended_;
}

int Process::wait(int seconds)
{
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    while (!poll_exit()) {
        if (Clock::now() > end) {
            signal(SIGKILL);
            waitpid(pid_, &status_, 0);
            ended_ = true;
            return -1;
        }
        pause_a_little();
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

bool Process::wait_for(const std::string &text, int seconds)
{
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    while (output().find(text) == std::string::npos) {
        if (poll_exit() || Clock::now() > end) {
            return output().find(text) != std::string::npos;
        }
        pause_a_little();
    }
    return true;
}

std::string Process::output() const
{
    std::ifstream file(path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string Process::summary(const std::string &name) const
{
    std::istringstream lines(output());
    for (std::string line; std::getline(lines, line);) {
        const std::string start = name + "  ";
        if (line.compare(0, start.size(), start) == 0) {
            const size_t value = line.find_first_not_of(' ', name.size());
            return value == std::string::npos ? "" : line.substr(value);
        }
    }
    return "";
}

double Process::number(const std::string &name) const
{
    const std::string value = summary(name);
    const size_t digit = value.find_first_of("0123456789");
    return digit == std::string::npos ? NAN : strtod(&value[digit], nullptr);
}

double Process::death_delay(double probes, double interval) const
{
    const double more = number("stalls excused") > 0 ? 1 : 0;
    return more * interval +
           (1 + probes + more) * number("rig lateness max") / 1000;
}

uint64_t received_packets(const std::string &device)
{
    std::ifstream file("/sys/class/infiniband/" + device +
                       "/ports/1/hw_counters/rcvd_pkts");
    uint64_t packets = 0;
    if (!(file >> packets)) {
        throw std::runtime_error("no counters of " + device);
    }
    return packets;
}

void shell(const std::string &command)
{
    ASSERT_EQ(system(command.c_str()), 0) << command;
}

} // namespace e2e
