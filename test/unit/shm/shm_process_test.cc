// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Timers in shared memory, between processes: the owner is this one. Clients
// are killed after each of their instructions, one by one, and at random; after
// each death nothing of theirs may be left, another client's timers still
// expire, and the owner goes on. And a client whose owner is killed is told.

#include "../../environment.h"
#include "../../stepping.h"
#include "shm_fixture.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <new>
#include <random>

#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

namespace
{

using lawn_test::can_trace;
using lawn_test::OnOneProcessor;
using lawn_test::scaled;
using lawn_test::step;

constexpr unsigned timer_count = 16;

// At any time; those after each instruction come to it.
constexpr unsigned kill_count = 1200;

class ShmProcess : public ShmOwner
{
protected:
    ShmProcess()
    {
        params_.timers = timer_count;
        params_.clients = 4;
        engine_params_.budget = 1; // so that messages are left over
    }

    // The owner; and a client of its own, which survives everything.
    void make()
    {
        own();
        survivor_ = open_client();
        timer_ = alloc(survivor_, 1);
    }

    static pid_t in_child(const std::function<int()> &run)
    {
        const pid_t pid = fork();
        if (pid == 0) {
            exit(run()); // not _exit(): instruments have their say
        }
        return pid;
    }

    // What a client does all the time: `rounds` of it.
    static void use(lawn_shm_client_t *client, unsigned rounds)
    {
        for (unsigned i = 0; i < rounds; ++i) {
            lawn_shm_timer_t timer = 0;
            lawn_shm_event_t event;
            if (lawn_shm_alloc(client, 7, &timer) != LAWN_OK) {
                lawn_shm_next(client, &event);
                continue;
            }
            const lawn_time_t now = lawn_shm_time(client);
            lawn_shm_start(client, timer, now + lawn_time_from_sec(60));
            lawn_shm_start(client, timer, now + lawn_time_from_sec(90));
            lawn_shm_start(client, timer, now);
            lawn_shm_next(client, &event);
            lawn_shm_stop(client, timer);
            lawn_shm_release(client, timer);
            lawn_shm_next(client, &event);
        }
    }

    // When the owner has noticed the death nothing is left, and every timer is
    // as good as new.
    void expect_swept()
    {
        while (stats().clients > 1 && !HasFailure()) {
            lawn_engine_progress(engine_);
        }
        ASSERT_EQ(stats().timers, 1U);
        ASSERT_EQ(lawn_check(lawn_engine_lawn(engine_)), LAWN_OK);
        std::vector<lawn_shm_timer_t> all(1, timer_);
        while (all.size() < timer_count) {
            all.push_back(0);
            ASSERT_EQ(lawn_shm_alloc(survivor_, 1, &all.back()), LAWN_OK);
        }
        for (const lawn_shm_timer_t timer : all) {
            ASSERT_TRUE(lawn_shm_start(survivor_, timer, 0));
        }
        lawn_shm_event_t event = {};
        for (size_t fired = 0; fired < all.size();) {
            fired += lawn_shm_next(survivor_, &event);
            lawn_engine_progress(engine_);
        }
        ASSERT_FALSE(lawn_shm_next(survivor_, &event)) << "one came twice";
        for (size_t i = 1; i < all.size(); ++i) {
            lawn_shm_release(survivor_, all[i]);
        }
        while (stats().timers > 1) {
            lawn_engine_progress(engine_);
            ASSERT_FALSE(lawn_shm_next(survivor_, &event));
        }
    }

    lawn_shm_client_t *survivor_ = nullptr;
    lawn_shm_timer_t timer_ = 0;
};

// Of the client's calls. More only where an instrument adds its own.
constexpr unsigned most_steps = 2000;

// From where the client stops itself to the end of its calls, one instruction
// farther each time.
TEST_F(ShmProcess, AClientIsKilledAfterEachInstruction)
{
    make();
    if (!can_trace()) {
        printf("no ptrace here: clients are killed at any time only\n");
        return;
    }
    const OnOneProcessor pinned;
    const unsigned stride =
        100 / static_cast<unsigned>(std::max<uint64_t>(scaled(100), 1));
    unsigned kills = 0;
    bool is_over = false;
    for (unsigned steps = 0; !is_over && steps < most_steps && !HasFailure();
         steps += stride) {
        const pid_t pid = in_child([this] {
            lawn_shm_client_t *client = nullptr;
            if (lawn_shm_open(path_.c_str(), nullptr, nullptr, &client) !=
                    LAWN_OK ||
                ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
                return 1;
            }
            raise(SIGSTOP);
            use(client, 1);
            raise(SIGSTOP); // and no farther
            return 0;
        });
        int status = 0;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_TRUE(WIFSTOPPED(status)) << "no ptrace";
        // In between the owner does something, too.
        const unsigned half = steps / 2;
        step(pid, half);
        lawn_engine_progress(engine_);
        is_over = !step(pid, steps - half);
        siginfo_t info = {};
        if (!is_over && ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info) == 0) {
            is_over = info.si_signo == SIGSTOP && steps > 100;
        }
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        expect_swept();
        ++kills;
    }
    printf("%u kills\n", kills);
    EXPECT_EQ(stats().deaths, kills);
    EXPECT_GT(kills, 10U);
}

// Opening and closing included.
TEST_F(ShmProcess, AClientIsKilledAtAnyTime)
{
    make();
    struct Shared {
        std::atomic<bool> is_up;
    };
    void *const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    Shared *const shared = new (memory) Shared;
    std::mt19937 random(11);
    const unsigned kills = static_cast<unsigned>(scaled(kill_count));
    for (unsigned i = 0; i < kills && !HasFailure(); ++i) {
        shared->is_up = false;
        const pid_t pid = in_child([this, shared] {
            shared->is_up = true;
            for (;;) {
                lawn_shm_client_t *client = nullptr;
                if (lawn_shm_open(path_.c_str(), nullptr, nullptr, &client) ==
                    LAWN_OK) {
                    use(client, 50);
                    lawn_shm_close(client);
                }
            }
            return 0;
        });
        while (!shared->is_up) {
            lawn_engine_progress(engine_);
        }
        const lawn_time_t until =
            lawn_get_time() + lawn_time_from_usec(random() % 500);
        while (lawn_get_time() < until) {
            lawn_engine_progress(engine_);
        }
        kill(pid, SIGKILL);
        int status = 0;
        waitpid(pid, &status, 0);
        // One that died as it joined is found with the next that comes.
        lawn_shm_client_t *next = nullptr;
        while (lawn_shm_open(path_.c_str(), nullptr, nullptr, &next) !=
               LAWN_OK) {
            lawn_engine_progress(engine_);
        }
        lawn_shm_close(next);
        expect_swept();
    }
    munmap(memory, sizeof(Shared));
}

TEST_F(ShmProcess, AClientSleepsUntilItsTimerExpires)
{
    own();
    const pid_t pid = in_child([this] {
        lawn_shm_client_t *client = nullptr;
        if (lawn_shm_open(path_.c_str(), nullptr, nullptr, &client) !=
            LAWN_OK) {
            return 1;
        }
        lawn_shm_timer_t timer = 0;
        lawn_shm_event_t event = {};
        lawn_shm_alloc(client, 5, &timer);
        for (unsigned i = 0; i < 20; ++i) {
            const lawn_time_t deadline =
                lawn_shm_time(client) + lawn_time_from_msec(i % 3);
            lawn_shm_start(client, timer, deadline);
            while (!lawn_shm_next(client, &event)) {
                if (lawn_shm_wait(client, LAWN_TIME_INFINITY) != LAWN_OK) {
                    return 2;
                }
            }
            if (event.cookie != 5 || event.deadline != deadline ||
                lawn_shm_time(client) < deadline) {
                return 3;
            }
        }
        lawn_shm_close(client);
        return 0;
    });
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (lawn_engine_progress(engine_) == 0) {
            lawn_engine_wait(engine_, lawn_time_from_msec(100));
        }
    }
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    while (stats().clients > 0) {
        lawn_engine_progress(engine_);
    }
    EXPECT_EQ(stats().deaths, 0U);
}

// When the owner looks for the first time there is no process of that number
// any more, and its messages wait behind those that a pass has left over.
TEST_F(ShmProcess, AClientThatWasDeadBeforeItWasSeenIsSwept)
{
    make();
    std::vector<lawn_shm_timer_t> timers;
    while (timers.size() < timer_count / 2) {
        timers.push_back(alloc(survivor_));
        lawn_shm_start(survivor_, timers.back(), 0);
    }
    lawn_engine_progress(engine_);
    const pid_t pid = in_child([this] {
        lawn_shm_client_t *client = nullptr;
        if (lawn_shm_open(path_.c_str(), nullptr, nullptr, &client) ==
            LAWN_OK) {
            for (unsigned i = 0; i < timer_count / 4; ++i) {
                lawn_shm_start(client, alloc(client), 0);
            }
            raise(SIGKILL);
        }
        return 1;
    });
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(stats().clients, 2U);
    lawn_engine_progress(engine_);
    ASSERT_EQ(stats().clients, 1U);
    EXPECT_EQ(stats().deaths, 1U);
    // What was the dead client's can be posted again.
    while (timers.size() < timer_count - 1) {
        timers.push_back(alloc(survivor_));
        lawn_shm_start(survivor_, timers.back(), 0);
    }
    lawn_shm_event_t event = {};
    for (size_t fired = 0; fired < timers.size();) {
        fired += lawn_shm_next(survivor_, &event);
        lawn_engine_progress(engine_);
    }
    for (unsigned i = 0; i < 2 * timer_count; ++i) {
        lawn_engine_progress(engine_);
    }
    EXPECT_EQ(lawn_engine_progress(engine_), 0U) << "messages go round";
    for (const lawn_shm_timer_t timer : timers) {
        lawn_shm_release(survivor_, timer);
    }
    while (stats().timers > 1) {
        lawn_engine_progress(engine_);
        ASSERT_FALSE(lawn_shm_next(survivor_, &event));
    }
    expect_swept();
}

// The owner sleeps for ever, and a client dies: it wakes for that alone.
TEST_F(ShmProcess, ASleepingOwnerNoticesADeath)
{
    own();
    int up[2];
    ASSERT_EQ(pipe(up), 0);
    const pid_t pid = in_child([this, up] {
        lawn_shm_client_t *client = nullptr;
        lawn_shm_timer_t timer = 0;
        if (lawn_shm_open(path_.c_str(), nullptr, nullptr, &client) !=
                LAWN_OK ||
            lawn_shm_alloc(client, 0, &timer) != LAWN_OK ||
            write(up[1], "", 1) != 1) {
            return 1;
        }
        for (;;) {
            pause();
        }
    });
    char byte;
    ASSERT_EQ(read(up[0], &byte, 1), 1);
    lawn_engine_progress(engine_);
    EXPECT_EQ(stats().timers, 1U);
    kill(pid, SIGKILL);
    while (stats().clients > 0) {
        if (lawn_engine_progress(engine_) == 0) {
            ASSERT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
        }
    }
    EXPECT_EQ(stats().timers, 0U);
    EXPECT_EQ(stats().deaths, 1U);
    int status = 0;
    waitpid(pid, &status, 0);
    close(up[0]);
    close(up[1]);
}

TEST_F(ShmProcess, AClientLearnsThatItsOwnerIsDead)
{
    int up[2];
    ASSERT_EQ(pipe(up), 0);
    const pid_t pid = in_child([this, up] {
        own();
        if (write(up[1], "", 1) != 1) {
            return 1;
        }
        for (;;) {
            lawn_engine_progress(engine_);
        }
    });
    char byte;
    ASSERT_EQ(read(up[0], &byte, 1), 1);
    lawn_shm_client_t *client = nullptr;
    ASSERT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client), LAWN_OK);
    lawn_shm_timer_t timer = 0;
    ASSERT_EQ(lawn_shm_alloc(client, 0, &timer), LAWN_OK);
    EXPECT_TRUE(lawn_shm_start(client, timer,
                               lawn_shm_time(client) + lawn_time_from_sec(60)));
    kill(pid, SIGKILL);
    lawn_status_t told = LAWN_OK; // it may have been woken for something else
    while (told == LAWN_OK) {
        told = lawn_shm_wait(client, LAWN_TIME_INFINITY);
    }
    EXPECT_EQ(told, LAWN_ERR_NO_ELEM);
    EXPECT_FALSE(lawn_shm_is_open(client, 0)) << "the owner";
    int status = 0;
    waitpid(pid, &status, 0);
    lawn_shm_client_t *other = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &other),
              LAWN_ERR_NO_ELEM);
    // Another owner takes its place; who is still there has the old memory.
    own();
    EXPECT_TRUE(lawn_shm_stop(client, timer));
    EXPECT_EQ(lawn_shm_wait(client, LAWN_TIME_INFINITY), LAWN_ERR_NO_ELEM);
    lawn_shm_close(client);
    ASSERT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &other), LAWN_OK);
    lawn_shm_close(other);
    close(up[0]);
    close(up[1]);
}

// The child of a fork has all that its parent had open, the lock of the file as
// well, and outlives it.
TEST_F(ShmProcess, AnOwnerIsReplacedWhoseChildLives)
{
    int up[2];
    int end[2];
    ASSERT_EQ(pipe(up), 0);
    ASSERT_EQ(pipe(end), 0);
    const pid_t pid = in_child([this, up, end] {
        own();
        const pid_t child = fork();
        char byte = 0;
        if (child == 0) {
            close(end[1]);
            close(up[0]);
            close(up[1]);
            _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
        }
        if (child < 0 || write(up[1], "", 1) != 1) {
            return 1;
        }
        for (;;) {
            pause();
        }
    });
    close(end[0]);
    char byte;
    ASSERT_EQ(read(up[0], &byte, 1), 1);
    ASSERT_EQ(lawn_engine_create(nullptr, &engine_), LAWN_OK);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), &params_, &shm_),
              LAWN_ERR_BUSY)
        << "the owner lives";
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    lawn_shm_client_t *client = nullptr;
    EXPECT_EQ(lawn_shm_open(path_.c_str(), nullptr, nullptr, &client),
              LAWN_ERR_NO_ELEM);
    EXPECT_EQ(lawn_shm_create(engine_, path_.c_str(), &params_, &shm_),
              LAWN_OK);
    open_client();
    EXPECT_EQ(files(), 3U) << "nothing is left of the dead one";
    for (const int fd : {up[0], up[1], end[1]}) {
        close(fd); // the child ends
    }
}

} // namespace
