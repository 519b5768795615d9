// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Sleeping, on real descriptors: of real time only that nothing comes early is
// asserted.

#include "engine_fixture.h"
#include "engine_kernel.h"

#include <sys/mman.h>

using namespace lawn_test;

namespace
{

// A timer that is slow to be looked at: it takes as long as `work` says.
class SlowTimer
{
public:
    explicit SlowTimer(std::function<void()> work)
    {
        page_ = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        work_ = std::move(work);
        struct sigaction action = {};
        action.sa_handler = [](int) {
            mprotect(page_, size, PROT_READ | PROT_WRITE);
            work_();
        };
        sigaction(SIGSEGV, &action, &old_action_);
        lawn_timer_init(timer(), nullptr);
    }

    ~SlowTimer()
    {
        sigaction(SIGSEGV, &old_action_, nullptr);
        munmap(page_, size);
        work_ = nullptr;
    }

    SlowTimer(const SlowTimer &) = delete;
    SlowTimer &operator=(const SlowTimer &) = delete;

    static lawn_timer_t *timer()
    {
        return static_cast<lawn_timer_t *>(page_);
    }

    // From now on, for the next look.
    static void slow_down()
    {
        mprotect(page_, size, PROT_NONE);
    }

private:
    static constexpr size_t size = 4096;
    static inline void *page_;
    static inline std::function<void()> work_;
    struct sigaction old_action_ = {};
};

// The timerfd counts from when it is set, so what arming takes before is not to
// be waited for again.
TEST_F(Engine, WhatArmingTakesMakesNobodyLate)
{
    constexpr lawn_time_t settling = 242 * msec;
    constexpr lawn_time_t looking = 5 * msec;
    const SlowTimer slow([this] { now_ += settling; });
    lawn_timer_t *const timer = SlowTimer::timer();
    kernel.on_epoll_wait = [this] { now_ += looking; };
    for (const bool waits : {false, true}) {
        SCOPED_TRACE(waits);
        now_ = start;
        create();
        lawn_engine_start(engine_, timer, msec);
        lawn_engine_start(engine_, timer, sec);
        SlowTimer::slow_down();
        kernel.set_to = 0;
        if (waits) {
            // A tick is left of it.
            EXPECT_EQ(lawn_engine_wait(engine_, settling + looking + 1),
                      LAWN_ERR_TIMED_OUT);
            EXPECT_EQ(kernel.set_to, 2U); // rounded up
        } else {
            EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
            EXPECT_EQ(now_, start + settling + looking);
            EXPECT_EQ(now_ + kernel.set_to, start + sec + 1); // rounded up
        }
        EXPECT_EQ(lawn_engine_next(engine_), start + sec);
        EXPECT_TRUE(lawn_engine_stop(engine_, timer));
    }
    kernel.on_epoll_wait = nullptr;
}

TEST_F(Engine, ArmIsBusyWhenADeadlineComesMeanwhile)
{
    start_timer(10);
    lawn_time_t taken = 9;
    kernel.on_epoll_wait = [&] { now_ += taken; };
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    taken = 1;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
    now_ = start + 9;
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    // Nor is a time that is over waited for.
    now_ = start;
    kernel.set_to = 0;
    EXPECT_EQ(lawn_engine_wait(engine_, 1), LAWN_ERR_TIMED_OUT);
    EXPECT_EQ(kernel.set_to, 0U);
    kernel.on_epoll_wait = nullptr;
}

// The time that is left is less than the wait, and the clock stays at its end.
TEST_F(Engine, AWaitEndsAtTheEndOfTime)
{
    now_ = LAWN_TIME_INFINITY - 50;
    const int fd = event_fd(0);
    add('a', fd);
    unsigned calls = 0;
    kernel.set_to = 0;
    kernel.on_epoll_wait = [&] {
        if (++calls != 2) {
            return;
        }
        now_ = LAWN_TIME_INFINITY;
        if (kernel.set_to == 0) { // rather than to wait for ever
            EXPECT_EQ(eventfd_write(fd, 1), 0);
        }
    };
    EXPECT_EQ(lawn_engine_wait(engine_, 100), LAWN_ERR_TIMED_OUT);
    EXPECT_EQ(kernel.set_to, 50U); // rounded up, to the tick before the last
    kernel.on_epoll_wait = nullptr;
}

// Timers of one deadline take one wake-up where there are few of them, else one
// for each of the ten classes of a second's nanoseconds at most; and one that
// is early finds more to do than was looked at when it was set.
TEST_F(Engine, OneBatchTakesFewWakeUps)
{
    for (const size_t count : {1, 256, 257, 10'000}) {
        SCOPED_TRACE(count);
        now_ = start;
        create();
        std::vector<lawn_timer_t> timers(count);
        for (lawn_timer_t &timer : timers) {
            lawn_engine_start(engine_, &timer, sec);
        }
        unsigned wake_ups = 0;
        while (lawn_count(lawn_engine_lawn(engine_)) != 0) {
            if (lawn_engine_arm(engine_) != LAWN_OK) {
                ADD_FAILURE() << "cannot sleep at " << now_;
                lawn_drain(lawn_engine_lawn(engine_), nullptr);
                break;
            }
            now_ = lawn_engine_next(engine_);
            ++wake_ups;
            const uint64_t fired = stats().fired;
            size_t work = 0;
            while (const unsigned some = lawn_engine_progress(engine_)) {
                work += some;
            }
            if (stats().fired == fired) {
                EXPECT_GT(work, 256U);
            }
        }
        EXPECT_EQ(now_, start + sec);
        EXPECT_EQ(stats().fired, count);
        if (count <= 256) {
            EXPECT_EQ(wake_ups, 1U);
        } else {
            EXPECT_LE(wake_ups, 10U);
        }
    }
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

// What was re-armed or paused is looked at now, not in a wake-up for nothing.
TEST_F(Engine, ArmKnowsTheDeadlineItself)
{
    std::vector<lawn_timer_t> timers(250);
    for (lawn_timer_t &timer : timers) {
        lawn_engine_start(engine_, &timer, msec);
        lawn_engine_start(engine_, &timer, sec);
    }
    lawn_timer_pause(lawn_engine_lawn(engine_), &timers[0]);
    lawn_engine_start(engine_, &timers[1], sec - 1);
    EXPECT_LE(lawn_engine_next(engine_), start + msec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(lawn_engine_next(engine_), start + sec - 1);
    lawn_drain(lawn_engine_lawn(engine_), nullptr);
}

TEST_F(Engine, ArmedFdWakesAtTheDeadline)
{
    // The clock stands still; the timerfd does not.
    start_timer(2 * msec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
    // The wake-up was a little early in ticks: armed anew, it comes again.
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
    EXPECT_EQ(pass_at(start + 2 * msec), "t");
    // Passed and armed, it sleeps again.
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
    start_timer(LAWN_TIME_INFINITY);
    start_timer(LAWN_TIME_INFINITY - 1 - now_);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
    start_timer(100); // shorter than the kernel's own latency
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
}

// A clock that runs back between passes, which no real one does, shows when the
// timerfd is set: the time left is in it.
TEST_F(Engine, ArmSetsTheTimerfdOnlyWhenItMust)
{
    start_timer(3600 * sec);
    const lawn_time_t almost = lawn_engine_next(engine_) - 1000;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    now_ = almost;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK); // the same deadline
    EXPECT_FALSE(is_readable(2));
    start_timer(500);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
    now_ = start;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK); // the same, but run out
    EXPECT_FALSE(is_readable(0));
}

// A counter that goes on while the kernel's clock stands, as in suspend, or
// jumps or is a little faster: what remains of the same deadline is less than
// the timerfd says.
TEST_F(Engine, ArmFollowsAClockThatHasGoneForward)
{
    start_timer(2 * sec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_GT(kernel.set_to, sec);
    now_ += 2 * sec - 500;
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_LT(kernel.set_to, msec);
    EXPECT_TRUE(is_readable(long_msec));
}

// With nothing to wait for, the timerfd is set by another thread alone.
TEST_F(Engine, AWakeUpWakesOnce)
{
    lawn_shared_t timer;
    lawn_shared_init(&timer, lawn_engine_box(engine_),
                     [](lawn_shared_t *, lawn_time_t) {});
    pass();
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(lawn_shared_start(&timer, now_));
    EXPECT_TRUE(is_readable(long_msec));
    pass();
    pass();
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(0));
    lawn_shared_retire(&timer, nullptr);
    pass();
}

TEST_F(Engine, WhatAnotherThreadHasSentIsNoTimeOut)
{
    lawn_box_t *const box = lawn_engine_box(engine_);
    lawn_shared_t timer;
    lawn_shared_init(&timer, box, [](lawn_shared_t *, lawn_time_t) {});
    pass();
    EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_TIMED_OUT);
    EXPECT_TRUE(lawn_shared_start(&timer, now_));
    EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_OK);
    // Its message comes while the engine sleeps, and the clock stands still.
    pass();
    pass();
    kernel.on_epoll_wait = [&, calls = 0]() mutable {
        if (++calls == 2) { // the first does not block
            EXPECT_TRUE(lawn_shared_start(&timer, now_));
        }
    };
    EXPECT_EQ(lawn_engine_wait(engine_, 3600 * sec), LAWN_OK);
    kernel.on_epoll_wait = nullptr;
    pass();
    lawn_shared_retire(&timer, nullptr);
    pass();
}

TEST_F(Engine, ASpanBelowANanosecondIsWaitedFor)
{
    params_.ticks_per_sec = 1e12;
    create();
    start_timer(100);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
}

TEST_F(Engine, ASpanBeyond64BitsOfNanosecondsIsWaitedFor)
{
    params_.ticks_per_sec = 1;
    create();
    start_timer(LAWN_TIME_INFINITY - 1 - now_);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_FALSE(is_readable(2));
}

// The timerfd has run out, a little early in ticks, and a source is ready, too.
TEST_F(Engine, ArmIsBusyWhenTheTimerfdRanOutFirst)
{
    const int fd = event_fd(0);
    add('a', fd);
    start_timer(100);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
    ASSERT_EQ(eventfd_write(fd, 1), 0);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
}

TEST_F(Engine, WaitIsNeverEarly)
{
    EXPECT_EQ(lawn_engine_wait(engine_, 0), LAWN_ERR_TIMED_OUT);
    lawn_time_t before = monotonic();
    EXPECT_EQ(lawn_engine_wait(engine_, 2 * msec), LAWN_ERR_TIMED_OUT);
    EXPECT_GE(monotonic() - before, 2 * msec);
    start_timer(2 * msec);
    before = monotonic();
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    EXPECT_GE(monotonic() - before, lawn_engine_next(engine_) - now_);
    // The earlier of both.
    EXPECT_EQ(lawn_engine_wait(engine_, msec), LAWN_ERR_TIMED_OUT);

    // On a clock that is slower than it says, as any is by a little.
    params_.clock = [](void *) { return monotonic() / 2; };
    create();
    before = monotonic();
    EXPECT_EQ(lawn_engine_wait(engine_, 2 * msec), LAWN_ERR_TIMED_OUT);
    EXPECT_GE(monotonic() - before, 4 * msec - 2);
}

TEST_F(Engine, WaitEndsWithASignal)
{
    // Stays: a last signal may be on its way when the test is over.
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
    // Again and again, since the first may come before the wait.
    const itimerval every_msec = {{0, 1000}, {0, 1000}};
    const itimerval never = {};
    ASSERT_EQ(setitimer(ITIMER_REAL, &every_msec, nullptr), 0);
    EXPECT_EQ(lawn_engine_wait(engine_, LAWN_TIME_INFINITY), LAWN_OK);
    setitimer(ITIMER_REAL, &never, nullptr);
}

TEST_F(Engine, ASleepIsNoStall)
{
    pass();
    // From the armed time on, the program is expected back.
    start_timer(sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    pass_at(lawn_engine_next(engine_) + 10 * msec - 1);
    EXPECT_EQ(stats().stalls, 0U);
    start_timer(sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    pass_at(lawn_engine_next(engine_) + 10 * msec);
    EXPECT_EQ(stats().stalls, 1U);
    EXPECT_EQ(stats().worst_stall, 10 * msec);
    // A source woke it before: then as ever.
    start_timer(sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    pass_at(now_ + 100 * msec);
    EXPECT_EQ(stats().stalls, 1U);
    pass_at(now_ + 100 * msec);
    EXPECT_EQ(stats().stalls, 2U);
    for (Timer &i : timers_) {
        lawn_engine_stop(engine_, &i.timer);
    }
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
    for (const rlim_t spare : {rlim_t{1}, rlim_t{2}}) {
        const rlimit few = {static_cast<rlim_t>(fd) + spare, before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
        const lawn_status_t statuses[] = {
            lawn_engine_arm(engine_),
            lawn_engine_wait(engine_, 1),
            lawn_engine_add(engine_, call, nullptr, fd, nullptr),
        };
        const int epoll_fd = lawn_engine_fd(engine_);
        const int error = errno;
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        for (const lawn_status_t status : statuses) {
            EXPECT_EQ(status, LAWN_ERR_IO);
        }
        EXPECT_EQ(epoll_fd, -1);
        EXPECT_EQ(error, EMFILE);
        EXPECT_EQ(lowest_free_fd(), fd + 1);
    }
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_EQ(fcntl(lawn_engine_fd(engine_), F_GETFD), FD_CLOEXEC);
}

} // namespace
