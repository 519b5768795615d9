// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of the clock where the kernel refuses what it asks for, as
// containers do: it has to find a rate all the same. (Linked with --wrap; meson
// asks for 64-bit file offsets, hence the names.) The choice is made once per
// process, so each test is a child's.

#include <lawn/time.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <functional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

// What is refused, and how often it was asked for.
bool no_open;
bool no_read;
bool empty_read;
bool no_perf;
bool no_mmap;
unsigned refused;

} // namespace

extern "C" {

int __real_open64(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *data, size_t size);
void *__real_mmap64(void *address, size_t size, int access, int flags, int fd,
                    off_t offset);
long __real_syscall(long number, ...);

int __wrap_open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (no_open) {
        ++refused;
        errno = ENOENT;
        return -1;
    }
    return __real_open64(path, flags, mode);
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    if (no_read || empty_read) {
        ++refused;
        if (empty_read) {
            *static_cast<char *>(data) = '\n';
            return 1;
        }
        errno = EIO;
        return -1;
    }
    return __real_read(fd, data, size);
}

void *__wrap_mmap64(void *address, size_t size, int access, int flags, int fd,
                    off_t offset)
{
    if (no_mmap && fd >= 0) {
        ++refused;
        errno = EPERM;
        return MAP_FAILED;
    }
    return __real_mmap64(address, size, access, flags, fd, offset);
}

// perf_event_open() only, in what is linked here. Where it is forbidden
// anyway, any file may stand for it.
long __wrap_syscall(long, ...)
{
    if (no_perf) {
        ++refused;
        errno = EACCES;
        return -1;
    }
    return __real_open64("/dev/null", O_RDONLY | O_CLOEXEC);
}
}

namespace
{

int lowest_free_fd()
{
    const int fd = __real_open64("/dev/null", O_RDONLY);
    close(fd);
    return fd;
}

// In a child that `refuse` has prepared: a clock that runs, no fd left open.
// The TSC is not taken for one unasked.
bool finds_a_clock(const std::function<void()> &refuse)
{
    const pid_t child = fork();
    if (child == 0) {
        const int free_fd = lowest_free_fd();
        refuse();
        lawn_clock_info_t info;
        const bool good =
            lawn_clock_query(&info) == LAWN_OK && info.ticks_per_sec > 1000 &&
            lawn_get_time() <= lawn_get_time() && lowest_free_fd() == free_fd;
        const bool has_asked = refused == 1 || info.source != LAWN_CLOCK_TSC;
        exit(good && has_asked ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

TEST(ClockRefusal, OfTheNameOfTheClocksource)
{
    EXPECT_TRUE(finds_a_clock([] { no_open = true; }));
    EXPECT_TRUE(finds_a_clock([] { no_read = true; }));
    EXPECT_TRUE(finds_a_clock([] { empty_read = true; }));
}

TEST(ClockRefusal, OfPerfEvents)
{
    EXPECT_TRUE(finds_a_clock([] { no_perf = true; }));
    EXPECT_TRUE(finds_a_clock([] { no_mmap = true; }));
}

} // namespace
