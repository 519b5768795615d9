// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The promises of lawn/engine.h. Passes run on virtual time, 1 tick = 1 ns;
// sleeping uses real descriptors, and asserts of real time only that nothing
// comes early.

#include <lawn/engine.h>

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
#include <time.h>
#include <unistd.h>

namespace
{

constexpr lawn_time_t msec = 1'000'000;
constexpr lawn_time_t sec = 1000 * msec;
constexpr lawn_time_t start = 7 * sec;

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
};

TEST_F(Engine, CreateRefusesInvalidParams)
{
    lawn_engine_t *engine = nullptr;
    EXPECT_EQ(lawn_engine_create(&params_, nullptr), LAWN_ERR_INVALID_PARAM);
    for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                              std::numeric_limits<double>::infinity()}) {
        lawn_engine_params_t params = params_;
        params.ticks_per_sec = rate;
        EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_ERR_INVALID_PARAM);
    }
    lawn_engine_params_t params = params_;
    params.lawn.allocator.release = nullptr;
    EXPECT_EQ(lawn_engine_create(&params, &engine), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(engine, nullptr);
}

TEST_F(Engine, DefaultsRunOnTheProcessorsClock)
{
    lawn_engine_t *engine = nullptr;
    const lawn_time_t before = lawn_get_time();
    ASSERT_EQ(lawn_engine_create(nullptr, &engine), LAWN_OK);
    EXPECT_GE(lawn_engine_now(engine), before);
    EXPECT_EQ(lawn_engine_progress(engine), 0U);
    EXPECT_LE(lawn_engine_now(engine), lawn_get_time());
    lawn_engine_destroy(engine);
    lawn_engine_destroy(nullptr);
}

TEST_F(Engine, EveryFailedAllocationIsReportedAndLeaksNothing)
{
    lawn_engine_t *engine = nullptr;
    const unsigned live = allocations_.live;
    unsigned points = 0;
    for (lawn_status_t status = LAWN_ERR_NO_MEMORY; status != LAWN_OK;) {
        allocations_.left = points;
        status = lawn_engine_create(&params_, &engine);
        if (status == LAWN_OK) {
            break;
        }
        ASSERT_EQ(status, LAWN_ERR_NO_MEMORY);
        EXPECT_EQ(engine, nullptr);
        EXPECT_EQ(allocations_.live, live);
        ++points;
    }
    EXPECT_EQ(points, 2U); // the engine and its lawn
    allocations_.left = 0;
    EXPECT_EQ(lawn_engine_add(engine, call, nullptr, -1, nullptr),
              LAWN_ERR_NO_MEMORY);
    lawn_engine_destroy(engine);
    EXPECT_EQ(allocations_.live, live);
}

TEST_F(Engine, PassReadsTheClockOncePollsInOrderAndThenExpires)
{
    add('a');
    add('b');
    add('c');
    start_timer(5);
    EXPECT_EQ(lawn_engine_now(engine_), start);
    EXPECT_EQ(pass_at(start + 4), "abc");
    clock_reads_ = 0;
    EXPECT_EQ(pass_at(start + 5), "abct");
    EXPECT_EQ(clock_reads_, 1U);
    EXPECT_EQ(lawn_engine_now(engine_), start + 5);
    EXPECT_EQ(lawn_engine_next(engine_), LAWN_TIME_INFINITY);
    EXPECT_EQ(stats().passes, 2U);
    EXPECT_EQ(stats().fired, 1U);
}

TEST_F(Engine, ReturnsTheWorkDone)
{
    pass();
    EXPECT_EQ(work_, 0U);
    add([] { return 3U; });
    add([] { return 0U; });
    add([] { return 4U; });
    start_timer(0);
    pass();
    EXPECT_EQ(work_, 8U);
    add([] { return UINT_MAX; }); // must not wrap to "nothing"
    pass();
    EXPECT_EQ(work_, UINT_MAX);
}

TEST_F(Engine, WhatIsReceivedStopsItsTimerFirst)
{
    start_timer(5);
    add([this] {
        return unsigned{lawn_engine_stop(engine_, &timers_[0].timer)};
    });
    EXPECT_EQ(pass_at(start + 5), "");
    EXPECT_EQ(work_, 1U);
}

TEST_F(Engine, ExpiresWithTheTimeReadBeforeThePoll)
{
    start_timer(5);
    add([this] {
        now_ = start + 5;
        return 0U;
    });
    EXPECT_EQ(pass_at(start + 4), "");
    EXPECT_EQ(pass(), "t");
}

TEST_F(Engine, BudgetIsPerPassAndPollingComesBetween)
{
    params_.budget = 4;
    create();
    add('p');
    for (int i = 0; i < 10; ++i) {
        start_timer(5);
    }
    EXPECT_EQ(pass_at(start + 5), "ptttt");
    EXPECT_EQ(work_, 4U);
    EXPECT_EQ(pass(), "ptttt");
    EXPECT_EQ(pass(), "ptt");
    EXPECT_EQ(pass(), "p");
    EXPECT_EQ(work_, 0U);
}

TEST_F(Engine, BudgetIs64ByDefault)
{
    for (int i = 0; i < 65; ++i) {
        start_timer(5);
    }
    EXPECT_EQ(pass_at(start + 5), std::string(64, 't'));
    EXPECT_EQ(pass(), "t");
}

TEST_F(Engine, StartReadsTheClock)
{
    add([this] {
        now_ += 100;
        start_timer(50);
        return 0U;
    });
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(lawn_timer_deadline(&timers_[0].timer), start + 150);
    EXPECT_TRUE(lawn_engine_stop(engine_, &timers_[0].timer));
    EXPECT_FALSE(lawn_engine_stop(engine_, &timers_[0].timer));
}

TEST_F(Engine, TimeDoesNotGoBack)
{
    pass_at(start + 100);
    EXPECT_EQ(pass_at(start + 50), "");
    EXPECT_EQ(lawn_engine_now(engine_), start + 100);
    start_timer(10);
    EXPECT_EQ(lawn_timer_deadline(&timers_[0].timer), start + 110);
    EXPECT_EQ(pass_at(start + 109), "");
    EXPECT_EQ(pass_at(0), "");
    EXPECT_EQ(pass_at(start + 110), "t");
    EXPECT_EQ(stats().stalls, 0U);
}

TEST_F(Engine, SourcesAddedInAPassArePolledFromTheNext)
{
    bool is_added = false;
    const auto add_once = [&] {
        if (!is_added) {
            add('n');
        }
        is_added = true;
        return 0U;
    };
    add(add_once);
    EXPECT_EQ(pass(), "");
    EXPECT_EQ(pass(), "n");
    is_added = false;
    then_ = add_once; // from a timer
    start_timer(0);
    EXPECT_EQ(pass(), "nt");
    EXPECT_EQ(pass(), "nn");
}

TEST_F(Engine, SourcesMayBeRemovedInAPass)
{
    // Each source of five, and a timer, removes each set of them.
    for (unsigned who = 0; who < 6; ++who) {
        for (unsigned victims = 0; victims < 32; ++victims) {
            create();
            lawn_source_t *sources[5];
            const auto remove = [&] {
                for (unsigned i = 0; i < 5; ++i) {
                    if (victims >> i & 1) {
                        lawn_engine_remove(engine_, sources[i]);
                    }
                }
                victims = 0;
                return 0U;
            };
            std::string first_pass;
            std::string second_pass;
            for (unsigned i = 0; i < 5; ++i) {
                const char name = static_cast<char>('a' + i);
                sources[i] = add([this, remove, name, is_it = i == who] {
                    note(name);
                    return is_it ? remove() : 0U;
                });
                const bool is_victim = victims >> i & 1;
                first_pass += i > who && is_victim ? "" : std::string(1, name);
                second_pass += is_victim ? "" : std::string(1, name);
            }
            const unsigned remaining = victims;
            then_ = [&] { remove(); };
            if (who == 5) {
                start_timer(0);
                first_pass += 't';
            }
            EXPECT_EQ(pass(), first_pass) << who << ' ' << remaining;
            EXPECT_EQ(pass(), second_pass) << who << ' ' << remaining;
            victims = remaining;
        }
    }
}

TEST_F(Engine, SourcesMayBeReplacedInAPass)
{
    lawn_source_t *source = nullptr;
    unsigned generation = 0;
    Function replace = [&] {
        note('r');
        lawn_engine_remove(engine_, source);
        // Removed before it was ever polled.
        lawn_engine_remove(engine_, add('x'));
        if (++generation < 3) {
            source = add(replace);
        }
        return 0U;
    };
    source = add(replace);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(pass(), "r");
    }
    EXPECT_EQ(pass(), "");
}

TEST_F(Engine, SourcesMayBeRemovedBetweenPasses)
{
    lawn_source_t *const a = add('a');
    lawn_source_t *const b = add('b');
    lawn_source_t *const c = add('c');
    lawn_engine_remove(engine_, b);
    EXPECT_EQ(pass(), "ac");
    lawn_engine_remove(engine_, c);
    add('d');
    lawn_engine_remove(engine_, a);
    EXPECT_EQ(pass(), "d");
}

TEST_F(Engine, IsNotReentrant)
{
    const auto reenter = [this] {
        EXPECT_DEBUG_DEATH(lawn_engine_progress(engine_), "in_pass");
        EXPECT_DEBUG_DEATH(lawn_engine_destroy(engine_), "in_pass");
        EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_INVALID_PARAM);
        EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_INVALID_PARAM);
        return note('p');
    };
    add(reenter);
    then_ = reenter;
    start_timer(0);
    EXPECT_EQ(pass(), "ptp");
}

TEST_F(Engine, ALatePassIsAStallAndPollsTwice)
{
    add('a');
    add('b');
    start_timer(1);
    // The first pass has none before it.
    EXPECT_EQ(pass_at(start + sec), "abt");
    EXPECT_EQ(pass_at(now_ + 10 * msec - 1), "ab");
    EXPECT_EQ(stats().stalls, 0U);
    start_timer(1);
    EXPECT_EQ(pass_at(now_ + 10 * msec), "ababt");
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(stats().worst_stall, 10 * msec);
    EXPECT_EQ(pass(), "ab");
    pass_at(now_ + sec);
    pass_at(now_ + 20 * msec);
    EXPECT_EQ(stats().stalls, 3U);
    EXPECT_EQ(stats().worst_stall, sec);
}

TEST_F(Engine, TheSecondPollOfAStallSavesATimer)
{
    unsigned polls = 0;
    add([&] {
        // The ACK is behind a batch of other completions.
        return ++polls == 3 && lawn_engine_stop(engine_, &timers_[0].timer);
    });
    pass();
    start_timer(sec);
    EXPECT_EQ(pass_at(start + 2 * sec), "");
    EXPECT_EQ(polls, 3U);
}

TEST_F(Engine, AStallPollsWhatWasThereWhenItBegan)
{
    lawn_source_t *gone = nullptr;
    pass();
    add([this, &gone] {
        if (gone) {
            lawn_engine_remove(engine_, gone);
            add('n');
        }
        gone = nullptr;
        return note('a');
    });
    gone = add('b');
    EXPECT_EQ(pass_at(now_ + sec), "aa");
    EXPECT_EQ(pass(), "an");
}

TEST_F(Engine, TheStallThresholdIsAParameter)
{
    params_.stall_threshold = 3;
    create();
    add('a');
    pass();
    EXPECT_EQ(pass_at(now_ + 2), "a");
    EXPECT_EQ(pass_at(now_ + 3), "aa");
    params_.stall_threshold = LAWN_TIME_INFINITY;
    create();
    add('a');
    pass();
    EXPECT_EQ(pass_at(LAWN_TIME_INFINITY - 1), "a");
}

TEST_F(Engine, AddRefusesWhatCannotBePolled)
{
    EXPECT_EQ(lawn_engine_add(nullptr, call, nullptr, -1, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_engine_add(engine_, nullptr, nullptr, -1, nullptr),
              LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_engine_add(engine_, call, nullptr, -2, nullptr),
              LAWN_ERR_INVALID_PARAM);
    const unsigned live = allocations_.live;
    fds_.push_back(open("/proc/self/exe", O_RDONLY));
    EXPECT_EQ(lawn_engine_add(engine_, call, nullptr, fds_[0], nullptr),
              LAWN_ERR_IO); // a file is always ready: epoll refuses it
    EXPECT_EQ(lawn_engine_add(engine_, call, nullptr, 1 << 20, nullptr),
              LAWN_ERR_IO);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(allocations_.live, live);
    EXPECT_EQ(pass(), "");
}

TEST_F(Engine, ArmIsBusyWhileThereIsWork)
{
    start_timer(5);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    now_ += 5; // arm reads the clock
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_EQ(pass(), "t");
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);

    lawn_source_t *const ready = add('a', event_fd(1));
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_TRUE(is_readable(0));
    lawn_engine_remove(engine_, ready);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
}

TEST_F(Engine, ArmedFdWakesAtTheDeadline)
{
    // The clock stands still; the timerfd does not.
    start_timer(2 * msec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK); // nothing new to set
    EXPECT_TRUE(is_readable(-1));
    // The wake-up was a little early in ticks: armed anew, it comes again.
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(-1));
    EXPECT_EQ(pass_at(start + 2 * msec), "t");
    // Passed and armed, it sleeps again.
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
    start_timer(LAWN_TIME_INFINITY);
    start_timer(LAWN_TIME_INFINITY - 1 - now_);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
    start_timer(1); // shorter than the kernel's own latency
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(-1));
}

TEST_F(Engine, WaitIsNeverEarly)
{
    const auto monotonic = [] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return static_cast<lawn_time_t>(now.tv_sec) * sec +
               static_cast<lawn_time_t>(now.tv_nsec);
    };
    EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_TIMED_OUT);
    for (const bool has_timer : {false, true}) {
        if (has_timer) {
            start_timer(2 * msec);
        }
        const lawn_time_t before = monotonic();
        EXPECT_EQ(lawn_engine_wait(engine_, has_timer ? 3600 * sec : 2 * msec),
                  has_timer ? LAWN_OK : LAWN_ERR_TIMED_OUT);
        EXPECT_GE(monotonic() - before, 2 * msec);
    }
    // The earlier of both.
    EXPECT_EQ(lawn_engine_wait(engine_, msec), LAWN_ERR_TIMED_OUT);

    // On the processor's clock, which is not quite the kernel's.
    params_.clock = nullptr;
    params_.ticks_per_sec = 0;
    create();
    const lawn_time_t wait = lawn_time_from_msec(1);
    for (int i = 0; i < 5; ++i) {
        const lawn_time_t before = lawn_get_time();
        EXPECT_EQ(lawn_engine_wait(engine_, wait), LAWN_ERR_TIMED_OUT);
        EXPECT_GE(lawn_get_time() - before, wait);
    }
}

TEST_F(Engine, WaitEndsWithASignal)
{
    struct sigaction action = {};
    struct sigaction before;
    action.sa_handler = [](int) {};
    ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
    // Again and again, since the first may come before the wait.
    const itimerval every_msec = {{0, 1000}, {0, 1000}};
    const itimerval never = {};
    ASSERT_EQ(setitimer(ITIMER_REAL, &every_msec, nullptr), 0);
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
}

TEST_F(Engine, ASleepIsNoStall)
{
    start_timer(sec);
    pass();
    // From the armed deadline on, the program is expected back.
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(pass_at(start + sec + 10 * msec - 1), "t");
    EXPECT_EQ(stats().stalls, 0U);
    start_timer(sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(pass_at(now_ + sec + 10 * msec), "t");
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(stats().worst_stall, 10 * msec);
    // A source woke it early: then as ever.
    start_timer(sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    pass_at(now_ + 100 * msec);
    EXPECT_EQ(stats().stalls, 1U);
    pass_at(now_ + 100 * msec);
    EXPECT_EQ(stats().stalls, 2U);
    // After a wait the gap counts from its return.
    now_ += 9 * msec;
    ASSERT_EQ(lawn_engine_wait(engine_, 1), LAWN_ERR_TIMED_OUT);
    pass_at(now_ + 10 * msec - 1);
    EXPECT_EQ(stats().stalls, 2U);
    ASSERT_EQ(lawn_engine_wait(engine_, 1), LAWN_ERR_TIMED_OUT);
    pass_at(now_ + 10 * msec);
    EXPECT_EQ(stats().stalls, 3U);
    // BUSY is no sleep.
    start_timer(0);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    pass_at(now_ + 10 * msec);
    EXPECT_EQ(stats().stalls, 4U);
}

TEST_F(Engine, SourcesMayShareAnFd)
{
    const int fd = event_fd(1);
    lawn_source_t *const a = add('a', fd);
    lawn_source_t *const b = add('b', fd);
    lawn_engine_remove(engine_, a);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    lawn_engine_remove(engine_, b);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
}

TEST_F(Engine, AnFdMayBeClosedBeforeItsSourceIsRemoved)
{
    const int fd = eventfd(1, 0);
    lawn_source_t *const a = add('a', fd);
    close(fd);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    // Its number is given out again: the new one's wake-ups must stay.
    ASSERT_EQ(event_fd(1), fd);
    lawn_source_t *const b = add('b', fd);
    lawn_engine_remove(engine_, a);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    lawn_engine_remove(engine_, b);
    EXPECT_EQ(pass(), "");
}

TEST_F(Engine, WhatTheKernelRefusesIsReported)
{
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int fd = event_fd(0);
    // Neither descriptor, then the first but not the second.
    for (const rlim_t spare : {1, 2}) {
        const rlimit few = {static_cast<rlim_t>(fd) + spare, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_IO);
        EXPECT_EQ(lawn_engine_wait(engine_, 1), LAWN_ERR_IO);
        EXPECT_EQ(lawn_engine_add(engine_, call, nullptr, fd, nullptr),
                  LAWN_ERR_IO);
        EXPECT_EQ(lawn_engine_fd(engine_), -1);
        EXPECT_EQ(errno, EMFILE);
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(fcntl(lawn_engine_fd(engine_), F_GETFD), FD_CLOEXEC);
}

} // namespace
