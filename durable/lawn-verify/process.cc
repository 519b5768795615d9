// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// See process.h.

#include "process.h"

#include "common.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lawn_verify
{

namespace
{

constexpr int status_no_program = 127;

// In the child.
[[noreturn]] void become(char **words, const char *log, int input, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    const int in = input >= 0 ? input : open("/dev/null", O_RDONLY);
    // The parent may have died before the prctl().
    if (getppid() != parent || out < 0 || in < 0 || dup2(in, 0) < 0 ||
        dup2(out, 1) < 0 || dup2(out, 2) < 0) {
        _exit(status_no_program);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(words[0], words);
    _exit(status_no_program);
}

} // namespace

Process::~Process()
{
    kill();
}

void Process::start(const std::vector<std::string> &words,
                    const std::string &log, int input)
{
    kill();
    std::vector<char *> pointers;
    for (const std::string &word : words) {
        pointers.push_back(const_cast<char *>(word.c_str()));
    }
    pointers.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) {
        fail(std::string("cannot fork: ") + strerror(errno));
    }
    if (pid == 0) {
        become(pointers.data(), log.c_str(), input, parent);
    }
    pid_ = pid;
    status_.reset();
}

void Process::signal(int number)
{
    if (pid_ > 0) {
        ::kill(pid_, number);
    }
}

void Process::end(int wait_status)
{
    pid_ = -1;
    if (WIFEXITED(wait_status)) {
        status_ = WEXITSTATUS(wait_status);
    }
}

void Process::kill()
{
    int status = 0;
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        end(status);
    }
}

bool Process::is_running()
{
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
        end(status);
    }
    return pid_ > 0;
}

std::optional<int> Process::status() const
{
    return status_;
}

} // namespace lawn_verify
