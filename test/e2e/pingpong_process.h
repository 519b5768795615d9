// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A ping-pong program, with the rig (test/rig), as a child process: its output,
// its exit status, its signals, and its summary as names and values.

#ifndef LAWN_TEST_E2E_PINGPONG_PROCESS_H
#define LAWN_TEST_E2E_PINGPONG_PROCESS_H

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace e2e
{

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments a, const Arguments &b)
{
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// What the programs exit with.
constexpr int gave_up = 1;
constexpr int bad_usage = 2;
constexpr int peer_dead = 3;

// For losses of up to a fifth each way, where a message in three, or a probe,
// brings no answer. Of 40,000 messages, some are lost ten times in a row, and
// where a slow machine has made the RTO its greatest, a second, that takes as
// long as the peer timeout is by default.
inline const Arguments patient = {"--keepalive", "2s,500ms,20",
                                  "--peer-timeout", "60s"};

class Process
{
public:
    // Starts `program`, or LAWN_PINGPONG, with `arguments`; output and errors
    // go together.
    explicit Process(const Arguments &arguments, const char *program = nullptr);
    ~Process();

    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;

    void signal(int number) const;

    pid_t pid() const
    {
        return pid_;
    }

    // Whether it has ended; does not wait.
    bool poll_exit();

    // Waits for the end: the exit status, or 128 + the signal that ended it.
    // A program that does not end within `seconds` is killed: -1.
    int wait(int seconds = 120);

    // Waits until the output contains `text`; false when the program ends, or
    // `seconds` pass, without.
    bool wait_for(const std::string &text, int seconds = 60);

    // All that was printed until now.
    std::string output() const;

    // The value of a line of the summary; empty if there is none.
    std::string summary(const std::string &name) const;

    // The first number in it; NaN, which no comparison holds for, if there is
    // none.
    double number(const std::string &name) const;

    // How much later than the keepalive bound a death may be found, in seconds:
    // each of the expiries on the way may wait for its poll, and if the program
    // itself has stalled, there is one more, an interval later.
    double death_delay(double probes, double interval) const;

private:
    std::string path_; // of the output
    pid_t pid_ = -1;
    int status_ = 0;
    bool ended_ = false;
};

// Packets that `device` has received since it was made.
uint64_t received_packets(const std::string &device);

// Runs a shell command, such as tc or ip; fails the test if it fails.
void shell(const std::string &command);

} // namespace e2e

#endif
