// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// A kernel that refuses: each system call that sleeping makes, by turns.
// (Linked with --wrap.) The call says so, with errno, nothing is left open, and
// the next one does as if nothing had been. Other tests see through
// engine_kernel.h what was called.

#include "engine_fixture.h"
#include "engine_kernel.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

lawn_test::Kernel lawn_test::kernel;

namespace
{

constexpr int refusal = ENOMEM;
unsigned left = UINT_MAX; // calls before the one that is refused

bool is_refused()
{
    if (left != 0) {
        left -= left != UINT_MAX;
        return false;
    }
    left = UINT_MAX;
    errno = refusal;
    return true;
}

} // namespace

extern "C" {

int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epoll_fd, int op, int fd, epoll_event *event);
int __real_epoll_wait(int epoll_fd, epoll_event *events, int room, int timeout);
int __real_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const itimerspec *value,
                           itimerspec *old_value);

int __wrap_epoll_create1(int flags)
{
    return is_refused() ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, epoll_event *event)
{
    // One that changes nothing asks what a descriptor is; where the kernel says
    // no, it is not the engine's.
    return op != EPOLL_CTL_MOD && is_refused()
               ? -1
               : __real_epoll_ctl(epoll_fd, op, fd, event);
}

int __wrap_epoll_wait(int epoll_fd, epoll_event *events, int room, int timeout)
{
    if (lawn_test::kernel.on_epoll_wait) {
        lawn_test::kernel.on_epoll_wait();
    }
    return is_refused() ? -1
                        : __real_epoll_wait(epoll_fd, events, room, timeout);
}

int __wrap_timerfd_create(int clock, int flags)
{
    lawn_test::kernel.clock = clock;
    return is_refused() ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const itimerspec *value,
                           itimerspec *old_value)
{
    if (is_refused()) {
        return -1;
    }
    lawn_test::kernel.set_fd = fd;
    lawn_test::kernel.set_to =
        static_cast<uint64_t>(value->it_value.tv_sec) * lawn_test::sec +
        static_cast<uint64_t>(value->it_value.tv_nsec);
    return __real_timerfd_settime(fd, flags, value, old_value);
}
}

using namespace lawn_test;

namespace
{

// Repeats a call, its first system call refused, then its second, and so on,
// until it makes fewer. How many were refused, each with IO.
template <typename Call> unsigned count_refusals(const Call &call)
{
    for (unsigned refused = 0;; ++refused) {
        left = refused;
        errno = 0;
        const lawn_status_t status = call();
        const int error = errno;
        const bool was_refused = left == UINT_MAX;
        left = UINT_MAX;
        if (!was_refused) {
            EXPECT_NE(status, LAWN_ERR_IO);
            return refused;
        }
        EXPECT_EQ(status, LAWN_ERR_IO);
        EXPECT_EQ(error, refusal);
    }
}

TEST_F(Engine, EveryRefusalIsReportedAndLeaksNothing)
{
    const int fd = event_fd(0);
    // epoll_create1, timerfd_create, timerfd_settime, epoll_ctl for the
    // timerfd, and for `fd`.
    const unsigned live = allocations_.live;
    lawn_source_t *source = nullptr;
    EXPECT_EQ(count_refusals([&] {
                  EXPECT_EQ(source, nullptr);
                  EXPECT_EQ(allocations_.live, live);
                  return lawn_engine_add(engine_, call, nullptr, fd, &source);
              }),
              5U);
    lawn_engine_remove(engine_, source);
    start_timer(3600 * sec);
    // epoll_wait, timerfd_settime.
    EXPECT_EQ(count_refusals([this] { return lawn_engine_arm(engine_); }), 2U);
    EXPECT_FALSE(is_readable(0));
    // The same, and the epoll_wait that blocks.
    EXPECT_EQ(count_refusals(
                  [this] { return lawn_engine_wait(engine_, ++now_ - start); }),
              3U);
    EXPECT_EQ(pass_at(start + 3600 * sec), "t");
}

TEST_F(Engine, NobodyDoesNotSleep)
{
    EXPECT_EQ(lawn_engine_arm(nullptr), LAWN_ERR_INVALID_PARAM);
    EXPECT_EQ(lawn_engine_wait(nullptr, 0), LAWN_ERR_INVALID_PARAM);
}

TEST_F(Engine, FdTellsOfEveryRefusal)
{
    const int free_fd = lowest_free_fd();
    EXPECT_EQ(count_refusals([&] {
                  EXPECT_EQ(lowest_free_fd(), free_fd);
                  return lawn_engine_fd(engine_) < 0 ? LAWN_ERR_IO : LAWN_OK;
              }),
              4U);
}

TEST_F(Engine, RemoveDoesNotCareForARefusal)
{
    lawn_source_t *const source = add('a', event_fd(0));
    left = 0;
    lawn_engine_remove(engine_, source);
    EXPECT_EQ(left, UINT_MAX);
    EXPECT_EQ(pass(), "");
}

TEST_F(Engine, EveryRefusalInAChildIsReported)
{
    add('a', event_fd(0));
    add('b', event_fd(0));
    const pid_t child = fork();
    if (child == 0) {
        // As in the parent; epoll_ctl for both of the sources, epoll_wait.
        const unsigned refused =
            count_refusals([this] { return lawn_engine_arm(engine_); });
        lawn_engine_destroy(engine_);
        exit(HasFailure() ? 99 : static_cast<int>(refused));
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

} // namespace
