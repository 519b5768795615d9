// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// DPDK's timers between real processes of DPDK's, by the names of DPDK: a
// primary manages on two lcores, secondaries start and stop timers in huge
// pages that all of them share, and are killed. Each process is this program,
// which is told what to be.

#define LAWN_RTE_COMPAT
#include <lawn/rte_compat.h>

#include <gtest/gtest.h>

#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr unsigned timer_count = 1000;
constexpr unsigned kills = 4;
constexpr const char *zone_name = "lawn_rte_alt_test";

// What has become of a start.
struct Start {
    rte_timer timer; // first
    uint64_t deadline;
    uint64_t ran_at;
    uint32_t runs;
};

struct Zone {
    uint32_t id;
    std::atomic<Start *> starts; // of a secondary's memory
    std::atomic<bool> is_over;
};

// ---- What the processes do. They return their exit status.

Zone *zone()
{
    const rte_memzone *const memory = rte_memzone_lookup(zone_name);
    return memory ? static_cast<Zone *>(memory->addr) : nullptr;
}

void expired(rte_timer *timer)
{
    Start *const start = reinterpret_cast<Start *>(timer);
    start->ran_at = rte_get_timer_cycles();
    __atomic_fetch_add(&start->runs, 1, __ATOMIC_RELEASE);
}

int manage()
{
    const rte_memzone *const memory =
        rte_memzone_reserve(zone_name, sizeof(Zone), SOCKET_ID_ANY, 0);
    if (!memory) {
        return 10;
    }
    Zone *const zone = new (memory->addr) Zone();
    if (rte_timer_subsystem_init() != 0 ||
        rte_timer_data_alloc(&zone->id) != 0) {
        return 11;
    }
    if (write(STDOUT_FILENO, "up\n", 3) != 3) {
        return 12;
    }
    const unsigned lcores[] = {0, 1};
    while (!zone->is_over) {
        if (rte_timer_alt_manage(zone->id, lcores, 2, expired) != 0) {
            return 13;
        }
    }
    return rte_timer_data_dealloc(zone->id) == 0 ? 0 : 14;
}

uint64_t ticks_of(double msec)
{
    return static_cast<uint64_t>(
        msec * static_cast<double>(rte_get_timer_hz()) / 1000);
}

// Starts all timers, and waits until each has run, once, and none early. Some
// may be another's until the primary has noticed that it is dead.
int run_all(const Zone &zone)
{
    Start *const starts = zone.starts;
    for (unsigned i = 0; i < timer_count; ++i) {
        Start &start = starts[i];
        const uint64_t ticks = ticks_of(1 + i % 20);
        int ret;
        do {
            ret = rte_timer_alt_stop(zone.id, &start.timer);
        } while (ret == -EACCES || ret == -1);
        start.runs = 0;
        start.deadline = rte_get_timer_cycles() + ticks;
        if (ret == 0) {
            ret = rte_timer_alt_reset(zone.id, &start.timer, ticks, SINGLE,
                                      i % 2, nullptr, nullptr);
        }
        if (ret != 0) {
            return 20;
        }
    }
    for (unsigned i = 0; i < timer_count; ++i) {
        while (__atomic_load_n(&starts[i].runs, __ATOMIC_ACQUIRE) == 0) {
            usleep(100);
        }
    }
    usleep(20000);
    for (unsigned i = 0; i < timer_count; ++i) {
        if (starts[i].runs != 1) {
            return 21;
        }
        if (starts[i].ran_at < starts[i].deadline) {
            return 22;
        }
    }
    return 0;
}

// Starts and stops a timer; from a stop that returns 0 until the next start it
// does not run. It may expire between the two calls, when this process is kept
// from the processor, and either call may find it running: both say so by -1.
int stop_all(const Zone &zone)
{
    Start &start = zone.starts.load()[0];
    uint32_t runs = start.runs;
    for (unsigned i = 0; i < 100; ++i) {
        int ret;
        if (__atomic_load_n(&start.runs, __ATOMIC_ACQUIRE) != runs) {
            return 32;
        }
        do {
            ret = rte_timer_alt_reset(zone.id, &start.timer, ticks_of(1),
                                      SINGLE, 0, nullptr, nullptr);
        } while (ret == -1);
        if (ret != 0) {
            return 33;
        }
        do {
            ret = rte_timer_alt_stop(zone.id, &start.timer);
        } while (ret == -1);
        if (ret != 0) {
            return 34;
        }
        runs = __atomic_load_n(&start.runs, __ATOMIC_ACQUIRE);
    }
    usleep(10000);
    return __atomic_load_n(&start.runs, __ATOMIC_ACQUIRE) == runs ? 0 : 32;
}

int use()
{
    Zone *const all = zone();
    if (!all) {
        return 30;
    }
    if (!all->starts) {
        all->starts = static_cast<Start *>(
            rte_zmalloc(nullptr, timer_count * sizeof(Start), 64));
    }
    if (!all->starts) {
        return 31;
    }
    const int status = run_all(*all);
    if (status != 0) {
        return status;
    }
    return stop_all(*all);
}

// Until it is killed.
int churn(unsigned seed)
{
    Zone *const all = zone();
    std::mt19937 random(seed);
    if (!all || write(STDOUT_FILENO, "up\n", 3) != 3) {
        return 40;
    }
    for (;;) {
        rte_timer *const timer =
            &all->starts.load()[random() % timer_count].timer;
        if (random() % 3 == 0) {
            rte_timer_alt_stop(all->id, timer);
        } else {
            rte_timer_alt_reset(all->id, timer, ticks_of(random() % 3),
                                random() % 2 ? SINGLE : PERIODICAL,
                                random() % 2, nullptr, nullptr);
        }
    }
}

int run_role(const std::string &role)
{
    const bool is_primary = role == "manage";
    const char *eal[] = {
        "rte_alt_test",
        is_primary ? "--proc-type=primary" : "--proc-type=secondary",
        // The primary polls, and wants a processor.
        is_primary                          ? "--lcores=0@0,1@0"
        : sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "--lcores=2@1"
                                            : "--lcores=2@0",
        "--file-prefix=lawn_rte_alt_test",
        "--no-pci",
        "--no-telemetry",
        "--legacy-mem", // starts sooner
        "--log-level=error",
        "-m",
        "16",
    };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rte_eal_init(sizeof(eal) / sizeof(eal[0]), const_cast<char **>(eal)) <
        0) {
        return 50;
    }
    const int status = is_primary      ? manage()
                       : role == "use" ? use()
                       : role == "end" ? (zone()->is_over = true, 0)
                                       : churn(std::stoul(role));
    rte_eal_cleanup();
    return status;
}

// ---- The test.

struct Process {
    pid_t pid;
    int output;

    // Waits for it to say that it is up.
    void wait_until_up() const
    {
        char text[3];
        ASSERT_EQ(read(output, text, sizeof(text)), 3) << "it has ended";
    }

    int status() const
    {
        int status = 0;
        EXPECT_EQ(waitpid(pid, &status, 0), pid);
        close(output);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
};

Process start(const std::string &role)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "rte_alt_test", "--role", role.c_str(),
              nullptr);
        _exit(127);
    }
    close(ends[1]);
    return {pid, ends[0]};
}

TEST(RteAlt, SecondariesStartWhatThePrimaryRuns)
{
    const Process primary = start("manage");
    ASSERT_NO_FATAL_FAILURE(primary.wait_until_up());
    EXPECT_EQ(start("use").status(), 0);
    std::mt19937 random(7);
    for (unsigned i = 0; i < kills && !HasFailure(); ++i) {
        const Process secondary = start(std::to_string(i));
        ASSERT_NO_FATAL_FAILURE(secondary.wait_until_up());
        usleep(static_cast<useconds_t>(random() % 20000));
        kill(secondary.pid, SIGKILL);
        EXPECT_EQ(secondary.status(), -SIGKILL);
    }
    EXPECT_EQ(start("use").status(), 0) << "the others were killed";
    EXPECT_EQ(start("end").status(), 0);
    EXPECT_EQ(primary.status(), 0);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--role") == 0) {
        return run_role(argv[2]);
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
