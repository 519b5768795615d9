// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A child process that is killed, stopped and started again, and ends with this
// program, whatever ends it.

#ifndef LAWN_VERIFY_PROCESS_H
#define LAWN_VERIFY_PROCESS_H

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace lawn_verify
{

class Process
{
public:
    Process() = default;
    ~Process(); // SIGKILL

    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;

    // `words` are the program, as execvp() takes it, and its arguments. What it
    // prints is appended to the file `log`; its input is `input`, or nothing if
    // that is -1. Fails the program if it cannot fork.
    void start(const std::vector<std::string> &words, const std::string &log,
               int input = -1);

    void signal(int number);
    // SIGKILL, and waits for its end.
    void kill();
    // Whether it runs; takes up its status if it has ended.
    bool is_running();
    // What it has returned; none while it runs or if a signal ended it.
    std::optional<int> status() const;
    // Of the process that runs; -1 if none does.
    pid_t pid() const
    {
        return pid_;
    }

private:
    void end(int wait_status);

    pid_t pid_ = -1;
    std::optional<int> status_;
};

} // namespace lawn_verify

#endif
