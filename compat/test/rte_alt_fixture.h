// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's timers between processes as lawn/rte_timer_alt.h makes them, by DPDK's
// names, with lcores of our own: this process manages, its children start and
// stop, on a clock that they share and the test moves.

#ifndef LAWN_TEST_RTE_ALT_FIXTURE_H
#define LAWN_TEST_RTE_ALT_FIXTURE_H

#include <cstdint>

inline thread_local unsigned current_lcore = 0;
inline const char *directory();
inline uint64_t cycles();

#define LAWN_RTE_COMPAT
#define LAWN_RTE_LCORE_ID() current_lcore
#define LAWN_RTE_MAX_LCORE 5u
#define LAWN_RTE_HAS_LCORE(id) ((id) < 3)
#define LAWN_RTE_CYCLES() cycles()
#define LAWN_RTE_ALT_DIR() directory()
#define LAWN_RTE_ALT_TIMERS 128u
#include <lawn/rte_compat.h>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

constexpr unsigned timer_count = 256;
constexpr uint64_t begin = 1000000;
constexpr uint64_t msec = 10000000; // more than the owner waits to look

// What all processes have at one address.
struct Shared {
    std::atomic<uint64_t> now{begin};
    std::atomic<uint32_t> id{0};
    std::atomic<bool> is_up{false};
    std::atomic<int> result{0};
    std::atomic<unsigned> turn{0};
    std::atomic<uint32_t> runs[timer_count] = {};
    rte_timer timers[timer_count] = {};
};

inline std::string directory_name;
inline Shared *shared;
inline std::function<void()> on_clock; // before each reading

inline const char *directory()
{
    return directory_name.c_str();
}

inline uint64_t cycles()
{
    if (on_clock) {
        on_clock();
    }
    return shared->now;
}

class RteAlt;
inline RteAlt *current;

class RteAlt : public testing::Test
{
protected:
    RteAlt()
    {
        char name[] = "/tmp/lawn-alt.XXXXXX";
        directory_name = mkdtemp(name);
        void *const at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        shared = new (at) Shared;
        current_lcore = 0;
        current = this;
        uint32_t id = 99;
        EXPECT_EQ(rte_timer_data_alloc(&id), 0);
        EXPECT_EQ(id, 0U);
        shared->id = id;
    }

    ~RteAlt() override
    {
        rte_timer_data_dealloc(shared->id);
        EXPECT_EQ(rmdir(directory_name.c_str()), 0) << "files are left";
        munmap(shared, sizeof(Shared));
    }

    static rte_timer *timer(unsigned i = 0)
    {
        return &shared->timers[i];
    }

    static int reset(unsigned i, uint64_t ticks,
                     enum rte_timer_type type = SINGLE, unsigned lcore = 0)
    {
        return rte_timer_alt_reset(shared->id, timer(i), ticks, type, lcore,
                                   nullptr, nullptr);
    }

    static int stop(unsigned i)
    {
        return rte_timer_alt_stop(shared->id, timer(i));
    }

    // In the process that manages; what has run is in `runs`.
    static void expired(rte_timer *timer)
    {
        const ptrdiff_t number = timer - shared->timers;
        current->runs.push_back(static_cast<unsigned>(number));
        ++shared->runs[number];
        EXPECT_FALSE(rte_timer_pending(timer));
        if (current->then) {
            current->then();
        }
    }

    int manage(uint64_t now, unsigned lcore = 0)
    {
        shared->now = now;
        return rte_timer_alt_manage(shared->id, &lcore, 1, expired);
    }

    // The child has what its parent had of the data.
    static pid_t in_fork(const std::function<int()> &run)
    {
        const pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(run()); // not _exit(): instruments have their say
        }
        return pid;
    }

    // The child forgets it, as if it were no child.
    static pid_t in_child(const std::function<int()> &run)
    {
        return in_fork([&run] {
            of_parent = lawn_rte_alts[shared->id];
            lawn_rte_alts[shared->id] = nullptr;
            return run();
        });
    }

    static int status_of(pid_t pid)
    {
        int status = 0;
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    // In a child that goes on until it is killed; what `run` returned is left
    // in `result`. `begin_child` is in_child or in_fork.
    static pid_t in_living_child(
        const std::function<int()> &run,
        pid_t (*begin_child)(const std::function<int()> &) = in_child)
    {
        shared->is_up = false;
        const pid_t pid = begin_child([&run] {
            shared->result = run();
            shared->is_up = true;
            for (;;) {
                pause();
            }
            return 0;
        });
        while (!shared->is_up) {
            sched_yield();
        }
        return pid;
    }

    static void kill_child(pid_t pid)
    {
        kill(pid, SIGKILL);
        EXPECT_EQ(status_of(pid), -SIGKILL);
    }

    std::vector<unsigned> runs;
    std::function<void()> then;

    // In a child: what its parent has, for that is no leak.
    inline static lawn_rte_alt_t *of_parent = nullptr;
};

#endif
