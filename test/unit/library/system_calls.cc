// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// The calls of the system, as tests have them (system_fixture.h).

#include "system_fixture.h"

#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

using lawn_test::pretence;
using lawn_test::refusal;

thread_local lawn_test::Refusal lawn_test::refusal;
thread_local lawn_test::Pretence lawn_test::pretence;

namespace
{

bool is_refused(const char *name)
{
    if (refusal.number == 0 ||
        (refusal.only && strcmp(name, refusal.only) != 0) ||
        ++refusal.calls != refusal.number) {
        return false;
    }
    refusal.name = name;
    errno = refusal.error;
    return true;
}

} // namespace

// Functions that return a result and set errno.
#define LAWN_WRAP(result, failed, name, parameters, arguments)                 \
    result __real_##name parameters;                                           \
    result __wrap_##name parameters                                            \
    {                                                                          \
        return is_refused(#name) ? (failed) : __real_##name arguments;         \
    }

// Functions that return an error number.
#define LAWN_WRAP_STATUS(name, parameters, arguments)                          \
    LAWN_WRAP(int, refusal.error, name, parameters, arguments)

extern "C" {

LAWN_WRAP(int, -1, open64, (const char *path, int flags, mode_t mode),
          (path, flags, mode))
LAWN_WRAP(int, -1, fstat64, (int fd, void *about), (fd, about))
LAWN_WRAP(int, -1, stat64, (const char *path, void *about), (path, about))
LAWN_WRAP(int, -1, fcntl64, (int fd, int command, void *arg),
          (fd, command, arg))
LAWN_WRAP(int, -1, ftruncate64, (int fd, off_t size), (fd, size))
LAWN_WRAP(ssize_t, -1, write, (int fd, const void *bytes, size_t size),
          (fd, bytes, size))

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    if (is_refused("read")) {
        return -1;
    }
    if (!pretence.text) {
        return __real_read(fd, bytes, size);
    }
    const size_t count = strnlen(pretence.text, size);
    memcpy(bytes, pretence.text, count);
    return static_cast<ssize_t>(count);
}

LAWN_WRAP(ssize_t, -1, pread64, (int fd, void *bytes, size_t size, off_t at),
          (fd, bytes, size, at))
LAWN_WRAP(void *, MAP_FAILED, mmap64,
          (void *at, size_t size, int access, int flags, int fd, off_t from),
          (at, size, access, flags, fd, from))
LAWN_WRAP(int, -1, rename, (const char *from, const char *to), (from, to))
LAWN_WRAP(int, -1, mkfifo, (const char *path, mode_t mode), (path, mode))

int __real_poll(pollfd *fds, nfds_t count, int msec);
int __wrap_poll(pollfd *fds, nfds_t count, int msec)
{
    pretence.waited_msec = msec;
    return is_refused("poll") ? -1 : __real_poll(fds, count, msec);
}

LAWN_WRAP(int, -1, epoll_create1, (int flags), (flags))
// The other operations fail only for a descriptor that is not the engine's.
int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event *event)
{
    return operation == EPOLL_CTL_ADD && is_refused("epoll_ctl")
               ? -1
               : __real_epoll_ctl(epoll, operation, fd, event);
}

LAWN_WRAP(int, -1, timerfd_create, (int clock, int flags), (clock, flags))

long __real_syscall(long number, long a, long b, long c, long d, long e,
                    long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (is_refused("syscall")) {
        return -1;
    }
    if (pretence.node && number == SYS_move_pages) {
        *reinterpret_cast<int *>(e) = *pretence.node;
        return 0;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

LAWN_WRAP_STATUS(posix_fallocate64, (int fd, off_t from, off_t size),
                 (fd, from, size))
LAWN_WRAP_STATUS(pthread_create,
                 (pthread_t * thread, const pthread_attr_t *how,
                  void *(*run)(void *), void *arg),
                 (thread, how, run, arg))
LAWN_WRAP_STATUS(pthread_atfork,
                 (void (*before)(), void (*parent)(), void (*child)()),
                 (before, parent, child))
}
