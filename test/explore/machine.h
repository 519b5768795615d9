// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What the machine under explored threads consists of (system.h).

#ifndef LAWN_TEST_EXPLORE_MACHINE_H
#define LAWN_TEST_EXPLORE_MACHINE_H

#include "explorer.h"

#include <lawn/time.h>

#include <sys/epoll.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

namespace explore
{

constexpr int first_fd = 1000;

struct TimerFd {
    bool is_set;
    lawn_time_t when;
    lawn_time_t interval;
    View view; // of those who have set it
};

struct Mutex {
    unsigned owner; // Explorer::nobody: free
    View view;
};

struct Fifo {
    bool is_full;
    View view; // of those who have written to it
};

// With its birth: another process may have the number later.
using Process = std::pair<pid_t, uint64_t>;

struct System {
    lawn_time_t now;
    lawn_time_t back; // how far the counter has gone back
    int next_fd;
    std::map<int, TimerFd> timers;
    std::map<int, std::map<int, epoll_event>> epolls;
    std::map<const void *, Mutex> mutexes;
    std::map<unsigned, View> ended; // threads
    std::map<std::string, int> fifo_names;
    std::map<int, Fifo> fifos; // by number; one without a name is not free
    std::map<int, int> fifo_fds;
    std::map<int, Process> pidfds;
    std::map<Process, View> dead;
    std::map<pid_t, uint64_t> births;    // later ones than the first
    std::map<unsigned, pid_t> processes; // of threads
    pid_t process;                       // while no thread runs
    void *file;                          // of shared memory, mapped
    size_t file_size;
};

extern System the;
extern bool is_on; // a program runs; else calls are what they are

bool is_readable(int fd, bool learns = true);

} // namespace explore

#endif
