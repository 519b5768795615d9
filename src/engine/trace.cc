// Copyright (c) The Lawn authors. SPDX-License-Identifier: Apache-2.0
//
// Which file a trace goes to, and when it begins and ends. Processes that are
// given the same name, such as a server and its client, take different files.

#include "engine/trace.h"

#include "engine/engine.h"
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lawn
{

unsigned trace_count;

namespace
{

// False, with errno, when another engine writes to the file (EACCES or EAGAIN),
// or the kernel does not say what it is. A lock of a
// process would not keep out another engine of this process, and would be lost
// when any descriptor of the file is closed. So the lock belongs to this
// opening of the file. What is no file, such as /dev/null, and what cannot be
// locked, needs no lock.
bool take_file(int fd)
{
    struct stat file = {};
    if (fstat(fd, &file) != 0) {
        return false;
    }
    if (S_ISREG(file.st_mode)) {
        struct flock lock = {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        if (fcntl(fd, F_OFD_SETLK, &lock) != 0 &&
            (errno == EACCES || errno == EAGAIN)) {
            return false;
        }
        // Not emptied before, for it may have been another's.
        [[maybe_unused]] const int ignored = ftruncate(fd, 0);
    }
    // Writing waits for the reader of a FIFO, though opening does not.
    fcntl(fd, F_SETFL, 0);
    return true;
}

// Fails with ENXIO for a FIFO without a reader, rather than to wait for one.
int open_to_write(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                0666);
}

// Opens the first of `name`, name.1, name.2, ... that no engine of this or
// another process writes to. -1, with errno, when it cannot be opened.
int open_first(const char *name)
{
    for (;;) {
        char path[PATH_MAX];
        const unsigned number =
            __atomic_fetch_add(&trace_count, 1, __ATOMIC_RELAXED);
        const int length = snprintf(path, sizeof(path),
                                    number == 0 ? "%s" : "%s.%u", name, number);
        if (static_cast<size_t>(length) >= sizeof(path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open_to_write(path);
        if (fd < 0 || take_file(fd)) {
            return fd;
        }
        const int error = errno;
        close(fd);
        if (error != EACCES && error != EAGAIN) {
            errno = error;
            return -1;
        }
    }
}

int open_this(const char *path)
{
    const int fd = open_to_write(path);
    if (fd >= 0 && !take_file(fd)) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// Begins to write to what `open_file` opens of `name`.
lawn_status_t begin(Engine *engine, const char *name,
                    int (*open_file)(const char *name))
{
    Trace *const trace =
        make_trace(engine->allocator, engine->ticks_per_sec, engine->budget);
    if (!trace) {
        return LAWN_ERR_NO_MEMORY;
    }
    const int fd = open_file(name);
    if (fd < 0 || !write_to(trace, fd)) {
        const int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        end_trace(trace);
        errno = error;
        return LAWN_ERR_IO;
    }
    engine->trace = trace;
    return LAWN_OK;
}

void observe_for_trace(Engine *engine)
{
    lawn_observe(engine->lawn, observer_of(engine->trace));
}

} // namespace

lawn_status_t open_trace(Engine *engine)
{
    const char *const name = secure_getenv("LAWN_TRACE");
    if (!name || *name == '\0') {
        return LAWN_OK;
    }
    const lawn_status_t status = begin(engine, name, open_first);
    if (status == LAWN_OK) {
        observe_for_trace(engine);
    } else if (status == LAWN_ERR_IO) {
        // Whoever has set the variable seldom sees the status.
        const int error = errno;
        fprintf(stderr, "lawn: LAWN_TRACE=%s: %s\n", name, strerror(error));
        errno = error;
    }
    return status;
}

LAWN_COLD_PATH void trace_conn(lawn_engine_t *handle, const char *event,
                               const lawn_timer_t *conn, uint64_t value)
{
    const Engine *const engine = impl_of(handle);
    if (engine->trace) {
        record_conn(engine->trace, event, conn, engine->now, value);
    }
}

void trace_stall(const Engine *engine, lawn_time_t gap, lawn_time_t now)
{
    if (engine->trace) {
        record_stall(engine->trace, gap, now);
    }
}

void close_trace(Engine *engine)
{
    if (engine->trace) {
        end_trace(engine->trace);
        engine->trace = nullptr;
    }
}

} // namespace lawn

using namespace lawn;

lawn_status_t lawn_engine_trace(lawn_engine_t *handle, const char *path)
{
    Engine *const engine = impl_of(handle);
    if (!engine || is_busy(engine->lawn)) {
        return LAWN_ERR_INVALID_PARAM;
    }
    lawn_t *const lawn = engine->lawn;
    if (engine->trace) {
        lawn_unobserve(lawn, observer_of(engine->trace));
    }
    close_trace(engine);
    if (!path) {
        return LAWN_OK;
    }
    if (lawn->observer) {
        return LAWN_ERR_BUSY;
    }
    const lawn_status_t status = begin(engine, path, open_this);
    if (status == LAWN_OK) {
        record_timers(engine->trace, lawn);
        observe_for_trace(engine);
    }
    return status;
}
