// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Forks: a child has a copy of the engine's memory but the very descriptors of
// its parent. It may use both or throw them away; the parent feels nothing. And
// descriptors that a program, child or not, closes under the engine, and whose
// numbers its own files get: the engine touches none of those.

#include "engine_fixture.h"
#include "engine_kernel.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

using namespace lawn_test;

namespace
{

void signal_fd(int fd)
{
    const uint64_t one = 1;
    EXPECT_EQ(write(fd, &one, sizeof(one)), ssize_t{sizeof(one)});
}

TEST_F(Engine, ChildThatDestroysItDisturbsNothing)
{
    const int fd = event_fd(0);
    lawn_source_t *const source = add('a', fd);
    start_timer(3600 * sec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    for (const bool removes : {false, true}) {
        EXPECT_TRUE(does_well_in_a_child([&] {
            if (removes) {
                lawn_engine_remove(engine_, source);
            }
            lawn_engine_destroy(engine_);
            return true;
        }));
    }
    EXPECT_FALSE(is_readable(0));
    signal_fd(fd);
    EXPECT_TRUE(is_readable(0));
    lawn_engine_remove(engine_, source);
    EXPECT_EQ(lawn_count(lawn_engine_lawn(engine_)), 1U);
    start_timer(msec);
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(is_readable(long_msec));
}

TEST_F(Engine, ChildHasAnEngineOfItsOwn)
{
    const int shared = event_fd(0);
    const int own = event_fd(1);
    const int removed = event_fd(0);
    add('a', shared);
    lawn_source_t *const gone = add('r', removed);
    add('n'); // without an fd
    start_timer(3600 * sec);
    const lawn_time_t deadline = now_ + 3600 * sec;
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    EXPECT_TRUE(does_well_in_a_child([&] {
        lawn_engine_remove(engine_, gone);
        const bool fires = pass_at(deadline) == "ant";
        start_timer(msec);
        const bool wakes =
            lawn_engine_arm(engine_) == LAWN_OK && is_readable(long_msec);
        signal_fd(shared); // the parent's as well
        const bool sees_source = lawn_engine_arm(engine_) == LAWN_ERR_BUSY;
        add('o', own);
        lawn_engine_destroy(engine_);
        return fires && wakes && sees_source && !HasFailure();
    }));
    EXPECT_TRUE(is_readable(0)); // for what the child has done to `shared`
    uint64_t count = 0;
    EXPECT_EQ(read(shared, &count, sizeof(count)), ssize_t{sizeof(count)});
    // And for nothing else: not the child's timer, nor its source.
    EXPECT_FALSE(is_readable(2));
    signal_fd(removed);
    EXPECT_TRUE(is_readable(0));
    EXPECT_EQ(lawn_engine_next(engine_), deadline);
    EXPECT_EQ(pass_at(deadline), "arnt");
}

// Daemons close what they have inherited, and open other files instead.
TEST_F(Engine, ChildMayHaveClosedTheSources)
{
    const int fds[] = {event_fd(1), event_fd(1)};
    add('a', fds[0]);
    add('b', fds[1]);
    EXPECT_TRUE(does_well_in_a_child([&] {
        close(fds[0]);
        close(fds[1]);
        const bool is_quiet =
            open("/proc/self/exe", O_RDONLY) == fds[0] &&
            lawn_engine_arm(engine_) == LAWN_OK &&
            lawn_engine_wait(engine_, msec) == LAWN_ERR_TIMED_OUT;
        lawn_engine_destroy(engine_);
        return is_quiet;
    }));
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
}

// The deadline is the parent's, the timerfd is not.
TEST_F(Engine, ChildArmsTheSameDeadlineAnew)
{
    start_timer(3600 * sec);
    start_timer(msec);
    ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
    const int parents = kernel.set_fd;
    EXPECT_TRUE(does_well_in_a_child([&] {
        kernel = {};
        const bool is_armed = lawn_engine_arm(engine_) == LAWN_OK &&
                              kernel.set_to != 0 && is_readable(long_msec);
        lawn_engine_destroy(engine_);
        return is_armed;
    }));
    EXPECT_EQ(kernel.set_fd, parents);
}

// A source that is removed in a pass is gone at once, also for what the rest of
// the pass opens.
TEST_F(Engine, ChildRemovesSourcesInAPass)
{
    const int ready = event_fd(1);
    const int quiet = event_fd(0);
    lawn_source_t *source = nullptr;
    bool is_child = false;
    source = add(
        [&] {
            if (is_child) {
                is_child = false;
                lawn_engine_remove(engine_, source);
                add('n', quiet);
            }
            return note('a');
        },
        ready);
    EXPECT_TRUE(does_well_in_a_child([&] {
        is_child = true;
        const bool is_quiet = pass() == "a" && pass() == "n" &&
                              lawn_engine_arm(engine_) == LAWN_OK;
        lawn_engine_destroy(engine_);
        return is_quiet;
    }));
    EXPECT_EQ(lawn_engine_arm(engine_), LAWN_ERR_BUSY);
}

TEST_F(Engine, ChildWhoseSourcesShareAnFd)
{
    const int fd = event_fd(0);
    lawn_source_t *const a = add('a', fd);
    add('b', fd);
    EXPECT_TRUE(does_well_in_a_child([&] {
        const bool is_quiet = lawn_engine_arm(engine_) == LAWN_OK;
        lawn_engine_remove(engine_, a);
        signal_fd(fd);
        const bool wakes = lawn_engine_arm(engine_) == LAWN_ERR_BUSY;
        lawn_engine_destroy(engine_);
        return is_quiet && wakes;
    }));
}

// What a program opens instead: an epoll descriptor and a timerfd that is
// registered there, for the engine to take them for its own.
class Files
{
public:
    // The numbers of the first two, -1 for any, and a file to watch besides.
    Files(int epoll_fd, int timer_fd, int watched_fd)
        : watched_fd_(watched_fd),
          epoll_fd_(placed(epoll_create1(0), epoll_fd)),
          timer_fd_(placed(timerfd_create(CLOCK_MONOTONIC, 0), timer_fd)),
          event_fd_(eventfd(1, 0))
    {
        set_timer(3600);
        add(timer_fd_, 1, 0);
        // Told of once, for the first who asks.
        add(event_fd_, 2, EPOLLET);
        add(watched_fd_, 3, 0);
    }

    ~Files()
    {
        close(epoll_fd_);
        close(timer_fd_);
        close(event_fd_);
    }

    Files(const Files &) = delete;
    Files &operator=(const Files &) = delete;

    // The next time, nobody asks but this.
    bool are_untouched()
    {
        itimerspec spec = {};
        if (timerfd_gettime(timer_fd_, &spec) != 0 ||
            spec.it_value.tv_sec < 3000 || spec.it_interval.tv_sec != 5) {
            return false;
        }
        epoll_event events[8];
        if (epoll_wait(epoll_fd_, events, 8, 0) != 1 ||
            events[0].data.u64 != 2) {
            return false;
        }
        if (add(watched_fd_, 3, 0) || errno != EEXIST) {
            return false;
        }
        set_timer(0);
        const bool is_known = epoll_wait(epoll_fd_, events, 8, long_msec) == 1;
        return is_known && events[0].data.u64 == 1 &&
               events[0].events == EPOLLIN;
    }

private:
    static int placed(int fd, int number)
    {
        if (number < 0) {
            return fd;
        }
        dup2(fd, number); // closes what had it
        close(fd);
        return number;
    }

    void set_timer(time_t seconds) const
    {
        const itimerspec spec = {{5, 0}, {seconds, 1}};
        timerfd_settime(timer_fd_, 0, &spec, nullptr);
    }

    bool add(int fd, uint64_t data, uint32_t events) const
    {
        epoll_event event = {};
        event.events = EPOLLIN | events;
        event.data.u64 = data;
        return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
    }

    int watched_fd_;
    int epoll_fd_;
    int timer_fd_;
    int event_fd_;
};

struct Loss {
    bool of_epoll_fd;
    bool of_timer_fd;
};

constexpr Loss losses[] = {{true, true}, {true, false}, {false, true}};

class EngineLosesFiles : public Engine
{
protected:
    // Loses them, does `act`, and goes on as if nothing had been. False, also
    // when anything was touched that is not the engine's.
    bool survives(const Loss &loss, const std::function<bool()> &act)
    {
        const int epoll_fd = lawn_engine_fd(engine_);
        const int timer_fd = kernel.set_fd;
        bool is_well = false;
        {
            Files files(loss.of_epoll_fd ? epoll_fd : -1,
                        loss.of_timer_fd ? timer_fd : -1, fd_);
            is_well = act();
            if (engine_) {
                start_timer(msec);
                is_well = lawn_engine_arm(engine_) == LAWN_OK &&
                          lawn_engine_fd(engine_) != epoll_fd &&
                          is_readable(long_msec) && is_well;
            }
            destroy();
            is_well = files.are_untouched() && is_well;
        }
        // Not to be told from a foreign one without its timerfd; left open.
        return is_well && (loss.of_epoll_fd || close(epoll_fd) == 0);
    }

    void destroy()
    {
        lawn_engine_destroy(engine_);
        engine_ = nullptr;
    }

    // For each of the losses, in a child and here.
    void expect_survival(const std::function<bool()> &act)
    {
        for (const Loss &loss : losses) {
            SCOPED_TRACE(loss.of_epoll_fd);
            SCOPED_TRACE(loss.of_timer_fd);
            create();
            fd_ = fd_ < 0 ? event_fd(0) : fd_;
            source_ = add('s', fd_);
            start_timer(3600 * sec);
            ASSERT_EQ(lawn_engine_arm(engine_), LAWN_OK);
            EXPECT_TRUE(
                does_well_in_a_child([&] { return survives(loss, act); }));
            EXPECT_FALSE(is_readable(0));
            EXPECT_TRUE(survives(loss, act));
        }
    }

    int fd_ = -1;
    lawn_source_t *source_ = nullptr;
};

TEST_F(EngineLosesFiles, Destroy)
{
    expect_survival([this] {
        destroy();
        return true;
    });
}

TEST_F(EngineLosesFiles, Arm)
{
    expect_survival([this] { return lawn_engine_arm(engine_) == LAWN_OK; });
}

TEST_F(EngineLosesFiles, Wait)
{
    expect_survival([this] {
        return lawn_engine_wait(engine_, msec) == LAWN_ERR_TIMED_OUT;
    });
}

// What it opens instead has the sources.
TEST_F(EngineLosesFiles, Fd)
{
    expect_survival([this] {
        const bool is_quiet = !is_readable(0);
        signal_fd(fd_);
        const bool wakes = is_readable(0);
        uint64_t count = 0;
        return is_quiet && wakes &&
               read(fd_, &count, sizeof(count)) == ssize_t{sizeof(count)};
    });
}

TEST_F(EngineLosesFiles, Add)
{
    const int ready = event_fd(1);
    expect_survival([=] {
        lawn_source_t *const source = add('r', ready);
        const bool wakes = is_readable(0);
        lawn_engine_remove(engine_, source);
        return wakes;
    });
}

// Another engine's are not its own either.
TEST_F(EngineLosesFiles, ToAnotherEngine)
{
    for (const bool arms : {false, true}) {
        create();
        const int epoll_fd = lawn_engine_fd(engine_);
        close(epoll_fd);
        close(kernel.set_fd);
        lawn_engine_t *other = nullptr;
        ASSERT_EQ(lawn_engine_create(&params_, &other), LAWN_OK);
        lawn_timer_t timer = {};
        lawn_engine_start(other, &timer, msec);
        EXPECT_EQ(lawn_engine_arm(other), LAWN_OK);
        EXPECT_EQ(lawn_engine_fd(other), epoll_fd);
        if (arms) {
            EXPECT_EQ(lawn_engine_arm(engine_), LAWN_OK);
            EXPECT_NE(lawn_engine_fd(engine_), epoll_fd);
        }
        destroy();
        pollfd fd = {epoll_fd, POLLIN, 0};
        EXPECT_EQ(poll(&fd, 1, long_msec), 1);
        EXPECT_EQ(fd.revents, POLLIN);
        EXPECT_EQ(lawn_engine_fd(other), epoll_fd);
        lawn_engine_destroy(other);
    }
}

TEST_F(EngineLosesFiles, Remove)
{
    expect_survival([this] {
        lawn_engine_remove(engine_, source_);
        return true;
    });
}

} // namespace
