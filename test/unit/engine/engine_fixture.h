// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// An engine on virtual time, with sources that log what is done to them.

#ifndef LAWN_TEST_UNIT_ENGINE_FIXTURE_H
#define LAWN_TEST_UNIT_ENGINE_FIXTURE_H

#include <lawn/engine.h>
#include <lawn/shared.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace lawn_test
{

constexpr lawn_time_t msec = 1'000'000;
constexpr lawn_time_t sec = 1000 * msec;
constexpr lawn_time_t start = 7 * sec;
constexpr int long_msec = 60'000; // for what comes soon, or never

// The kernel's clock, which a timerfd follows.
inline lawn_time_t monotonic()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<lawn_time_t>(now.tv_sec) * sec +
           static_cast<lawn_time_t>(now.tv_nsec);
}

inline int lowest_free_fd()
{
    const int fd = eventfd(0, 0);
    close(fd);
    return fd;
}

// Runs `work` in a child, from which it does not return; true if it did well.
inline bool does_well_in_a_child(const std::function<bool()> &work)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);            // rather than to wait for ever
        exit(work() ? 0 : 1); // not _exit(): instruments have their say
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

struct Allocations {
    unsigned left = UINT_MAX; // allocations that succeed
    unsigned live = 0;
};

class Engine : public testing::Test
{
protected:
    using Function = std::function<unsigned()>;

    Engine()
    {
        params_.clock = [](void *arg) {
            Engine *const test = static_cast<Engine *>(arg);
            ++test->clock_reads_;
            return test->now_;
        };
        params_.clock_arg = this;
        params_.ticks_per_sec = 1e9;
        params_.lawn.allocator.alloc = [](void *arg, size_t size) {
            Allocations *const own = static_cast<Allocations *>(arg);
            if (own->left == 0) {
                return static_cast<void *>(nullptr);
            }
            --own->left;
            ++own->live;
            return malloc(size);
        };
        params_.lawn.allocator.release = [](void *arg, void *memory) {
            --static_cast<Allocations *>(arg)->live;
            free(memory);
        };
        params_.lawn.allocator.arg = &allocations_;
        create();
    }

    ~Engine() override
    {
        lawn_engine_destroy(engine_);
        EXPECT_EQ(allocations_.live, 0U);
        for (const int fd : fds_) {
            EXPECT_EQ(close(fd), 0); // the engine has closed none of them
        }
        EXPECT_EQ(lowest_free_fd(), free_fd_); // and all of its own
    }

    void create()
    {
        lawn_engine_destroy(engine_);
        ASSERT_EQ(lawn_engine_create(&params_, &engine_), LAWN_OK);
    }

    static unsigned call(void *arg)
    {
        return (*static_cast<Function *>(arg))();
    }

    lawn_source_t *add(Function function, int fd = -1)
    {
        lawn_source_t *source = nullptr;
        functions_.push_back(std::move(function));
        EXPECT_EQ(
            lawn_engine_add(engine_, call, &functions_.back(), fd, &source),
            LAWN_OK);
        return source;
    }

    // A source that only leaves its name in the log.
    lawn_source_t *add(char name, int fd = -1)
    {
        return add([this, name] { return note(name); }, fd);
    }

    unsigned note(char name)
    {
        log_ += name;
        return 0;
    }

    // Timers log 't', and run `then_`.
    void start_timer(lawn_time_t ttl)
    {
        timers_.push_back({{}, this});
        lawn_timer_init(
            &timers_.back().timer, [](lawn_timer_t *t, lawn_time_t) {
                Engine *const test = reinterpret_cast<Timer *>(t)->test;
                test->note('t');
                if (test->then_) {
                    test->then_();
                }
            });
        lawn_engine_start(engine_, &timers_.back().timer, ttl);
    }

    // What one pass did.
    std::string pass()
    {
        log_.clear();
        work_ = lawn_engine_progress(engine_);
        return log_;
    }

    std::string pass_at(lawn_time_t now)
    {
        now_ = now;
        return pass();
    }

    lawn_engine_stats_t stats() const
    {
        lawn_engine_stats_t stats;
        lawn_engine_query(engine_, &stats);
        return stats;
    }

    int event_fd(unsigned value)
    {
        fds_.push_back(eventfd(value, 0));
        return fds_.back();
    }

    bool is_readable(int timeout_msec)
    {
        pollfd fd = {lawn_engine_fd(engine_), POLLIN, 0};
        return poll(&fd, 1, timeout_msec) == 1;
    }

    struct Timer {
        lawn_timer_t timer;
        Engine *test;
    };

    Allocations allocations_;
    lawn_time_t now_ = start;
    unsigned clock_reads_ = 0;
    lawn_engine_params_t params_ = {};
    lawn_engine_t *engine_ = nullptr;
    std::deque<Function> functions_;
    std::deque<Timer> timers_;
    std::function<void()> then_;
    std::string log_;
    unsigned work_ = 0;
    std::vector<int> fds_;
    const int free_fd_ = lowest_free_fd();
};

} // namespace lawn_test

#endif
