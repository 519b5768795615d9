// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// What owner and clients use beside the memory: its file and the locks of it,
// the FIFOs that wake sleepers, and what is known about processes.

#include "shm/layout.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace lawn;
using namespace lawn::shm;

uint32_t shm::clock_of(lawn_clock_fn_t clock)
{
    lawn_clock_info_t info = {};
    lawn_clock_query(&info);
    return clock ? own_clock : static_cast<uint32_t>(info.source);
}

namespace
{

// Returns false if the file, which has that size, is no memory of timers.
bool read_header(int fd, size_t size, Header *header)
{
    return pread(fd, header, sizeof(*header), 0) == sizeof(*header) &&
           header->magic == magic &&
           fits(header->slot_count, header->client_count, size);
}

// Opens the file at `path`, or makes it. Returns -1 with errno, which is EEXIST
// if the file is of another kind.
int open_or_make(const char *path, mode_t mode, bool *is_new_p)
{
    *is_new_p = false;
    for (;;) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 && (errno == EISDIR || errno == ENXIO)) {
            errno = EEXIST; // a directory or a socket
            return -1;
        }
        if (fd >= 0 || errno != ENOENT) {
            return fd;
        }
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        *is_new_p = fd >= 0;
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
        // Somebody else has made it meanwhile, or it is a link to nothing.
        struct stat about = {};
        lstat(path, &about);
        if (S_ISLNK(about.st_mode)) {
            errno = EEXIST;
            return -1;
        }
    }
}

// Whether this program has a file open by another descriptor than this one. A
// file about which the system does not tell is taken for open. /proc/self would
// tell nothing after the end of the main thread.
bool has_open(int file)
{
    DIR *const fds = opendir("/proc/thread-self/fd");
    if (!fds) {
        return true;
    }
    struct stat own = {};
    fstat(file, &own);
    unsigned count = 0;
    while (const dirent *const entry = readdir(fds)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        struct stat about = {};
        fstat(atoi(entry->d_name), &about);
        count += about.st_dev == own.st_dev && about.st_ino == own.st_ino;
    }
    closedir(fds);
    return count > 1;
}

// Whether the owner that has locked the file is gone. Its children have the
// lock as long as they live, if they were forked without exec(). An owner that
// has called exec() itself is this process, but has the file no more.
bool is_orphan(int fd, size_t size)
{
    Header header = {};
    if (!read_header(fd, size, &header)) {
        return false;
    }
    const int owner = open_process(header.owner, header.birth);
    const bool is_gone = owner < 0 && errno == ESRCH;
    close_fd(owner);
    return is_gone || (header.owner == getpid() && !has_open(fd));
}

// Returns OK if the file is empty, or a memory of timers of any version. Any
// other file is somebody else's, and must not be replaced.
lawn_status_t check_contents(int fd, const struct stat &about)
{
    constexpr uint64_t version = uint64_t{0xff} << 56;
    uint64_t found = 0;
    const bool is_regular = S_ISREG(about.st_mode);
    if (is_regular && about.st_size == 0) {
        return LAWN_OK;
    }
    if (is_regular && pread(fd, &found, sizeof(found), 0) == sizeof(found) &&
        ((found ^ magic) & ~version) == 0) {
        return LAWN_OK;
    }
    errno = EEXIST;
    return LAWN_ERR_IO;
}

} // namespace

// The lock belongs to the open file. It ends when the process and its children,
// which inherit the file, have ended.
lawn_status_t shm::lock_file(int fd, Lock which)
{
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_start = which;
    lock.l_len = 1;
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

lawn_status_t shm::lock_path(const char *path, mode_t mode, int *fd_p,
                             size_t *size_p, bool *is_new_p)
{
    for (;;) {
        const int fd = open_or_make(path, mode, is_new_p);
        if (fd < 0) {
            return LAWN_ERR_IO;
        }
        struct stat locked = {};
        struct stat there = {};
        lawn_status_t status = lock_file(fd, making);
        if (status == LAWN_OK && fstat(fd, &locked) != 0) {
            status = LAWN_ERR_IO;
        }
        const size_t size = static_cast<size_t>(locked.st_size);
        status = status == LAWN_OK ? lock_file(fd, living) : status;
        if (status == LAWN_ERR_BUSY && is_orphan(fd, size)) {
            status = LAWN_OK;
        }
        // An owner that ends removes the file before it lets go of the lock, so
        // this is looked at last.
        if (status == LAWN_OK && stat(path, &there) != 0 && errno != ENOENT) {
            status = LAWN_ERR_IO;
        }
        if (status == LAWN_OK && locked.st_ino != there.st_ino) {
            close_fd(fd); // the file was removed or replaced meanwhile
            continue;
        }
        status = status == LAWN_OK ? check_contents(fd, locked) : status;
        if (status != LAWN_OK) {
            close_fd(fd);
            return status;
        }
        *fd_p = fd;
        *size_p = size;
        return LAWN_OK;
    }
}

void shm::remove_leftovers(const char *path, int fd, size_t size)
{
    Header header = {};
    char name[longest_name];
    if (!read_header(fd, size, &header)) {
        return;
    }
    const uint32_t is_closed = 1;
    [[maybe_unused]] const ssize_t ignored =
        pwrite(fd, &is_closed, sizeof(is_closed), offsetof(Header, is_closed));
    for (uint32_t i = 0; i <= header.client_count; ++i) {
        name_fifo(name, path, header.epoch, i);
        const int fifo = open_fifo(name);
        if (fifo >= 0) {
            write_fifo(fifo);
            close(fifo);
        }
        unlink(name);
    }
}

lawn_status_t shm::make_absolute(const char *path, char (&to)[longest_name])
{
    size_t length = 0;
    if (path[0] != '/') {
        if (!getcwd(to, sizeof(to))) {
            return LAWN_ERR_IO;
        }
        length = strlen(to);
        to[length++] = '/';
    }
    if (length + strlen(path) >= sizeof(to)) {
        errno = ENAMETOOLONG;
        return LAWN_ERR_IO;
    }
    memcpy(to + length, path, strlen(path) + 1);
    return LAWN_OK;
}

// The number may belong to another process by now.
int shm::open_process(pid_t pid, uint64_t birth)
{
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) {
        return -1;
    }
    const uint64_t found = birth_of(pid);
    if ((birth != 0 && found != 0 && birth != found) || has_ended(fd)) {
        close(fd);
        errno = ESRCH;
        return -1;
    }
    return fd;
}

bool shm::has_ended(int process)
{
    pollfd fd = {process, POLLIN, 0};
    return poll(&fd, 1, 0) > 0;
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

void shm::name_fifo(char *name, const char *path, uint32_t epoch,
                    uint32_t number)
{
    snprintf(name, longest_name, "%s.%u.%u", path, epoch, number);
}

void shm::close_fd(int fd)
{
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
}

void shm::unlink_own(const char *name, int fd)
{
    struct stat own = {};
    struct stat there = {};
    if (fstat(fd, &own) == 0 && lstat(name, &there) == 0 &&
        own.st_dev == there.st_dev && own.st_ino == there.st_ino) {
        unlink(name);
    }
}

int shm::open_fifo(const char *name)
{
    const int fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat about = {};
    if (fd < 0 || fstat(fd, &about) != 0) {
        close_fd(fd);
        return -1;
    }
    if (!S_ISFIFO(about.st_mode)) {
        close(fd);
        errno = EACCES;
        return -1;
    }
    return fd;
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
