// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Processes, FIFOs and one file of shared memory, for explored threads that are
// processes of their own. This stands in the place of src/shm/files.cc, and of
// the system calls that the rest of src/shm makes.

#include "machine.h"
#include "system.h"

#include "base/ticks.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

using namespace explore;
using namespace lawn;

namespace explore
{

void be_process(pid_t pid)
{
    the.process = pid;
}

void put_into_process(unsigned thread, pid_t pid)
{
    the.processes[thread] = pid;
}

void *shared_file()
{
    return the.file;
}

namespace
{

// That has the number now.
Process process_of(pid_t pid)
{
    return {pid, shm::birth_of(pid)};
}

} // namespace

size_t fifo_count()
{
    return the.fifo_names.size();
}

void end_process(unsigned thread)
{
    the.dead[process_of(the.processes[thread])].join(
        explorer().memory().view_of(thread));
}

void use_pid_again(pid_t pid)
{
    ++the.births[pid];
}

namespace
{

int open_fifo_fd(const char *name)
{
    const auto i = the.fifo_names.find(name);
    if (i == the.fifo_names.end()) {
        errno = ENOENT;
        return -1;
    }
    the.fifo_fds[the.next_fd] = i->second;
    return the.next_fd++;
}

} // namespace

} // namespace explore

uint32_t shm::clock_of(lawn_clock_fn_t)
{
    return 0;
}

lawn_status_t shm::lock_file(int, Lock)
{
    return LAWN_OK;
}

lawn_status_t shm::find_lock(int)
{
    return LAWN_OK;
}

lawn_status_t shm::lock_path(const char *, mode_t, int *fd_p, size_t *size_p,
                             bool *is_new_p)
{
    *fd_p = the.next_fd++;
    *size_p = 0;
    *is_new_p = true;
    return LAWN_OK;
}

void shm::remove_leftovers(const char *, int, size_t)
{
}

uint64_t shm::birth_of(pid_t pid)
{
    const auto i = the.births.find(pid);
    return i == the.births.end() ? 1 : 1 + i->second;
}

int shm::open_process(pid_t pid, uint64_t birth)
{
    explorer().step("pidfd_open");
    const Process process = process_of(pid);
    const bool is_gone =
        the.dead.count(process) > 0 || (birth != 0 && birth != process.second);
    explorer().learned(is_gone);
    if (is_gone) {
        errno = ESRCH;
        return -1;
    }
    the.pidfds[the.next_fd] = process;
    return the.next_fd++;
}

bool shm::has_ended(int process)
{
    explorer().step("poll of a process");
    const bool has = is_readable(process);
    explorer().learned(has);
    return has;
}

lawn_status_t shm::make_absolute(const char *path, char (&to)[longest_name])
{
    snprintf(to, sizeof(to), "%s", path);
    return LAWN_OK;
}

void shm::name_fifo(char *name, const char *path, uint32_t epoch,
                    uint32_t number)
{
    snprintf(name, longest_name, "%s.%u.%u", path, epoch, number);
}

void shm::close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void shm::unlink_own(const char *, int)
{
}

int shm::open_fifo(const char *name)
{
    explorer().step("open");
    const int fd = open_fifo_fd(name);
    explorer().learned(fd >= 0);
    return fd;
}

void shm::write_fifo(int fd)
{
    explorer().step("write to a FIFO");
    Fifo &fifo = the.fifos[the.fifo_fds[fd]];
    fifo.is_full = true;
    if (explorer().is_running()) {
        explorer().memory().publish(explorer().current(), &fifo.view);
    }
}

void shm::empty_fifo(int fd)
{
    explorer().step("read from a FIFO");
    (void)is_readable(fd);
    the.fifos[the.fifo_fds[fd]].is_full = false;
}

// NOLINTBEGIN: names are the linker's
extern "C" {

pid_t __real_getpid();

pid_t __wrap_getpid()
{
    if (!is_on) {
        return __real_getpid();
    }
    return explorer().is_running() ? the.processes[explorer().current()]
                                   : the.process;
}

int __real_poll(pollfd *fds, nfds_t count, int msec);

int __wrap_poll(pollfd *fds, nfds_t count, int msec)
{
    if (!is_on) {
        return __real_poll(fds, count, msec);
    }
    explorer().wait("poll", [fds, count] {
        return std::any_of(fds, fds + count, [](const pollfd &i) {
            return is_readable(i.fd, false);
        });
    });
    int ready = 0;
    for (nfds_t i = 0; i < count; ++i) {
        fds[i].revents = is_readable(fds[i].fd) ? POLLIN : 0;
        explorer().learned(static_cast<uint64_t>(fds[i].revents));
        ready += fds[i].revents != 0;
    }
    return ready;
}

int __real_open64(const char *name, int flags, ...);

int __wrap_open64(const char *name, int flags, ...)
{
    if (!is_on) {
        va_list list;
        va_start(list, flags);
        const int mode = va_arg(list, int);
        va_end(list);
        return __real_open64(name, flags, mode);
    }
    return the.next_fd++;
}

int __wrap_posix_fallocate64(int, off_t, off_t size)
{
    the.file_size = static_cast<size_t>(size);
    return 0;
}

void *__real_mmap64(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset);

void *__wrap_mmap64(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset)
{
    if (!is_on || fd < first_fd) {
        return __real_mmap64(at, size, protection, flags, fd, offset);
    }
    if (!the.file) {
        the.file = explorer().memory().allocate(size);
    }
    return the.file;
}

int __real_munmap(void *at, size_t size);

int __wrap_munmap(void *at, size_t size)
{
    return is_on && at == the.file ? 0 : __real_munmap(at, size);
}

int __real_fstat64(int fd, struct stat *about);

int __wrap_fstat64(int fd, struct stat *about)
{
    if (!is_on) {
        return __real_fstat64(fd, about);
    }
    *about = {};
    about->st_mode = 0600;
    about->st_size = static_cast<off_t>(the.file_size);
    return 0;
}

int __real_unlink(const char *name);

int __wrap_unlink(const char *name)
{
    if (!is_on) {
        return __real_unlink(name);
    }
    explorer().step("unlink");
    the.fifo_names.erase(name);
    return 0;
}

int __wrap_mkfifo(const char *name, mode_t)
{
    explorer().step("mkfifo");
    const bool is_there = the.fifo_names.count(name) > 0;
    explorer().learned(is_there);
    if (is_there) {
        errno = EEXIST;
        return -1;
    }
    const int number = static_cast<int>(the.fifos.size());
    the.fifo_names[name] = number;
    the.fifos[number] = {};
    return 0;
}

void *__real_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return is_on ? explorer().memory().allocate(size) : __real_malloc(size);
}

void __real_free(void *memory);

void __wrap_free(void *memory)
{
    if (explorer().memory().has(memory)) {
        explorer().memory().release(memory);
    } else {
        __real_free(memory);
    }
}

int __wrap_rename(const char *, const char *)
{
    return 0;
}

int __wrap_fchmod(int, mode_t)
{
    return 0;
}

int __wrap_fchown(int, uid_t, gid_t)
{
    return 0;
}

} // extern "C"
// NOLINTEND
