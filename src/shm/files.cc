// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What owner and clients use beside the memory: the lock of its file, the FIFOs
// that wake sleepers, and the start times of processes.

#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

using namespace lawn;

uint32_t shm::clock_of(lawn_clock_fn_t clock)
{
    lawn_clock_info_t info = {};
    lawn_clock_query(&info);
    return clock ? own_clock : static_cast<uint32_t>(info.source);
}

// The lock belongs to the open file. It ends when the process and its children,
// which inherit the file, have ended.
lawn_status_t shm::lock_file(int fd)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) {
        return LAWN_OK;
    }
    return errno == EAGAIN ? LAWN_ERR_BUSY : LAWN_ERR_IO;
}

lawn_status_t shm::find_lock(int fd)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0) {
        return LAWN_ERR_IO;
    }
    return lock.l_type != F_UNLCK ? LAWN_OK : LAWN_ERR_NO_ELEM;
}

// Reads field 22 of /proc/PID/stat. The second field, a name in parentheses,
// may contain anything, so the fields are counted from the last ')' on.
uint64_t shm::birth_of(pid_t pid)
{
    char name[64];
    char text[1024];
    snprintf(name, sizeof(name), "/proc/%d/stat", static_cast<int>(pid));
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t size = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    const char *field = strrchr(text, ')');
    for (unsigned i = 2; field && i < 22; ++i) {
        field = strchr(field + 1, ' ');
    }
    return field ? strtoull(field, nullptr, 10) : 0;
}

void shm::name_fifo(char *name, const char *path, pid_t owner, uint32_t number)
{
    snprintf(name, longest_name, "%s.%d.%u", path, static_cast<int>(owner),
             number);
}

void shm::close_fd(int fd)
{
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
}

int shm::open_fifo(const char *name)
{
    return open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

void shm::write_fifo(int fd)
{
    const char byte = 0;
    [[maybe_unused]] const ssize_t ignored = write(fd, &byte, 1);
}

void shm::empty_fifo(int fd)
{
    char bytes[256];
    while (read(fd, bytes, sizeof(bytes)) > 0) {
    }
}
